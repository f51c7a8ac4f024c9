"""Smart sources: what one send takes, beside lbm_src_send() in the same run."""

from __future__ import annotations

from cells import Cells, Result
from report import Report


def smart(cells: Cells, report: Report) -> None:
    for transport in ("lbt-rm", "lbt-ru"):
        for size in (64, 1000):
            (row,) = cells.medians("p50_ratio", ["bench_smart", "--transport", transport, "--size", str(size)])
            judge(report, row, f"{size} B over {transport.upper()}, one receiver")


def judge(report: Report, row: Result, name: str) -> None:
    send = "lbm_src_send() with LBM_MSG_FLUSH"
    measured = f"smart {of(row, 'smart')}, {send} {of(row, 'plain')} (p50 / p99.9 of a send)"
    report.target(f"{name}, p50 of a send over {send}", row["p50_ratio"], 1.0, False, measured)
    report.target(f"{name}, p99.9 of a send over {send}", row["p999_ratio"], 1.0, False)
    rates = f"{row['smart_per_s'] / 1e3:.0f} k/s and {row['plain_per_s'] / 1e3:.0f} k/s"
    report.target(f"{name}, sends a second over {send}", row["rate_ratio"], 1.0, True, rates)


def of(row: Result, kind: str) -> str:
    return f"{row[f'{kind}_p50_ns'] / 1e3:.2f} / {row[f'{kind}_p999_ns'] / 1e3:.1f} us"
