"""Requests and responses over TCP beside a bare ping-pong and libzmq DEALER/ROUTER; many under way, C and Python."""

from __future__ import annotations

from cells import Cells, Result, times
from part_python import figures
from report import Report

SIZE = ["--size", "64"]


def request(cells: Cells, report: Report) -> None:
    for spin in (False, True):
        there_and_back(cells, report, spin)
    pipelined(cells, report)


def there_and_back(cells: Cells, report: Report, spin: bool) -> None:
    """A request goes over the connection of its topic and the response over another: so does the bare ping-pong."""
    args = ["--mode", "pingpong", *SIZE, *(["--spin"] if spin else [])]
    programs = [("bench_tcp", "rawpair"), ("bench_request", "um")]
    if not spin:  # libzmq has no such way of waiting
        programs.append(("bench_request", "zmq"))
    bare, um, *others = cells.medians("p50_us", *([program, "--impl", impl, *args] for program, impl in programs))
    what = f"64 B asked and answered, {'spinning' if spin else 'blocking'}"
    measured = f"bare {times(bare)}, libum {times(um)} (p50 / p99 / p99.9)"
    ratio = um["p50_us"] / bare["p50_us"]
    report.target(f"{what}, p50 over the bare loop, a connection each way", ratio, 1.25, False, measured)
    for zmq in others:
        ratio = um["p50_us"] / zmq["p50_us"]
        report.target(f"{what}, p50 over libzmq DEALER/ROUTER", ratio, 1.0, False, f"libzmq {times(zmq)}")


def pipelined(cells: Cells, report: Report) -> None:
    args = ["--mode", "oneway", *SIZE]
    um, zmq = cells.medians("msgs_per_s", *(["bench_request", "--impl", impl, *args] for impl in ("um", "zmq")))
    measured = f"libum {thousands(um)}, libzmq DEALER/ROUTER, which uses a thread more on each side, {thousands(zmq)}"
    what = "64 B, 512 requests under way, C, thousands answered a second"
    report.target(what, um["msgs_per_s"] / 1e3, 200.0, True, measured)
    rate = figures(cells, "bench_request.py", "rates")["asyncio"] / 1e3
    report.target("64 B, 256 requests awaited by asyncio, thousands answered a second", rate, 50.0, True)


def thousands(result: Result) -> str:
    return f"{float(result['msgs_per_s']) / 1e3:.0f} k/s"
