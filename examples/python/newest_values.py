"""A display that is slower than its data: at most the newest value of each topic waits (on_full="conflate")."""

from __future__ import annotations

import time

from um_cffi import Context, Source, WildcardReceiver

SYMBOLS = ["AAPL", "IBM", "MSFT"]

with Context() as sending, Context() as receiving:
    receiver = WildcardReceiver(receiving, "^Quotes/", on_full="conflate")
    sources = [Source(sending, f"Quotes/{symbol}") for symbol in SYMBOLS]
    receiver.wait_ready(len(SYMBOLS))
    for price in range(10_000):
        for source in sources:
            source.send(b"%d" % price)
    for source in sources:
        source.send(b"closed", flush=True)
    while receiver.counts().delivered < 10_001 * len(SYMBOLS):
        time.sleep(0.01)  # the display is busy
    for message in receiver:
        print(message.topic, bytes(message).decode())
        if receiver.queue_stats().queued_messages == 0:
            break
    stats = receiver.queue_stats()
    print(f"{stats.conflated} values were replaced by newer ones, {receiver.counts().lost} messages lost")
