"""Run the benchmarks, print each figure beside its target, write a table and a plot.

Usage: python benchmarks/run.py [--build DIR] [--out DIR] [--runs N] [--seconds S] [--only PART]

Everything runs on the loopback interface of a network namespace of its own, on two pinned cores. Each cell is the
median of N runs, and every ratio compares cells of this same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from report_peers import udp_peers

SIZES = (16, 64, 256, 1024, 8192)
BATCHES = (2048, 8192, 65536)
NETNS_SETUP = "ip link set lo up && ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo"

Result = dict[str, Any]


def in_namespace(command: Sequence[str]) -> list[str]:
    """The command inside a fresh network namespace with multicast on loopback."""
    flags = ["--net"] if os.geteuid() == 0 else ["--net", "--user", "--map-root-user"]
    return ["unshare", *flags, "sh", "-c", f'{NETNS_SETUP} && exec "$@"', "sh", *command]


def run_json(command: Sequence[str]) -> Result:
    """Run one benchmark program in a namespace and parse the JSON line it prints."""
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return result


class Bench:
    """Runs cells of the TCP benchmark and keeps their medians."""

    def __init__(self, build: Path, runs: int, seconds: float) -> None:
        self.program = str(build / "benchmarks" / "bench_tcp")
        self.runs = runs
        self.seconds = seconds
        self.rows: list[Result] = []

    def cells(self, figure: str, *cells: Sequence[str]) -> list[Result]:
        """Cells measured in turn, run by run, so that a disturbance meets all of them; each becomes the run with the
        median figure."""
        results: list[list[Result]] = [[] for _ in cells]
        for _ in range(self.runs):
            for at, cell in enumerate(cells):
                results[at].append(run_json([self.program, *cell, "--seconds", str(self.seconds)]))
        out = []
        for found in results:
            found.sort(key=lambda r: float(r[figure]))
            row = found[len(found) // 2]
            row[f"{figure}_min"], row[f"{figure}_max"] = found[0][figure], found[-1][figure]
            if row.get("out_of_order"):
                raise SystemExit(f"{row}: messages out of order")
            out.append(row)
        self.rows += out
        return out


def target(name: str, value: float, bound: float, at_least: bool, report: list[str]) -> None:
    """Print one figure beside its target."""
    good = value >= bound if at_least else value <= bound
    word = "at least" if at_least else "at most"
    line = f"{name:<66} {value:>8.2f}   {word} {bound:<5}  {'met' if good else 'NOT MET'}"
    print(line, flush=True)
    report.append(line)


def throughput(bench: Bench, report: list[str]) -> None:
    for size in SIZES:
        for batch in BATCHES if size == 64 else (65536,):
            args = ["--mode", "oneway", "--size", str(size), "--batch", str(batch)]
            raw, um, zmq = bench.cells(
                "msgs_per_s", ["--impl", "raw", *args], ["--impl", "um", *args], ["--impl", "zmq", *args]
            )
            rates = [float(r["msgs_per_s"]) for r in (raw, um, zmq)]
            print(
                f"  one way {size:>5} B, batch {batch:>5}: bare {rates[0] / 1e6:6.2f} M/s, "
                f"libum {rates[1] / 1e6:6.2f} M/s, "
                f"libzmq {rates[2] / 1e6:5.2f} M/s   (cores {raw['core_to_core_ns']} ns apart)",
                flush=True,
            )
            if size == 64:
                target(
                    f"64 B one way, {batch} B batches, share of the bare loop", rates[1] / rates[0], 0.5, True, report
                )
            if size == 64 and batch == 65536:
                target("64 B one way, 64 KiB batches, times libzmq", rates[1] / rates[2], 2.0, True, report)
    args = ["--mode", "oneway", "--size", "64"]
    um, zmq = bench.cells("msgs_per_s", ["--impl", "um", *args], ["--impl", "zmq", *args])
    target(
        "64 B one way, default options, times libzmq",
        float(um["msgs_per_s"]) / float(zmq["msgs_per_s"]),
        1.0,
        True,
        report,
    )


def latency(bench: Bench, report: list[str]) -> None:
    for size in SIZES:
        for spin in (False, True):
            args = ["--mode", "pingpong", "--size", str(size), *(["--spin"] if spin else [])]
            raw, pair, um = bench.cells(
                "p50_us", ["--impl", "raw", *args], ["--impl", "rawpair", *args], ["--impl", "um", *args]
            )
            how = "spinning" if spin else "blocking"
            print(
                f"  ping-pong {size:>5} B {how}: bare {pair['p50_us']:.1f} / {pair['p99_us']:.1f} us (p50 / p99; "
                f"over a single connection {raw['p50_us']:.1f}), "
                f"libum {um['p50_us']:.1f} / {um['p99_us']:.1f} / {um['p999_us']:.1f} us (p50 / p99 / p99.9)",
                flush=True,
            )
            if size == 64:
                # A session carries data one way, so ping-pong takes a connection for each direction: the bare loop too.
                name = f"64 B ping-pong {how}, p50 over the bare loop"
                target(f"{name}, a connection each way", um["p50_us"] / pair["p50_us"], 1.25, False, report)
                target(f"{name} on one connection", um["p50_us"] / raw["p50_us"], 1.25, False, report)
    bench.cells("p50_us", ["--impl", "zmq", "--mode", "pingpong", "--size", "64"])


def resolution(build: Path, rows: list[Result]) -> None:
    program = str(build / "benchmarks" / "bench_resolve")
    for topics in (1000, 10000):
        for extra in ([], ["--unlimited"]):
            row = run_json([program, "--topics", str(topics), *extra])
            rows.append(row)
            print(
                f"  {topics} topics, limiters {row['limiters']}: {row['resolved']} resolved "
                f"in {row['resolve_s']:.2f} s; "
                f"{row['bytes_per_source']:.0f} B per source, {row['bytes_per_receiver']:.0f} B per receiver",
                flush=True,
            )


def collecting(build: Path, runs: int, rows: list[Result], report: list[str]) -> None:
    """Collectors and sending many, in million 64-byte messages a second: medians of the runs."""
    program = str(build / "benchmarks" / "bench_collect")

    def rate(*args: str) -> float:
        found = sorted((run_json([program, *args]) for _ in range(runs)), key=lambda r: float(r["msgs_per_s"]))
        rows.append(found[len(found) // 2])
        return float(rows[-1]["msgs_per_s"]) / 1e6

    target("64 B gathered by a collector and taken, C, M/s", rate("-m", "gather"), 10.0, True, report)
    target("64 B um_src_send_array, nobody connected, M/s", rate("-m", "send"), 5.0, True, report)
    target("64 B um_src_send_array to batches over TCP, M/s", rate("-m", "tcp"), 5.0, True, report)
    print(f"  lbm_src_send one by one, nobody connected: {rate('-m', 'send', '-1'):.1f} M/s", flush=True)


def python_binding(build: Path, runs: int, rows: list[Result], report: list[str]) -> None:
    """The Python binding against its targets; pyzmq's sender and receiver are Python loops over single messages."""
    command = [sys.executable, str(Path(__file__).with_name("bench_python.py")), "--json", "--runs", str(runs)]
    os.environ["UM_BUILD_DIR"] = str(build.resolve())
    row = run_json(command)
    rows.append({"impl": "um_cffi", **row})
    rates = {name: float(rate) for name, rate in row["rates"].items()}
    print("  Python, 64 B: " + ", ".join(f"{name} {rate / 1e6:.2f} M/s" for name, rate in rates.items()), flush=True)
    target("64 B batches into numpy, M/s", rates["batches"] / 1e6, 3.0, True, report)
    target("64 B batches into numpy, times pyzmq's recv loop", rates["batches"] / rates["pyzmq"], 5.0, True, report)
    target("64 B batches into numpy, times one by one", rates["batches"] / rates["single"], 20.0, True, report)
    target("64 B Python callbacks, M/s", rates["callback"] / 1e6, 0.8, True, report)
    target("64 B Python callbacks, times pyzmq's recv loop", rates["callback"] / rates["pyzmq"], 1.0, True, report)
    target("64 B async for, share of the callback rate", rates["async"] / rates["callback"], 0.5, True, report)
    target("64 B send_many handed to the transport, M/s", rates["send_many"] / 1e6, 5.0, True, report)


