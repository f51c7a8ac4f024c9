"""Monitoring records as dataclasses: what one object of a process had counted at one moment.

`decode()` of um_cffi.monitoring makes them of packets, `encode()` packets of them. Numbers count from the creation of
the object or its last reset, and mean what the structures of the same fields in um_cffi.stats say. Records never
change; they may be used on any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Union

__all__ = [
    "Attributes",
    "ContextRecord",
    "EventQueueRecord",
    "LogLine",
    "LogRecord",
    "ReceiverRecord",
    "Record",
    "SourceRecord",
    "TopicRecord",
    "TopicState",
    "WildcardRecord",
]


@dataclass(frozen=True)
class Attributes:
    """Who sent a record, and about which object."""

    host: str = ""  #: IPv4 address of the sender, "" where the record does not tell
    timestamp: int = 0  #: when it was taken, seconds since 1970 (UTC), 0 where unknown
    application: str = ""  #: the name that `monitor_appid` gives
    object_id: int = 0  #: of the monitored object, within its process
    process_id: int = 0  #: of the operating system
    immediate: bool = False  #: about a session of immediate messages
    context_instance: str = ""  #: of the context, 16 hexadecimal digits, "" where unknown
    domain_id: int = 0  #: topic resolution domain, 0 where unknown


@dataclass(frozen=True)
class SourceRecord:
    """A transport session as its source sees it."""

    attributes: Attributes  #: who and when
    transport: str  #: "tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx", "lbtrdma", "broker" or "daemon"
    source: str  #: source string of the session
    values: Mapping[str, int] = field(default_factory=dict)  #: numbers by field name


@dataclass(frozen=True)
class ReceiverRecord:
    """A transport session as a receiving context sees it."""

    attributes: Attributes  #: who and when
    transport: str  #: as of SourceRecord
    source: str  #: source string of the session
    values: Mapping[str, int] = field(default_factory=dict)  #: numbers by field name


@dataclass(frozen=True)
class ContextRecord:
    """A context: topic resolution, sends that waited, loss."""

    attributes: Attributes  #: who and when
    values: Mapping[str, int] = field(default_factory=dict)  #: numbers by field name


@dataclass(frozen=True)
class EventQueueRecord:
    """An event queue: what waits in it, what was taken from it, and how long that took (microseconds)."""

    attributes: Attributes  #: who and when
    values: Mapping[str, int] = field(default_factory=dict)  #: numbers by field name


@dataclass(frozen=True)
class TopicState:
    """A source of a receiver's topic."""

    source: str  #: source string
    otid: str = ""  #: originating transport id, hexadecimal
    topic_index: int = 0  #: of the topic within the session
    state: str = "created"  #: "none", "created" or "deleted"; csv does not tell, and means "created"
    seconds: int = 0  #: when that was, seconds since 1970 (UTC); 0 where unknown
    microseconds: int = 0  #: and microseconds


@dataclass(frozen=True)
class TopicRecord:
    """A topic that a context has a receiver for, and the sources it has found."""

    attributes: Attributes  #: who and when
    topic: str  #: its name
    sources: tuple[TopicState, ...] = ()  #: empty when there is none


@dataclass(frozen=True)
class WildcardRecord:
    """A pattern that a context has a receiver for."""

    attributes: Attributes  #: who and when
    pattern: str  #: as given
    pattern_type: str = "pcre"  #: "pcre", "regex", or a number in words that nobody knows yet


@dataclass(frozen=True)
class LogLine:
    """A line of the log of a process, of level NOTICE or above."""

    number: int  #: 1, 2, ... within its process
    level: int  #: 1 emergency, 2 alert, 3 critical, 4 error, 5 warning, 6 notice
    text: str  #: "IDENTIFIER: words"
    seconds: int = 0  #: when it was written, seconds since 1970 (UTC); 0 where unknown
    microseconds: int = 0  #: and microseconds


@dataclass(frozen=True)
class LogRecord:
    """What the library has logged in a process since its record before. Protobuf alone, from this implementation."""

    attributes: Attributes  #: who and when; of the process, and of none of its objects
    lines: tuple[LogLine, ...] = ()  #: the oldest first


Record = Union[SourceRecord, ReceiverRecord, ContextRecord, EventQueueRecord, TopicRecord, WildcardRecord, LogRecord]
