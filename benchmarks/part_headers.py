"""What goes with a message beside its payload: channel, properties, application headers; beside plain messages."""

from __future__ import annotations

from cells import Cells, Result
from report import Report

# How many messages are handed to one send: as it is by default, or as many as fit.
BATCHES = {"": [], ", 65,000 B batches": ["--batch", "65000"]}
SIZES = ("64", "1000")


def headers(cells: Cells, report: Report) -> None:
    for size in SIZES:
        for batches, arguments in BATCHES.items():
            (row,) = cells.medians("channel_share", ["bench_headers", "--size", size, *arguments])
            judge(report, row, f"{size} B{batches}")


def judge(report: Report, row: Result, what: str) -> None:
    report.note(f"{what}, plain", figures(row, "plain"))
    report.target(f"{what}, channel over plain", row["channel_share"], 0.95, True, figures(row, "channel"))
    measured = figures(row, "properties")
    report.target(f"{what}, three properties over plain", row["properties_share"], 0.5, True, measured)
    report.note(f"{what}, three properties, all read by the receiver", figures(row, "looked"))
    report.note(f"{what}, three properties, set anew for each message", figures(row, "set"))
    report.note(f"{what}, application header of 8 bytes", figures(row, "apphdr"))


def figures(row: Result, kind: str) -> str:
    rate, share = row[f"{kind}_per_s"] / 1e6, row[f"{kind}_share"]
    sending, receiving = row[f"{kind}_sending_ns"], row[f"{kind}_receiving_ns"]
    return f"{rate:.2f} M/s, {share:.2f} of plain; a message takes {sending:.0f} ns to send, {receiving:.0f} to receive"
