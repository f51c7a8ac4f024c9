"""Requirement X4: a hundred thousand forged and malformed records at once, at the processes that listen for a fleet.
They stay up and answer meanwhile, count what they refuse, and grow by no more than their bounds.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from interpreter import ENV, python
from monitoring_records import one_of_each

from um_cffi.monitoring import Attributes, ContextRecord, ReceiverRecord, encode

HANG = 60.0
FLOOD = 100_000
GROWTH = 96 << 20  # bytes: 20,000 objects at most, and what waits


class Listener:
    """`um exporter` or `um web` in a process of its own, which takes datagrams."""

    def __init__(self, command: str) -> None:
        arguments = (command, "--udp", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        self.process = subprocess.Popen(python("-m", "um_cffi", *arguments), env=ENV, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        found = re.search(r"(http://[\d.:]+)/.*datagrams at ([\d.]+):(\d+)", self.line)
        assert found, self.line
        self.url, self.records = found[1], (found[2], int(found[3]))

    def get(self, path: str) -> str:
        time.sleep(0.1)  # it is asked again and again, but not faster than it answers
        with urllib.request.urlopen(self.url + path, timeout=HANG) as answer:
            body: bytes = answer.read()
        return body.decode()

    def memory(self) -> int:
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


@contextlib.contextmanager
def listening(command: str) -> Iterator[Listener]:
    made = Listener(command)
    try:
        yield made
        assert made.process.poll() is None, "it has ended"
        made.process.send_signal(signal.SIGTERM)
        assert made.process.wait(HANG) == 0
    finally:
        made.process.kill()
        made.process.wait()


def malformed_at_exporter(listener: Listener) -> float:
    told = re.findall(r"^um_exporter_malformed_packets_total{.*} (\S+)$", listener.get("/metrics"), re.M)
    return sum(map(float, told))


def malformed_at_page(listener: Listener) -> float:
    return float(json.loads(listener.get("/api/overview"))["clock"]["malformed"])


def forged(chance: random.Random) -> list[bytes]:
    """Good records of things that are not there, with texts as long as they can be, and garbage."""
    packets = []
    for number in range(1_000):
        about = Attributes(f"10.0.{number % 250}.1", 0, f"forged {number}" + "x" * (number % 3 * 200), number, number)
        packets.append(encode(ReceiverRecord(about, "tcp", f"TCP:{number}", {"bytes_rcved": number})))
        packets.append(encode(ContextRecord(about, {}), "pb"))
        packets.append(chance.randbytes(chance.randrange(300)))
        cut = bytearray(encode(chance.choice(one_of_each()), chance.choice(("csv", "pb"))))
        cut[chance.randrange(len(cut))] ^= 0xFF
        packets.append(bytes(cut))
    return packets


def pour(address: tuple[str, int], packets: list[bytes], answered: threading.Event) -> None:
    """At least until somebody else has got an answer meanwhile."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in itertools.count():
            if number >= FLOOD and answered.is_set():
                return
            with contextlib.suppress(OSError):  # no room: it is lost as on a network
                sender.sendto(packets[number % len(packets)], address)


@pytest.mark.parametrize(
    ("command", "path", "malformed"),
    [("exporter", "/metrics", malformed_at_exporter), ("web", "/api/overview", malformed_at_page)],
)
def test_x4_a_flood_is_counted_and_takes_no_memory_beyond_the_bounds(
    command: str, path: str, malformed: Callable[[Listener], float]
) -> None:
    packets = forged(random.Random(5))
    with listening(command) as listener:
        listener.get(path)
        before = listener.memory()
        answered = threading.Event()
        flood = threading.Thread(target=pour, args=(listener.records, packets, answered))
        flood.start()
        try:
            while flood.is_alive():
                assert listener.get(path)
                answered.set()
        finally:
            answered.set()
            flood.join()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            end = time.monotonic() + HANG
            while malformed(listener) == 0:
                sender.sendto(b"garbage", listener.records)
                assert time.monotonic() < end
        assert listener.memory() - before < GROWTH
