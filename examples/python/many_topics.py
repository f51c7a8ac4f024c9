"""Send on many topics at a fixed total rate, receive all of them, and watch the rate.

python many_topics.py [TOPICS [MESSAGES [RATE]]]
"""

from __future__ import annotations

import sys
import threading
import time

from um_cffi import Context, EventQueue, Message, Receiver, Source

topics = int(sys.argv[1]) if len(sys.argv) > 1 else 50
messages = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
rate = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
threads = 2
received: dict[str, int] = {}


def on_message(message: Message) -> None:
    received[message.topic] = received.get(message.topic, 0) + 1


def send_share(sources: list[Source], share: int) -> None:
    """Messages in turn on the sources, at this thread's part of the rate."""
    begin = time.perf_counter()
    for number in range(share):
        ahead = begin + number * threads / rate - time.perf_counter()
        if ahead > 0.001:
            time.sleep(ahead)
        sources[number % len(sources)].send(b"message %d" % number)


def report() -> None:
    print(f"{sum(received.values())} of {messages} messages on {len(received)} topics")


with EventQueue() as queue, Context() as sending, Context() as receiving:
    names = [f"29west.example.multi.{number}" for number in range(topics)]
    receivers = [Receiver(receiving, name, on_message, queue=queue) for name in names]  # one queue for all of them
    sources = [Source(sending, name) for name in names]
    for source in sources:
        source.wait_receivers(timeout=60)
    for receiver in receivers:
        receiver.wait_ready(timeout=60)
    timer = queue.call_every(0.5, report)
    shares = [(sources[at::threads], len(range(at, messages, threads))) for at in range(threads)]
    workers = [threading.Thread(target=send_share, args=share) for share in shares]
    for worker in workers:
        worker.start()
    begin = time.monotonic()
    while sum(received.values()) < messages and time.monotonic() < begin + 60:
        queue.dispatch(timeout=0.1)
    for worker in workers:
        worker.join()
    timer.cancel()
    report()
    print(f"{len(sending.source_stats())} sessions carry them, {sources[0].receivers()} receiver each")
    receiving.close()
