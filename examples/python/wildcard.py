"""Subscribe to all topics that match a pattern, those that appear later included."""

from __future__ import annotations

import threading

from um_cffi import Context, Message, Source, WildcardReceiver

SYMBOLS = ("AAPL", "GOOG", "IBM")
last: dict[str, bytes] = {}
done = threading.Event()


def on_message(message: Message) -> None:
    last[message.topic] = bytes(message.data)
    if len(last) == len(SYMBOLS):
        done.set()


with Context() as sending, Context() as receiving:
    everything = WildcardReceiver(receiving, "^Market/US/.*$", on_message)
    for number, symbol in enumerate(SYMBOLS, 1):
        source = Source(sending, f"Market/US/{symbol}")
        everything.wait_ready(number)  # found and joined
        source.send(b"100.00", flush=True)
    done.wait(10)
for topic in sorted(last):
    print(topic, last[topic].decode())