def python_shared_memory(build: Path, runs: int, rows: list[Result], report: list[str]) -> None:
    """The Python binding over LBT-SMX against its targets and iceoryx2's Python binding."""
    command = [sys.executable, str(Path(__file__).with_name("bench_shm_python.py")), "--json", "--runs", str(runs)]
    os.environ["UM_BUILD_DIR"] = str(build.resolve())
    row = run_json(command)
    rows.append({"impl": "um_cffi", "transport": "lbt-smx", **row})
    found: dict[str, float] = row["figures"]
    rates = {name: value / 1e6 for name, value in found.items() if not name.endswith("_us")}
    print("  Python over LBT-SMX, 64 B: " + ", ".join(f"{name} {rate:.2f} M/s" for name, rate in rates.items()))
    target("Python acquire/complete 64 B, reused view, M/s", rates["reused_view"], 1.5, True, report)
    target("Python acquire/complete 64 B, batched numpy view, M/s", rates["rows"], 1.5, True, report)
    target("Python acquire/complete 64 B, a new view each, M/s", rates["new_view"], 0.6, True, report)
    target("64 B batches over LBT-SMX into numpy, M/s", rates["batches"], 10.0, True, report)
    if "iceoryx2_oneway" not in rates:
        print("  iceoryx2 is not installed (pip install iceoryx2): no comparison")
        return
    ratio = rates["oneway"] / rates["iceoryx2_oneway"]
    target("Python 64 B one by one over LBT-SMX, times iceoryx2", ratio, 1.0, True, report)
    here, there = found["pingpong_us"], found["iceoryx2_pingpong_us"]
    print(f"  Python ping-pong 64 B, busy waiting: LBT-SMX {here:.2f} us, iceoryx2 {there:.2f} us (p50)", flush=True)
    target("Python 64 B ping-pong over LBT-SMX, p50 over iceoryx2's", here / there, 1.0, False, report)


