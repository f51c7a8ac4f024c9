"""Records of stores and routers, made here with the installed .proto files as no daemon of ours sends them yet: what
lbmmon prints of them has every field, each behind its own label, and nothing that moves a terminal's cursor.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from hosts import BUILD, Host, Process
from monitoring_messages import message_class, pool_of

UDP = ("-t", "udp", "--transport-opts=address=127.0.0.1;port=2933")
STORE, ROUTER = 6, 7
# Fields that the lines of the original tools do not have, or have as a word.
UNSEEN = {
    "stats.src_count", "stats.src_repo_stats.lead_sqn", "stats.src_repo_stats.sync_sqn",
    "configs.portals.portal_index", "configs.portals.portal_type",
}  # fmt: skip
SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for packet in sys.argv[1:]:
        s.sendto(bytes.fromhex(packet), ("127.0.0.1", 2933))
    time.sleep(0.05)
"""


@pytest.fixture(name="pool", scope="module")
def pool_of_installed_protos(tmp_path_factory: pytest.TempPathFactory) -> DescriptorPool:
    stage = tmp_path_factory.mktemp("stage")
    install = ["cmake", "--install", str(BUILD), "--component", "development", "--prefix", "/opt/um"]
    subprocess.run(install, check=True, capture_output=True, env={**os.environ, "DESTDIR": str(stage)})
    return pool_of(stage / "opt/um/share/libum/proto", tmp_path_factory.mktemp("set"))


class Filler:
    """Gives every field of a message a value of its own, and keeps which."""

    def __init__(self) -> None:
        self.next = 1_000_000
        self.given: list[tuple[str, str]] = []  # path of the field, the value as it is printed

    def fill(self, message: Any, path: str = "", choice: int = 0) -> None:
        """One element in each list, but one for each member of a `oneof` of its elements."""
        for field in message.DESCRIPTOR.fields:
            where = f"{path}.{field.name}" if path else field.name
            oneof = field.containing_oneof
            if where == "attributes" or (oneof is not None and oneof.fields[choice] is not field):
                continue
            if field.message_type is None:
                self._scalar(message, field, where)
                continue
            if not hasattr(getattr(message, field.name), "add"):
                self.fill(getattr(message, field.name), where)
                continue
            for each in range(max([len(one.fields) for one in field.message_type.oneofs], default=1)):
                self.fill(getattr(message, field.name).add(), where, each)

    def _scalar(self, message: Any, field: Any, where: str) -> None:
        self.next += 1
        number = self.next
        if field.type == field.TYPE_STRING:
            setattr(message, field.name, f"text {number}")
            shown = f"text {number}"
        else:
            setattr(message, field.name, number)
            address = ".".join(str(byte) for byte in struct.pack("=I", number))
            shown = {"ip_addr": address, "topology_signature": f"0x{number:08x}"}.get(field.name, str(number))
        self.given.append((where, shown))


def packet(kind: int, body: bytes, application: bytes = b"Daemon") -> str:
    block = struct.pack(">HHHH", 2, 14 + len(application), 2, len(application)) + application
    block += struct.pack(">HHH", 3, 2, 0x0201)
    return (struct.pack(">IHHHH", 0x1B33041B, kind, len(block), len(body), 0) + block + body).hex()


def send(host: Host, *packets: str) -> Process:
    return host.start_command("python3", "-c", SENDER, *packets)


SHORT = {
    "src": "source", "rcv": "receiver", "rcvd": "received", "rcved": "received", "msgs": "messages", "msg": "message",
    "cntl": "control", "sz": "size", "sqn": "sequence", "rx": "retransmission", "rxs": "retransmissions",
    "count": "number", "aiocbs": "asynchronous", "otid": "originating",
}  # fmt: skip


