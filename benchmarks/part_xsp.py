"""Two busy sessions received by one loop and by two XSPs."""

from __future__ import annotations

from cells import Cells
from report import Report

WORK_US = 50  # of processor time in each callback: the sessions keep a loop busy with it, not with receiving
RECEIVING_US = 2  # where what receiving costs is no longer small beside it


def xsp(cells: Cells, report: Report) -> None:
    for transport, name in (("tcp", "TCP"), ("rm", "LBT-RM")):
        for work in (WORK_US, RECEIVING_US) if transport == "tcp" else (WORK_US,):
            (row,) = cells.medians("ratio", ["bench_xsp", "--transport", transport, "--work-us", str(work)])
            what = f"{name}, two sessions, {work} us of work in each callback"
            measured = (
                f"one loop {row['one_loop_per_s'] / 1e3:.1f} k/s, {row['work_share']:.0%} of it the work; two XSPs "
                f"{row['two_xsps_per_s'] / 1e3:.1f} k/s, {row['ratio']:.2f} times that; the work alone on two threads "
                f"{row['bare_ratio']:.2f} times one"
            )
            if work == WORK_US:
                report.target(f"{what}, two XSPs over one loop", row["ratio"], 1.6, True, measured)
            else:
                report.note(what, measured)
