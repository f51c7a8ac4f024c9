"""Recording: whether it keeps up, and what it costs."""

from __future__ import annotations

from cells import Cells
from part_python import figures
from report import Report


def record(cells: Cells, report: Report) -> None:
    """A recorder has to keep up with a million messages a second, and leave a core to the others."""
    found = figures(cells, "bench_record.py", "figures")
    measured = f"{found['rate'] / 1e6:.2f} M/s offered, {found['bytes_per_message']:.1f} bytes written for each"
    report.target("64 B over TCP recorded, M/s", found["rate"] / 1e6, 0.98, True, measured)
    report.target("64 B over TCP recorded, messages missing", found["lost"], 0, False)
    report.target("64 B over TCP recorded, cores of the recorder", found["cores"], 1.5, False)
