"""The monitor of the daemon srs: what it publishes of itself, and what it answers to commands."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import Process, program
from pairs import HANG, loopback, until
from protos import message_class
from srs_client import RDR, RIR, WDR, WIR, SrsClient

from um_cffi import Context, MessageType, Receiver

LOCAL = {"default_interface": "127.0.0.1", "request_tcp_port_low": "0", "request_tcp_port_high": "0"}
SLOW = "context transport_tcp_receiver_socket_buffer 16384\n"
OPTIONS = [
    *(("context", name, value) for name, value in LOCAL.items()),
    ("context", "transport_tcp_port_low", "0"),
    ("context", "transport_tcp_port_high", "0"),
    ("source", "transport_tcp_sender_socket_buffer", "16384"),
]
ALLOWED = "".join(
    f'<{name} allow="true"/>'
    for name in ("publish-connection-events", "remote-snapshot-request", "remote-config-changes-request")
)


def config(folder: Path, inside: str, options: list[tuple[str, str, str]] = OPTIONS) -> Path:
    path = folder / "srs.xml"
    rows = "".join(f'<option scope="{scope}" name="{name}" value="{value}"/>' for scope, name, value in options)
    path.write_text(
        "<um-srs><srs><interface>127.0.0.1</interface><port>0</port></srs>"
        f'<daemon-monitor topic="srs.monitor">{inside}<lbm-attributes>{rows}</lbm-attributes></daemon-monitor></um-srs>'
    )
    return path


def read_json(data: bytes) -> Any:
    assert data.endswith(b"}\0")
    return json.loads(data[:-1])


class Service:
    """A daemon with a monitor, and a receiver of what it publishes."""

    def __init__(self, folder: Path, inside: str, read: Callable[[bytes], Any] = read_json) -> None:
        self.read = read
        self.records: list[Any] = []
        self.config = folder / "asker.cfg"
        self.config.write_text("".join(f"context {name} {value}\n" for name, value in LOCAL.items()) + SLOW)
        self.process = Process([program("srs"), str(config(folder, inside))])
        self.port = int(self.process.expect(r"SRS-um-9: srs started on 127\.0\.0\.1:(\d+)$").group(1))
        self.process.expect("SRS-10386-1403: Daemon monitor sending monitor info messages on topic: srs.monitor$")
        self.target = self.process.expect(r"SRS-10386-1405: .*(TCP:127\.0\.0\.1:\d+)$").group(1)
        self.context: Context = loopback()
        self.receiver = Receiver(self.context, "srs.monitor")
        self.receiver.wait_ready(1, HANG)

    def close(self) -> None:
        self.context.close()
        self.process.close()

    def ask(self, *commands: str, status: int = 0) -> list[str]:
        """What is answered to each command."""
        words = [program("srs_cmd"), "-c", str(self.config), "-L", "0", "-T", self.target]
        given = commands[:1] if len(commands) == 1 else ()
        text = "" if given else "\n".join(commands)
        done = subprocess.run([*words, *given], input=text, capture_output=True, text=True, check=False, timeout=HANG)
        assert done.returncode == status, done
        assert f"Sending unicast immediate messages to target: <{self.target}>\n" in done.stdout
        found = re.findall(r"^Response received \[.*\] from \[.*\]\[\d+\], \d+ bytes\n(.*)\n", done.stdout, re.M)
        assert status != 0 or len(found) == len(commands), done.stdout
        return [str(answer) for answer in found]

    def next(self, good: Callable[[Any], object]) -> Any:
        """The next record that is wanted; those before it are forgotten."""
        found: list[Any] = []

        def there() -> bool:
            batch = self.receiver.recv_batch(timeout=0.1)
            for message in batch.messages() if batch is not None else ():
                if message.type == MessageType.DATA:
                    self.records.append(self.read(bytes(message.data)))
            while self.records and not found:
                record = self.records.pop(0)
                if good(record):
                    found.append(record)
            return bool(found)

        until(there)
        return found[0]

    def of(self, category: str, session: int | None = None) -> Any:
        """The next record of a category, or of a client in it."""
        wanted = None if session is None else f"0x{session:08x}"
        return self.next(
            lambda record: (
                record["monitorInfoCategory"] == category
                and record.get("srsRegistrationInfo", {}).get("sessionId") == wanted
            )
        )

    def snapshot(self, category: str, session: int | None = None) -> dict[str, int]:
        assert self.ask(f"snap {category.lower()}") == [f"snap {category} - OK!"]
        return values(self.of(category, session))


def values(record: dict[str, Any]) -> dict[str, int]:
    return {entry["name"]: entry["value"] for entry in record["stats"]}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    running: list[Service] = []

    def one(inside: str, read: Callable[[bytes], Any] = read_json) -> Service:
        running.append(Service(tmp_path, inside, read))
        return running[-1]

    yield one
    for each in running:
        each.close()


Start = Callable[..., Service]


def synchronize(*clients: SrsClient) -> None:
    """All that they have said has been read, and what was waiting for them has gone out."""
    for client in clients:
        before = client.keepalives
        client.keepalive()
        client.wait(lambda client=client, before=before: client.keepalives > before)  # type: ignore[misc]


def test_every_counter_moves_by_what_has_happened(service: Start) -> None:
    """Two clients, three sources, two receivers, one pattern, one kill."""
    monitored = service(ALLOWED)
    with SrsClient(monitored.port, 0x11).join() as source, SrsClient(monitored.port, 0x22).join() as told:
        source.batch(*(source.sir(number, f"topic{number}") for number in (1, 2, 3)))
        told.batch(told.want(RIR, "topic1"), told.want(RIR, "other"), told.want(WIR, "^topic"))
        told.wait(lambda: len(told.sources) == 3)
        source.batch(source.sir(1, "topic1"), source.sdr(9, "topic1"), source.sdr(3, "topic3"))
        told.batch(told.slr(b"\1" * 32, "topic1"), told.want(RIR, "other"))
        told.wait(lambda: len(told.sources) == 2)
        synchronize(source, told)
        stats = monitored.snapshot("SRS_STATS")
        assert len(stats) == 26
        assert {name: value for name, value in stats.items() if value} == {
            "clients.next.client.ID": 3,
            "active.clients.count": 2,
            "clients.connects.count": 2,
            "clients.max.concurrent.connections.count": 2,
            "clients.active.SIR.count": 2,
            "clients.active.RIR.count": 2,
            "clients.active.WIR.count": 1,
            "clients.SLR.no.OTID.match.count": 1,
        }
        errors = monitored.snapshot("SRS_ERROR_STATS")
        assert len(errors) == 15
        assert {name: value for name, value in errors.items() if value} == {
            "clients.duplicate.SIR.count": 1,
            "clients.duplicate.RIR.count": 1,
            "clients.invalid.SDR.no.OTID.match.count": 1,
        }
        mine = monitored.snapshot("UM_CLIENT_STATS", 0x11)
        assert len(mine) == 24
        assert {name: value for name, value in mine.items() if value} == {
            "client.SIR.received.count": 4,
            "client.SDR.received.count": 2,
            "client.active.SIR.count": 2,
            "client.max.concurrent.SIR.count": 3,
        }
        theirs = monitored.snapshot("UM_CLIENT_STATS", 0x22)
        assert {name: value for name, value in theirs.items() if value} == {
            "client.RIR.received.count": 3,
            "client.WIR.received.count": 1,
            "client.SLR.received.count": 1,
            "client.SIR.sent.count": 3,
            "client.SER.sent.count": 1,
        }
        wrong = monitored.snapshot("UM_CLIENT_ERROR_STATS", 0x11)
        assert (len(wrong), wrong["client.invalid.SDR.received.count"]) == (8, 1)
        source.reset()
        until(lambda: monitored.snapshot("SRS_STATS")["clients.disconnects.count"] == 1)
        after = monitored.snapshot("SRS_STATS")
        assert (after["active.clients.count"], after["clients.inactive.SIR.count"]) == (1, 2)
        assert after["clients.active.SIR.count"] == 0


def test_periodic_records_carry_what_has_changed(service: Start) -> None:
    monitored = service(
        "<ping-interval>100</ping-interval>"
        + ALLOWED
        + "<publishing-interval><srs-stats>200</srs-stats><um-client-stats>200</um-client-stats></publishing-interval>"
    )
    assert len(monitored.snapshot("SRS_STATS")) == 26  # all values, like the first record, which came before anybody
    with SrsClient(monitored.port, 0x11).join() as client:
        assert len(values(monitored.of("UM_CLIENT_STATS", 0x11))) == 24
        client.batch(client.sir(1, "orders"))
        told: dict[str, dict[str, int]] = {"SRS_STATS": {}, "UM_CLIENT_STATS": {}}

        def both_have_it(record: dict[str, Any]) -> bool:  # in any order
            changed = values(record)
            assert 0 < len(changed) < 24  # what has not changed is left out
            told[record["monitorInfoCategory"]].update(changed)
            counts = ("SRS_STATS", "clients.active.SIR.count"), ("UM_CLIENT_STATS", "client.active.SIR.count")
            return all(told[category].get(name) == 1 for category, name in counts)

        last = monitored.next(both_have_it)
        came = {"clients.next.client.ID", "active.clients.count", "clients.connects.count"}
        came |= {"clients.max.concurrent.connections.count"}  # if nothing was published since
        assert set(told["SRS_STATS"]) <= came | {"clients.active.SIR.count"}
        assert set(told["UM_CLIENT_STATS"]) <= {
            "client.SIR.received.count",
            "client.active.SIR.count",
            "client.max.concurrent.SIR.count",
        }
        if last["monitorInfoCategory"] == "SRS_STATS":
            client.batch(client.sir(2, "trades"))
            last = monitored.of("UM_CLIENT_STATS", 0x11)
        host, port = client.socket.getsockname()
        assert last["srsRegistrationInfo"] == {"ip": host, "port": str(port), "sessionId": "0x00000011"}


def test_events_tell_who_came_what_they_said_and_who_went(service: Start) -> None:
    monitored = service(
        ALLOWED + "<publishing-interval><connection-events>200</connection-events></publishing-interval>"
    )
    with SrsClient(monitored.port, 0x11).join() as client:
        client.batch(client.sir(1, 'say "orders"\u20ac'), client.sdr(1, 'say "orders"\u20ac'))
    kinds = ["UM_CLIENT_CONNECT", "SIR", "SDR", "UM_CLIENT_DISCONNECT"]
    for kind in kinds:
        record = monitored.of("CONNECTION_EVENTS", 0x11)
        assert record["connectionEventType"] == kind
        (event,) = record["events"]
        assert event["connectionEventType"] == kind
        assert re.fullmatch(r"\w{3} \w{3} \d{1,2} \d\d:\d\d:\d\d \S+ \d{4}", event["connectionEventTime"])
        assert event.get("topic") == ('say "orders"\u20ac' if kind in ("SIR", "SDR") else None)


def test_options_are_published_and_intervals_set_from_afar(service: Start) -> None:
    monitored = service(ALLOWED)

    def options(category: str) -> dict[str, str]:
        return {entry["name"]: entry["value"] for entry in monitored.of(category)["configOptions"]}

    assert monitored.ask("version", "snap config_opts") == ["SRS Version 6.17", "snap CONFIG_OPTS - OK!"]
    published = options("CONFIG_OPTS")
    assert published["um-srs.daemon-monitor.topic"] == "srs.monitor"
    assert published["um-srs.daemon-monitor.lbm-attributes.context.default_interface"] == "127.0.0.1"
    assert published["um-srs.daemon-monitor.publishing-interval.config-opts"] == "0"
    assert monitored.ask("snap internal_config_opts") == ["snap INTERNAL_CONFIG_OPTS - OK!"]
    assert options("INTERNAL_CONFIG_OPTS")["um-srs.srs.otidmap.shards"] == "4"
    assert monitored.ask("config_opts 300") == ["CONFIG_OPTS 300 - OK!"]
    assert options("CONFIG_OPTS") == {"um-srs.daemon-monitor.publishing-interval.config-opts": "300"}
    assert monitored.ask("config_opts 0", "srs_stats 199") == [
        "CONFIG_OPTS 0 - OK!",
        "SRS_STATS - refused: publishingInterval must be 0 or 200..7776000000 milliseconds",
    ]


def test_nothing_is_published_without_an_interval_and_nothing_done_without_permission(service: Start) -> None:
    monitored = service("")
    with SrsClient(monitored.port, 0x11).join() as client:
        client.batch(client.sir(1, "orders"))
        synchronize(client)
    answers = monitored.ask(
        "snap SRS_STATS",
        "SRS_STATS 200",
        "snap NOTHING",
        "snap CONNECTION_EVENTS",
        '{"commandMessageType":"STOP"}',
        "[]",
        "version",
    )
    assert answers[0] == "snap SRS_STATS - refused: remote-snapshot-request does not allow it"
    assert answers[1] == "SRS_STATS - refused: remote-config-changes-request does not allow it"
    assert answers[2].startswith("monitorInfoCategory NOTHING: must be SRS_STATS, ")
    assert answers[3] == "snap CONNECTION_EVENTS - refused: remote-snapshot-request does not allow it"
    assert answers[4].startswith("commandMessageType STOP: must be ")
    assert answers[5] == "not a command: an object is expected"
    assert answers[6] == "SRS Version 6.17"
    batch = monitored.receiver.recv_batch(timeout=0.5)  # longer than the shortest interval
    assert batch is None or not [m for m in batch.messages() if m.type == MessageType.DATA]


def test_in_protobuf_records_are_monitoring_packets(service: Start, tmp_path: Path) -> None:
    message = message_class(tmp_path, "SRSMonMsg")

    def read(data: bytes) -> Any:
        signature, kind, head, body, filler = struct.unpack_from(">IHHHH", data)
        assert (signature, kind, filler, len(data)) == (0x1B33041B, 10, 0, 12 + head + body)
        entries, length = struct.unpack_from(">HH", data, 12)
        assert (entries, length) == (4, head)
        assert bytes((0, 3, 0, 2, 2, 1)) in data[12 : 12 + head]  # protobuf, version 1
        return message.FromString(data[12 + head :])

    monitored = service(ALLOWED + "<monitor-format>pb</monitor-format>", read)

    def snapshot(category: str) -> Any:
        assert monitored.ask(f"snap {category}") == [f"snap {category} - OK!"]
        record = monitored.next(lambda _: True)
        assert record.attributes.sender_ipv4_address == "127.0.0.1"
        assert record.attributes.process_id == monitored.process.pid
        assert abs(record.attributes.timestamp - time.time()) < 1000
        return record

    with SrsClient(monitored.port, 0x11).join() as client:
        client.batch(client.sir(1, "orders"), client.sir(2, "quotes"), client.sdr(2, "quotes"), client.sdr(7, "none"))
        client.batch(client.want(RIR, "news"), client.want(RDR, "news"), client.want(WIR, "^q"), client.want(WDR, "^q"))
        client.batch(client.slr(client.otid(1), "orders"))
        synchronize(client)
        stats = snapshot("SRS_STATS").stats
        assert (stats.srs.active_clients_count, stats.srs.clients_active_sir_count) == (1, 1)
        assert (stats.srs.clients_next_client_id, stats.HasField("um_client")) == (2, False)
        assert snapshot("SRS_ERROR_STATS").stats.srs_error.clients_invalid_sdr_no_topic_match_count == 1
        mine = snapshot("UM_CLIENT_STATS").stats.um_client
        host, port = client.socket.getsockname()
        assert (mine.um_client_info.ip, mine.um_client_info.port) == (host, port)
        assert mine.um_client_info.session_id == "0x00000011"
        assert (mine.client_sir_received_count, mine.client_max_concurrent_sir_count) == (2, 2)
        assert snapshot("UM_CLIENT_ERROR_STATS").stats.um_client_error.client_invalid_sdr_received_count == 1
    until(lambda: snapshot("SRS_STATS").stats.srs.clients_disconnects_count == 1)
    configs = snapshot("CONFIG_OPTS").configs
    assert (configs.srs_interface, configs.daemon_log_max_history) == ("127.0.0.1", "10")
    assert configs.daemon_monitor_remote_snapshot_request_allow == "true"
    assert configs.daemon_monitor_publishing_interval_um_client_error_stats == "0"
    attributes = [(each.scope, each.name, each.value) for each in configs.daemon_monitor_lbm_attributes]
    assert attributes == OPTIONS
    assert snapshot("INTERNAL_CONFIG_OPTS").configs.internal.srs_otidmap_shards == "4"
    assert monitored.ask("snap CONNECTION_EVENTS") == ["snap CONNECTION_EVENTS - OK!"]
    kinds: list[str] = []
    while not kinds or kinds[-1] != "um_client_disconnect":
        events = monitored.next(lambda record: record.HasField("events")).events
        assert events.um_client_info.session_id == "0x00000011"
        (kind,) = [field.name for field, _ in events.ListFields() if field.name != "um_client_info"]
        kinds.append(kind)
    sources = ["source_info_records"] * 2 + ["source_delete_records"] * 2
    interest = ["receiver_info_records", "receiver_delete_records"]
    patterns = ["wildcard_receiver_info_records", "wildcard_receiver_delete_records"]
    rest = ["source_leave_records", "um_client_disconnect"]
    assert kinds == ["um_client_connect", *sources, *interest, *patterns, *rest]


def test_in_protobuf_a_record_has_all_values_when_one_has_changed(service: Start, tmp_path: Path) -> None:
    """A field that is 0 is not there: it could not be told from one that has not changed."""
    message = message_class(tmp_path, "SRSMonMsg")
    monitored = service(
        "<monitor-format>pb</monitor-format><ping-interval>100</ping-interval>"
        "<publishing-interval><srs-stats>200</srs-stats></publishing-interval>",
        lambda data: message.FromString(data[12 + int.from_bytes(data[6:8], "big") :]),
    )
    with SrsClient(monitored.port, 0x11).join():  # the first record may have come before anybody listened
        monitored.next(lambda record: record.stats.srs.active_clients_count == 1)
    last = monitored.next(lambda record: record.stats.srs.clients_disconnects_count == 1)
    assert (last.stats.srs.active_clients_count, last.stats.srs.clients_connects_count) == (0, 1)


def test_a_flood_of_commands_is_bounded_and_resolution_goes_on(service: Start) -> None:
    monitored = service(ALLOWED)
    with (
        loopback() as stranger,
        SrsClient(monitored.port, 1).join() as source,
        SrsClient(monitored.port, 2).join() as told,
    ):
        told.batch(told.want(RIR, "orders"))
        for _ in range(2000):
            stranger.send_immediate(monitored.target, b'{"commandMessageType":"REPORT_MONITOR_INFO"')
        assert stranger.request_immediate(monitored.target, b"[]", timeout=HANG).result().data  # all have been read
        monitored.process.expect("SRS-um-18: a command of .* was not answered")
        source.batch(source.sir(1, "orders"))
        told.wait(lambda: len(told.sources) == 1)
    assert monitored.process.output.count("SRS-um-18") == 1
    monitored.process.signal(signal.SIGTERM)
    assert re.search(r"SRS-um-21: .* \d{4} commands not answered", monitored.process.finish())


def test_a_receiver_that_reads_nothing_holds_up_neither_the_service_nor_its_end(service: Start) -> None:
    monitored = service(
        ALLOWED + "<publishing-interval><connection-events>200</connection-events></publishing-interval>"
    )
    slow = Process([program("lbmrcv"), "-c", str(monitored.config), "srs.monitor"])
    slow.expect("Beginning of")
    slow.suspend()
    with SrsClient(monitored.port, 1).join() as source:
        for turn in range(20):
            source.batch(*(source.sir(turn * 500 + number, f"topic{turn}.{number}") for number in range(500)))
        synchronize(source)
        monitored.process.expect("SRS-um-19: a record of CONNECTION_EVENTS was not published: ")
        synchronize(source)
    monitored.process.signal(signal.SIGTERM)
    monitored.process.finish()
    slow.close()


def test_options_that_do_not_exist_are_refused_before_the_start(tmp_path: Path) -> None:
    wrong = [("context", "no_such_option", "1")]
    for words in (["--validate"], []):
        done = subprocess.run(
            [program("srs"), *words, str(config(tmp_path, "", wrong))],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG,
        )
        assert done.returncode == 1
        assert "SRS-10386-1303: lbm-attributes: option no_such_option: " in done.stderr


def test_a_monitor_that_cannot_start_does_not_keep_the_service_from_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = ("context", "request_tcp_port", str(taken.getsockname()[1]))
        process = Process([program("srs"), str(config(tmp_path, "", [*OPTIONS[:1], port]))])
        try:
            served = int(process.expect(r"srs started on 127\.0\.0\.1:(\d+)$").group(1))
            assert (
                "SRS-um-14: daemon monitor cannot start, the service goes on without it: its context: "
                in process.output
            )
            SrsClient(served, 1).join().close()
            process.signal(signal.SIGTERM)
            process.finish()
        finally:
            process.close()
