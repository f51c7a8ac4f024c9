"""Requirement X4: genuine packets of monitoring, changed at random, are records or counted refusals, and nothing else.

Packets of both formats and of daemons are cut, flipped, spliced and given lengths that lie; what is read of them goes
on to the model of a fleet and to Arrow. The seeds are those of the commit; a failure names its own.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import tracemalloc
from pathlib import Path

from monitoring_records import one_of_each

from um_cffi.monitoring import Decoder, Record, encode, to_arrow
from um_cffi.monitoring._packet import HEADER
from um_cffi.monitoring._pb import UMSMonMsg
from um_cffi.monitoring.fleet import Fleet, Limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from checks.changes import base_seed

PACKETS = 1_000_000 if os.environ.get("UM_SOAK") else 8_000
TOGETHER = 500  # records of so many packets become a batch
MEMORY = 32 << 20  # bytes, beyond what was there before
INTERESTING = (0, 1, 2, 4, 7, 9, 0x22, 0x2C, 0x7F, 0x80, 0xFF)


def genuine() -> list[bytes]:
    """One packet of each kind in both formats, one with many objects, and those of daemons and commands."""
    each = one_of_each()
    found = [encode(record, form) for record in each for form in ("csv", "pb")]
    several = UMSMonMsg()
    for packet in found[1::2]:
        several.MergeFromString(body_of(packet)[1])
    block = body_of(found[1])[0]
    found.append(packed(3, block, several.SerializeToString()))
    found += [packed(kind, block, several.SerializeToString()) for kind in (6, 7, 8, 9, 10)]
    return found


def body_of(packet: bytes) -> tuple[bytes, bytes]:
    """Attribute block and data."""
    attributes = HEADER.unpack_from(packet)[2]
    return packet[12 : 12 + attributes], packet[12 + attributes :]


def packed(kind: int, block: bytes, body: bytes) -> bytes:
    return HEADER.pack(0x1B33041B, kind, len(block), len(body), 0) + block + body


def changed(chance: random.Random, packets: list[bytes]) -> bytes:
    """One of the packets with some changes; its head is most often made to fit, so that what is behind it is read."""
    packet = bytearray(chance.choice(packets))
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(packet) + 1)
        what = chance.randrange(7)
        if what == 0 and at < len(packet):
            packet[at] ^= 1 << chance.randrange(8)
        elif what == 1 and at < len(packet):
            packet[at] = chance.choice(INTERESTING)
        elif what == 2:
            packet[at:at] = chance.randbytes(chance.randrange(1, 12))
        elif what == 3:
            del packet[at : at + chance.randrange(1, 20)]
        elif what == 4:
            packet[at:at] = packet[at : at + chance.randrange(200)]
        elif what == 5:
            other = chance.choice(packets)
            packet[at:] = other[chance.randrange(len(other)) :]
        elif len(packet) >= 12:
            struct.pack_into(">H", packet, chance.choice((4, 6, 8)), chance.choice((0, 1, 5, 300, 65535, at)))
    if len(packet) >= 16 and chance.random() < 0.8:
        attributes = min(struct.unpack_from(">H", packet, 6)[0], len(packet) - 12)
        struct.pack_into(
            ">IHHH", packet, 0, 0x1B33041B, packet[5] % 12, attributes, (len(packet) - 12 - attributes) & 0xFFFF
        )
    return bytes(packet)


def taken_on(records: list[Record], fleet: Fleet, now: float) -> None:
    """What a page, an exporter and a pipeline do with records."""
    for record in records:
        fleet.add(record, now, origin="stranger")
    fleet.expire(now)
    to_arrow(records)


def test_x4_mutated_packets_are_records_or_counted_refusals() -> None:
    packets, decoder = genuine(), Decoder()
    assert sum(map(len, map(decoder.decode, packets))) >= 40 and decoder.malformed["type"] == 5
    decoder = Decoder()
    fleet = Fleet(Limits(objects=200, objects_per_origin=200, processes=50, processes_per_origin=50))
    records: list[Record] = []
    taken_on(list(decoder.decode(packets[0])), fleet, 0.0)  # what is made once is there before the count
    base, gave = base_seed(), 1
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, PACKETS):
            packet = changed(random.Random(base + number), packets)
            try:
                found = decoder.decode(packet)
                records += found
                if number % TOGETHER == 0:
                    taken_on(records, fleet, number / TOGETHER)
                    records.clear()
            except Exception as error:
                raise AssertionError(f"seed {base + number}: {packet.hex()}") from error
            gave += bool(found)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    refused = sum(decoder.malformed.values())
    assert decoder.packets == PACKETS and gave + refused <= PACKETS
    assert gave > PACKETS // 20 and refused > PACKETS // 4, (gave, decoder.malformed)
    assert PACKETS - gave - refused < PACKETS // 4, "the rest is protobuf without objects"
    assert all(count > 0 for reason, count in decoder.malformed.items() if reason != "unsupported"), decoder.malformed
    assert len(fleet) <= 200 and peak < MEMORY, peak


def test_states_of_sources_that_the_schema_does_not_have() -> None:
    """Found by the mutations: protobuf keeps numbers that an enumeration does not have, negative ones, too."""
    told = UMSMonMsg()
    topic = told.events.receiver_topics.add(topic="t")
    for state in (-4, -1, 3, 2**31 - 1, -(2**31)):
        topic.sources.add(source_string="TCP:x", source_state=state)
    (record,) = Decoder().decode(packed(4, body_of(encode(one_of_each()[0], "pb"))[0], told.SerializeToString()))
    assert {source.state for source in record.sources} == {"none"}  # type: ignore[union-attr]
