"""The frame of a monitoring record: its header and the block of attributes, read and written.

A packet is the payload of one message, or one datagram. It may come from strangers: every length is checked before it
is used, and nothing is kept. Pure functions, on any thread.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from um_cffi.monitoring._records import Attributes

SIGNATURE = 0x1B33041B
HEADER = struct.Struct(">IHHHH")  # signature, type, length of the attributes, length of the data, filler
ENTRY = struct.Struct(
    ">HH"
)  # type of an attribute and length of its value; also number of entries, length of the block
LONGEST = HEADER.size + 2 * 0xFFFF
ENTRIES = 64  # more than a block of nine known attributes has

SOURCE, RECEIVER, EVENT_QUEUE, CONTEXT, TOPIC, WILDCARD, STORE, ROUTER, UMDS, CONTROL, SRS = range(11)
LOG = 0x554D  # lines of the log of a process: of this implementation only, protobuf in any case
CSV, PB = 1, 2
CSV_VERSIONS = range(1, 6)
PB_VERSIONS = range(1, 2)

_SENDER, _TIMESTAMP, _APPLICATION, _FORMAT, _OBJECT, _PROCESS, _SOURCE, _INSTANCE, _DOMAIN = range(9)


class MalformedPacket(ValueError):
    """A packet that is no monitoring record; `reason` is one of REASONS."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason  #: one of REASONS


REASONS = (
    "short",  # shorter than its header, or than the lengths in it
    "long",  # longer than the lengths in its header
    "signature",  # something else
    "type",  # of no kind of record that is known here: daemons', control messages
    "attributes",  # a block of attributes that cannot be
    "format",  # neither csv 1 to 5 nor protobuf 1
    "body",  # data that are no record of their type and format
    "unsupported",  # protobuf, and the package protobuf is not installed
)


@dataclass(frozen=True)
class Packet:
    """A packet taken apart; the data are not looked at."""

    type: int
    format: int
    version: int
    attributes: Attributes
    data: bytes


def _number(value: bytes, what: str) -> int:
    if len(value) not in (4, 8):
        raise MalformedPacket("attributes", f"attribute {what}: {len(value)} bytes: must be 4 or 8")
    return int.from_bytes(value, "big")


def _entries(block: bytes) -> dict[int, bytes]:
    if len(block) < ENTRY.size:
        raise MalformedPacket("attributes", f"block of attributes: {len(block)} bytes: must be 4 or more")
    count, _ = ENTRY.unpack_from(block)
    if count > ENTRIES:
        raise MalformedPacket("attributes", f"block of attributes: {count} entries: must be {ENTRIES} or fewer")
    at, found = ENTRY.size, {}
    for _ in range(count):
        if at + ENTRY.size > len(block):
            raise MalformedPacket("attributes", f"block of attributes: cut within {len(block)} bytes")
        kind, length = ENTRY.unpack_from(block, at)
        at += ENTRY.size
        if at + length > len(block):
            raise MalformedPacket("attributes", f"attribute {kind}: {length} bytes: more than the block has")
        found[kind] = block[at : at + length]
        at += length
    return found


def _attributes(found: dict[int, bytes]) -> Attributes:
    sender = found.get(_SENDER, b"")
    if sender and len(sender) != 4:
        raise MalformedPacket("attributes", f"attribute sender: {len(sender)} bytes: must be 4")
    instance = found.get(_INSTANCE, b"")
    if instance and len(instance) != 8:
        raise MalformedPacket("attributes", f"attribute context instance: {len(instance)} bytes: must be 8")

    def number(kind: int, what: str) -> int:
        return _number(found[kind], what) if kind in found else 0

    return Attributes(
        host=socket.inet_ntoa(sender) if sender else "",
        timestamp=number(_TIMESTAMP, "timestamp"),
        application=printable(found.get(_APPLICATION, b"")),
        object_id=number(_OBJECT, "object id"),
        process_id=number(_PROCESS, "process id"),
        immediate=number(_SOURCE, "source flag") != 0,
        context_instance=instance.hex(),
        domain_id=number(_DOMAIN, "domain id"),
    )


def printable(data: bytes) -> str:
    """Text up to a NUL; what is no UTF-8 or cannot be printed is replaced."""
    text = data.partition(b"\0")[0].decode("utf-8", "replace")
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def unpack(packet: bytes) -> Packet:
    """Take a packet apart. MalformedPacket if it is none."""
    if len(packet) < HEADER.size:
        raise MalformedPacket("short", f"packet of {len(packet)} bytes: must be {HEADER.size} or more")
    signature, kind, attributes, data, _ = HEADER.unpack_from(packet)
    if signature != SIGNATURE:
        raise MalformedPacket("signature", f"signature {signature:08x}: must be {SIGNATURE:08x}")
    expected = HEADER.size + attributes + data
    if len(packet) != expected:
        short = len(packet) < expected
        raise MalformedPacket("short" if short else "long", f"packet of {len(packet)} bytes: its head says {expected}")
    if kind not in (SOURCE, RECEIVER, EVENT_QUEUE, CONTEXT, TOPIC, WILDCARD, LOG):
        raise MalformedPacket("type", f"record of type {kind}: must be 0 to 5, or {LOG}")
    found = _entries(packet[HEADER.size : HEADER.size + attributes])
    module = found.get(_FORMAT, b"")
    if len(module) != 2:
        raise MalformedPacket("attributes", f"attribute format: {len(module)} bytes: must be 2")
    form, version = module
    known = {CSV: CSV_VERSIONS, PB: PB_VERSIONS}.get(form, range(0))
    if version not in known:
        raise MalformedPacket("format", f"format {form} version {version}: must be csv 1 to 5 or protobuf 1")
    return Packet(kind, form, version, _attributes(found), packet[HEADER.size + attributes :])


def pack(kind: int, form: int, version: int, attributes: Attributes, data: bytes) -> bytes:
    """A packet. OverflowError if a number or the data are too large for their fields."""
    entries: list[tuple[int, bytes]] = []
    if attributes.host:
        entries.append((_SENDER, socket.inet_aton(attributes.host)))
    entries.append((_TIMESTAMP, attributes.timestamp.to_bytes(4, "big")))
    if attributes.application:
        entries.append((_APPLICATION, attributes.application.encode()))
    entries.append((_FORMAT, bytes((form, version))))
    entries.append((_OBJECT, attributes.object_id.to_bytes(8, "big")))
    entries.append((_PROCESS, attributes.process_id.to_bytes(8, "big")))
    entries.append((_SOURCE, int(attributes.immediate).to_bytes(4, "big")))
    if attributes.context_instance:
        entries.append((_INSTANCE, bytes.fromhex(attributes.context_instance)))
    if attributes.domain_id:
        entries.append((_DOMAIN, attributes.domain_id.to_bytes(4, "big")))
    block = b"".join(ENTRY.pack(each, len(value)) + value for each, value in entries)
    length = ENTRY.size + len(block)
    if length > 0xFFFF or len(data) > 0xFFFF:
        raise OverflowError(f"record with {length} bytes of attributes and {len(data)} of data: must be 65535 or fewer")
    return HEADER.pack(SIGNATURE, kind, length, len(data), 0) + ENTRY.pack(len(entries), length) + block + data
