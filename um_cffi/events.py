"""Enumerations and events: what can arrive at a receiver, and what a source is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from um_cffi.binding._native import lib

__all__ = ["MessageFlags", "MessageType", "ReceiverEvent", "SourceEvent", "SourceEventType", "Transport"]


class _Kind(IntEnum):
    """Numbers of the library. One that this version of the package does not name has the name OTHER_<number>."""

    @classmethod
    def _missing_(cls, value: object) -> _Kind | None:
        if not isinstance(value, int):
            return None
        other = int.__new__(cls, value)
        other._name_, other._value_ = f"OTHER_{value}".replace("-", "MINUS_"), value
        return other


class MessageType(_Kind):
    """What a message or a record of a batch is (LBM_MSG_*). Others have the name OTHER_<number>."""

    DATA = lib.LBM_MSG_DATA
    """A message."""
    REQUEST = lib.LBM_MSG_REQUEST
    """A message whose sender wants a response."""
    RESPONSE = lib.LBM_MSG_RESPONSE
    """An answer to a request."""
    BEGIN_OF_SESSION = lib.LBM_MSG_BOS
    """The first packet of a session has come: the source reaches this receiver."""
    END_OF_SESSION = lib.LBM_MSG_EOS
    """The source is gone."""
    LOSS = lib.LBM_MSG_UNRECOVERABLE_LOSS
    """One message is lost for good; the sequence number tells which."""
    BURST_LOSS = lib.LBM_MSG_UNRECOVERABLE_LOSS_BURST
    """Several messages are lost for good, `count` of them: a long gap, or what a full queue to Python dropped; the
    sequence number is the first one missing. Without topic and source: of dropped messages nothing more is known."""
    NO_SOURCE = lib.LBM_MSG_NO_SOURCE_NOTIFICATION
    """No source of the topic has been found after the configured number of queries."""
    UME_REGISTRATION_ERROR = lib.LBM_MSG_UME_REGISTRATION_ERROR
    """Registration with a store has failed; `text` says why."""
    UME_REGISTRATION_CHANGE = lib.LBM_MSG_UME_REGISTRATION_CHANGE
    """A store has changed what it said at registration."""
    UME_REGISTRATION_SUCCESS = lib.LBM_MSG_UME_REGISTRATION_SUCCESS_EX
    """Registered with one store."""
    UME_REGISTRATION_COMPLETE = lib.LBM_MSG_UME_REGISTRATION_COMPLETE_EX
    """Registered with as many stores as are needed."""
    UME_DEREGISTRATION_SUCCESS = lib.LBM_MSG_UME_DEREGISTRATION_SUCCESS_EX
    """Deregistered from one store."""
    UME_DEREGISTRATION_COMPLETE = lib.LBM_MSG_UME_DEREGISTRATION_COMPLETE_EX
    """Deregistered from all stores."""
    HF_RESET = lib.LBM_MSG_HF_RESET
    """A hot-failover source starts its numbering again."""


class MessageFlags(IntFlag):
    """Properties of a received message (LBM_MSG_FLAG_*)."""

    START_BATCH = lib.LBM_MSG_FLAG_START_BATCH
    """The first message of a batch that the sender marked."""
    END_BATCH = lib.LBM_MSG_FLAG_END_BATCH
    """The last message of a batch that the sender marked."""
    HF_PASS_THROUGH = lib.LBM_MSG_FLAG_HF_PASS_THROUGH
    """From a source without hot failover."""
    RETRANSMIT = lib.LBM_MSG_FLAG_RETRANSMIT
    """Replayed by late join, not from the live stream."""
    IMMEDIATE = lib.LBM_MSG_FLAG_IMMEDIATE
    """Sent as an immediate message, without a source."""
    HF_DUPLICATE = lib.LBM_MSG_FLAG_HF_DUPLICATE
    """A message that another hot-failover source has brought already."""
    TOPICLESS = lib.LBM_MSG_FLAG_TOPICLESS
    """An immediate message without a topic."""
    HF_OPTIONAL = lib.LBM_MSG_FLAG_HF_OPTIONAL
    """A hot-failover message that may be missing on other sources."""
    HF_32 = lib.LBM_MSG_FLAG_HF_32
    """With a hot-failover sequence number of 32 bits."""
    HF_64 = lib.LBM_MSG_FLAG_HF_64
    """With a hot-failover sequence number of 64 bits."""
    OTR = lib.LBM_MSG_FLAG_OTR
    """Recovered off the transport, which had lost it."""
    ANSWERABLE = lib.UM_MSG_FLAG_ANSWERABLE
    """A REQUEST, which `respond()` answers."""
    PROPERTIES = lib.UM_MSG_FLAG_PROPERTIES
    """With properties, which `properties` of the Message reads."""
    CHANNEL = lib.UM_MSG_FLAG_CHANNEL
    """On a channel, which `channel` of the Message tells."""
    HF_RESET = lib.UM_MSG_FLAG_HF_RESET
    """Of what a recorder gets: empty, and tells that numbers of hot failover begin again with `hf_number`."""
    HR_TIMESTAMP = lib.UM_MSG_FLAG_HR_TIMESTAMP
    """`timestamp_ns` was taken by the network card or the kernel."""


class SourceEventType(_Kind):
    """What a source is told (LBM_SRC_EVENT_*). Others have the name OTHER_<number>."""

    CONNECT = lib.LBM_SRC_EVENT_CONNECT
    """A receiving context has joined; `text` is its address."""
    DISCONNECT = lib.LBM_SRC_EVENT_DISCONNECT
    """A receiving context has left; `text` is its address."""
    WAKEUP = lib.LBM_SRC_EVENT_WAKEUP
    """A send refused with WouldBlock may be tried again."""
    SEQUENCE_NUMBER_INFO = lib.LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO
    """Sequence numbers of the message just sent."""
    UME_REGISTRATION_ERROR = lib.LBM_SRC_EVENT_UME_REGISTRATION_ERROR
    """Registration with a store has failed; `text` says why."""
    UME_STORE_UNRESPONSIVE = lib.LBM_SRC_EVENT_UME_STORE_UNRESPONSIVE
    """A store does not answer; `text` says which."""
    UME_REGISTRATION_SUCCESS = lib.LBM_SRC_EVENT_UME_REGISTRATION_SUCCESS_EX
    """Registered with one store."""
    UME_REGISTRATION_COMPLETE = lib.LBM_SRC_EVENT_UME_REGISTRATION_COMPLETE_EX
    """Registered with as many stores as are needed."""
    UME_MESSAGE_STABLE = lib.LBM_SRC_EVENT_UME_MESSAGE_STABLE_EX
    """A store has stored a message."""
    UME_DELIVERY_CONFIRMATION = lib.LBM_SRC_EVENT_UME_DELIVERY_CONFIRMATION_EX
    """A receiver has consumed a message."""
    UME_MESSAGE_RECLAIMED = lib.LBM_SRC_EVENT_UME_MESSAGE_RECLAIMED_EX
    """A message has left the retention buffer."""
    FLIGHT_SIZE_NOTIFICATION = lib.LBM_SRC_EVENT_FLIGHT_SIZE_NOTIFICATION
    """The number of messages in flight has crossed its limit."""
    TIMESTAMP = lib.LBM_SRC_EVENT_TIMESTAMP
    """When a datagram was sent, by the network card or the kernel: `timestamp_ns` (LBT-RM, with the option
    transport_lbtrm_source_timestamp)."""


class Transport(IntEnum):
    """Kinds of transport session, as statistics name them (LBM_TRANSPORT_STAT_*)."""

    TCP = lib.LBM_TRANSPORT_STAT_TCP
    """A TCP connection for each receiving context."""
    LBTRM = lib.LBM_TRANSPORT_STAT_LBTRM
    """Reliable multicast."""
    LBTRU = lib.LBM_TRANSPORT_STAT_LBTRU
    """Reliable unicast over UDP."""
    LBTIPC = lib.LBM_TRANSPORT_STAT_LBTIPC
    """Shared memory, LBT-IPC."""
    LBTSMX = lib.LBM_TRANSPORT_STAT_LBTSMX
    """Shared memory, LBT-SMX."""
    BROKER = lib.LBM_TRANSPORT_STAT_BROKER
    """Through a broker."""


@dataclass(frozen=True)
class SourceEvent:
    """One event of a source, given to its `on_event` on the dispatching thread."""

    type: SourceEventType
    """What has happened; it has a name and a number."""
    topic: str
    """The topic of the source."""
    text: str
    """The address of the receiving context for CONNECT and DISCONNECT, the reason for errors, else empty."""
    first_sequence_number: int = 0
    """Number of the message, or of its first fragment, for SEQUENCE_NUMBER_INFO; of the datagram for TIMESTAMP; else
    0."""
    last_sequence_number: int = 0
    """Number of the last fragment of the message for SEQUENCE_NUMBER_INFO, of the datagram for TIMESTAMP, else 0."""
    timestamp_ns: int = 0
    """When it left, for TIMESTAMP: nanoseconds since 1970, by the network card or the kernel; else 0."""


@dataclass(frozen=True)
class ReceiverEvent:
    """Something other than a message: beginning and end of a session, loss, no source. Given to `on_event`."""

    type: MessageType
    """What has happened; it has a name and a number."""
    topic: str
    """The topic, of a wildcard receiver too."""
    source: str
    """Source string of the session; empty for NO_SOURCE."""
    sequence_number: int
    """Of a loss: the number that is lost, or the first one of a burst."""
    timestamp_ns: int
    """When it was reported: wall clock, nanoseconds since 1970."""
    text: str = ""
    """Explanation that comes with some kinds of events."""
    count: int = 0
    """Of a loss: the number of messages that it stands for, 1 for LOSS; otherwise 0."""
    hf_number: int | None = None
    """Of an HFReceiver: the number that comes next of HF_RESET, the number that is lost or the first one of a burst;
    otherwise None."""


_MESSAGE_TYPES = {int(kind): kind for kind in MessageType}
_SOURCE_EVENT_TYPES = {int(kind): kind for kind in SourceEventType}


def message_type(number: int) -> MessageType:
    """The enumeration member of a number."""
    kind = _MESSAGE_TYPES.get(number)
    return MessageType(number) if kind is None else kind


def source_event_type(number: int) -> SourceEventType:
    """The enumeration member of a number."""
    kind = _SOURCE_EVENT_TYPES.get(number)
    return SourceEventType(number) if kind is None else kind
