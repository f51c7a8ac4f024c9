"""Monitoring: what `um exporter` takes and tells of a fleet of ten thousand objects, and what strangers cost it."""

from __future__ import annotations

from cells import Cells
from part_python import figures
from report import Report


def monitoring(cells: Cells, report: Report) -> None:
    """An operator waits two seconds at most; Prometheus is served within a tenth; memory stays."""
    found = figures(cells, "bench_monitoring.py", "figures", "--runs", "1")
    what = f"{found['megabytes']:.0f} MB of text, {found['cores']:.2f} cores in all"
    report.target("10,000 objects a second, scrape of all, ms", found["scrape_ms"], 100, False, what)
    slowest = f"slowest scrape {found['scrape_max_ms']:.0f} ms, as it was not expected"
    report.target("10,000 objects a second, seconds from a record to its scrape", found["lag"], 2.0, False, slowest)
    report.target("10,000 objects a second, records dropped", found["dropped"], 0, False)
    storm = f"{found['flood_rate'] / 1e3:.0f} k/s forged, {found['flood_left_out'] / 1e3:,.0f} k left out and counted"
    report.target("the same beside forged records, seconds to a scrape", found["flood_lag"], 5.0, False, storm)
    forged = f"scrapes {found['flood_scrape_ms']:.0f} ms"
    report.target("the same beside forged records, MiB they occupy", found["flood_growth"], 64, False, forged)
    churn = f"{found['churn_objects'] / 1e3:.0f} k objects came and went"
    report.target("an hour of churn in virtual time, MiB of growth", found["churn_growth"], 1.0, False, churn)
