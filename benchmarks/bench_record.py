"""What recording costs: 64-byte messages over TCP at a fixed rate, into a folder, by `um_cffi.recording`.

Usage: python benchmarks/bench_record.py [--seconds S] [--rate N] [--size N] [--topics N] [--parquet] [--runs N]
                                         [--folder DIR] [--json]

The sender is a process of its own and keeps to a schedule, the recorder is this one; both may use all cores. `lost` is
what was sent and is not in the recording. `cores` is the time of all threads of the recorder's process over the time of
sending, so that 1.0 is one core that is busy throughout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LOOPBACK = {"default_interface": "127.0.0.1"}
BURST = 0.002  # seconds between calls of send_many()


def send(size: int, rate: float, seconds: float, topics: int) -> None:
    """Send at the rate, on topics in turns; prints how many were sent, and how long that took."""
    from um_cffi import Context, Source

    with Context(LOOPBACK) as ctx, contextlib.ExitStack() as stack:
        sources = [
            stack.enter_context(Source(ctx, f"bench{each}", implicit_batching_minimum_length=8192))
            for each in range(topics)
        ]
        for source in sources:
            source.wait_receivers(1, 30)
        each = int(rate * BURST)
        messages = np.zeros((each, size), np.uint8)
        messages[:, :8] = np.arange(each, dtype="<u8").view(np.uint8).reshape(-1, 8)
        bursts = int(seconds / BURST)
        begin = time.perf_counter()
        for number in range(bursts):
            left = begin + number * BURST - time.perf_counter()
            if left > 0:
                time.sleep(left)
            sources[number % topics].send_many(messages)
        ctx.flush()
        print(each * bursts, time.perf_counter() - begin, flush=True)
        sys.stdin.readline()  # until everything is recorded


def used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """One recording."""
    from um_cffi import Context
    from um_cffi.recording import Recorder
    from um_cffi.recording._parquet import ParquetWriter

    words = [sys.executable, __file__, "--send", "--size", str(options.size)]
    words += ["--rate", str(options.rate), "--seconds", str(options.seconds), "--topics", str(options.topics)]
    with Context(LOOPBACK) as ctx, Recorder(ctx, folder, "^bench") as recorder, contextlib.ExitStack() as stack:
        if options.parquet:
            stack.callback(ParquetWriter(folder, folder / "parquet", print).close)
        before = used()
        sender = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert sender.stdout is not None and sender.stdin is not None
        sent, seconds = map(float, sender.stdout.readline().split())
        end = time.monotonic() + 20
        while recorder.stats().messages + recorder.stats().dropped < sent and time.monotonic() < end:
            time.sleep(0.01)
        cores = (used() - before) / seconds
        sender.stdin.close()
        sender.wait()
        recorder.close()
        stats = recorder.stats()
    return {
        "rate": sent / seconds,
        "cores": cores,
        "lost": sent - stats.messages,
        "bytes_per_message": stats.bytes / max(stats.messages, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rate", type=float, default=1e6)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--topics", type=int, default=1)
    parser.add_argument("--parquet", action="store_true", help="write Parquet as well")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--send", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        send(options.size, options.rate, options.seconds, options.topics)
        return
    runs = []
    for _ in range(options.runs):
        folder = Path(tempfile.mkdtemp(prefix="um-record-", dir=options.folder))
        try:
            runs.append(measure(options, folder))
        finally:
            shutil.rmtree(folder)
    figures = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    figures["lost"] = max(run["lost"] for run in runs)
    if options.json:
        print(json.dumps({"figures": figures, "cores_of_machine": os.cpu_count()}))
    else:
        for name, value in figures.items():
            print(f"{name:>20} {value:,.2f}")


if __name__ == "__main__":
    main()
