"""The page of a fleet: what `um web` takes and shows of ten thousand objects, and what strangers cost it."""

from __future__ import annotations

from cells import Cells
from part_python import figures
from report import Report


def web(cells: Cells, report: Report) -> None:
    """Who looks at the page sees what was so two seconds ago at most, also while somebody forges records."""
    found = figures(cells, "bench_web.py", "figures", "--runs", "1")
    what = f"{found['cores']:.2f} cores, {found['resident']:.0f} MiB with the last hour"
    report.target("10,000 objects a second, age of what a browser shows, s", found["lag"], 2.0, False, what)
    slowest = f"in the middle {found['answer_ms']:.0f} ms"
    report.target("10,000 objects a second, slowest answer, ms", found["answer_max_ms"], 2000, False, slowest)
    report.target("10,000 objects a second, records dropped", found["dropped"], 0, False)
    storm = f"{found['flood_rate'] / 1e3:.0f} k/s forged, {found['flood_left_out'] / 1e3:,.0f} k left out and counted"
    report.target(
        "the same beside forged records, slowest answer, ms", found["flood_answer_max_ms"], 5000, False, storm
    )
    report.target("the same beside forged records, MiB they occupy", found["flood_growth"], 64, False)
