"""A subscriber process of the demo: a receiver for each symbol, or one wildcard receiver for all of them.

Says "ready" once every topic's session has begun, reports twice a second as JSON lines, and after the input's next line
gives the percentiles of the whole run and ends.
"""

from __future__ import annotations

import array
import json
import sys
import threading
import time

import market
import numpy

from um_cffi import Context, Message, MessageType, Receiver, ReceiverEvent, WildcardReceiver


class Book:
    """What has arrived. Written by the context's callback thread only."""

    def __init__(self, symbols: list[str]) -> None:
        self.waiting = {market.topic(symbol) for symbol in symbols}
        self.ready = threading.Event()
        self.received = 0
        self.lost = 0
        self.latencies = array.array("Q")
        self.next_number: dict[str, int] = {}
        self.last: dict[str, tuple[str, float]] = {}

    def on_event(self, message: ReceiverEvent) -> None:
        if message.type == MessageType.BEGIN_OF_SESSION:
            self.waiting.discard(message.topic)
            if not self.waiting:
                self.ready.set()
        elif message.type in (MessageType.LOSS, MessageType.BURST_LOSS):
            self.lost += 1

    def on_message(self, message: Message) -> None:
        now = time.monotonic_ns()
        tick = market.unpack(message.data)
        symbol = message.topic[len(market.PREFIX) :]
        self.lost += tick.number - self.next_number.get(symbol, 0)
        self.next_number[symbol] = tick.number + 1
        self.last[symbol] = (tick.date, tick.price)
        self.latencies.append(now - tick.sent_ns)
        self.received += 1

    def report(self, since: int, final: bool) -> dict[str, object]:
        count = len(self.latencies)
        window = numpy.frombuffer(self.latencies[since:count].tobytes(), dtype=numpy.uint64)
        points = numpy.percentile(window, [50, 99, 99.9, 100]) / 1000 if len(window) else [0.0] * 4
        latency = dict(zip(("p50", "p99", "p99.9", "max"), (float(point) for point in points)))
        return {
            "received": self.received,
            "lost": self.lost,
            "latency_us": latency,
            "last": dict(self.last),
            "final": final,
        }


def main() -> None:
    settings = json.loads(sys.argv[1])
    book = Book(settings["symbols"])
    stop = threading.Event()
    with Context(**settings["options"]) as ctx:
        if settings["wildcard"]:
            WildcardReceiver(ctx, market.PATTERN, book.on_message, book.on_event)
        else:
            for symbol in settings["symbols"]:
                Receiver(ctx, market.topic(symbol), book.on_message, book.on_event)
        if not book.ready.wait(60):
            print(json.dumps({"error": f"no source found for {sorted(book.waiting)}"}), flush=True)
            return
        print(json.dumps({"ready": True}), flush=True)
        threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
        seen = 0
        while not stop.wait(0.5):
            since, seen = seen, len(book.latencies)
            print(json.dumps(book.report(since, final=False)), flush=True)
        print(json.dumps(book.report(0, final=True)), flush=True)


if __name__ == "__main__":
    main()
