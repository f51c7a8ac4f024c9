"""A slow receiver in Python with on_full="conflate": ten thousand topics, updated as fast as a publisher can.

Usage: python benchmarks/bench_conflate.py [--topics N] [--rounds N] [--runs N] [--json]

A publisher sends the number of the round to each topic, round after round, over TCP. The receiver, a process of its own
with a pattern, takes what waits every tenth of a second. Figures: messages that came in each second; growth of the
receiver's resident size after the first tenth of them; topics whose last value was not that of the last round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

OPTIONS = {
    "default_interface": "127.0.0.1",
    "resolver_initial_advertisement_bps": 0,  # ten thousand topics at once
    "resolver_sustain_advertisement_bps": 0,
    "resolver_datagram_max_size": 8192,
}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def receive(topics: int, rounds: int) -> None:
    from um_cffi import Context, WildcardReceiver

    newest: dict[str, int] = {}
    total = topics * rounds
    with Context(OPTIONS) as ctx, WildcardReceiver(ctx, "^Price/", on_full="conflate", events=False) as receiver:
        receiver.wait_ready(topics, 120)
        print("there", flush=True)
        began = before = 0.0
        first = 0
        while True:
            batch = receiver.recv_batch(timeout=10)
            if batch is not None:
                for message in batch.messages():
                    newest[message.topic] = int.from_bytes(message.data[:8], "little")
            delivered, now = receiver.counts().delivered, time.monotonic()
            if began == 0 and delivered > 0:
                began, first = now, delivered
            if before == 0 and delivered >= total // 10:
                before = resident()
            if delivered >= total and receiver.queue_stats().queued_messages == 0:
                break
            if batch is None:
                raise SystemExit(f"{delivered} of {total} messages came")
            time.sleep(0.1)
        found = {
            "msgs_per_s": (total - first) / (now - began),
            "grown_bytes": resident() - before,
            "wrong": sum(value != rounds - 1 for value in newest.values()) + topics - len(newest),
            "conflated": receiver.queue_stats().conflated,
            "lost": receiver.counts().lost + receiver.queue_stats().dropped,
        }
        print(json.dumps(found), flush=True)


def publish(topics: int, rounds: int) -> None:
    from um_cffi import Context, Source

    with Context(OPTIONS) as ctx:
        sources = [Source(ctx, f"Price/{number}") for number in range(topics)]
        print("there", flush=True)
        sys.stdin.readline()
        sends = [source.send for source in sources]
        for number in range(rounds):
            value = number.to_bytes(8, "little")
            for send in sends:
                send(value)
        for source in sources:
            source.flush()
        sys.stdin.readline()


def start(role: str, topics: int, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--role", role, "--topics", str(topics), "--rounds", str(rounds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measure(topics: int, rounds: int) -> dict[str, float]:
    publisher, receiver = start("publish", topics, rounds), start("receive", topics, rounds)
    assert publisher.stdout is not None and publisher.stdin is not None and receiver.stdout is not None
    try:
        for each in (publisher.stdout, receiver.stdout):
            if each.readline() != "there\n":
                raise SystemExit("a process did not start")
        publisher.stdin.write("go\n")
        publisher.stdin.flush()
        found: dict[str, float] = json.loads(receiver.stdout.readline())
    finally:
        for process in (publisher, receiver):
            process.kill()
            process.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", choices=("receive", "publish"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role is not None:
        (receive if arguments.role == "receive" else publish)(arguments.topics, arguments.rounds)
        return
    runs = [measure(arguments.topics, arguments.rounds) for _ in range(arguments.runs)]
    middle = sorted(runs, key=lambda run: run["msgs_per_s"])[len(runs) // 2]
    if arguments.json:
        print(json.dumps({"figures": middle, "runs": runs}))
        return
    print(
        f"{middle['msgs_per_s'] / 1e6:.2f} M/s in, {middle['conflated']:.0f} conflated, memory {middle['grown_bytes']} "
        f"bytes more after the first tenth, {middle['wrong']:.0f} topics with an old value, {middle['lost']:.0f} lost"
    )


if __name__ == "__main__":
    main()
