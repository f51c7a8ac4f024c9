"""Hot failover: what a merge of two sources takes in and delivers, beside one source of the same messages."""

from __future__ import annotations

from cells import Cells, Result
from report import Report


def hot_failover(cells: Cells, report: Report) -> None:
    for size in ("64", "1000"):
        (row,) = cells.medians("two_share", ["bench_hot_failover", "--size", size])
        judge(report, row, f"{size} B")


def judge(report: Report, row: Result, what: str) -> None:
    one = figures(row, "single")
    report.note(f"{what}, plain messages to a plain receiver", figures(row, "plain"))
    report.note(f"{what}, one source, hot failover receiver", one)
    taken = 2 * row["two_share"]
    measured = f"{2 * row['two_per_s'] / 1e6:.2f} M/s taken in; one source {row['single_per_s'] / 1e6:.2f} M/s"
    report.target(f"{what}, two sources, messages taken in over one source", taken, 0.7, True, measured)
    measured = figures(row, "two")
    report.note(f"{what}, two sources, numbers delivered, {row['two_share']:.2f} of one source", measured)
    share = row["single_receiving_ns"] / row["two_receiving_ns"]
    name = "two sources, numbers delivered in the same time of the receiver's processor, over one source"
    report.note(
        f"{what}, {name}", f"{share:.2f}: {row['single_receiving_ns']:.0f} and {row['two_receiving_ns']:.0f} ns"
    )


def figures(row: Result, kind: str) -> str:
    sending, receiving = row[f"{kind}_sending_ns"], row[f"{kind}_receiving_ns"]
    return f"{row[f'{kind}_per_s'] / 1e6:.2f} M/s; a number takes {sending:.0f} ns to send, {receiving:.0f} to receive"
