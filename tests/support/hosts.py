"""Hosts for tests: network namespaces with nothing but what the test puts in, and the processes that run there.

A namespace is made with `ip netns`, under a name of this process, and removed at the end whatever happened.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BUILD = Path(os.environ.get("UM_BUILD_DIR", "build")).resolve()
MULTICAST = "224.0.0.0/4"
SLOW = 10 if os.environ.get("UM_SANITIZED") else 1  # hang limits are stretched under sanitizers
_numbers = itertools.count()


def program(name: str) -> str:
    path = BUILD / "bin" / name
    assert path.exists(), f"{path} is not built; run make build"
    return str(path)


def without_log(output: str) -> str:
    """What an example program printed itself: a line of the library's log comes when its thread gets to it, between any
    two of the program's."""
    return re.sub(r"^LOG Level \d.*\n", "", output, flags=re.MULTILINE)


def free_port() -> int:
    """A TCP port that nobody has, below those that the kernel gives to connections: one of them cannot take it while
    the server that it is for is away, or has not been started yet."""
    while True:
        port = random.randrange(20_000, 27_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def ip(*arguments: str, text: str | None = None) -> None:
    """`text`: what it reads."""
    subprocess.run(["ip", *arguments], input=text, check=True, capture_output=True, text=True)


class Process:
    """A program of the test with its output in a file, so that it never waits for its reader."""

    def __init__(self, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.command = list(command)
        self._file = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed in close()
        self.popen = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def written(self) -> int:
        """Bytes of output."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def output(self) -> str:
        return os.pread(self._file.fileno(), self.written, 0).decode(errors="replace")

    def expect(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """Wait for a line that matches; the time only catches hangs."""
        end = time.monotonic() + seconds * SLOW
        looked_at = -1
        while True:
            ended = self.popen.poll() is not None
            written = self.written
            if written != looked_at:  # or it would be read and searched fifty times a second for nothing
                looked_at = written
                found = re.search(pattern, self.output, re.MULTILINE)
                if found:
                    return found
            assert not ended, f"{self.command} ended ({self.popen.returncode}) without {pattern!r}:\n{self.output}"
            assert time.monotonic() < end, f"{self.command} does not print {pattern!r}:\n{self.output[-4000:]}"
            time.sleep(0.02)

    def wait(self, seconds: float = 60) -> int:
        try:
            return self.popen.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command} does not end:\n{self.output[-4000:]}") from None

    def finish(self, seconds: float = 60) -> str:
        """Wait for a good end and return what was printed."""
        status = self.wait(seconds)
        assert status == 0, f"{self.command} ended with {status}:\n{self.output[-8000:]}"
        return self.output

    def expect_times(self, pattern: str, times: int, seconds: float = 60) -> None:
        """Wait for so many matches."""
        end = time.monotonic() + seconds * SLOW
        while len(re.findall(pattern, self.output, re.MULTILINE)) < times:
            assert time.monotonic() < end, f"{self.command}: not {times} times {pattern!r}:\n{self.output[-4000:]}"
            time.sleep(0.05)

    def go_on(self) -> None:
        """End the wait that an example program is in, or its next one: delay, pause, lingering. Such a program has
        printed something before: from then on the signal does not end it."""
        self.signal(signal.SIGALRM)

    def stop_lingering(self) -> str:
        """Let an example program that lingers end; what it printed."""
        self.expect("^Lingering")
        self.go_on()
        return self.finish()

    def suspend(self) -> None:
        """Stop the process until SIGCONT, for a second again and again: somebody else may have stopped it for a moment,
        who lets it go on (tools/shake_tests.py)."""
        for _ in range(10):
            self.signal(signal.SIGSTOP)
            time.sleep(0.1)

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
            self.popen.wait()
        self._file.close()

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s*(\d+) kB", status)
        return int(found.group(1)) if found else 0


class Host:
    """A network namespace with its loopback interface up and multicast routed over it."""

    def __init__(self) -> None:
        self.name = f"um{os.getpid()}x{next(_numbers)}"
        self._processes: list[Process] = []
        ip("netns", "add", self.name)
        try:
            ip("-n", self.name, "link", "set", "lo", "up", "multicast", "on")
        except BaseException:
            self.close()
            raise

    def route_multicast(self, device: str) -> None:
        ip("-n", self.name, "route", "replace", MULTICAST, "dev", device)

    def command(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]

    def start(self, name: str, *arguments: object, env: dict[str, str] | None = None, prefix: str = "") -> Process:
        """Run a built program here. `prefix` is shell text put before it, for limits (`ulimit -n 20;`)."""
        line = [program(name), *(str(argument) for argument in arguments)]
        if prefix:
            line = ["sh", "-c", f'{prefix} exec "$@"', "sh", *line]
        return self.start_command(*line, env=env)

    def start_command(self, *command: str, env: dict[str, str] | None = None) -> Process:
        process = Process(self.command(*command), env)
        self._processes.append(process)
        return process

    def run(self, *command: str) -> str:
        done = subprocess.run(self.command(*command), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def close(self) -> None:
        for process in self._processes:
            process.close()
        ip("netns", "del", self.name)


def connect(left: Host, right: Host, network: str = "10.9.8") -> tuple[str, str]:
    """Join two hosts with a veth pair named eth0 on both ends; returns their addresses."""
    far_end = ("peer", "name", "eth0", "netns", right.name)
    ip("link", "add", "eth0", "netns", left.name, "type", "veth", *far_end)
    addresses = (f"{network}.1", f"{network}.2")
    for host, address in zip((left, right), addresses):
        lines = (f"addr add {address}/24 dev eth0", "link set eth0 up", f"route replace {MULTICAST} dev eth0")
        ip("-n", host.name, "-batch", "-", text="\n".join(lines))
    return addresses
