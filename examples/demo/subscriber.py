"""A subscriber process of the demo, in one of two ways: a callback for each message of a receiver for each symbol, or
batches of one wildcard receiver, decoded by numpy.

Says "ready" once every topic's session has begun, reports twice a second as JSON lines, and after the input's next line
gives percentiles and histogram of the whole run and ends.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import market
import numpy

from um_cffi import Batch, Context, Message, MessageType, Receiver, ReceiverEvent, WildcardReceiver
from um_cffi.stats import LbtrmReceiverStats, LbtruReceiverStats


class Book:
    """What has arrived. Written by one thread, which is the context's callback thread or the one that takes batches."""

    def __init__(self, symbols: list[str]) -> None:
        self.waiting = {market.topic(symbol) for symbol in symbols}
        self.ready = threading.Event()
        self.received = 0
        self.lost = 0
        self.batches = 0
        self.latencies: list[numpy.ndarray] = []
        self.next_number: dict[str, int] = {}
        self.last: dict[str, tuple[str, float]] = {}

    def on_event(self, event: ReceiverEvent) -> None:
        if event.type == MessageType.BEGIN_OF_SESSION:
            self.waiting.discard(event.topic)
            if not self.waiting:
                self.ready.set()
        elif event.type in (MessageType.LOSS, MessageType.BURST_LOSS):
            self.lost += 1

    def on_message(self, message: Message) -> None:
        now = time.monotonic_ns()
        tick = market.unpack(message.data)
        symbol = message.topic[len(market.PREFIX) :]
        self.lost += tick.number - self.next_number.get(symbol, 0)
        self.next_number[symbol] = tick.number + 1
        self.last[symbol] = (tick.date, tick.price)
        self.latencies.append(numpy.array([now - tick.sent_ns]))
        self.received += 1

    def on_batch(self, batch: Batch) -> None:
        now = time.monotonic_ns()
        ticks = batch.decode(market.TICK)
        if len(ticks) == 0:
            return
        records = batch.records
        topics = records["topic"][records["type"] == MessageType.DATA]
        for topic in numpy.unique(topics).tolist():
            mine = ticks[topics == topic]
            symbol = batch.topics[topic][len(market.PREFIX) :]
            expected = self.next_number.get(symbol, 0) + len(mine)
            self.next_number[symbol] = int(mine["number"][-1]) + 1
            self.lost += self.next_number[symbol] - expected
            self.last[symbol] = (mine["date"][-1].decode(), float(mine["price"][-1]))
        self.latencies.append(now - ticks["sent_ns"].astype(numpy.int64))
        self.received += len(ticks)
        self.batches += 1

    def report(self, since: int, final: bool) -> dict[str, object]:
        window = numpy.concatenate(self.latencies[since:] or [numpy.empty(0, numpy.int64)]) / 1000
        points = numpy.percentile(window, [50, 99, 99.9, 100]) if len(window) else [0.0] * 4
        latency = dict(zip(("p50", "p99", "p99.9", "max"), (float(point) for point in points)))
        result: dict[str, object] = {
            "received": self.received,
            "lost": self.lost,
            "batches": self.batches,
            "latency_us": latency,
            "last": dict(self.last),
        }
        if final:
            result["histogram"] = numpy.histogram(numpy.clip(window, *market.BINS_US[[0, -1]]), market.BINS_US)[
                0
            ].tolist()
        return result


def repairs(ctx: Context) -> dict[str, int]:
    """Counters of the transports that repair loss themselves, over all sessions."""
    sessions = [each for each in ctx.receiver_stats() if isinstance(each, (LbtrmReceiverStats, LbtruReceiverStats))]
    return {
        "missing": sum(session.lost for session in sessions),
        "naks": sum(session.naks_sent for session in sessions),
        "unrecovered": sum(session.unrecovered_txw + session.unrecovered_tmo for session in sessions),
    }


def take_batches(receiver: WildcardReceiver, book: Book) -> None:
    for batch in receiver.batches():
        book.on_batch(batch)


def await_line(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


def main() -> None:
    settings = json.loads(sys.argv[1])
    book = Book(settings["symbols"])
    stop = threading.Event()
    told: dict[str, object] = {"monitor_interval": 1}  # which topics this process receives
    with Context(**settings["options"]) as ctx:
        if settings["batches"]:
            receiver = WildcardReceiver(ctx, market.PATTERN, on_event=book.on_event, options=told)
            threading.Thread(target=take_batches, args=(receiver, book), daemon=True).start()
        else:
            for symbol in settings["symbols"]:
                Receiver(ctx, market.topic(symbol), book.on_message, book.on_event, options=told)
        if not book.ready.wait(60):
            print(json.dumps({"error": f"no source found for {sorted(book.waiting)}"}), flush=True)
            return
        print(json.dumps({"ready": True}), flush=True)
        threading.Thread(target=await_line, args=(stop,), daemon=True).start()
        seen = 0
        while not stop.wait(0.5):
            since, seen = seen, len(book.latencies)
            print(json.dumps({**book.report(since, final=False), "repairs": repairs(ctx)}), flush=True)
        print(json.dumps({**book.report(0, final=True), "repairs": repairs(ctx)}), flush=True)


if __name__ == "__main__":
    main()
