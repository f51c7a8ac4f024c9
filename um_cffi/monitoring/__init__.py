"""Records of monitored contexts, sources, receivers and event queues: a fleet seen from outside its processes.

fleet
    a model of all objects of a fleet, made of records.
prometheus
    the counters of one's own contexts.
packets
    packets to records and back, without sending or receiving anything.
"""

from __future__ import annotations

from um_cffi.monitoring._arrow import to_arrow
from um_cffi.monitoring._gate import Rates
from um_cffi.monitoring._publishing import Publisher, PublisherCounts, publish
from um_cffi.monitoring._receiving import Arrival, Monitor, MonitorCounts, records
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
from um_cffi.monitoring.packets import TOPIC, Decoder, MalformedPacket, decode, encode

__all__ = [
    "TOPIC",
    "Arrival",
    "Attributes",
    "ContextRecord",
    "Decoder",
    "EventQueueRecord",
    "LogLine",
    "LogRecord",
    "MalformedPacket",
    "Monitor",
    "MonitorCounts",
    "Publisher",
    "PublisherCounts",
    "Rates",
    "ReceiverRecord",
    "Record",
    "SourceRecord",
    "TopicRecord",
    "TopicState",
    "WildcardRecord",
    "decode",
    "encode",
    "publish",
    "records",
    "to_arrow",
]
