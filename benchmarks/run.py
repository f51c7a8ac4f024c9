"""Run the benchmarks, print each figure beside its target, write the tables of docs/performance.md and plots.

Usage: python benchmarks/run.py [--build DIR] [--out DIR] [--runs N] [--seconds S] [--only PART] [--no-page]

Everything runs on interfaces of network namespaces of its own, on two pinned cores. Each figure is the median of N
runs, and every ratio compares figures of this same run. The exit status is 1 when a target is missed, or a part could
not be measured: the others are, and that one's table stays as it was.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import part_encodings
import part_headers
import part_hot_failover
import part_latejoin
import part_lz4
import part_monitored
import part_monitoring
import part_python
import part_record
import part_request
import part_shared_memory
import part_smart
import part_spark
import part_srs
import part_tcp
import part_tls
import part_udp
import part_web
import part_xsp
from cells import Cells
from plots import plot_throughput
from report import Report

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"

Measure = Callable[[Cells, Report, Path], None]
PARTS: dict[str, Measure] = {
    "throughput": lambda cells, report, _: part_tcp.throughput(cells, report),
    "latency": lambda cells, report, _: part_tcp.latency(cells, report),
    "tls": lambda cells, report, _: part_tls.tls(cells, report),
    "lz4": lambda cells, report, _: part_lz4.lz4(cells, report),
    "udp": lambda cells, report, _: part_udp.reliable_udp(cells, report),
    "udp-peers": lambda cells, report, _: part_udp.udp_peers(cells, report),
    "ipc": lambda cells, report, _: part_shared_memory.ipc(cells, report),
    "smx": part_shared_memory.smx,
    "collecting": lambda cells, report, _: part_tcp.collecting(cells, report),
    "resolution": lambda cells, report, _: part_tcp.resolution(cells, report),
    "srs": lambda cells, report, _: part_srs.srs(cells, report),
    "xsp": lambda cells, report, _: part_xsp.xsp(cells, report),
    "request": lambda cells, report, _: part_request.request(cells, report),
    "smart": lambda cells, report, _: part_smart.smart(cells, report),
    "headers": lambda cells, report, _: part_headers.headers(cells, report),
    "hot-failover": lambda cells, report, _: part_hot_failover.hot_failover(cells, report),
    "latejoin": lambda cells, report, _: part_latejoin.latejoin(cells, report),
    "slow-receiver": lambda cells, report, _: part_python.slow_receiver(cells, report),
    "conflate": lambda cells, report, _: part_python.conflate(cells, report),
    "monitored": lambda cells, report, _: part_monitored.monitored(cells, report),
    "monitoring": lambda cells, report, _: part_monitoring.monitoring(cells, report),
    "web": lambda cells, report, _: part_web.web(cells, report),
    "record": lambda cells, report, _: part_record.record(cells, report),
    "spark": lambda cells, report, _: part_spark.spark(cells, report),
    "encodings": lambda cells, report, _: part_encodings.encodings(cells, report),
    "python": lambda cells, report, _: part_python.binding(cells, report),
    "python-smx": lambda cells, report, _: part_python.shared_memory(cells, report),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", action="append", choices=PARTS, help="these parts alone, instead of all")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report(options.runs, options.seconds)
    cells = Cells(options.build, options.runs, options.seconds, report)
    print(f"machine: {report.machine}; A on core 0, B on core 1")
    for name in options.only or PARTS:
        report.begin(name)
        try:
            report.placed(cells.distance())
            PARTS[name](cells, report, options.out)
            report.placed(cells.distance())
        except (SystemExit, subprocess.SubprocessError) as error:  # a program failed, or did not end
            report.fail(str(error))
    report.write_results(options.out / "results.json", cells.rows)
    if not options.no_page:
        report.write_page(PAGE)
    if any(part.name == "throughput" for part in report.parts):
        plot_throughput(cells.rows, options.out / "throughput.png")
    print(f"\nresults in {options.out}/" + ("" if options.no_page else f", tables in docs/{PAGE.name}"))
    print(report.summary())
    sys.exit(1 if report.missed() or report.failed else 0)


if __name__ == "__main__":
    main()
