"""Monitoring records from bytes and to bytes: every kind in both formats, and whatever strangers may send."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from monitoring_records import SESSION, WHO, one_of_each, records

from um_cffi.monitoring import (
    Attributes,
    ContextRecord,
    Decoder,
    LogLine,
    LogRecord,
    MalformedPacket,
    ReceiverRecord,
    Record,
    TopicRecord,
    decode,
    encode,
)
from um_cffi.monitoring._fields import CONTEXT, EVENT_QUEUE, RECEIVERS, SOURCES, TRANSPORTS
from um_cffi.monitoring._packet import HEADER
from um_cffi.monitoring._pb import SESSIONS, UMSMonMsg, file_descriptor
from um_cffi.monitoring.packets import REASONS

ROOT = Path(__file__).resolve().parents[2]
EACH = one_of_each()
NAMES = [f"{type(each).__name__}-{getattr(each, 'transport', '')}" for each in EACH]


def csv_packet(kind: int, body: bytes, version: int = 5) -> bytes:
    block = struct.pack(">HHHHBB", 1, 10, 3, 2, 1, version)
    return HEADER.pack(0x1B33041B, kind, len(block), len(body), 0) + block + body


def one(packet: bytes, separator: str = ",") -> Any:
    (found,) = decode(packet, separator)
    return found


# ---- lines of logs ----

LOGGED = LogRecord(WHO, (LogLine(7, 5, "Core-1-1: small \u2713", 1_700_000_000, 5), LogLine(8, 6, "x")))


@pytest.mark.parametrize("form", ["csv", "pb"])
def test_lines_of_a_log_are_protobuf_in_a_packet_of_their_own(form: str) -> None:
    packet = encode(LOGGED, form)
    assert HEADER.unpack_from(packet)[1] == 0x554D and decode(packet) == [LOGGED]


def test_lines_of_a_log_that_strangers_send_are_bounded_and_printable() -> None:
    many = LogRecord(WHO, tuple(LogLine(number, 5, "x") for number in range(300)))
    with pytest.raises(MalformedPacket, match="256 or fewer"):
        decode(encode(many))
    packet = encode(LogRecord(WHO, (LogLine(1, 5, "ab\x1b[2J"),)))
    assert one(packet).lines[0].text == "ab\ufffd[2J"
    assert one(packet.replace(b"ab", b"\xff\xfe")).lines[0].text.startswith("\ufffd\ufffd")
    with pytest.raises(MalformedPacket, match="protobuf record"):
        decode(csv_packet(0x554D, b"\xff"))


@given(st.binary(max_size=200))
def test_any_body_of_a_log_is_one_or_refused(body: bytes) -> None:
    try:
        assert isinstance(one(csv_packet(0x554D, body)), LogRecord)
    except MalformedPacket as error:
        assert error.reason == "body"


# ---- what the formats look like ----


def test_the_smallest_record_of_a_context() -> None:
    packet = bytes.fromhex("1b33041b0003000f00000000 0002000f 00020001 41 00030002 0105".replace(" ", ""))
    assert decode(packet) == [ContextRecord(Attributes(application="A"), dict.fromkeys(CONTEXT.csv, 0))]


def test_csv_has_as_many_numbers_as_the_structures_have() -> None:
    receivers = ("tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx", "broker")
    assert [len(RECEIVERS[each].csv) for each in receivers] == [4, 27, 27, 5, 5, 2]
    assert [len(SOURCES[each].csv) for each in receivers] == [2, 13, 10, 3, 3, 2]
    assert (len(CONTEXT.csv), len(EVENT_QUEUE.csv)) == (24, 57)
    for shape in (*RECEIVERS.values(), *SOURCES.values(), CONTEXT, EVENT_QUEUE):
        assert set(shape.csv) - set(shape.pb) <= {"reserved1"} and set(shape.pb) <= set(shape.csv)


def test_a_csv_body_is_the_documented_text() -> None:
    record = ReceiverRecord(WHO, "lbtrm", SESSION, {"msgs_rcved": 1000, "bytes_rcved": 1_000_000})
    assert encode(record).endswith(f'16,"{SESSION}",3e8,f4240{",0" * 25}'.encode())


def test_types_and_lengths_of_a_packet_add_up() -> None:
    for record in EACH:
        packet = encode(record)
        signature, _, attributes, data, filler = HEADER.unpack_from(packet)
        assert (signature, filler) == (0x1B33041B, 0) and 12 + attributes + data == len(packet)


def test_a_record_of_csv_version_3_without_out_of_order_parses() -> None:
    numbers = ",".join(f"{number:x}" for number in range(1, 27))
    found = one(csv_packet(1, f'16,"{SESSION}",{numbers}'.encode(), version=3))
    assert found.values["dgrams_dropped_other"] == 26 and found.values["out_of_order"] == 0


@pytest.mark.parametrize("version", range(1, 6))
def test_csv_versions_1_to_5_are_read(version: int) -> None:
    assert one(csv_packet(0, b'0,"TCP:x",2,ff', version)).values == {"num_clients": 2, "bytes_buffered": 255}


@pytest.mark.parametrize(("form", "version"), [(1, 0), (1, 6), (2, 0), (2, 2), (3, 1)])
def test_other_formats_and_versions_are_refused(form: int, version: int) -> None:
    packet = bytearray(csv_packet(3, b""))
    packet[20:22] = bytes((form, version))
    with pytest.raises(MalformedPacket, match="must be csv 1 to 5 or protobuf 1") as caught:
        decode(bytes(packet))
    assert caught.value.reason == "format"


def test_further_numbers_of_newer_versions_are_left_unread() -> None:
    assert one(csv_packet(0, b'0,"TCP:x",2,ff,1,2,3')).values == {"num_clients": 2, "bytes_buffered": 255}


def test_a_number_that_is_too_long_keeps_its_last_digits() -> None:
    assert one(csv_packet(0, b'0,"TCP:x",1' + b"f" * 16)).values["num_clients"] == 2**64 - 1


def test_numbers_of_four_and_of_eight_bytes_are_the_same_attributes() -> None:
    for form in (">I", ">Q"):
        value = struct.pack(form, 7)
        entries = b"".join(struct.pack(">HH", kind, len(value)) + value for kind in (1, 4, 5, 6))
        block = struct.pack(">HHHHBB", 5, 0, 3, 2, 1, 5) + entries  # the block's own length is not believed
        packet = HEADER.pack(0x1B33041B, 3, len(block), 0, 0) + block
        assert one(packet).attributes == Attributes(timestamp=7, object_id=7, process_id=7, immediate=True)


def test_another_separator() -> None:
    for record in EACH:
        assert one(encode(record, separator=";"), ";") == record


def test_a_text_with_the_separator_in_it() -> None:
    assert one(encode(TopicRecord(WHO, "a,b,c"))).topic == "a,b,c"


# ---- round trips ----


@given(records(tuple(TRANSPORTS.values())))
@settings(max_examples=300, deadline=None)
def test_csv_gives_back_every_record(record: Record) -> None:
    assert decode(encode(record)) == [record]


@given(records(SESSIONS))
@settings(max_examples=300, deadline=None)
def test_protobuf_gives_back_every_record(record: Record) -> None:
    values = getattr(record, "values", {})
    if "reserved1" in values:
        values["reserved1"] = 0
    assert decode(encode(record, "pb")) == [record]


@pytest.mark.parametrize("record", EACH, ids=NAMES)
def test_both_formats_tell_the_same(record: Record) -> None:
    assert decode(encode(record, "csv")) == decode(encode(record, "pb")) == [record]


def test_a_protobuf_record_of_many_objects_is_many_records() -> None:
    told = UMSMonMsg()
    for record in EACH:
        told.MergeFromString(encode(record, "pb")[-HEADER.unpack_from(encode(record, "pb"))[3] :])
    found = decode(_pb_packet(told.SerializeToString()))
    assert len(found) == len(EACH) and all(each in found for each in EACH)


def _pb_packet(body: bytes) -> bytes:
    packet = bytearray(csv_packet(3, body))
    packet[20:22] = bytes((2, 1))
    return bytes(packet)


# ---- strangers ----


@pytest.mark.parametrize("form", ["csv", "pb"])
@pytest.mark.parametrize("record", EACH, ids=NAMES)
def test_x3_every_truncation_of_every_record_is_refused(record: Record, form: str) -> None:
    packet = encode(record, form)
    for length in range(len(packet)):
        with pytest.raises(MalformedPacket) as caught:
            decode(packet[:length])
        assert caught.value.reason == "short"


@given(st.sampled_from(EACH), st.sampled_from(("csv", "pb")), st.data())
@settings(max_examples=500, deadline=None)
def test_x4_a_damaged_record_is_a_record_or_malformed(record: Record, form: str, data: st.DataObject) -> None:
    packet = bytearray(encode(record, form))
    for _ in range(data.draw(st.integers(1, 4))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    decoder = Decoder()
    found = decoder.decode(bytes(packet))
    assert len(found) == 1 or sum(decoder.malformed.values()) == 1 or form == "pb"


@given(st.integers(0, 12), st.binary(max_size=80), st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_x4_whatever_follows_a_good_header_is_a_record_or_malformed(kind: int, block: bytes, body: bytes) -> None:
    decoder = Decoder()
    decoder.decode(HEADER.pack(0x1B33041B, kind, len(block), len(body), 0) + block + body)
    assert decoder.packets == 1


@given(st.integers(0, 5), st.text('0123456789abcdefABCDEFxX,;" -+_\0', max_size=120), st.booleans())
@settings(max_examples=500, deadline=None)
def test_x4_whatever_a_csv_body_holds_is_a_record_or_malformed(kind: int, body: str, session: bool) -> None:
    text = f'16,"{SESSION}",{body}' if session else body
    decoder = Decoder()
    for record in decoder.decode(csv_packet(kind, text.encode())):
        assert all(0 <= each < 2**64 for each in getattr(record, "values", {}).values())


@given(st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_x4_whatever_a_protobuf_body_holds_is_records_or_malformed(body: bytes) -> None:
    Decoder().decode(_pb_packet(body))


def test_what_is_malformed_is_counted_by_its_reason() -> None:
    good = csv_packet(3, b"1,2")
    cases = {
        "short": good[:-1],
        "long": good + b"x",
        "signature": b"x" + good[1:],
        "type": csv_packet(9, b""),
        "attributes": HEADER.pack(0x1B33041B, 3, 4, 0, 0) + struct.pack(">HH", 65535, 4),
        "format": csv_packet(3, b"", version=9),
        "body": csv_packet(3, b"1,-2"),
    }
    decoder = Decoder()
    for packet in cases.values():
        assert decoder.decode(packet) == ()
    assert {reason for reason, count in decoder.malformed.items() if count == 1} == set(cases)
    assert set(decoder.malformed) == set(REASONS) and decoder.records == 0


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (0, b""),
        (0, b'7,"x",1'),
        (0, b'9999,"x",1'),
        (0, b"16,x,1"),
        (0, b'16,"x'),
        (1, b'16,"x",1,,2'),
        (3, b"1_0"),
        (3, b"0x1"),
        (4, b"x"),
        (4, b'"t",2,"s",0,0'),
        (4, b'"t",1,"s",' + b"0" * 65 + b",0"),
        (5, b"x,1"),
    ],
)
def test_bodies_that_cannot_be(kind: int, body: bytes) -> None:
    with pytest.raises(MalformedPacket) as caught:
        decode(csv_packet(kind, body))
    assert caught.value.reason == "body"


def test_a_topic_that_claims_billions_of_sources_allocates_nothing_for_them() -> None:
    decoder = Decoder()
    assert decoder.decode(csv_packet(4, b'"t",ffffffffffffffff')) == ()
    assert decoder.malformed["body"] == 1


def test_a_protobuf_record_of_too_many_objects_is_refused() -> None:
    body = b"\x12\x02\x12\x00" * 5000  # stats of one receiver's session without anything in it
    with pytest.raises(MalformedPacket, match="5000 objects"):
        decode(_pb_packet(body))


def test_texts_that_cannot_be_printed_are_replaced() -> None:
    assert one(csv_packet(4, b'"a\x1b[2J\xff",0')).topic == "a\ufffd[2J\ufffd"


def test_a_record_that_is_too_long_cannot_be_made() -> None:
    with pytest.raises(OverflowError, match="must be 65535 or fewer"):
        encode(TopicRecord(WHO, "x" * 70_000))


# ---- the installed schema ----


def test_the_schema_here_is_that_of_the_installed_files(tmp_path: Path) -> None:
    compiler = shutil.which("protoc") or shutil.which("protoc-c")
    if compiler is None:
        pytest.skip("no compiler of protobuf is installed")
    target = tmp_path / "set"
    command = [compiler, "-Iproto", f"--descriptor_set_out={target}", "--include_imports", "proto/ums_mon.proto"]
    subprocess.run(command, cwd=ROOT, check=True)
    installed = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    found = [field for each in installed.file for field in fields_of(each)]
    assert found == fields_of(file_descriptor())


def fields_of(file: descriptor_pb2.FileDescriptorProto) -> list[tuple[object, ...]]:
    """What matters on the wire of all messages: names, numbers, types, what is repeated, values of enumerations."""
    found: list[tuple[object, ...]] = []

    def visit(each: descriptor_pb2.DescriptorProto, path: str) -> None:
        for field in sorted(each.field, key=lambda one: one.number):
            found.append((path, field.name, field.number, field.type, field.label, field.type_name))
        for enumeration in each.enum_type:
            found.extend((path, enumeration.name, value.number) for value in enumeration.value)
        for nested in sorted(each.nested_type, key=lambda one: one.name):
            visit(nested, f"{path}.{nested.name}")

    for each in sorted(file.message_type, key=lambda one: one.name):
        visit(each, each.name)
    return found
