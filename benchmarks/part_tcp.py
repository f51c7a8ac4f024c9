"""TCP beside a bare loop of the same system calls and libzmq: throughput, latency, collectors, topic resolution."""

from __future__ import annotations

import sys
from pathlib import Path

from cells import Cells, rate, run_json, times
from report import Report

SIZES = (16, 64, 256, 1024, 8192)
BATCHES = (2048, 8192, 65536)


def throughput(cells: Cells, report: Report) -> None:
    for size in SIZES:
        for batch in BATCHES if size == 64 else (65536,):
            args = ["--mode", "oneway", "--size", str(size), "--batch", str(batch)]
            raw, um, zmq = cells.medians(
                "msgs_per_s", *(["bench_tcp", "--impl", impl, *args] for impl in ("raw", "um", "zmq"))
            )
            what = f"{size} B one way, {batch} B batches"
            measured = f"bare {rate(raw)}, libum {rate(um)}, libzmq {rate(zmq)}"
            if size != 64:
                report.note(what, measured)
                continue
            report.target(f"{what}, share of the bare loop", um["msgs_per_s"] / raw["msgs_per_s"], 0.5, True, measured)
            if batch == 65536:
                report.target(f"{what}, times libzmq", um["msgs_per_s"] / zmq["msgs_per_s"], 2.0, True, measured)
    args = ["--mode", "oneway", "--size", "64"]
    um, zmq = cells.medians("msgs_per_s", *(["bench_tcp", "--impl", impl, *args] for impl in ("um", "zmq")))
    ratio = um["msgs_per_s"] / zmq["msgs_per_s"]
    measured = f"libum {rate(um)}, libzmq {rate(zmq)}"
    report.target("64 B one way, default options, times libzmq", ratio, 1.0, True, measured)


def latency(cells: Cells, report: Report) -> None:
    """A session carries data one way, so a ping-pong takes a connection each way: the bare loop too."""
    for size in SIZES:
        for spin in (False, True):
            args = ["--mode", "pingpong", "--size", str(size), *(["--spin"] if spin else [])]
            raw, pair, um = cells.medians(
                "p50_us", *(["bench_tcp", "--impl", impl, *args] for impl in ("raw", "rawpair", "um"))
            )
            what = f"{size} B there and back, {'spinning' if spin else 'blocking'}"
            measured = f"bare {times(pair)}, libum {times(um)} (p50 / p99 / p99.9)"
            if size != 64:
                report.note(what, measured)
                continue
            report.target(
                f"{what}, p50 over the bare loop, a connection each way",
                um["p50_us"] / pair["p50_us"],
                1.25,
                False,
                measured,
            )
            report.note(
                f"{what}, bare loop on a single connection", f"{times(raw)}, {um['p50_us'] / raw['p50_us']:.2f}"
            )
    (zmq,) = cells.medians("p50_us", ["bench_tcp", "--impl", "zmq", "--mode", "pingpong", "--size", "64"])
    report.note("64 B there and back, libzmq", times(zmq))


def collecting(cells: Cells, report: Report) -> None:
    """Collectors and sending many, in million 64-byte messages a second."""

    def median(*args: str) -> float:
        results = [cells.once("bench_collect", *args) for _ in range(cells.runs)]
        return float(cells.keep("msgs_per_s", f"bench_collect {' '.join(args)}", results)["msgs_per_s"]) / 1e6

    report.target("64 B gathered by a collector and taken, C, M/s", median("-m", "gather"), 10.0, True)
    report.target("64 B um_src_send_array, nobody connected, M/s", median("-m", "send"), 5.0, True)
    report.target("64 B um_src_send_array to batches over TCP, M/s", median("-m", "tcp"), 5.0, True)
    report.note("64 B lbm_src_send one by one, nobody connected", f"{median('-m', 'send', '-1'):.1f} M/s")


def resolution(cells: Cells, report: Report) -> None:
    """How long until every receiver has its source, and what one more resolved topic costs on either side.

    The memory is the difference between the two numbers of topics: what a context takes once, such as the buffers of
    topic resolution that the first full batch of datagrams touches, is no topic's.
    """
    few, many = 1000, 10000
    for extra in ([], ["--unlimited"]):
        limits = "off" if extra else "as by default"
        taken = {}
        for topics in (few, many):
            row = cells.once("bench_resolve", "--topics", str(topics), *extra)
            cells.rows.append({"cell": "bench_resolve", **row})
            what = f"{topics} topics, rate limits {limits}"
            report.target(f"{what}, share resolved", row["resolved"] / topics, 1.0, True, f"{row['resolve_s']:.2f} s")
            taken[topics] = {side: topics * row[f"bytes_per_{side}"] for side in ("source", "receiver")}
        for side, most in (("source", 1024), ("receiver", 1536)):
            more = (taken[many][side] - taken[few][side]) / (many - few)
            whole = ", ".join(f"{taken[topics][side] / topics:.0f} B of {topics}" for topics in (few, many))
            report.target(f"one more topic, rate limits {limits}, bytes for its {side}", more, most, False, whole)
    daemon = str(Path(__file__).with_name("bench_daemon.py"))
    row = run_json([sys.executable, daemon, "--json", "--build", str(cells.build)])
    cells.rows.append({"cell": "bench_daemon.py", **row})
    report.target("D1: 100 processes with 19 receivers each, lbmrd's share of a core", row["daemon"], 0.2, False)
    report.target("D1: the same by multicast, share of a core of each process", row["process"], 0.2, False)
