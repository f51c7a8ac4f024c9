"""Receive sessions on several threads of one context: two XSPs take them in turn."""

from __future__ import annotations

import threading

from um_cffi import XSP, Context, Message, Receiver, Source

TOPICS = ("orders", "trades")
threads: dict[str, str] = {}
done = threading.Event()


def on_message(message: Message) -> None:
    threads[message.topic] = f"{message.data.tobytes().decode()} on thread {threading.get_native_id()}"
    if len(threads) == len(TOPICS):
        done.set()


with Context() as sending, Context() as receiving, XSP(receiving), XSP(receiving):
    sources = [Source(sending, topic) for topic in TOPICS]
    receivers = [Receiver(receiving, topic, on_message, direct=True) for topic in TOPICS]
    for source, receiver in zip(sources, receivers):
        receiver.wait_ready(1, 10)
        source.send(b"received", flush=True)
    done.wait(10)
    for receiver in receivers:
        receiver.close()
for topic in sorted(threads):
    print(topic, threads[topic])