def plot(rows: list[Result], path: Path) -> None:
    """Throughput by message size as a PNG."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plot")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axis = plt.subplots(figsize=(7, 4))
    for impl, label in (("raw", "bare loop"), ("um", "libum"), ("zmq", "libzmq")):
        found = {r["size"]: r["msgs_per_s"] / 1e6 for r in rows if r.get("impl") == impl and r.get("batch") == 65536}
        sizes = sorted(found)
        axis.plot(sizes, [found[s] for s in sizes], marker="o", label=label)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("message size, bytes")
    axis.set_ylabel("million messages per second")
    axis.set_title("TCP one way, 64 KiB batches, two cores, loopback")
    axis.legend()
    axis.grid(True, which="both", alpha=0.3)
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def ipc(build: Path, runs: int, seconds: float, rows: list[Result], report: list[str]) -> None:
    """LBT-IPC against a bare futex ping-pong and a bare ring of batches, cells in turn, medians."""
    program = str(build / "benchmarks" / "bench_ipc")

    def cells(figure: str, *args: str) -> tuple[float, float]:
        found: dict[str, list[Result]] = {"raw": [], "um": []}
        for _ in range(runs):
            for impl, results in found.items():
                results.append(run_json([program, "--impl", impl, *args, "--seconds", str(seconds)]))
        for results in found.values():
            results.sort(key=lambda r: float(r[figure]))
            rows.append({"transport": "lbt-ipc", **results[len(results) // 2]})
        raw, um = (float(results[len(results) // 2][figure]) for results in found.values())
        return raw, um

    for spin in (False, True):
        raw, um = cells("p50_us", "--mode", "pingpong", "--size", "64", *(["--spin"] if spin else []))
        print(f"  LBT-IPC ping-pong 64 B {'busy_wait' if spin else 'pend'}: bare {raw:.2f} us, libum {um:.2f} us")
        if not spin:
            target("LBT-IPC 64 B ping-pong, pend, p50 over a bare futex ping-pong", um / raw, 1.25, False, report)
    for batch in (8192, 65536):
        raw, um = cells("msgs_per_s", "--mode", "oneway", "--size", "64", "--batch", str(batch))
        print(f"  LBT-IPC one way 64 B, {batch} B batches: bare ring {raw / 1e6:.1f} M/s, libum {um / 1e6:.1f} M/s")


def smx(build: Path, out: Path, runs: int, seconds: float, rows: list[Result], report: list[str]) -> None:
    """LBT-SMX against a bare slot ring (commit word in the slot): cells in turn, medians; histogram of round trips."""
    program = str(build / "benchmarks" / "bench_smx")

    def one_round(impls: Sequence[str], *args: str) -> list[Result]:
        results = []
        for impl in impls:
            os.environ["UM_BENCH_HISTOGRAM"] = str(out / f"smx-{impl}.hgrm")
            results.append(run_json([program, "--impl", impl, *args, "--seconds", str(seconds)]))
        del os.environ["UM_BENCH_HISTOGRAM"]
        return results

    def alike(results: Sequence[Result]) -> bool:
        """A virtual machine's cores move: only runs between cores equally far from each other can be compared."""
        distances = [float(result["core_to_core_ns"]) for result in results]
        return max(distances) < 1.7 * min(distances)

    def cells(figure: str, impls: Sequence[str], *args: str) -> list[float]:
        rounds: list[list[Result]] = []
        tries = 0
        while len(rounds) < runs and tries < 5 * runs:
            results = one_round(impls, *args)
            tries += 1
            if any(r.get("out_of_order") for r in results):
                raise SystemExit(f"{results}: messages out of order")
            if alike(results):
                rounds.append(results)
        if len(rounds) < runs:
            print(f"  {len(rounds)} of {tries} rounds between cores equally far from each other, {runs} were wanted")
        rounds = rounds or [results]
        middle = []
        for of_impl in zip(*rounds):
            middle.append(sorted(of_impl, key=lambda r: float(r[figure]))[len(rounds) // 2])
            rows.append({"transport": "lbt-smx", **middle[-1]})
        return [float(result[figure]) for result in middle]

    raw, um = cells("p50_us", ("raw", "um"), "--mode", "pingpong", "--size", "64")
    print(f"  LBT-SMX ping-pong 64 B: bare slot ring {raw:.2f} us, libum {um:.2f} us", flush=True)
    target("LBT-SMX 64 B ping-pong, p50 over a bare slot ring", um / raw, 1.3, False, report)
    plot_histograms(out)
    for batch in (1, 64):
        impls = ("raw", "um", "umsend") if batch == 1 else ("raw", "um")
        rates = cells("msgs_per_s", impls, "--mode", "oneway", "--size", "64", "--batch", str(batch))
        names = ("bare slot ring", "libum acquire/complete", "lbm_src_send")
        print(
            f"  LBT-SMX one way 64 B, {batch} per publication: "
            + ", ".join(f"{name} {rate / 1e6:.1f} M/s" for name, rate in zip(names, rates)),
            flush=True,
        )
        how = "one publication per message" if batch == 1 else "batches of 64"
        target(f"LBT-SMX 64 B one way, {how}, share of the ring", rates[1] / rates[0], 0.7, True, report)


def plot_histograms(out: Path) -> None:
    """Round trips over LBT-SMX by percentile as a PNG."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plot")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axis = plt.subplots(figsize=(7, 4))
    for impl, label in (("raw", "bare slot ring"), ("um", "LBT-SMX")):
        lines = [line.split() for line in (out / f"smx-{impl}.hgrm").read_text().splitlines()[1:]]
        points = [(float(line[3]), float(line[0])) for line in lines if line[3] != "inf"]
        axis.plot([x for x, _ in points], [y for _, y in points], label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([1, 10, 100, 1000, 10000, 100000], ["0", "90", "99", "99.9", "99.99", "99.999"])
    axis.set_xlabel("percentile")
    axis.set_ylabel("round trip, us")
    axis.set_title("Ping-pong of 64 bytes through shared memory, two cores, busy waiting")
    axis.legend()
    axis.grid(True, which="both", alpha=0.3)
    fig.tight_layout()
    fig.savefig(out / "smx-latency.png", dpi=120)
    plt.close(fig)


def reliable_udp(build: Path, runs: int, seconds: float, rows: list[Result], report: list[str]) -> None:
    """LBT-RM and LBT-RU over a veth cable against a bare loop that moves the same datagrams; cells in turn, medians."""
    program = str(build / "benchmarks" / "bench_udp")

    def cells(figure: str, *args: str) -> tuple[Result, Result]:
        found: dict[str, list[Result]] = {"raw": [], "um": []}
        for _ in range(runs):
            for impl, results in found.items():
                results.append(run_json([program, "--impl", impl, *args, "--seconds", str(seconds)]))
        if any(row.get("out_of_order") for row in found["um"]):
            raise SystemExit(f"{found['um']}: messages out of order")
        for results in found.values():
            results.sort(key=lambda r: float(r[figure]))
            rows.append({"transport": args[1], **results[len(results) // 2]})
        raw, um = (results[len(results) // 2] for results in found.values())
        return raw, um

    for transport, name in (("rm", "LBT-RM"), ("ru", "LBT-RU")):
        for size, batch, bound in ((64, 2048, 0.5), (64, 8192, 0.5), (700, 16, 0.8)):
            raw, um = cells("msgs_per_s", "--transport", transport, "--size", str(size), "--batch", str(batch))
            how = f"{batch} B batches" if batch > size else "unbatched"
            print(
                f"  {name} one way {size} B {how}: bare {raw['msgs_per_s'] / 1e6:.2f} M/s, "
                f"libum {um['msgs_per_s'] / 1e6:.2f} M/s   (cores {um['core_to_core_ns']} ns apart)",
                flush=True,
            )
            ratio = um["msgs_per_s"] / raw["msgs_per_s"]
            target(f"{name} {size} B one way, {how}, share of the bare loop", ratio, bound, True, report)
        for spin in (False, True):
            how = "spinning" if spin else "blocking"
            args = ["--transport", transport, "--mode", "pingpong", "--size", "64", "--batch", "16"]
            raw, um = cells("p50_us", *args, *(["--spin"] if spin else []))
            print(
                f"  {name} ping-pong 64 B {how}: bare {raw['p50_us']:.1f} / {raw['p99_us']:.1f} us, "
                f"libum {um['p50_us']:.1f} / {um['p99_us']:.1f} us (p50 / p99)",
                flush=True,
            )
            ratio = um["p50_us"] / raw["p50_us"]
            target(f"{name} 64 B ping-pong {how}, p50 over the bare loop", ratio, 1.25, False, report)


Part = Callable[[Bench, argparse.Namespace, list[Result], list[str]], None]
PARTS: dict[str, Part] = {
    "throughput": lambda bench, options, rows, report: throughput(bench, report),
    "latency": lambda bench, options, rows, report: latency(bench, report),
    "udp": lambda bench, options, rows, report: reliable_udp(
        options.build, options.runs, options.seconds, rows, report
    ),
    "ipc": lambda bench, options, rows, report: ipc(options.build, options.runs, options.seconds, rows, report),
    "smx": lambda bench, options, rows, report: smx(
        options.build, options.out, options.runs, options.seconds, rows, report
    ),
    "udp-peers": lambda bench, options, rows, report: udp_peers(
        options.build, options.runs, options.seconds, run_json, target, rows, report
    ),
    "collecting": lambda bench, options, rows, report: collecting(options.build, options.runs, rows, report),
    "python": lambda bench, options, rows, report: python_binding(options.build, options.runs, rows, report),
    "python-smx": lambda bench, options, rows, report: python_shared_memory(options.build, options.runs, rows, report),
    "resolution": lambda bench, options, rows, report: resolution(options.build, rows),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", action="append", choices=PARTS, help="these parts alone, instead of all")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    report: list[str] = []
    bench = Bench(options.build, options.runs, options.seconds)
    print(
        f"machine: {platform.machine()}, kernel {platform.release()}, {os.cpu_count()} cores; A on core 0, B on core 1"
    )
    rows: list[Result] = []
    for name in options.only or PARTS:
        PARTS[name](bench, options, rows, report)
    (options.out / "results.json").write_text(json.dumps(bench.rows + rows, indent=1))
    (options.out / "targets.txt").write_text("\n".join(report) + "\n")
    missed = sum("NOT MET" in line for line in report)
    if bench.rows:
        plot(bench.rows, options.out / "throughput.png")
        spread = statistics.median(r["core_to_core_ns"] for r in bench.rows)
        print(f"\nmedian core-to-core round trip {spread:.0f} ns")
    print(f"results in {options.out}/")
    print("\n".join(report))
    print(f"{len(report) - missed} targets met, {missed} not met")
    sys.exit(0)


if __name__ == "__main__":
    main()
