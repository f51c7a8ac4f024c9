"""Requirement D1: processor time of topic resolution with a hundred processes on one host, each with a source and
nineteen receivers: of lbmrd where they find each other through it, and of a process on average where by multicast.

Usage: python benchmarks/bench_daemon.py [--build DIR] [--seconds S] [--json]

All start at once, resolve their topics, send a message each, and stay for so many seconds. Runs in the network
namespace it is started in.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

PROCESSES = 100
CONFIG = """
context default_interface 127.0.0.1
context resolver_unicast_daemon 127.0.0.1:15380
"""


def processor_seconds(pid: int) -> float:
    """User and system time of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hundred(build: Path, stay: float, env: dict[str, str]) -> float:
    """Run them; how long it took."""
    begin = time.monotonic()
    command = [str(build / "tests" / "d1_hundred_processes_test")]
    environment = {**os.environ, **env, "UM_TEST_NET_READY": "1", "UM_TEST_D1_STAY_SECONDS": f"{stay:.0f}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return time.monotonic() - begin


def through_daemon(build: Path, stay: float) -> float:
    """Share of a core that lbmrd takes."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "unicast.cfg"
        config.write_text(CONFIG)
        output = Path(folder) / "lbmrd.log"
        with output.open("w") as file:
            daemon = subprocess.Popen([str(build / "bin" / "lbmrd"), "-i", "127.0.0.1"], stdout=file, stderr=file)
        try:
            while "started" not in output.read_text():
                if daemon.poll() is not None:
                    raise SystemExit(output.read_text())
                time.sleep(0.05)
            elapsed = hundred(build, stay, {"LBM_DEFAULT_CONFIG_FILE": str(config)})
            return processor_seconds(daemon.pid) / elapsed
        finally:
            daemon.kill()
            daemon.wait()


def by_multicast(build: Path, stay: float) -> float:
    """Share of a core that one of the processes takes, on average."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed = hundred(build, stay, {})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / PROCESSES / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = {
        "daemon": through_daemon(arguments.build, arguments.seconds),
        "process": by_multicast(arguments.build, arguments.seconds),
    }
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"lbmrd {found['daemon']:.1%} of a core; by multicast each process {found['process']:.2%}")


if __name__ == "__main__":
    main()
