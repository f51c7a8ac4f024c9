"""The Python binding beside pyzmq over TCP and iceoryx2 in shared memory."""

from __future__ import annotations

import sys
from pathlib import Path

from cells import Cells, run_json
from report import Report


def figures(cells: Cells, program: str, key: str, *arguments: str) -> dict[str, float]:
    """What a benchmark program in Python measured."""
    command = [sys.executable, str(Path(__file__).with_name(program)), "--json", "--runs", str(cells.runs), *arguments]
    row = run_json(command, {"UM_BUILD_DIR": str(cells.build.resolve())})
    cells.rows.append({"cell": program, **row})
    return {name: float(value) for name, value in row[key].items()}


def binding(cells: Cells, report: Report) -> None:
    """pyzmq's sender and receiver are Python loops over single messages."""
    rates = {name: value / 1e6 for name, value in figures(cells, "bench_python.py", "rates").items()}
    peer = f"pyzmq {rates['pyzmq']:.2f} M/s"
    batches, callbacks = rates["batches"], rates["callback"]
    report.target("64 B batches into numpy, M/s", batches, 3.0, True)
    report.target("64 B batches into numpy, times pyzmq's recv loop", batches / rates["pyzmq"], 5.0, True, peer)
    for name, what in (("recv", "recv() in a loop"), ("for", "for message in receiver")):
        report.target(f"64 B {what}, M/s", rates[name], 2.0, True)
        report.target(f"64 B {what}, times pyzmq's recv loop", rates[name] / rates["pyzmq"], 2.0, True, peer)
    single = f"one by one {rates['single']:.2f} M/s"
    report.target("64 B batches into numpy, times one by one", batches / rates["single"], 20.0, True, single)
    report.target("64 B Python callbacks, M/s", callbacks, 0.8, True)
    report.target("64 B Python callbacks, times pyzmq's recv loop", callbacks / rates["pyzmq"], 1.0, True, peer)
    loop = f"async for {rates['async']:.2f} M/s"
    report.target("64 B async for, share of the callback rate", rates["async"] / callbacks, 0.5, True, loop)
    report.target("64 B send_many handed to the transport, M/s", rates["send_many"], 5.0, True)


def shared_memory(cells: Cells, report: Report) -> None:
    found = figures(cells, "bench_shm_python.py", "figures")
    rates = {name: value / 1e6 for name, value in found.items() if not name.endswith("_us")}
    report.target("Python acquire/complete 64 B, reused view, M/s", rates["reused_view"], 1.5, True)
    report.target("Python acquire/complete 64 B, batched numpy view, M/s", rates["rows"], 1.5, True)
    report.target("Python acquire/complete 64 B, a new view each, M/s", rates["new_view"], 0.6, True)
    report.target("64 B batches over LBT-SMX into numpy, M/s", rates["batches"], 10.0, True)
    if "iceoryx2_oneway" not in rates:
        report.note("iceoryx2", "not installed (tools/bootstrap.sh bench): not compared")
        return
    here, there = rates["oneway"], rates["iceoryx2_oneway"]
    measured = f"LBT-SMX {here:.2f} M/s, iceoryx2 {there:.2f} M/s"
    report.target("Python 64 B one by one over LBT-SMX, times iceoryx2", here / there, 1.0, True, measured)
    here, there = found["pingpong_us"], found["iceoryx2_pingpong_us"]
    measured = f"LBT-SMX {here:.2f} us, iceoryx2 {there:.2f} us"
    report.target("Python 64 B there and back over LBT-SMX, p50 over iceoryx2's", here / there, 1.0, False, measured)


def slow_receiver(cells: Cells, report: Report) -> None:
    """S3: the p99 of three receivers while a fourth is stopped, over that with all four."""
    for transport, name in (("tcp", "TCP, source-paced"), ("lbtrm", "LBT-RM"), ("lbtru", "LBT-RU")):
        found = figures(cells, "bench_slow_receiver.py", "figures", "--transport", transport)
        measured = f"all four {found['before_us']:.0f} us, one stopped {found['stopped_us']:.0f} us"
        what = f"S3: {name}, p99 of three receivers while a fourth is stopped, over all four receiving"
        report.target(what, found["ratio"], 1.1, False, measured)


def conflate(cells: Cells, report: Report) -> None:
    """A receiver slower than its topics: what comes in, what it costs, and whether the newest is what it gets."""
    found = figures(cells, "bench_conflate.py", "figures")
    what = "10,000 topics conflated by a slow receiver"
    conflated = f"{found['conflated'] / 1e6:.2f} M conflated, {found['lost']:.0f} lost"
    report.target(f"{what}, M/s in", found["msgs_per_s"] / 1e6, 1.0, True, conflated)
    report.target(f"{what}, MB of memory more after the first tenth", found["grown_bytes"] / 1e6, 8.0, False)
    report.target(f"{what}, topics whose last value is not the newest", found["wrong"], 0, False)
