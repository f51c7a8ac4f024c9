"""Contexts and the daemon srs: topics are resolved over TCP, with no datagram; servers are killed and come back."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hosts import Process, free_port, program
from pairs import HANG, ROOT, loopback, until

from um_cffi import Context, InvalidArgument, Receiver, Source, WildcardReceiver

PUBLISHER = """
import sys
from pairs import HANG, loopback
from um_cffi import Source
with loopback({"resolver_service": sys.argv[1], "resolver_disable_udp_topic_resolution": 1}) as ctx:
    source = Source(ctx, "orders")
    source.wait_receivers(1, HANG)
    for number in range(1000):
        source.send(b"%d" % number)
    source.send(b"", flush=True)
    print("sent", flush=True)
    sys.stdin.readline()
"""


class Server:
    """A daemon on a port of its own, the same after each start."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._config = folder / f"srs{self.port}.xml"
        self._config.write_text(f"<um-srs><srs><interface>127.0.0.1</interface><port>{self.port}</port></srs></um-srs>")
        self._process: Process | None = None
        self.start()

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = Process([program("srs"), str(self._config)])
        self._process.expect("srs started on")

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    running = [Server(tmp_path), Server(tmp_path)]
    yield running
    for server in running:
        server.kill()


def resolved_by(*servers: Server, **more: object) -> Context:
    return loopback(
        {
            "resolver_service": ",".join(server.name for server in servers),
            "resolver_disable_udp_topic_resolution": 1,
            **more,
        }
    )


def datagrams_sent() -> int:
    lines = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")]
    return int(dict(zip(*lines))["OutDatagrams"])


def gets(receiver: Receiver | WildcardReceiver, wanted: bytes) -> None:
    """Waits for that message."""

    def came() -> bool:
        batch = receiver.recv_batch(timeout=0.1)
        return batch is not None and any(bytes(message.data) == wanted for message in batch.messages())

    until(came)


def test_d5_two_processes_exchange_data_by_a_server_alone_and_no_datagram_is_sent(servers: list[Server]) -> None:
    before = datagrams_sent()
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    with resolved_by(servers[0]) as ctx:
        receiver = Receiver(ctx, "orders")
        with ExitStack() as stack:
            child = Process([sys.executable, "-c", PUBLISHER, servers[0].name], path)
            stack.callback(child.close)
            got: list[bytes] = []

            def all_came() -> bool:
                batch = receiver.recv_batch(timeout=0.1)
                got.extend(bytes(message.data) for message in (batch.messages() if batch is not None else []))
                return b"" in got

            until(all_came)
            numbers = [int(each) for each in got if each]
            assert numbers == list(range(numbers[0], 1000))
            assert not re.search(r":32A5 ", Path("/proc/net/udp").read_text())  # port 12965
            assert ctx.counts().services_connected == 1 and ctx.counts().service_sources >= 1
    assert datagrams_sent() == before


def test_wildcards_and_own_sources_are_resolved_and_deleted_sources_end(servers: list[Server]) -> None:
    with resolved_by(servers[0]) as sending, resolved_by(servers[0]) as receiving:
        wildcard = WildcardReceiver(receiving, "^ord")
        first = Source(sending, "orders")
        other = Source(sending, "quotes")
        own = Receiver(sending, "quotes")
        first.wait_receivers(1, HANG)
        other.wait_receivers(1, HANG)
        later = Source(sending, "ordinary")
        later.wait_receivers(1, HANG)
        later.send(b"later", flush=True)
        gets(wildcard, b"later")
        other.send(b"own", flush=True)
        gets(own, b"own")
        until(lambda: {each.topic for each in receiving.topics()} == {"orders", "ordinary"})
        first.close()
        until(lambda: {each.topic for each in receiving.topics()} == {"ordinary"})


def test_d4_one_of_two_servers_may_be_killed_at_any_time(servers: list[Server]) -> None:
    with resolved_by(*servers) as sending, resolved_by(*servers) as receiving, ExitStack() as stack:
        until(lambda: sending.counts().services_connected == 2 == receiving.counts().services_connected)
        for number in range(4):
            servers[number % 2].kill()
            source = stack.enter_context(Source(sending, f"topic.{number}"))
            receiver = stack.enter_context(Receiver(receiving, f"topic.{number}"))
            source.wait_receivers(1, HANG)
            source.send(b"%d" % number, flush=True)
            gets(receiver, b"%d" % number)
            servers[number % 2].start()
            until(lambda: sending.counts().services_connected == 2 == receiving.counts().services_connected)
        until(lambda: len(receiving.topics(r"^topic\.")) == 4)
        until(lambda: receiving.counts().services_lost == 4)


def test_d4_data_flows_while_the_server_is_away_and_what_was_made_meanwhile_is_found(servers: list[Server]) -> None:
    with resolved_by(servers[0]) as sending, resolved_by(servers[0]) as receiving:
        old, old_receiver = Source(sending, "old"), Receiver(receiving, "old")
        old.wait_receivers(1, HANG)
        servers[0].kill()
        until(lambda: receiving.counts().services_connected == 0)
        old.send(b"in the outage", flush=True)
        gets(old_receiver, b"in the outage")
        new, new_receiver = Source(sending, "new"), Receiver(receiving, "new")
        until(lambda: receiving.counts().services_failed >= 1)
        assert new.receivers() == 0
        servers[0].start()
        new.wait_receivers(1, HANG)
        new.send(b"after it", flush=True)
        gets(new_receiver, b"after it")
        old.send(b"still there", flush=True)
        gets(old_receiver, b"still there")


def test_a_stopped_server_does_not_touch_what_flows_and_another_one_is_enough(servers: list[Server]) -> None:
    with resolved_by(*servers) as sending, resolved_by(*servers) as receiving:
        source, receiver = Source(sending, "orders"), Receiver(receiving, "orders")
        source.wait_receivers(1, HANG)
        servers[0].signal(signal.SIGSTOP)
        for number in range(5):
            source.send(b"%d" % number, flush=True)
            gets(receiver, b"%d" % number)
        new, new_receiver = Source(sending, "new"), Receiver(receiving, "new")
        new.wait_receivers(1, HANG)
        new.send(b"new", flush=True)
        gets(new_receiver, b"new")
        servers[0].signal(signal.SIGCONT)


def test_a_source_needs_an_interface_and_a_server_a_cache(servers: list[Server]) -> None:
    with resolved_by(servers[0], default_interface="0.0.0.0") as ctx:
        with pytest.raises(InvalidArgument, match=r"CoreApi-10403-300.*transport interface"):
            Source(ctx, "orders")
        Source(ctx, "orders", options={"transport_tcp_interface": "127.0.0.1"}).close()
    with pytest.raises(InvalidArgument, match="resolver_cache 0"):
        resolved_by(servers[0], resolver_cache=0)


def test_six_names_are_five_servers_and_a_name_twice_is_one(servers: list[Server]) -> None:
    names = [f"127.0.0.1:{port}" for port in (servers[0].port, servers[0].port, 1, 2, 3, 4, 5)]
    with loopback({"resolver_service": ",".join(names), "resolver_disable_udp_topic_resolution": 1}) as ctx:
        until(lambda: ctx.counts().services_connected == 1 and ctx.counts().services_failed >= 4)
