"""Packets to records, and records to packets: the payloads of topic /29west/statistics, or datagrams.

Pure functions of bytes and a Decoder that counts; nothing is sent or received here. On any thread, each Decoder on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from um_cffi.monitoring import _csv, _packet
from um_cffi.monitoring._packet import REASONS, MalformedPacket
from um_cffi.monitoring._records import LogRecord, Record

__all__ = ["REASONS", "TOPIC", "Decoder", "MalformedPacket", "decode", "encode"]

#: The topic that records are published to unless an option says otherwise.
TOPIC = "/29west/statistics"

_pb: Any = None


def _protobuf() -> Any:
    """The module that needs protobuf, imported with the first record of this form. MalformedPacket without it."""
    global _pb
    if _pb is None:
        try:
            from um_cffi.monitoring import _pb as module
        except ImportError as error:
            text = f"records in protobuf need the package protobuf: pip install um-cffi[monitoring] ({error})"
            raise MalformedPacket("unsupported", text) from None
        _pb = module
    return _pb


def decode(packet: bytes, separator: str = ",") -> list[Record]:
    """The records of one packet: one in csv, one for each object in protobuf.

    `separator` is that of csv. MalformedPacket, with the reason, if the packet is none; also for records of daemons and
    control messages, which have types of their own.
    """
    if len(packet) > _packet.LONGEST:
        raise MalformedPacket("long", f"packet of {len(packet)} bytes: must be {_packet.LONGEST} or fewer")
    taken = _packet.unpack(bytes(packet))
    if taken.type == _packet.LOG:
        return [_protobuf().decode_log(taken.attributes, taken.data)]
    if taken.format == _packet.CSV:
        return [_csv.decode(taken.type, taken.attributes, taken.data, separator.encode())]
    found: list[Record] = _protobuf().decode(taken.attributes, taken.data)
    return found


def encode(record: Record, format: str = "csv", separator: str = ",") -> bytes:
    """The packet of a record, in "csv" (version 5) or "pb" (version 1); that of a LogRecord is protobuf in both.

    ValueError for another format, OverflowError for a record that is longer than 65535 bytes.
    """
    if format not in ("csv", "pb"):
        raise ValueError(f"format {format}: must be csv or pb")
    if format == "csv" and not isinstance(record, LogRecord):
        kind, data = _csv.encode(record, separator)
        return _packet.pack(kind, _packet.CSV, _packet.CSV_VERSIONS[-1], record.attributes, data)
    kind, data = _protobuf().encode(record)
    return _packet.pack(kind, _packet.PB, _packet.PB_VERSIONS[-1], record.attributes, data)


class Decoder:
    """Decodes packet after packet, and counts those that are malformed by their reason."""

    def __init__(self, separator: str = ",") -> None:
        self.separator = separator
        self.packets = 0  #: so far
        self.records = 0  #: in these
        self.malformed = dict.fromkeys(REASONS, 0)  #: packets by reason

    def decode(self, packet: bytes) -> Sequence[Record]:
        """The records of a packet; none if it is malformed."""
        self.packets += 1
        try:
            found = decode(packet, self.separator)
        except MalformedPacket as error:
            self.malformed[error.reason] += 1
            return ()
        self.records += len(found)
        return found
