"""The impairment relay itself, with plain datagrams: what it counts is what the hosts see, and a matter of the seed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pytest
from fixtures import needs_namespaces
from relay import Star

GROUP, PORT = "239.1.2.3", 14400
RECEIVE = """
import json, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
s.bind((sys.argv[1], int(sys.argv[2])))
if sys.argv[1].startswith("239."):
    s.setsockopt(0, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[3]))
print("listening", flush=True)
got = []
s.settimeout(60)
while True:
    data = s.recv(2048)
    if data == b"end":
        break
    got.append(struct.unpack_from("!I", data, 8)[0])
    s.settimeout(60)
print(json.dumps(got))
"""
# LBT-RM data datagrams with their number at offset 8; each 20th a retransmission.
SEND = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(0, socket.IP_MULTICAST_TTL, 4)
target = (sys.argv[1], int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    flags = 0x20 if number % 20 == 19 else 0
    s.sendto(struct.pack("!BBHIIIBBH", 0, 0, 14390, 7, number, 0, flags, 0, 0) + bytes(100), target)
    if number % 100 == 99:
        time.sleep(0.001)
"""
SEND_END = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(0, socket.IP_MULTICAST_TTL, 4)
s.sendto(b"end", (sys.argv[1], int(sys.argv[2])))
"""
# A refusal is an answer.
KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 1)
except ConnectionRefusedError:
    sys.exit(0)
except OSError:
    sys.exit(1)
"""
COUNT = 4000


@pytest.fixture
def star() -> Iterator[Star]:
    star = Star(3, seed=7)
    try:
        yield star
    finally:
        star.close()


def reachable(star: Star) -> bool:
    """Host 1 from host 0."""
    return star.hosts[0].start_command(sys.executable, "-c", KNOCK, Star.address(1)).wait() == 0


def exchange(star: Star, target: str = GROUP) -> list[list[int]]:
    """COUNT datagrams from host 0; what hosts 1 and 2 got (host 1 alone when sent to its address)."""
    receivers = [
        star.hosts[number].start_command(sys.executable, "-c", RECEIVE, target, str(PORT), Star.address(number))
        for number in ((1, 2) if target == GROUP else (1,))
    ]
    for receiver in receivers:
        receiver.expect("^listening")
    star.hosts[0].start_command(sys.executable, "-c", SEND, target, str(PORT), str(COUNT)).finish()
    star.wait_for_rest(r"rm\..*")  # what is held back is to leave before the end
    star.hosts[0].start_command(sys.executable, "-c", SEND_END, target, str(PORT)).finish()
    return [json.loads(receiver.finish().splitlines()[-1]) for receiver in receivers]


@needs_namespaces
def test_nothing_is_lost_without_rules(star: Star) -> None:
    star.rule("asked", kinds="arp", loss="100%")  # nobody asks who is where: what waits for an answer may be dropped
    assert exchange(star) == [list(range(COUNT))] * 2
    assert exchange(star, Star.address(1)) == [list(range(COUNT))]
    counters = star.counters()
    assert counters.flow("seen", "rm.data", 0, 1) == 2 * COUNT * 19 // 20
    assert counters.flow("seen", "rm.data", 0, 2) == COUNT * 19 // 20  # a frame for host 1 goes nowhere else
    assert counters.flow("lost", ".*") == 0
    assert counters.troubles() == 0


@needs_namespaces
def test_losses_are_those_counted_and_come_again_with_the_seed(star: Star) -> None:
    again = Star(3, seed=7)
    try:
        got = []
        for one in (star, again):
            one.rule("loss", kinds="rm.data", loss="5%")
            one.rule("burst", kinds="rm.data", burst="1%/5")
            arrived = exchange(one)
            got.append(arrived)
            counters = one.counters()
            for port in (1, 2):
                lost = counters.rule("loss", "lost", port) + counters.rule("burst", "lost", port)
                assert lost > 100
                assert len(arrived[port - 1]) == COUNT - lost
        assert got[0] == got[1]
        assert got[0][0] != got[0][1]
    finally:
        again.close()


@needs_namespaces
def test_repairs_are_cut_off_alone(star: Star) -> None:
    star.rule("repairs", kinds="repair", loss="100%")
    expected = [number for number in range(COUNT) if number % 20 != 19]
    assert exchange(star) == [expected, expected]


@needs_namespaces
def test_duplicates_delays_and_overtaking(star: Star) -> None:
    star.rule("twice", kinds="rm.data,rm.rx", to=1, duplicate="10%")
    star.rule("order", kinds="rm.data,rm.rx", to=2, reorder="25%/2ms")
    first, second = exchange(star)
    counters = star.counters()
    assert sorted(set(first)) == list(range(COUNT))
    assert len(first) == COUNT + counters.rule("twice", "duplicated", 1)
    assert sorted(second) == list(range(COUNT))
    assert second != sorted(second)
    assert counters.rule("order", "reordered", 2) > COUNT // 5
    star.rule("late", kinds="rm.data", delay="20ms")  # rules may come and go
    star.say("clear")
    assert exchange(star) == [list(range(COUNT))] * 2


@needs_namespaces
def test_corrupt_datagrams_die_in_the_kernel_unless_unseen(star: Star) -> None:
    star.rule("bytes", kinds="rm.data", to=1, corrupt="10%")
    star.rule("unseen", kinds="rm.data", to=2, corrupt="10%", unseen=1)
    first, second = exchange(star)
    counters = star.counters()
    assert len(first) == COUNT - counters.rule("bytes", "corrupted", 1)
    assert len(second) == COUNT
    assert counters.rule("unseen", "corrupted", 2) > COUNT // 20


def wait_until_reachable(star: Star) -> None:
    end = time.monotonic() + 60
    while not reachable(star):
        assert time.monotonic() < end, "the host stays away"


@needs_namespaces
def test_cables_are_cut_and_interfaces_taken_down(star: Star) -> None:
    wait_until_reachable(star)
    star.say("cut 1")
    assert not reachable(star)
    star.say("mend 1")
    wait_until_reachable(star)
    star.say("down 1")
    assert "NO-CARRIER" in star.hosts[1].run("ip", "link", "show", "eth0")
    star.say("up 1")
    wait_until_reachable(star)
    star.unplug(1)
    assert not reachable(star)
    star.plug(1)
    wait_until_reachable(star)


@needs_namespaces
def test_a_link_of_limited_rate_passes_that_much(star: Star) -> None:
    star.rule("slow", kinds="rm.data,rm.rx", to=1, rate="2000000/20ms")  # 162-byte frames: 1543 a second
    begin = time.monotonic()
    first, second = exchange(star)
    seconds = time.monotonic() - begin
    counters = star.counters()
    assert second == list(range(COUNT))
    assert len(first) == COUNT - counters.rule("slow", "overflowed", 1)
    assert 30 < len(first) < 1600 * seconds
