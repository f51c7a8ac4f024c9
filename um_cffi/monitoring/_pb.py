"""The protobuf form of records (package lbmmon, message UMSMonMsg), by the package `protobuf`.

The descriptors are made here from the tables of fields, so that no generated module has to fit the installed version of
protobuf. Bodies may come from strangers: protobuf checks their lengths, the number of objects in one has a bound here.
Pure functions, on any thread; importing this module needs protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from um_cffi.monitoring import _fields
from um_cffi.monitoring._csv import SOURCES_MOST
from um_cffi.monitoring._packet import CONTEXT, EVENT_QUEUE, LOG, RECEIVER, SOURCE, TOPIC, WILDCARD, MalformedPacket
from um_cffi.monitoring._packet import printable as _printable
from um_cffi.monitoring._records import (
    Attributes,
    ContextRecord,
    EventQueueRecord,
    LogLine,
    LogRecord,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
    TopicState,
    WildcardRecord,
)

OBJECTS_MOST = 4096  # of one message
LINES_MOST = 256  # of a log, in one message: our library sends 64 at most
SESSIONS = ("tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx")  # that the schema has, in the order of their tags 3, 4...
_STATES = ("none", "created", "deleted")
_PATTERN_TYPES = {1: "pcre", 2: "regex"}

_Proto = descriptor_pb2.DescriptorProto
_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "uint64": _Field.TYPE_UINT64,
    "uint32": _Field.TYPE_UINT32,
    "int32": _Field.TYPE_INT32,
}


def _add(to: Any, number: int, name: str, kind: str, *, repeated: bool = False, oneof: bool = False) -> None:
    field = to.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind.endswith(("Type", "State")) else _Field.TYPE_MESSAGE
        field.type_name = f".lbmmon.{kind}"
    if oneof:
        field.oneof_index = 0


def _numbers(to: Any, name: str, names: Iterable[str]) -> None:
    made = to.nested_type.add(name=name)
    for number, each in enumerate(names, 1):
        _add(made, number, each, "uint64")


def _enumeration(to: Any, name: str, values: Iterable[str]) -> None:
    made = to.enum_type.add(name=name)
    for number, each in enumerate(values):
        made.value.add(name=each, number=number)


def _transport(stats: Any, name: str, shapes: Mapping[str, _fields.Shape]) -> None:
    made, path = stats.nested_type.add(name=name), f"UMSMonMsg.Stats.{name}"
    _enumeration(made, "SourceType", ("SOURCE_NORMAL", "SOURCE_IM"))
    _add(made, 1, "source_string", "string")
    _add(made, 2, "source_flag", f"{path}.SourceType")
    made.oneof_decl.add(name="transport")
    for number, each in enumerate(SESSIONS, 3):
        _numbers(made, each.upper(), shapes[each].pb)
        _add(made, number, each, f"{path}.{each.upper()}", oneof=True)


def _events(to: Any) -> None:
    events = to.nested_type.add(name="Events")
    topic = events.nested_type.add(name="ReceiverTopic")
    source = topic.nested_type.add(name="Source")
    path = "UMSMonMsg.Events"
    _enumeration(source, "SourceState", ("NO_SOURCE", "SOURCE_CREATED", "SOURCE_DELETED"))
    for number, (name, kind) in enumerate(
        (
            ("source_string", "string"),
            ("otid", "string"),
            ("topic_idx", "uint64"),
            ("source_state", f"{path}.ReceiverTopic.Source.SourceState"),
            ("timestamp_sec", "uint64"),
            ("timestamp_usec", "uint64"),
        ),
        1,
    ):
        _add(source, number, name, kind)
    _add(topic, 1, "topic", "string")
    _add(topic, 2, "sources", f"{path}.ReceiverTopic.Source", repeated=True)
    wildcard = events.nested_type.add(name="WildcardReceiver")
    _add(wildcard, 1, "pattern", "string")
    _add(wildcard, 2, "type", "int32")
    _add(events, 1, "receiver_topics", f"{path}.ReceiverTopic", repeated=True)
    _add(events, 2, "wildcard_receivers", f"{path}.WildcardReceiver", repeated=True)


def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """The schema of the records of types 0 to 5, attributes included."""
    file = descriptor_pb2.FileDescriptorProto(name="um_cffi_monitoring.proto", package="lbmmon", syntax="proto3")
    attributes = file.message_type.add(name="UMMonAttributes")
    for number, (name, kind) in enumerate(
        (
            ("sender_ipv4_address", "string"),
            ("timestamp", "uint64"),
            ("application_id", "string"),
            ("object_id", "uint64"),
            ("process_id", "uint64"),
            ("context_instance", "bytes"),
            ("domain_id", "uint32"),
        ),
        1,
    ):
        _add(attributes, number, name, kind)
    record = file.message_type.add(name="UMSMonMsg")
    stats = record.nested_type.add(name="Stats")
    _numbers(stats, "Context", _fields.CONTEXT.pb)
    _transport(stats, "ReceiverTransport", _fields.RECEIVERS)
    _transport(stats, "SourceTransport", _fields.SOURCES)
    _numbers(stats, "EventQueue", _fields.EVENT_QUEUE.pb)
    path = "UMSMonMsg.Stats"
    _add(stats, 1, "context", f"{path}.Context")
    _add(stats, 2, "receiver_transports", f"{path}.ReceiverTransport", repeated=True)
    _add(stats, 3, "source_transports", f"{path}.SourceTransport", repeated=True)
    _add(stats, 4, "event_queues", f"{path}.EventQueue", repeated=True)
    _events(record)
    _add(record, 1, "attributes", "UMMonAttributes")
    _add(record, 2, "stats", "UMSMonMsg.Stats")
    _add(record, 3, "events", "UMSMonMsg.Events")
    return file


def log_file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """The schema of lines of a log, which uses the other one."""
    file = descriptor_pb2.FileDescriptorProto(name="um_cffi_log.proto", package="openum", syntax="proto3")
    file.dependency.append("um_cffi_monitoring.proto")
    record = file.message_type.add(name="LogMonMsg")
    line = record.nested_type.add(name="Line")
    for number, (name, kind) in enumerate(
        (
            ("number", "uint64"),
            ("level", "uint32"),
            ("timestamp_sec", "uint64"),
            ("timestamp_usec", "uint32"),
            ("text", "bytes"),
        ),
        1,
    ):
        _add(line, number, name, kind)
    _add(record, 1, "attributes", "UMMonAttributes")
    _add(record, 2, "lines", "Line", repeated=True)
    record.field[1].type_name = ".openum.LogMonMsg.Line"
    return file


def _message_classes() -> tuple[Any, Any]:
    pool = descriptor_pool.DescriptorPool()  # of its own: programs may have loaded generated modules of the same names
    pool.Add(file_descriptor())
    pool.Add(log_file_descriptor())
    names = ("lbmmon.UMSMonMsg", "openum.LogMonMsg")
    record, log = (message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names)
    return record, log


UMSMonMsg, LogMonMsg = _message_classes()


def _attributes(told: Any, given: Attributes, immediate: bool) -> Attributes:
    """The attributes of the message, and those of the block where the message has none."""
    return Attributes(
        host=_printable(told.sender_ipv4_address.encode()) or given.host,
        timestamp=told.timestamp or given.timestamp,
        application=_printable(told.application_id.encode()) or given.application,
        object_id=told.object_id or given.object_id,
        process_id=told.process_id or given.process_id,
        immediate=immediate or given.immediate,
        context_instance=told.context_instance.hex()[:16] or given.context_instance,
        domain_id=told.domain_id or given.domain_id,
    )


def _values(names: tuple[str, ...], of: Any) -> dict[str, int]:
    return {name: getattr(of, name, 0) for name in names}


def _session(each: Any, shapes: Mapping[str, _fields.Shape]) -> tuple[str, str, dict[str, int]]:
    transport = each.WhichOneof("transport")
    if transport is None:
        raise MalformedPacket("body", "protobuf record without numbers of a transport")
    values = _values(shapes[transport].csv, getattr(each, transport))
    return transport, _printable(each.source_string.encode()), values


def _topic(attributes: Attributes, each: Any) -> TopicRecord:
    sources = tuple(
        TopicState(
            _printable(source.source_string.encode()),
            _printable(source.otid.encode()),
            source.topic_idx,
            _STATES[source.source_state] if 0 <= source.source_state < len(_STATES) else "none",
            source.timestamp_sec,
            source.timestamp_usec,
        )
        for source in each.sources[:SOURCES_MOST]
    )
    return TopicRecord(attributes, _printable(each.topic.encode()), sources)


def decode(given: Attributes, data: bytes) -> list[Record]:
    """The records of a body: one for each object in it. MalformedPacket if it is none."""
    told = UMSMonMsg()
    try:
        told.ParseFromString(data)
    except message.DecodeError as error:
        raise MalformedPacket("body", f"protobuf record: {error}") from None
    stats, events = told.stats, told.events
    lists = (stats.receiver_transports, stats.source_transports, stats.event_queues)
    count = sum(map(len, (*lists, events.receiver_topics, events.wildcard_receivers)))
    if count > OBJECTS_MOST:
        raise MalformedPacket("body", f"protobuf record with {count} objects: must be {OBJECTS_MOST} or fewer")
    plain = _attributes(told.attributes, given, False)
    found: list[Record] = []
    if stats.HasField("context"):
        found.append(ContextRecord(plain, _values(_fields.CONTEXT.csv, stats.context)))
    for each in stats.receiver_transports:
        about = _attributes(told.attributes, given, each.source_flag == 1)
        found.append(ReceiverRecord(about, *_session(each, _fields.RECEIVERS)))
    for each in stats.source_transports:
        about = _attributes(told.attributes, given, each.source_flag == 1)
        found.append(SourceRecord(about, *_session(each, _fields.SOURCES)))
    for each in stats.event_queues:
        found.append(EventQueueRecord(plain, _values(_fields.EVENT_QUEUE.csv, each)))
    found += [_topic(plain, each) for each in events.receiver_topics]
    for each in events.wildcard_receivers:
        kind = _PATTERN_TYPES.get(each.type, f"type {each.type}")
        found.append(WildcardRecord(plain, _printable(each.pattern.encode()), kind))
    return found


def _put_attributes(attributes: Any, about: Attributes) -> None:
    attributes.sender_ipv4_address, attributes.application_id = about.host, about.application
    attributes.timestamp, attributes.object_id = about.timestamp, about.object_id
    attributes.process_id, attributes.domain_id = about.process_id, about.domain_id
    attributes.context_instance = bytes.fromhex(about.context_instance)


def decode_log(given: Attributes, data: bytes) -> LogRecord:
    """The lines of a body. MalformedPacket if it is none."""
    told = LogMonMsg()
    try:
        told.ParseFromString(data)
    except message.DecodeError as error:
        raise MalformedPacket("body", f"protobuf record: {error}") from None
    if len(told.lines) > LINES_MOST:
        raise MalformedPacket("body", f"log with {len(told.lines)} lines: must be {LINES_MOST} or fewer")
    lines = tuple(
        LogLine(each.number, each.level, _printable(each.text), each.timestamp_sec, each.timestamp_usec)
        for each in told.lines
    )
    return LogRecord(_attributes(told.attributes, given, False), lines)


def _fill(to: Any, values: Mapping[str, int]) -> None:
    to.SetInParent()
    for name in to.DESCRIPTOR.fields_by_name:
        setattr(to, name, values.get(name, 0))


def encode(record: Record) -> tuple[int, bytes]:
    """Type and body of a record. ValueError for a transport that the schema does not have."""
    if isinstance(record, LogRecord):
        log = LogMonMsg()
        _put_attributes(log.attributes, record.attributes)
        for line in record.lines:
            log.lines.add(
                number=line.number,
                level=line.level,
                timestamp_sec=line.seconds,
                timestamp_usec=line.microseconds,
                text=line.text.encode(),
            )
        return LOG, log.SerializeToString(deterministic=True)
    told, about = UMSMonMsg(), record.attributes
    _put_attributes(told.attributes, about)
    if isinstance(record, (SourceRecord, ReceiverRecord)):
        if record.transport not in SESSIONS:
            raise ValueError(f"transport {record.transport}: must be one of {', '.join(SESSIONS)} in protobuf")
        kind = SOURCE if isinstance(record, SourceRecord) else RECEIVER
        all_of_kind = told.stats.source_transports if kind == SOURCE else told.stats.receiver_transports
        made = all_of_kind.add(source_string=record.source, source_flag=int(about.immediate))
        _fill(getattr(made, record.transport), record.values)
    elif isinstance(record, ContextRecord):
        kind = CONTEXT
        _fill(told.stats.context, record.values)
    elif isinstance(record, EventQueueRecord):
        kind = EVENT_QUEUE
        _fill(told.stats.event_queues.add(), record.values)
    elif isinstance(record, TopicRecord):
        kind, topic = TOPIC, told.events.receiver_topics.add(topic=record.topic)
        for each in record.sources:
            made = topic.sources.add(source_string=each.source, otid=each.otid, topic_idx=each.topic_index)
            made.source_state = _STATES.index(each.state)
            made.timestamp_sec, made.timestamp_usec = each.seconds, each.microseconds
    else:
        number = next((number for number, name in _PATTERN_TYPES.items() if name == record.pattern_type), 0)
        kind = WILDCARD
        told.events.wildcard_receivers.add(pattern=record.pattern, type=number)
    return kind, told.SerializeToString(deterministic=True)