def stems(text: str) -> set[str]:
    """Beginnings of the words of a label or of the name of a field, which are shorter there."""
    words = re.findall("[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return {each[:2] for word in words for each in (word, SHORT.get(word, word))}


def labels(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        found = re.fullmatch(r"\s+(Other Gateway Name) : \((.*)\)---", line)
        found = found or re.fullmatch(r"\s+(\S.*?) *[:=] +(\S.*?) *", line)
        if found:
            yield found[1], found[2]
        elif line.startswith("  text "):
            yield "config data", line.strip()


@pytest.mark.parametrize(
    ("kind", "name", "title"),
    [(STORE, "UMPMonMsg", "Store statistics received"), (ROUTER, "DROMonMsg", "Gateway statistics received")],
)
def test_every_field_of_a_daemon_is_printed_behind_its_label(
    host: Host, pool: DescriptorPool, kind: int, name: str, title: str
) -> None:
    message, filler = message_class(pool, name)(), Filler()
    filler.fill(message)
    monitor = host.start("lbmmon", *UDP)
    send(host, packet(kind, message.SerializeToString()))
    monitor.expect_times(f"^{title} from Daemon", 2)
    printed = re.split(f"^{title} from Daemon.*$", monitor.output, flags=re.M)[1]
    found = list(labels(printed))
    assert len(filler.given) > 80
    for where, shown in filler.given:
        behind = [label for label, value in found if value == shown]
        assert len(behind) == (0 if where in UNSEEN else 1), (where, shown, behind)
        if behind:
            assert stems(behind[0]) & stems(where.rpartition(".")[2]), (where, behind[0])


def test_the_lines_of_a_store(host: Host, pool: DescriptorPool) -> None:
    message = message_class(pool, "UMPMonMsg")()
    stats = message.stats
    stats.store_idx, stats.ume_retx_req_rcv_count = 3, 17
    repository = stats.src_repo_stats.add(topic_name="prices", src_regid=100, contig_sqn=99)
    repository.src_disk_stat.max_offset = 4096
    repository.rcv_stats.add(rcv_regid=501, high_ack_sqn=98)
    message.events.events.add(event_type=7, topic_name="evil\x1b[2J\nStore index : 9")
    monitor = host.start("lbmmon", *UDP)
    send(host, packet(STORE, message.SerializeToString(), b"St\x1bre"))
    monitor.expect(r"^Store statistics received from St\?re")
    monitor.expect(
        "^\tStore statistics:\n"
        "\tStore index                          : 3\n"
        "\tRetransmission request receive count : 17\n"
    )
    monitor.expect("^\t\tSource registration ID      : 100\n\t\tTopic name                  : prices\n")
    monitor.expect("^\tDisk statistics:\n(\t\t.*\n){2}\t\tMaximum offset            : 4096\n")
    monitor.expect(
        "^\tReceiver 0 statistics:\n\t\t.*\n\t\tReceiver registration ID: 501\n\t\tHigh ACK Sequence Number: 98\n"
    )
    monitor.expect(r"^	Event number: 0\n		Event type             : 7\n")
    monitor.expect(r"^		Topic name             : evil\?\[2J\?Store index : 9\n")
    assert "\x1b" not in monitor.output


def test_the_lines_of_a_router(host: Host, pool: DescriptorPool) -> None:
    message = message_class(pool, "DROMonMsg")()
    message.configs.gateway.config_data = "<tnw-gateway>\n  <evil>\x1b[2J</evil>\n</tnw-gateway>"
    message.configs.portals.add(portal_name="left", portal_type=0)
    message.stats.local.gateway_name, message.stats.local.topology_signature = "G1", 0xABC
    left = message.stats.portals.add(portal_name="left", cost=2)
    left.endpoint.domain_id, left.endpoint.send.transport_topic_fragments_sent = 5, 77
    right = message.stats.portals.add(portal_name="right")
    right.peer.adjacent_gateway_id, right.peer.udp_send.naks_rcved = 9, 3
    message.stats.other_gateways.add(gateway_name="G2").other_portals.add(adjacent_domain_id=6, cost=1)
    monitor = host.start("lbmmon", *UDP)
    send(host, packet(ROUTER, message.SerializeToString()))
    for lines in (
        r"^  <tnw-gateway>\n  <evil>\?\[2J</evil>\n</tnw-gateway>\n",
        r"^  Portal configuration 0 \(Endpoint\)\n    Portal name = left\n",
        r"^  Number of portals       : 2\n  Number of other gateways: 1\n  ----Local statistics----\n"
        r"    gateway_name         : G1\n",
        r"^    topology_signature   : 0x00000abc\n",
        r"^    Portal Name                    : left \n    portal_index                   : 0\n",
        r"^    ---Portal Endpoint Stats ---\n      Domain ID                      : 5\n"
        r"      Local Interest Topics          : 0\n",
        r"^        Transport topic fragments sent                                        : 77\n",
        r"^     NO Portal Peer Stats ---\n",
        r"^    --- Portal Peer Stats ---\n      Adjacent Gateway ID     : 9\n      Interest Topics         : 0\n",
        r"^        UDP NAKs received                                         : 3\n",
        r"^    Other Gateway Name : \(G2\)---\n",
        r"^      --- Other Portals\[0\]---\n      cost                : 1\n.*\n      adjacent_domain_id  : 6\n",
    ):
        monitor.expect(lines)
    assert "\x1b" not in monitor.output


@pytest.mark.parametrize(("kind", "name"), [(STORE, "UMPMonMsg"), (ROUTER, "DROMonMsg")])
def test_records_of_daemons_as_json(host: Host, pool: DescriptorPool, kind: int, name: str) -> None:
    message, filler = message_class(pool, name)(), Filler()
    filler.fill(message)
    monitor = host.start("lbmmon", "--json", *UDP)
    send(host, packet(kind, message.SerializeToString()))
    told = json.loads(monitor.expect(rf'^\{{"type":"{name}".*$').group(0))["message"]
    text = json.dumps(told)
    for where, _ in filler.given:
        assert f'"{where.rpartition(".")[2]}": ' in text, where
    numbers = sorted(int(each) for each in re.findall(r"\b1\d{6}\b", text))
    assert numbers == sorted({*range(1_000_001, filler.next + 1)}), "each value once"


def test_the_cache_passes_over_records_of_daemons(host: Host, pool: DescriptorPool, tmp_path: Path) -> None:
    store, router = Filler(), Filler()
    messages = [message_class(pool, name)() for name in ("UMPMonMsg", "DROMonMsg", "UMSMonMsg")]
    store.fill(messages[0])
    router.fill(messages[1])
    messages[2].stats.source_transports.add(source_string="TCP:1.2.3.4:5\x1b[2J").tcp.num_clients = 2
    choices = tmp_path / "choices"
    os.mkfifo(choices)
    line = ["sh", "-c", f'exec "$0" "$@" < {choices}', str(BUILD / "bin" / "lbmmoncache"), "-C", "100", *UDP]
    cache = host.start_command(*line)
    with choices.open("w") as menu:
        cache.expect("^q\\) Quit")
        print("v", file=menu, flush=True)
        send(host, *(packet(kind, each.SerializeToString()) for kind, each in zip((STORE, ROUTER, 0), messages)))
        cache.expect(r"^Source: App Daemon @ .* for source: TCP:1\.2\.3\.4:5\?\[2J$")
        print("t", file=menu, flush=True)
        cache.expect(r"^Current cache size is 1, added 1$")
        print("q", file=menu, flush=True)
        cache.finish()
