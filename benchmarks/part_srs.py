"""The resolution service: a crowd of contexts and topics, with the daemon killed and restarted (requirement D4)."""

from __future__ import annotations

import sys
from pathlib import Path

from cells import Cells, run_json
from report import Report

RESOLVED_S, RETURNED_S, FEWER = 10.0, 5.0, 10.0


def srs(cells: Cells, report: Report) -> None:
    program = str(Path(__file__).with_name("bench_srs.py"))
    row = run_json([sys.executable, program, "--json", "--build", str(cells.build)])
    cells.rows.append({"cell": "bench_srs.py", **row})
    crowd = f"{row['contexts']} contexts, {row['topics']} topics"
    created = f"created in {row['created_s']:.2f} s, {row['server_s']:.2f} s of processor time of the daemon"
    report.target(f"{crowd}: all resolved after, s", row["resolved_s"], RESOLVED_S, False, created)
    packets, segments = row["multicast_all_packets"], row["segments"]
    multicast = f"by multicast {row['multicast_all_datagrams']:.0f} datagrams in {packets:.0f}"
    multicast += f" ({row['multicast_datagrams']:.0f} datagrams until all was resolved)"
    measured = f"{multicast}, from and to the daemon {segments:.0f} for {row['bytes'] / 1e6:.1f} MB"
    report.target(f"{crowd}: times fewer packets than by multicast", packets / segments, FEWER, True, measured)
    returned = max(row["late_s"], row["told_s"])
    told = f"new receivers {row['late_s']:.2f} s, a newcomer told of all {row['told_s']:.2f} s"
    report.target("the daemon killed, back 8 s later: all resolved again after, s", returned, RETURNED_S, False, told)
    report.note("meanwhile, sessions of existing receivers that ended", f"{row['ended']:.0f}")
