"""Hosts joined in a star by the impairment relay of tests/net/relay, and its control."""

from __future__ import annotations

import json
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from hosts import BUILD, MULTICAST, SLOW, Host, Process, ip

NETWORK = "10.9.7"
ANNOUNCED = "net.ipv4.conf.default.arp_notify=1"  # so that the relay knows who is where from the start
NO_IPV6 = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")  # its own packets disturb


def support_program(name: str) -> str:
    path = BUILD / "tests" / "support" / name
    assert path.exists(), f"{path} is not built; run make build"
    return str(path)


def udp_drops(snmp: str) -> int:
    """From the text of /proc/net/snmp."""
    names, values = (line.split() for line in snmp.splitlines() if line.startswith("Udp:"))
    return int(values[names.index("RcvbufErrors")])


class Star:
    """`count` hosts, each with an eth0 whose cable ends in a port of the relay: host i has port i and address .i+1.

    The hosts need not ask for each other's hardware addresses: of what waits for an answer to ARP the kernel keeps the
    last 200 KiB, some 280 NAKs, and drops the others uncounted; on a busy machine the relay may be late by more.

    The relay is a namespace and a process of its own. Its rules are given as text, see tests/net/relay/impair.h.
    """

    def __init__(self, count: int, seed: int = 1) -> None:
        self.hosts: list[Host] = []
        self.seed = seed
        self._control: socket.socket | None = None
        self._folder = tempfile.mkdtemp(prefix="um-relay-")
        self._middle = Host()
        try:
            self._middle.run("sysctl", "-qw", *NO_IPV6)
            for number in range(count):
                self.hosts.append(Host())
                self._wire(number)
            ports = [f"p{number}" for number in range(count)]
            path = str(Path(self._folder) / "control")
            self.process: Process = self._middle.start_command(
                support_program("relay"), "--seed", str(seed), "--control", path, *ports
            )
            self.process.expect("^relay of")
            self._control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._control.connect(path)
            for number in range(count):
                self.plug(number)
            self._wait_for_carrier()
        except BaseException:
            self.close()
            raise

    def _wire(self, number: int) -> None:
        host = self.hosts[number]
        host.run("sysctl", "-qw", ANNOUNCED, *NO_IPV6)
        far_end = ("peer", "name", f"p{number}", "netns", self._middle.name)
        near_end = ("eth0", "address", self.hardware_address(number), "netns", host.name)
        ip("link", "add", *near_end, "type", "veth", *far_end)
        ip("-n", host.name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        host.run(support_program("relay"), "--no-offload", "eth0")
        ip("-n", self._middle.name, "link", "set", f"p{number}", "up")

    def _wait_for_carrier(self) -> None:
        for host in self.hosts:
            end = time.monotonic() + 10
            while "LOWER_UP" not in host.run("ip", "link", "show", "eth0"):
                assert time.monotonic() < end, "a cable stays down"
                time.sleep(0.01)

    def plug(self, number: int) -> None:
        """The host's interface up, with the routes and neighbours that were lost when it went down."""
        neighbours = (
            f"neighbour replace {self.address(other)} lladdr {self.hardware_address(other)} dev eth0 nud permanent"
            for other in range(len(self.hosts))
            if other != number
        )
        lines = ("link set eth0 up", f"route replace {MULTICAST} dev eth0", *neighbours)
        ip("-n", self.hosts[number].name, "-batch", "-", text="\n".join(lines))

    def unplug(self, number: int) -> None:
        ip("-n", self.hosts[number].name, "link", "set", "eth0", "down")

    @staticmethod
    def address(number: int) -> str:
        return f"{NETWORK}.{number + 1}"

    @staticmethod
    def hardware_address(number: int) -> str:
        return f"02:00:0a:09:07:{number + 1:02x}"

    def say(self, command: str) -> None:
        answer = self._ask(command)
        assert answer == "ok", f"{command}: {answer}"

    def rule(self, name: str, **what: object) -> None:
        """Add or replace a rule; `from_` stands for from."""
        self.say(" ".join(["rule", name, *(f"{key.rstrip('_')}={value}" for key, value in what.items())]))

    def counters(self) -> Counters:
        return Counters(json.loads(self._ask("counters")))

    def socket_drops(self) -> int:
        """Datagrams that the hosts' kernels have dropped because the socket they were for was full."""
        return sum(udp_drops(host.run("cat", "/proc/net/snmp")) for host in self.hosts)

    def wait_for_rest(self, kinds: str, signs: str = "", times: int = 10, seconds: float = 60) -> None:
        """Wait until the relay has answered so often without a frame of these kinds having come or gone, and host 0,
        if `signs` are given, has sent so many signs of life: frames of that kind, which its source sends at intervals.

        A source may have a second's worth of repairs in its queue when every receiver has all it wanted.
        """
        end = time.monotonic() + seconds * SLOW
        before, since, answers = (-1, -1), 0, 0
        while True:
            counters = self.counters()
            now = (counters.flow("seen", kinds), counters.flow("sent", kinds))
            alive = counters.flow("seen", signs, 0) if signs else 0
            answers += 1
            if now != before:
                before, since, answers = now, alive, 0
            # A sign that is multicast is a frame for each other host.
            elif answers >= times and (not signs or alive - since >= times * (len(self.hosts) - 1)):
                return
            quiet = f"quiet for {answers} answers, in which {alive - since} {signs or 'signs'} came"
            assert time.monotonic() < end, f"{kinds}: {now} frames, {quiet}"
            time.sleep(0.1)

    def wait_for(self, kinds: str, frames: int = 1, from_: int | None = None, seconds: float = 60) -> None:
        """Wait until the relay has seen so many frames whose kind matches."""
        end = time.monotonic() + seconds * SLOW
        while self.counters().flow("seen", kinds, from_) < frames:
            assert time.monotonic() < end, f"no {frames} frames of {kinds}"
            time.sleep(0.05)

    def _ask(self, command: str) -> str:
        assert self._control is not None
        self._control.send(command.encode())
        return self._control.recv(1 << 20).decode()

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
        for host in self.hosts:
            host.close()
        self._middle.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Counters:
    """What the relay has counted so far."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def rule(self, name: str, what: str, port: int | None = None) -> int:
        """Of one rule: matched, lost, duplicated, delayed, reordered, corrupted or overflowed, for one port or all."""
        ports = self.data["rules"][name]
        return sum(int(counts[what]) for at, counts in enumerate(ports) if port in (None, at))

    def flow(self, what: str, kinds: str, from_: int | None = None, to: int | None = None) -> int:
        """Frames seen, lost or sent whose kind matches the regular expression."""
        return sum(
            int(flow[what])
            for flow in self.data["flows"]
            if re.fullmatch(kinds, flow["kind"]) and from_ in (None, flow["from"]) and to in (None, flow["to"])
        )

    def troubles(self) -> int:
        """Frames that the relay itself could not handle; not part of any rule."""
        return sum(int(port[name]) for port in self.data["ports"] for name in ("oversized", "kernel_drops", "no_frame"))
