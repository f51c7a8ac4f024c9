"""Strangers flood lbmrd under forged addresses, with questions that it forwards to a thousand clients: the processor
time that it spends on them is bounded, its memory too, and who is known is served. Its share of a core is recorded."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from figures import record
from hosts import Host, Process

SECONDS = 20 if os.environ.get("UM_SOAK") else 2
CLIENTS = 1000
START = 10.5  # seconds that the daemon must have run: before, everybody may say something at once
RATE, BURST, OVERDRAWN = 0.1, 0.5, 0.5  # of processor time: a second, at once, by the last datagram on a slow machine
Config = Callable[..., str]

# On loopback every address of 127/8 may be a sender's: no privileges are needed to forge it.
FLOOD = """
import socket, struct, sys, time
clients, begin, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
daemon = ("127.0.0.1", 15380)
crowd = []
for number in range(clients):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((f"127.1.{number // 200}.{number % 200 + 1}", 0))
    one.settimeout(0.5)
    while True:
        one.sendto(bytes((2, 0, 0, 0)), daemon)
        try:
            one.recv(100)
            break
        except TimeoutError:
            pass
    crowd.append(one)
time.sleep(max(0, begin - time.monotonic()))
print("flood", flush=True)
forger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, sent = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for _ in range(20):
        sent += 1
        address = socket.inet_aton(f"127.{100 + (sent >> 16) % 64}.{sent >> 8 & 255}.{sent & 255 or 1}")
        info = struct.pack("=I4s4s", 0, address, bytes(4))
        question = bytes((0, 1, 0, 0)) + b"topic%d" % sent + bytes(1)
        forger.sendmsg([question], [(socket.IPPROTO_IP, 8, info)], 0, daemon)
    time.sleep(0.001)
print("sent", sent, flush=True)
time.sleep(3600)
"""


def processor_seconds(process: Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_f10_strangers_have_a_tenth_of_a_core(host: Host, loopback_config: Config) -> None:
    daemon = host.start("lbmrd", "-i", "127.0.0.1")
    daemon.expect("lbmrd started")
    started = time.monotonic()
    config = loopback_config("context resolver_unicast_daemon 127.0.0.1:15380")
    host.start("lbmsrc", "-c", config, "-M", 100000000, "-P", 5, "-d", 0, "news")
    flood = host.start_command(sys.executable, "-c", FLOOD, str(CLIENTS), str(started + START), str(SECONDS))
    flood.expect("^flood", 60)
    resident, used, begun = daemon.resident_kib(), processor_seconds(daemon), time.monotonic()
    host.start("lbmrcv", "-c", config, "news").expect("Beginning of Transport Session", 60)
    found = time.monotonic() - begun
    sent = int(flood.expect(r"^sent (\d+)", 60).group(1))
    elapsed = time.monotonic() - begun
    share = (processor_seconds(daemon) - used) / elapsed
    grown = daemon.resident_kib() - resident
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    what = f"attack on lbmrd with {CLIENTS:,} clients, {sent / elapsed:,.0f} forged questions a second"
    record(f"{what}: share of a core", f"{share:.2f}")
    record(f"{what}: a new receiver of a known source hears it after", f"{found:.2f} s")
    last = re.search(r"(\d+) datagrams over budget, (\d+) ms of processor time for newcomers", daemon.output)
    assert last, daemon.output[-1000:]
    assert int(last.group(1)) > 100, "the flood was no flood"
    assert int(last.group(2)) / 1000 <= RATE * (time.monotonic() - started) + BURST + OVERDRAWN
    assert grown < 64 * 1024
