"""Requests from Python: many awaited at once by asyncio, 64 bytes there and back over TCP, two processes on two cores.

Usage: python benchmarks/bench_request.py [--seconds S] [--size N] [--runs N] [--under-way N] [--json]

The asker keeps so many requests under way, each awaited by a task of its own, and leaves it to implicit batching when
they are sent (flush=False); the responder is a plain Python function.
Prints responses per second, or with --json one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OPTIONS = {
    "default_interface": "127.0.0.1",
    "request_tcp_interface": "127.0.0.1",
    "request_tcp_port_low": 0,
    "request_tcp_port_high": 0,
    "response_tcp_nodelay": 1,
    "response_session_maximum_buffer": 4194304,
}
WARM_UP = 0.3  # seconds before counting begins
HANG = 30.0  # seconds


def on_core(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def respond() -> None:
    """Answers until killed."""
    from um_cffi import Context, RequestMessage

    with Context(OPTIONS) as ctx:

        @ctx.responder("bench/request")
        def echo(message: RequestMessage) -> bytes:
            return message.data

        while True:
            time.sleep(1)


async def ask(seconds: float, size: int, under_way: int) -> float:
    """Responses per second."""
    from um_cffi import Context, Source

    data = bytes(size)
    async with Context(OPTIONS) as ctx, Source(ctx, "bench/request") as source:
        await source.await_receivers(1, HANG)
        begin = time.monotonic() + WARM_UP
        end = begin + seconds

        async def one_after_the_other() -> int:
            count = 0
            while time.monotonic() < end:
                response = await ctx.request(source, data, timeout=HANG, flush=False)
                count += begin <= time.monotonic() < end and len(response.data) == size
            return count

        return sum(await asyncio.gather(*(one_after_the_other() for _ in range(under_way)))) / seconds


def measured(arguments: argparse.Namespace) -> float:
    command = [sys.executable, __file__, "--size", str(arguments.size), "--seconds", str(arguments.seconds)]
    command += ["--under-way", str(arguments.under_way)]
    responder = subprocess.Popen([*command, "--role", "responder"])
    try:
        asker = subprocess.run(
            [*command, "--role", "asker"], stdout=subprocess.PIPE, text=True, timeout=120, check=True
        )
        return float(asker.stdout.strip().splitlines()[-1])
    finally:
        responder.kill()
        responder.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--under-way", type=int, default=256)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", choices=("asker", "responder"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "responder":
        on_core(1)
        respond()
    elif arguments.role == "asker":
        on_core(0)
        print(asyncio.run(ask(arguments.seconds, arguments.size, arguments.under_way)))
    else:
        rate = statistics.median(measured(arguments) for _ in range(arguments.runs))
        print(json.dumps({"rates": {"asyncio": rate}}) if arguments.json else f"asyncio: {rate:.0f} requests/s")


if __name__ == "__main__":
    main()
