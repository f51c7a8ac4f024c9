"""A publisher process of the demo: one source for each of its symbols, prices replayed in turn at a fixed rate.

Waits for "go" on standard input, tells what it has sent twice a second as JSON lines, ends when the input ends.
"""

from __future__ import annotations

import json
import sys
import time

import market

from um_cffi import Context, Source, pdm


def report(ctx: Context, sent: int, done: bool) -> None:
    """`repairs`: of the transports that repair loss themselves."""
    repairs = {"retransmissions": sum(getattr(session, "rxs_sent", 0) for session in ctx.source_stats())}
    print(json.dumps({"sent": sent, "done": done, "repairs": repairs}), flush=True)


def publish(source: Source, tick: market.Tick, predefined: pdm.Definition | None) -> None:
    """As bytes of a fixed layout; or as a pre-defined message, with the time of sending as a property."""
    if predefined is None:
        source.send(market.pack(tick), flush=True)
        return
    size = 100 * (1 + tick.number % 7)
    message = predefined.message(price=tick.price, size=size, date=tick.date)
    source.send(message.to_bytes(), flush=True, properties={market.SENT: time.time_ns()})


def main() -> None:
    settings = json.loads(sys.argv[1])
    history = market.prices()
    chosen = settings.get("source_options", {})
    predefined = market.definition() if settings.get("pdm") else None
    with Context(**settings["options"]) as ctx:
        sources = {symbol: Source(ctx, market.topic(symbol), options=chosen) for symbol in settings["symbols"]}
        sys.stdin.readline()  # the subscribers have found every topic
        sent = 0
        begin = next_report = time.monotonic()
        end = begin + settings["seconds"]
        while (now := time.monotonic()) < end:
            while sent < (now - begin) * settings["rate"]:
                symbol = settings["symbols"][sent % len(sources)]
                number = sent // len(sources)
                date, price = history[symbol][number % len(history[symbol])]
                tick = market.Tick(time.monotonic_ns(), number, price, date)
                publish(sources[symbol], tick, predefined)
                sent += 1
            if now >= next_report:
                report(ctx, sent, done=False)
                next_report += 0.5
            time.sleep(0.001)
        report(ctx, sent, done=True)
        sys.stdin.readline()  # the subscribers have everything: nothing is left to repair
        report(ctx, sent, done=True)


if __name__ == "__main__":
    main()
