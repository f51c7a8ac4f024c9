"""Requirement S3: what one receiver of four that stops costs the other three, in latency.

Usage: python benchmarks/bench_slow_receiver.py [--transport tcp|lbtrm|lbtru] [--seconds S] [--runs N] [--json]

A publisher sends 1,000-byte messages at a steady rate to four receivers, each a process of its own. In the first half
all four receive, in the second the last one is stopped with SIGSTOP. The three others note how long each message took;
the figure is the p99 of the second half over that of the first, of all three together.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LOOPBACK = {"default_interface": "127.0.0.1"}
RECEIVERS = 4
RATE = 2000  # messages per second
SIZE = 1000
BEFORE, STOPPED, WARM, END = range(4)  # what a message belongs to, its first byte
OPTIONS: dict[str, dict[str, str | int]] = {
    "tcp": {"transport_tcp_multiple_receiver_behavior": "source_paced", "transport_session_maximum_buffer": 262144},
    "lbtrm": {"transport_lbtrm_multicast_address": "239.77.0.3"},
    "lbtru": {},
}


def receive() -> None:
    """One of the four: p99 in microseconds of either half."""
    from um_cffi import Context, Receiver

    took: tuple[list[int], list[int]] = ([], [])
    with Context(LOOPBACK) as ctx, Receiver(ctx, "slow") as receiver:
        print("there", flush=True)
        for batch in receiver.batches():
            now = time.monotonic_ns()
            for message in batch.messages():
                half = message.data[0]
                if half == END:
                    print(json.dumps([percentile_us(each) for each in took]), flush=True)
                    return
                if half in (BEFORE, STOPPED):
                    took[half].append(now - int.from_bytes(message.data[8:16], "little"))


def percentile_us(times: list[int]) -> float:
    return sorted(times)[int(len(times) * 0.99)] / 1e3 if times else 0.0


def publish(transport: str, seconds: float, last: int) -> None:
    from um_cffi import Context, Source

    with Context(LOOPBACK, um_profile="low_latency") as ctx:
        source = Source(ctx, "slow", transport=transport, **OPTIONS[transport])  # type: ignore[arg-type]
        source.send(bytes([WARM]) + bytes(SIZE - 1), flush=True)  # opens a multicast session
        time.sleep(2)
        begin = time.monotonic()
        count = 0
        for half, length in ((WARM, 0.5), (BEFORE, seconds), (STOPPED, seconds)):
            if half == STOPPED:
                os.kill(last, signal.SIGSTOP)
            for _ in range(int(length * RATE)):
                count += 1
                time.sleep(max(0.0, begin + count / RATE - time.monotonic()))
                stamp = time.monotonic_ns().to_bytes(8, "little")
                source.send(bytes([half]) + bytes(7) + stamp + bytes(SIZE - 16), flush=True)
        os.kill(last, signal.SIGCONT)
        for _ in range(20):  # a datagram may be lost
            source.send(bytes([END]) + bytes(SIZE - 1), flush=True)
            time.sleep(0.05)


def measure(transport: str, seconds: float) -> dict[str, float]:
    command = [sys.executable, __file__, "--role"]
    receivers = [subprocess.Popen([*command, "receive"], stdout=subprocess.PIPE, text=True) for _ in range(RECEIVERS)]
    try:
        for receiver in receivers:
            assert receiver.stdout is not None
            if receiver.stdout.readline() != "there\n":
                raise SystemExit("a receiver did not start")
        arguments = ["--transport", transport, "--seconds", str(seconds), "--last", str(receivers[-1].pid)]
        subprocess.run([*command, "publish", *arguments], timeout=60 + 3 * seconds, check=True)
        halves = [json.loads(receiver.communicate(timeout=60)[0]) for receiver in receivers[:-1]]
    finally:
        for receiver in receivers:
            receiver.kill()
            receiver.wait()
    before, stopped = (statistics.median(half) for half in zip(*halves))
    return {"before_us": before, "stopped_us": stopped, "ratio": stopped / before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=OPTIONS, default="tcp")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", choices=("receive", "publish"), help=argparse.SUPPRESS)
    parser.add_argument("--last", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "receive":
        receive()
        return
    if arguments.role == "publish":
        publish(arguments.transport, arguments.seconds, arguments.last)
        return
    runs = [measure(arguments.transport, arguments.seconds) for _ in range(arguments.runs)]
    middle = sorted(runs, key=lambda run: run["ratio"])[len(runs) // 2]
    if arguments.json:
        print(json.dumps({"transport": arguments.transport, "figures": middle, "runs": runs}))
        return
    print(
        f"{arguments.transport}: p99 {middle['before_us']:.0f} us, {middle['stopped_us']:.0f} us while one is stopped"
    )


if __name__ == "__main__":
    main()
