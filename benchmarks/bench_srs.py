"""Requirement D4: the daemon srs with 200 contexts and 100,000 topics, killed and restarted; and what datagrams would
take for the same work.

Usage: python benchmarks/bench_srs.py [--build DIR] [--processes N] [--contexts N] [--topics N] [--json]

Contexts of one process, topics of one context; each has receivers of all topics of the next one, which count as
resolved when they have heard the beginning of their session. Runs in the network namespace it is started in, whose
loopback interface gets packets of the size of an Ethernet's. The datagrams are those of a smaller crowd by multicast,
with the same topics for each context: what a context sends does not depend on the number of the others. They are
counted for the seventy seconds in which contexts advertise and ask by default; with a server nothing more is sent once
all is resolved.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

OUTAGE_MS = 8000  # long enough for the longest back-off of contexts
MULTICAST_CONTEXTS = 4
MULTICAST_MS = 66000


def crowd(build: Path, *arguments: object) -> dict[str, Any]:
    """One run of tests/net/programs/srs_crowd.c."""
    command = [str(build / "tests" / "support" / "srs_crowd"), *(str(argument) for argument in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(build: Path, processes: int, contexts: int, topics: int) -> dict[str, Any]:
    subprocess.run(["ip", "link", "set", "lo", "mtu", "1500"], check=True)
    result = crowd(build, build / "bin" / "srs", processes, contexts, topics, OUTAGE_MS)
    small = crowd(build, "multicast", MULTICAST_CONTEXTS, 1, topics, MULTICAST_MS)
    for name in ("datagrams", "all_datagrams", "all_packets"):
        result[f"multicast_{name}"] = small[name] / MULTICAST_CONTEXTS * result["contexts"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--contexts", type=int, default=50)
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.build, arguments.processes, arguments.contexts, arguments.topics)
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
