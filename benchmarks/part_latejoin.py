"""A receiver that comes late to a source with a million messages retained, while 50,000 a second keep coming."""

from __future__ import annotations

import statistics

from cells import Cells, Result
from report import Report

MESSAGES, RATE = 1_000_000, 50_000
LARGE_MESSAGES, LARGE_RATE = 100_000, 10_000


def latejoin(cells: Cells, report: Report) -> None:
    for size, messages, rate in ((64, MESSAGES, RATE), (4000, LARGE_MESSAGES, LARGE_RATE)):
        for fast in (True, False):
            options = ["--fast", str(int(fast)), "--size", str(size), "--retained", str(messages), "--rate", str(rate)]
            name = f"{messages:,} messages of {size} bytes, {rate:,} more a second"
            for placed in (False, True):
                command = ["bench_late_join", *options, "--placed", str(int(placed)), "--give-up", "60"]
                results = [cells.once(*command, "--seconds", cells.seconds) for _ in range(cells.runs)]
                judge(report, cells, command, results, name, placed)


def judge(report: Report, cells: Cells, command: list[str], results: list[Result], name: str, placed: bool) -> None:
    """Speed and what others feel are medians of their own: one pause of a machine decides the latter in a short run.

    What others feel is judged where the replay has a core of its own, speed where it may use both.
    """
    fast = bool(results[0]["fast"])
    row = cells.keep("ratio", " ".join(command), list(results))
    measured = (
        f"replayed {row['replay_per_s'] / 1e3:.1f} k/s, live TCP {row['live_per_s'] / 1e3:.1f} k/s"
        f"{'' if row['caught_up'] else ', not caught up'} in {row['seconds']:.1f} s; memory beside what the "
        f"source retains {row['memory_bytes'] / 1e6:.1f} MB; {row['lost']} lost"
    )
    how = f"{'options for speed' if fast else 'default options'}{', the replay on a core of its own' if placed else ''}"
    if fast and not placed:
        report.target(f"{name}, {how}, replay over live TCP", row["ratio"], 0.3, True, measured)
    else:
        report.note(f"{name}, {how}", measured)

    def median(figure: str) -> float:
        return statistics.median(float(result[figure]) for result in results)

    others = (
        f"{median('p99_before_us'):.0f} us before, {median('p99_during_us'):.0f} us meanwhile, "
        f"{median('p99_bare_us'):.0f} us beside a bare replay ({median('bare_per_s') / 1e3:.0f} k/s)"
    )
    if placed:
        report.target(f"{name}, {how}, p99 of another receiver over before", median("p99_ratio"), 1.1, False, others)
    else:
        report.note(f"{name}, {how}, p99 of another receiver over before", f"{median('p99_ratio'):.2f}: {others}")
    beside = "p99 of another receiver over that beside a bare replay"
    report.note(f"{name}, {how}, {beside}", f"{median('p99_of_bare'):.2f}")
