"""Records as a batch of Arrow: one row for each, for data frames, files and SQL. Needs pyarrow; on any thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from um_cffi.monitoring import _fields
from um_cffi.monitoring._records import (
    ContextRecord,
    EventQueueRecord,
    LogRecord,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
)


def kind_of(record: Record) -> str:
    """context, source, receiver, event_queue, topic, wildcard or log."""
    if isinstance(record, LogRecord):
        return "log"
    if isinstance(record, ReceiverRecord):
        return "receiver"
    if isinstance(record, SourceRecord):
        return "source"
    if isinstance(record, ContextRecord):
        return "context"
    if isinstance(record, EventQueueRecord):
        return "event_queue"
    return "topic" if isinstance(record, TopicRecord) else "wildcard"


def name_of(record: Record) -> str:
    """Source string, topic or pattern; "" for contexts and event queues; of a log its lines."""
    if isinstance(record, LogRecord):
        return "\n".join(each.text for each in record.lines)
    if isinstance(record, (SourceRecord, ReceiverRecord)):
        return record.source
    if isinstance(record, (ContextRecord, EventQueueRecord)):
        return ""
    return record.topic if isinstance(record, TopicRecord) else record.pattern


def names_of_kind(kind: str) -> list[str]:
    """The numbers that records of a kind may have, whatever their transport."""
    shapes = {"source": _fields.SOURCES, "receiver": _fields.RECEIVERS}
    if kind in shapes:
        return list(dict.fromkeys(name for shape in shapes[kind].values() for name in shape.csv))
    return list({"context": _fields.CONTEXT, "event_queue": _fields.EVENT_QUEUE}[kind].csv)


KINDS = ("context", "source", "receiver", "event_queue")


def to_arrow(records: Iterable[Record], kind: str | None = None) -> Any:
    """A pyarrow.RecordBatch with a row for each record.

    Columns: kind, host, application, process_id, context, object_id, domain_id, immediate, timestamp (seconds, UTC),
    transport, name (source string, topic, pattern, or lines of a log), sources (of a topic), and numbers (a map). With
    `kind`, one of context, source, receiver and event_queue, only records of that kind, each number in a column of its
    own, null where the transport does not have it, and no `sources`. ImportError without pyarrow, ValueError for
    another kind.
    """
    import pyarrow as pa

    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind {kind}: must be one of {', '.join(KINDS)}")
    chosen = [each for each in records if kind is None or kind_of(each) == kind]
    about = [each.attributes for each in chosen]
    columns: dict[str, Any] = {
        "kind": pa.array([kind_of(each) for each in chosen], pa.string()),
        "host": pa.array([each.host for each in about], pa.string()),
        "application": pa.array([each.application for each in about], pa.string()),
        "process_id": pa.array([each.process_id for each in about], pa.uint64()),
        "context": pa.array([each.context_instance for each in about], pa.string()),
        "object_id": pa.array([each.object_id for each in about], pa.uint64()),
        "domain_id": pa.array([each.domain_id for each in about], pa.uint32()),
        "immediate": pa.array([each.immediate for each in about], pa.bool_()),
        "timestamp": pa.array([min(each.timestamp, 2**40) for each in about], pa.int64()).cast(
            pa.timestamp("s", "UTC")
        ),
        "transport": pa.array([getattr(each, "transport", None) for each in chosen], pa.string()),
        "name": pa.array([name_of(each) for each in chosen], pa.string()),
    }
    values = [getattr(each, "values", {}) for each in chosen]
    if kind is None:
        told = [[s.source for s in each.sources] if isinstance(each, TopicRecord) else None for each in chosen]
        columns["sources"] = pa.array(told, pa.list_(pa.string()))
        columns["numbers"] = pa.array([list(each.items()) for each in values], pa.map_(pa.string(), pa.uint64()))
    else:
        for name in names_of_kind(kind):
            columns[name] = pa.array([each.get(name) for each in values], pa.uint64())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
