"""A receiver that comes late to a source with a million messages retained, while 50,000 a second keep coming."""

from __future__ import annotations

from cells import Cells, Result
from report import Report

MESSAGES, RATE = 1_000_000, 50_000
LARGE_MESSAGES, LARGE_RATE = 100_000, 10_000


def latejoin(cells: Cells, report: Report) -> None:
    for size, messages, rate in ((64, MESSAGES, RATE), (4000, LARGE_MESSAGES, LARGE_RATE)):
        for fast in (True, False):
            options = ["--fast", str(int(fast)), "--size", str(size), "--retained", str(messages), "--rate", str(rate)]
            (row,) = cells.medians("ratio", ["bench_late_join", *options, "--give-up", "60"])
            judge(report, row, fast, f"{messages:,} messages of {size} bytes, {rate:,} more a second")


def judge(report: Report, row: Result, fast: bool, name: str) -> None:
    measured = (
        f"replayed {row['replay_per_s'] / 1e3:.1f} k/s, live TCP {row['live_per_s'] / 1e3:.1f} k/s"
        f"{'' if row['caught_up'] else ', not caught up'} in {row['seconds']:.1f} s; p99 of another receiver "
        f"{row['p99_before_us']:.0f} us before, {row['p99_busy_us']:.0f} us beside two threads that are busy with "
        f"nothing, {row['p99_during_us']:.0f} us meanwhile; memory beside what the "
        f"source retains {row['memory_bytes'] / 1e6:.1f} MB; {row['lost']} lost"
    )
    if fast:
        report.target(f"{name}, options for speed, replay over live TCP", row["ratio"], 0.3, True, measured)
        report.target(f"{name}, the same, p99 of another receiver over before", row["p99_ratio"], 1.1, False)
    else:
        report.note(f"{name}, default options", measured)
