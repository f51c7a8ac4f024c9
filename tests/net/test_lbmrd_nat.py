"""lbmrd translates addresses for networks behind a NAT: receivers outside find the sources inside, and the data arrives
through the NAT. Namespaces and real nftables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures import needs_namespaces
from hosts import Host, Process, connect, ip

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "config" / "lbmrd_nat.xml"
Config = Callable[..., str]
ENDLESS = ("-M", 100000000, "-P", 5, "-d", 0)
PREROUTING = "prerouting { type nat hook prerouting priority dstnat; }"
POSTROUTING = "postrouting { type nat hook postrouting priority srcnat; }"
MESSAGES = 50

pytestmark = needs_namespaces


@pytest.fixture
def make_host() -> Iterator[Callable[[], Host]]:
    """Makes hosts that are gone after the test."""
    hosts: list[Host] = []

    def make() -> Host:
        hosts.append(Host())
        return hosts[-1]

    try:
        yield make
    finally:
        for host in hosts:
            host.close()


def cable(one: Host, device: str, address: str, other: Host, other_device: str, other_address: str) -> None:
    """Joins two hosts, each by a device of this name with this address (a.b.c.d/bits)."""
    made = connect(one, other, network="10.254.254")
    for host, old, name, new in ((one, made[0], device, address), (other, made[1], other_device, other_address)):
        ip("-n", host.name, "link", "set", "eth0", "down")
        ip("-n", host.name, "addr", "del", f"{old}/24", "dev", "eth0")
        ip("-n", host.name, "link", "set", "eth0", "name", name)
        ip("-n", host.name, "addr", "add", new, "dev", name)
        ip("-n", host.name, "link", "set", name, "up")
        host.route_multicast(name)


def default_route(host: Host, router: str) -> None:
    ip("-n", host.name, "route", "add", "default", "via", router)


def make_router(host: Host) -> None:
    host.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")


def make_nat(host: Host, *rules: str) -> None:
    """What goes out of `outer` gets its address; the rules say what is forwarded inside."""
    make_router(host)
    host.run("nft", "add table ip nat")
    for chain in (PREROUTING, POSTROUTING):
        host.run("nft", f"add chain ip nat {chain}")
    for rule in rules:
        host.run("nft", f"add rule ip nat prerouting iifname outer {rule}")
    host.run("nft", "add rule ip nat postrouting oifname outer masquerade")


def source_of(receiver: Process, topic: str) -> str:
    """Address and port of the source that a receiver has begun to receive."""
    return receiver.expect(rf"^\[{topic}\]\[TCP:([\d.]+:\d+):[0-9a-f]+\[\d+\]\], Beginning", 60).group(1)


def check_received(receivers: list[tuple[Process, str, str]]) -> None:
    for receiver, topic, source in receivers:
        assert source_of(receiver, topic) == source
    for receiver, _, _ in receivers:
        receiver.expect(rf"^Quitting\.\.\.\. received {MESSAGES} messages$")


def test_the_example_of_the_documentation(make_host: Callable[[], Host], loopback_config: Config) -> None:
    """10.1/16 is behind 192.168.1.1, which forwards two ports to 10.1.1.50; nobody outside has a route inside."""
    inside, nat, outside = make_host(), make_host(), make_host()
    cable(inside, "eth0", "10.1.1.50/16", nat, "inner", "10.1.0.1/16")
    cable(outside, "eth0", "192.168.1.20/24", nat, "outer", "192.168.1.1/24")
    default_route(inside, "10.1.0.1")
    make_nat(nat, "udp dport 12000 dnat to 10.1.1.50", "tcp dport 12001 dnat to 10.1.1.50")
    inside.start("lbmrd", EXAMPLE).expect(r"lbmrd started on 10\.1\.1\.50:12000")
    near = loopback_config(
        "context resolver_unicast_daemon 10.1.1.50:12000", "source transport_tcp_port 12001", base=""
    )
    far = loopback_config(
        "context resolver_unicast_daemon 192.168.1.1:12000", "source transport_tcp_port 12100", base=""
    )
    inside.start("lbmsrc", "-c", near, *ENDLESS, "from.inside")
    outside.start("lbmsrc", "-c", far, *ENDLESS, "from.outside")
    check_received(
        [
            (outside.start("lbmrcv", "-c", far, "-r", MESSAGES, "from.inside"), "from.inside", "192.168.1.1:12001"),
            (inside.start("lbmrcv", "-c", near, "-r", MESSAGES, "from.inside"), "from.inside", "10.1.1.50:12001"),
            (inside.start("lbmrcv", "-c", near, "-r", MESSAGES, "from.outside"), "from.outside", "192.168.1.20:12100"),
        ]
    )


OVERLAPPING = """<?xml version="1.0" encoding="UTF-8" ?>
<lbmrd version="1.0">
  <domains>
    <domain name="left"><network>172.16.1/24</network></domain>
    <domain name="right"><network>172.16.2/24</network></domain>
  </domains>
  <transformations>
    <transform source="left" destination="left">
      <rule><match address="172.16.1.1"/><replace address="10.0.0.5"/></rule>
    </transform>
    <transform source="right" destination="right">
      <rule><match address="172.16.2.1"/><replace address="10.0.0.5"/></rule>
    </transform>
    <transform source="right" destination="left">
      <rule><match address="172.16.2.1" port="12001"/><replace address="172.16.2.1" port="13002"/></rule>
    </transform>
  </transformations>
</lbmrd>
"""


def test_two_networks_with_the_same_addresses(
    make_host: Callable[[], Host], loopback_config: Config, tmp_path: Path
) -> None:
    """Two hosts are 10.0.0.5, each in a network of its own behind a NAT; lbmrd between them knows them by the outer
    addresses. The right NAT forwards another port, which a rule puts in; at home, rules put the inner address in."""
    left, left_nat, hub, right_nat, right = (make_host() for _ in range(5))
    make_router(hub)
    for host, nat, network, port in ((left, left_nat, "172.16.1", 12001), (right, right_nat, "172.16.2", 13002)):
        cable(host, "eth0", "10.0.0.5/24", nat, "inner", "10.0.0.1/24")
        cable(nat, "outer", f"{network}.1/24", hub, f"to{port}", f"{network}.254/24")
        default_route(host, "10.0.0.1")
        default_route(nat, f"{network}.254")
        make_nat(nat, f"tcp dport {port} dnat to 10.0.0.5:12001")
    file = tmp_path / "overlapping.xml"
    file.write_text(OVERLAPPING)
    hub.start("lbmrd", "-i", "172.16.1.254", file).expect(r"lbmrd started on 172\.16\.1\.254:15380")
    config = loopback_config(
        "context resolver_unicast_daemon 172.16.1.254:15380", "source transport_tcp_port 12001", base=""
    )
    for host, topic in ((left, "from.left"), (right, "from.right")):
        host.start("lbmsrc", "-c", config, *ENDLESS, topic)
    found = [
        (left, "from.left", "10.0.0.5:12001"),
        (left, "from.right", "172.16.2.1:13002"),
        (right, "from.left", "172.16.1.1:12001"),
        (right, "from.right", "10.0.0.5:12001"),
    ]
    check_received(
        [(host.start("lbmrcv", "-c", config, "-r", MESSAGES, topic), topic, source) for host, topic, source in found]
    )
