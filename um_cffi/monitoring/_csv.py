"""The csv form of records: hexadecimal numbers, texts in double quotes, a separator between them.

Bodies may come from strangers: a text or number that cannot be makes the record malformed, missing numbers of older
versions are 0, further ones of newer versions are left unread. Pure functions, on any thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from um_cffi.monitoring import _fields
from um_cffi.monitoring._packet import CONTEXT, EVENT_QUEUE, RECEIVER, SOURCE, TOPIC, WILDCARD, MalformedPacket
from um_cffi.monitoring._packet import printable as _printable
from um_cffi.monitoring._records import (
    Attributes,
    ContextRecord,
    EventQueueRecord,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
    TopicState,
    WildcardRecord,
)

SOURCES_MOST = 1024  # of one topic record
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_DIGITS = 16  # of a number of 64 bits
_PATTERN_TYPES = {1: "pcre", 2: "regex"}


def _malformed(text: str) -> MalformedPacket:
    return MalformedPacket("body", text)


def _numbers(text: bytes, separator: bytes, most: int) -> list[int]:
    """The numbers of a body, at most so many."""
    if text.translate(None, _HEXADECIMAL + separator):
        raise _malformed("csv record with something other than hexadecimal numbers")
    fields = text.split(separator, most)[:most] if text else []
    if b"" in fields:
        raise _malformed("csv record with an empty number")
    return [int(each[-_DIGITS:], 16) for each in fields]


def _values(names: tuple[str, ...], text: bytes, separator: bytes) -> dict[str, int]:
    found = _numbers(text, separator, len(names))
    return dict(zip(names, found + [0] * (len(names) - len(found))))


def _quoted(text: bytes, separator: bytes) -> tuple[str, bytes]:
    """The text in quotes that a body begins with, and what follows the separator after it."""
    if text[:1] != b'"':
        raise _malformed("csv record without a text in quotes where one must be")
    end = text.find(b'"' + separator, 1)
    if end < 0:
        if len(text) < 2 or text[-1:] != b'"':
            raise _malformed("csv record with a text that does not end")
        return _printable(text[1:-1]), b""
    return _printable(text[1:end]), text[end + 2 :]


def _session(text: bytes, separator: bytes, shapes: Mapping[str, _fields.Shape]) -> tuple[str, str, dict[str, int]]:
    """Transport, source string and numbers of a record of a source or receiver."""
    head, found, rest = text.partition(separator)
    if not found or not head.isdigit() or len(head) > 3:
        raise _malformed("csv record without a transport type")
    transport = _fields.TRANSPORTS.get(int(head))
    if transport is None:
        raise _malformed(f"csv record of transport type {int(head)}")
    source, rest = _quoted(rest, separator)
    return transport, source, _values(shapes[transport].csv, rest, separator)


def _topic(attributes: Attributes, text: bytes, separator: bytes) -> TopicRecord:
    topic, rest = _quoted(text, separator)
    head, _, rest = rest.partition(separator)
    count = _numbers(head, separator, 1)
    sources = []
    for _ in range(min(count[0] if count else 0, SOURCES_MOST)):
        source, rest = _quoted(rest, separator)
        otid, _, rest = rest.partition(separator)
        index, _, rest = rest.partition(separator)
        if len(otid) > 64 or otid.translate(None, _HEXADECIMAL):
            raise _malformed("csv record with a transport id that is none")
        sources.append(TopicState(source, otid.decode(), (_numbers(index, separator, 1) or [0])[0]))
    return TopicRecord(attributes, topic, tuple(sources))


def _wildcard(attributes: Attributes, text: bytes, separator: bytes) -> WildcardRecord:
    pattern, rest = _quoted(text, separator)
    kind = (_numbers(rest, separator, 1) or [1])[0]
    return WildcardRecord(attributes, pattern, _PATTERN_TYPES.get(kind, f"type {kind}"))


def decode(kind: int, attributes: Attributes, text: bytes, separator: bytes) -> Record:
    """The record of a body. MalformedPacket if it is none."""
    text = text.partition(b"\0")[0]
    if kind == SOURCE:
        return SourceRecord(attributes, *_session(text, separator, _fields.SOURCES))
    if kind == RECEIVER:
        return ReceiverRecord(attributes, *_session(text, separator, _fields.RECEIVERS))
    if kind == CONTEXT:
        return ContextRecord(attributes, _values(_fields.CONTEXT.csv, text, separator))
    if kind == EVENT_QUEUE:
        return EventQueueRecord(attributes, _values(_fields.EVENT_QUEUE.csv, text, separator))
    if kind == TOPIC:
        return _topic(attributes, text, separator)
    return _wildcard(attributes, text, separator)


def _hexadecimal(names: tuple[str, ...], values: Mapping[str, int]) -> list[str]:
    return [f"{values.get(name, 0):x}" for name in names]


def encode(record: Record, separator: str) -> tuple[int, bytes]:
    """Type and body of a record. ValueError for one that csv does not have."""
    if isinstance(record, (SourceRecord, ReceiverRecord)):
        of_source = isinstance(record, SourceRecord)
        names = (_fields.SOURCES if of_source else _fields.RECEIVERS)[record.transport].csv
        head = [str(_fields.NUMBERS[record.transport]), f'"{record.source}"']
        kind, parts = (SOURCE if of_source else RECEIVER), head + _hexadecimal(names, record.values)
    elif isinstance(record, ContextRecord):
        kind, parts = CONTEXT, _hexadecimal(_fields.CONTEXT.csv, record.values)
    elif isinstance(record, EventQueueRecord):
        kind, parts = EVENT_QUEUE, _hexadecimal(_fields.EVENT_QUEUE.csv, record.values)
    elif isinstance(record, TopicRecord):
        kind, parts = TOPIC, [f'"{record.topic}"', f"{len(record.sources):x}"]
        for each in record.sources:
            parts += [f'"{each.source}"', each.otid or "0" * 64, f"{each.topic_index:x}"]
    else:
        if not isinstance(record, WildcardRecord):
            raise ValueError("lines of a log: have no form in csv")
        number = next((number for number, name in _PATTERN_TYPES.items() if name == record.pattern_type), 0)
        kind, parts = WILDCARD, [f'"{record.pattern}"', f"{number:x}"]
    return kind, separator.join(parts).encode()
