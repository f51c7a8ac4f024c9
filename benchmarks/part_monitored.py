"""What automatic monitoring costs those that are monitored: the same program without it, with it, and without it again.

Rounds take turns, so that a disturbance meets all three; the third says how far two runs of the same are apart.
"""

from __future__ import annotations

import statistics

from cells import Cells, Result, rate, times
from report import Report

ROUNDS = 7
SECONDS = "3"  # several samples in each run, at one a second
# By multicast, so that records leave whether or not somebody receives them.
RECORDS = (
    "context|default_interface=127.0.0.1/32;context|resolver_multicast_interface=127.0.0.1/32;source|transport=lbtrm"
)
PROGRAMS = (
    ("TCP", ["bench_tcp", "--impl", "um"]),
    ("LBT-RM", ["bench_udp", "--impl", "um", "--transport", "rm"]),
    ("LBT-SMX", ["bench_smx", "--impl", "um"]),
)
BATCHES = {"TCP": "8192", "LBT-RM": "8192", "LBT-SMX": "64"}
ON = {"LBM_MONITOR_INTERVAL": "1", "LBM_MONITOR_TRANSPORT_OPTS": RECORDS}
NOISE = 1.03  # of the p50 and p99 of the same program twice, on a machine with two cores


def monitored(cells: Cells, report: Report) -> None:
    """Sampling by seconds may take a hundredth of the throughput, and nothing that can be seen of the latency."""
    for name, (program, *args) in PROGRAMS:
        line = [program, *args, "--size", "64", "--mode", "oneway", "--batch", BATCHES[name]]
        off, on, again = rounds(cells, line, "msgs_per_s")
        measured = f"off {rate(off)}, on {rate(on)}; off twice {ratio(again, off, 'msgs_per_s'):.3f}"
        what = f"{name} 64 B one way, monitored each second, over not monitored"
        report.target(what, ratio(on, off, "msgs_per_s"), 0.99, True, measured)
        line = [program, *args, "--size", "64", "--mode", "pingpong"]
        off, on, again = rounds(cells, line, "p50_us")
        for figure in ("p50", "p99"):
            twice = ratio(again, off, f"{figure}_us")
            measured = f"off {times(off)}, on {times(on)} (p50 / p99 / p99.9); off twice {twice:.3f}"
            what = f"{name} 64 B there and back, monitored each second, {figure} over not monitored"
            report.target(what, ratio(on, off, f"{figure}_us"), NOISE, False, measured)


def rounds(cells: Cells, line: list[str], figure: str) -> list[Result]:
    """Medians of each figure of the program without monitoring, with it, and without it again."""
    found: list[list[Result]] = [[], [], []]
    for _ in range(ROUNDS):
        for results, env in zip(found, ({}, ON, {})):
            results.append(cells.once(*line, "--seconds", SECONDS, env=env))
    return [
        {
            **cells.keep(figure, f"{' '.join(line)}, {how}", list(results)),
            **{
                name: statistics.median(float(result[name]) for result in results)
                for name in ("msgs_per_s", "p50_us", "p99_us", "p999_us")
                if name in results[0]
            },
        }
        for how, results in zip(("not monitored", "monitored", "not monitored again"), found)
    ]


def ratio(one: Result, other: Result, figure: str) -> float:
    return float(one[figure]) / float(other[figure])
