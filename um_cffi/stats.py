"""Statistics as dataclasses: one snapshot each, taken by the `stats()` and `counts()` methods of the objects.

Counters run from the creation of the object or session. All fields are numbers; each says its unit where it is not a
plain count. The fields mirror the structures of lbm.h and um.h. Snapshots are taken and read on any thread; the
counters of one snapshot are read one after the other, while the library goes on counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, Union

from um_cffi.binding._native import ffi, lib
from um_cffi.errors import check, text
from um_cffi.events import Transport

__all__ = [
    "BrokerReceiverStats",
    "BrokerSourceStats",
    "ContextCounts",
    "ContextStats",
    "HotFailoverCounts",
    "LbtipcReceiverStats",
    "LbtipcSourceStats",
    "LbtrmReceiverStats",
    "LbtrmSourceStats",
    "LbtruReceiverStats",
    "LbtruSourceStats",
    "LbtsmxReceiverStats",
    "LbtsmxSourceStats",
    "NakCounts",
    "ObjectCounts",
    "QueueStats",
    "ReceiverCounts",
    "ReceiverStats",
    "SourceCounts",
    "SourceStats",
    "TcpReceiverStats",
    "TcpSourceStats",
    "TopicSource",
    "object_counts",
]


@dataclass(frozen=True)
class TcpSourceStats:
    """A TCP session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    num_clients: int  #: now
    bytes_buffered: int  #: now, bytes waiting for clients


@dataclass(frozen=True)
class LbtrmSourceStats:
    """A LBT-RM session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_sent: int  #: datagrams
    bytes_sent: int  #: bytes with headers
    txw_msgs: int  #: now, datagrams in the window
    txw_bytes: int  #: now, bytes in the window
    nak_pckts_rcved: int  #: packets
    naks_rcved: int  #: sequence numbers
    naks_ignored: int  #: refused: repaired a moment ago
    naks_shed: int  #: refused: rate limit
    naks_rx_delay_ignored: int  #: refused: too early
    rxs_sent: int  #: datagrams sent again
    rctlr_data_msgs: int  #: now, datagrams held by the rate limit
    rctlr_rx_msgs: int  #: now, repairs held by the rate limit
    rx_bytes_sent: int  #: bytes sent again


@dataclass(frozen=True)
class LbtruSourceStats:
    """A LBT-RU session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_sent: int  #: datagrams
    bytes_sent: int  #: bytes with headers
    nak_pckts_rcved: int  #: packets
    naks_rcved: int  #: sequence numbers
    naks_ignored: int  #: refused: repaired a moment ago
    naks_shed: int  #: refused: rate limit
    naks_rx_delay_ignored: int  #: refused: too early
    rxs_sent: int  #: datagrams sent again
    num_clients: int  #: now
    rx_bytes_sent: int  #: bytes sent again


@dataclass(frozen=True)
class LbtipcSourceStats:
    """A LBT-IPC session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    num_clients: int  #: now
    msgs_sent: int  #: datagrams
    bytes_sent: int  #: bytes with headers


@dataclass(frozen=True)
class LbtsmxSourceStats:
    """A LBT-SMX session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    num_clients: int  #: now
    msgs_sent: int  #: datagrams
    bytes_sent: int  #: bytes with headers


@dataclass(frozen=True)
class BrokerSourceStats:
    """A broker session as its source sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_sent: int  #: datagrams
    bytes_sent: int  #: bytes with headers


@dataclass(frozen=True)
class TcpReceiverStats:
    """A TCP session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    bytes_rcved: int  #: bytes with headers
    lbm_msgs_rcved: int  #: messages and fragments
    lbm_msgs_no_topic_rcved: int  #: of those, for topics without receiver
    lbm_reqs_rcved: int  #: of those, requests


@dataclass(frozen=True)
class LbtrmReceiverStats:
    """A LBT-RM session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_rcved: int  #: datagrams
    bytes_rcved: int  #: bytes with headers
    nak_pckts_sent: int  #: packets
    naks_sent: int  #: sequence numbers
    lost: int  #: datagrams found missing
    ncfs_ignored: int  #: source refused: repaired a moment ago
    ncfs_shed: int  #: source refused: rate limit
    ncfs_rx_delay: int  #: source refused: too early
    ncfs_unknown: int  #: source refused: unknown reason
    nak_stm_min: int  #: milliseconds from loss to repair
    nak_stm_mean: int  #: milliseconds
    nak_stm_max: int  #: milliseconds
    nak_tx_min: int  #: NAKs per repaired datagram
    nak_tx_mean: int  #: NAKs per repaired datagram
    nak_tx_max: int  #: NAKs per repaired datagram
    duplicate_data: int  #: datagrams seen twice
    unrecovered_txw: int  #: lost for good: left the window
    unrecovered_tmo: int  #: lost for good: time over
    lbm_msgs_rcved: int  #: messages and fragments
    lbm_msgs_no_topic_rcved: int  #: of those, for topics without receiver
    lbm_reqs_rcved: int  #: of those, requests
    dgrams_dropped_size: int  #: wrong length
    dgrams_dropped_type: int  #: wrong packet type
    dgrams_dropped_version: int  #: wrong version
    dgrams_dropped_hdr: int  #: wrong header
    dgrams_dropped_other: int  #: otherwise wrong
    out_of_order: int  #: datagrams


@dataclass(frozen=True)
class LbtruReceiverStats:
    """A LBT-RU session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_rcved: int  #: datagrams
    bytes_rcved: int  #: bytes with headers
    nak_pckts_sent: int  #: packets
    naks_sent: int  #: sequence numbers
    lost: int  #: datagrams found missing
    ncfs_ignored: int  #: source refused: repaired a moment ago
    ncfs_shed: int  #: source refused: rate limit
    ncfs_rx_delay: int  #: source refused: too early
    ncfs_unknown: int  #: source refused: unknown reason
    nak_stm_min: int  #: milliseconds from loss to repair
    nak_stm_mean: int  #: milliseconds
    nak_stm_max: int  #: milliseconds
    nak_tx_min: int  #: NAKs per repaired datagram
    nak_tx_mean: int  #: NAKs per repaired datagram
    nak_tx_max: int  #: NAKs per repaired datagram
    duplicate_data: int  #: datagrams seen twice
    unrecovered_txw: int  #: lost for good: left the window
    unrecovered_tmo: int  #: lost for good: time over
    lbm_msgs_rcved: int  #: messages and fragments
    lbm_msgs_no_topic_rcved: int  #: of those, for topics without receiver
    lbm_reqs_rcved: int  #: of those, requests
    dgrams_dropped_size: int  #: wrong length
    dgrams_dropped_type: int  #: wrong packet type
    dgrams_dropped_version: int  #: wrong version
    dgrams_dropped_hdr: int  #: wrong header
    dgrams_dropped_sid: int  #: wrong session id
    dgrams_dropped_other: int  #: otherwise wrong


@dataclass(frozen=True)
class LbtipcReceiverStats:
    """A LBT-IPC session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_rcved: int  #: datagrams
    bytes_rcved: int  #: bytes with headers
    lbm_msgs_rcved: int  #: messages and fragments
    lbm_msgs_no_topic_rcved: int  #: of those, for topics without receiver
    lbm_reqs_rcved: int  #: of those, requests


@dataclass(frozen=True)
class LbtsmxReceiverStats:
    """A LBT-SMX session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_rcved: int  #: datagrams
    bytes_rcved: int  #: bytes with headers
    lbm_msgs_rcved: int  #: messages and fragments
    lbm_msgs_no_topic_rcved: int  #: of those, for topics without receiver


@dataclass(frozen=True)
class BrokerReceiverStats:
    """A broker session as a receiving context sees it."""

    transport: Transport  #: TCP, LBTRM, ...: which of these classes it is
    source: str  #: source string of the session, without topic index
    msgs_rcved: int  #: datagrams
    bytes_rcved: int  #: bytes with headers


@dataclass(frozen=True)
class ContextStats:
    """Topic resolution, sends that waited, and loss of one context (lbm_context_stats_t)."""

    tr_dgrams_sent: int  #: datagrams
    tr_bytes_sent: int  #: bytes
    tr_dgrams_rcved: int  #: datagrams
    tr_bytes_rcved: int  #: bytes
    tr_dgrams_dropped_ver: int  #: unknown version
    tr_dgrams_dropped_type: int  #: unknown type
    tr_dgrams_dropped_malformed: int  #: malformed
    tr_dgrams_send_failed: int  #: datagrams
    tr_src_topics: int  #: now
    tr_rcv_topics: int  #: now
    tr_rcv_unresolved_topics: int  #: now, without a source
    lbtrm_unknown_msgs_rcved: int  #: datagrams of sessions not joined
    lbtru_unknown_msgs_rcved: int  #: datagrams of sessions not joined
    send_blocked: int  #: sends that waited
    send_would_block: int  #: sends refused with LBM_EWOULDBLOCK
    resp_blocked: int  #: responses that waited
    resp_would_block: int  #: responses refused
    uim_dup_msgs_rcved: int  #: immediate messages seen twice
    uim_msgs_no_stream_rcved: int  #: immediate messages without stream
    fragments_lost: int  #: found missing
    fragments_unrecoverably_lost: int  #: given up
    rcv_cb_svc_time_min: int  #: microseconds in a receiver callback
    rcv_cb_svc_time_max: int  #: microseconds
    rcv_cb_svc_time_mean: int  #: microseconds


@dataclass(frozen=True)
class SourceCounts:
    """What became of the messages of a source (um_src_stats_t)."""

    messages_sent: int  #: messages accepted by the sending calls
    bytes_sent: int  #: payload of these
    receivers: int  #: contexts connected to the session now
    session_dropped: int  #: datagrams dropped for slow receivers (source_paced, bounded_latency)
    session_dropped_bytes: int  #: bytes of these
    session_unsent_bytes: int  #: bytes queued for a receiver when its connection ended
    session_ignored_messages: int  #: sent by receivers, of no use to a source
    session_filtered_bytes: int  #: bytes not wanted by a receiver (source-side filtering); no loss
    session_unheard_bytes: int  #: bytes sent while no receiver was connected; no loss
    blocked_by_pid: int  #: shared memory: process whose receiver holds the session up now; 0 is nobody
    blocked_ns: int  #: shared memory: nanoseconds that senders of the session have waited for receivers
    receivers_lost: int  #: shared memory: receivers that died, or wrote positions that no receiver writes
    session_refused: int  #: datagrams the system did not send (LBT-RM, LBT-RU); receivers ask for them again
    session_strangers: int  #: LBT-RU: connection requests from addresses that had not shown that they sent them
    session_unopened: int  #: TCP: connections whose byte streams did not open; receivers connect again


@dataclass(frozen=True)
class TopicSource:
    """A source that a context knows by topic resolution, whether it receives it or not (um_topic_source_t)."""

    topic: str  #: its topic
    source: str  #: source string, as of the messages it sends
    transport: str  #: tcp, lbtrm, lbtru, lbtipc, lbtsmx or broker
    in_use: bool  #: received by this context, or on the list of a resolution server
    age: float  #: seconds since it was advertised last; 0 when in_use, which keeps it


_TRANSPORT_TYPES = {0x00: "tcp", 0x01: "lbtru", 0x04: "lbtsmx", 0x10: "lbtrm", 0x40: "lbtipc", 0x80: "broker"}


@dataclass(frozen=True)
class NakCounts:
    """Repairs that one receiving context asked a session of LBT-RM or LBT-RU for (um_src_naks_t)."""

    receiver: str  #: address and port it sends NAKs from; "others" are those beyond 256, added up
    nak_packets: int  #: NAK packets received from it
    naks: int  #: datagrams asked for in these
    idle_ms: int  #: milliseconds since the last one


@dataclass(frozen=True)
class ReceiverCounts:
    """What became of the messages for a receiver (um_rcv_stats_t)."""

    sources: int  #: joined now
    delivered: int  #: messages, or fragments with ordered_delivery 0
    missing: int  #: sequence numbers found missing; some of them may have arrived later
    lost: int  #: sequence numbers given up, and messages dropped from a full queue to Python; losses tell of each
    discarded: int  #: arrivals and messages thrown away: the sum of the following up to not_queued
    late: int  #: arrived after they had been given up
    duplicates: int  #: arrived again
    malformed: int  #: with a fragment header or sequence number that cannot be
    headless: int  #: fragments of a message whose beginning was lost or sent before the receiver joined
    not_assembled: int  #: messages beyond um_reassembly_maximum_size or 64 partial ones; also lost
    no_room: int  #: arrivals for which there was no memory; their numbers count as missing
    unfinished: int  #: waited for something missing when their source went away
    not_queued: int  #: for which there was no memory in the event queue
    session_malformed: int  #: messages with unusable headers on the sessions joined now, whatever their topic
    kernel_drops: int  #: datagrams the kernel threw away at the UDP sockets of the sessions joined now
    session_unsupported: int  #: messages of a type this version has no use for, on the sessions joined now
    openings_cut: int  #: beginnings of sources delivered before it was sure that nothing earlier would come


@dataclass(frozen=True)
class HotFailoverCounts:
    """What a hot failover receiver, or an HFX, has made of the numbers that came (um_hf_stats_t)."""

    delivered: int  #: numbers: the first copy of each
    again: int  #: further copies that were delivered (hf_duplicate_delivery)
    duplicates: int  #: further copies that were not, and numbers that had been reported as lost
    optional: int  #: optional messages left out (hf_optional_messages 0)
    other_width: int  #: numbers of 32 bits among those of 64, or the other way round: discarded
    far: int  #: numbers more than 2^30 ahead: discarded
    behind: int  #: of the count before the last reset: discarded
    no_room: int  #: messages for which there was no memory to wait; their numbers count as missing
    ended: int  #: messages that waited when a reset or the end came: discarded
    held: int  #: messages that had to wait for numbers before theirs
    meant: int  #: gaps that a source has made on purpose
    lost: int  #: numbers given up; each is covered by a loss event
    given_early: int  #: gaps given up because too much waited; their numbers are in `lost`
    resets: int  #: counts that were begun anew
    waiting: int  #: now, messages and numbers that wait
    refused: int  #: HFX: messages not taken because 64 MiB waited for the callback in progress


@dataclass(frozen=True)
class ContextCounts:
    """What a context discarded that belongs to no source or receiver (um_context_stats_t)."""

    resolver_unknown_sender: int  #: datagrams not from the lbmrd (resolver_unicast_ignore_unknown_source)
    resolver_refused_patterns: int  #: wildcard queries of unknown type or with an unusable pattern
    resolver_cache_full: int  #: sources forgotten early because there were too many; never those in use
    unicast_malformed: int  #: messages with unusable headers at the request port
    unicast_foreign: int  #: messages for another context at the request port
    unicast_unsupported: int  #: messages at the request port that this version has no use for
    unicast_unmatched: int  #: filter requests for a session, receiver or topic that is not there
    unicast_corrupt: int  #: connections closed because no message header could be found
    unicast_refused: int  #: connections refused for want of room
    unicast_unsent: int  #: outgoing messages given up because their target was not reachable
    udp_unknown: int  #: LBT-RM and LBT-RU datagrams of sessions not joined
    udp_foreign: int  #: datagrams for a multicast group that is not joined
    udp_oversized: int  #: datagrams longer than transport_*_receiver_datagram_max_size
    udp_kernel_drops: int  #: datagrams the kernel threw away at receivers' sockets, gone ones included
    udp_read_errors: int  #: receives that failed, or for which there was no memory
    udp_unsent: int  #: NAKs, acknowledgements and requests the kernel did not take
    udp_injected: int  #: datagrams lost on purpose (lbm_set_lbtrm_loss_rate and its like)
    joins_failed: int  #: attempts to join a source that brought nothing
    joins_waiting: int  #: sources that are tried again every few seconds, now
    joins_refused: int  #: sources not tried again, as too many are, until they are advertised anew
    resolver_cache_expired: int  #: sources forgotten because nothing was heard of them for long
    resolver_answers_deferred: int  #: answers to queries that waited for the schedule, as there were too many
    matches_deferred: int  #: topics matching a pattern that took the room of others or waited for room
    joins_under_way: int  #: transport sessions being joined of which nothing was received yet, now
    joins_deferred: int  #: sources that had to wait for their turn to be joined
    joins_forgotten: int  #: of those, the ones that were forgotten before it came
    joins_yielded: int  #: joins that brought nothing and were broken off for those who waited
    joins_excess: int  #: sources beyond what a session may have: not joined, or ended for newer ones
    udp_false_leads: int  #: LBT-RM, LBT-RU: raised numbers, forged or damaged, that a stream showed to be wrong
    unicast_displaced: int  #: connections to the request port closed to make room for others
    unicast_expired: int  #: connections to the request port closed as they brought no message, or did not open
    unicast_no_destination: int  #: messages refused with an error, as too many other targets were in use
    responses_delivered: int  #: responses handed to requests
    responses_unknown: int  #: responses to requests that were deleted, or never sent
    responses_malformed: int  #: fragments of responses that fit nothing, or found no memory
    responses_unfinished: int  #: large responses given up, as the rest did not come or they were too many or too large
    unicast_duplicates: int  #: messages that a connection to the request port had brought already
    immediate_dropped: int  #: immediate messages that nobody here asked for, or with an impossible topic
    immediate_fragments: int  #: pieces of unicast immediate messages longer than any that may be
    recovery_requests: int  #: messages asked for again by late join and recovery, repeated requests included
    recovery_received: int  #: answers to these that were handed on
    recovery_unasked: int  #: retransmissions that nobody waited for: answered twice, too late, or forged
    recovery_timed_out: int  #: messages that were asked for in vain until their time was over; also lost
    retransmit_requests: int  #: requests of late joiners and recovery for what sources here retain
    retransmit_sent: int  #: messages retransmitted to them
    retransmit_bytes: int  #: bytes of these
    retransmit_waiting: int  #: requests that wait for the rate limit of retransmissions, now
    retransmit_refused: int  #: requests without an answer: for what is not retained, too many, or of nobody known
    mim_senders: int  #: senders of multicast immediate messages that are remembered, now
    mim_silent: int  #: senders of which no message came yet, now
    mim_replaced: int  #: senders forgotten for new ones, as there were too many
    mim_refused: int  #: datagrams of new senders ignored, as there were too many
    mim_foreign: int  #: messages on the group that are no immediate ones
    mim_duplicates: int  #: multicast immediate messages that had come already
    mim_ended: int  #: senders forgotten as they fell silent
    services_connected: int  #: resolution servers (resolver_service) connected, now
    services_lost: int  #: connections to them that ended
    services_failed: int  #: attempts to connect to them that came to nothing
    service_records_sent: int  #: records told to them: sources, topics and patterns wanted, their ends
    service_sources: int  #: sources they told of, repeated ones included
    service_ends: int  #: ends of sources they told of
    service_ignored: int  #: what they told that is of no use here: for routers, other encryption, another host's memory
    service_invalid: int  #: what they sent that makes no sense


@dataclass(frozen=True)
class QueueStats:
    """The queue between the library and Python of one receiver (um_collector_stats_t)."""

    messages: int  #: payload messages gathered
    bytes: int  #: bytes of payload gathered
    taken: int  #: records handed out
    dropped: int  #: messages dropped because the queue was full or memory was short: losses, see Receiver's `on_full`
    pauses: int  #: times a TCP session was left unread because the collector was full
    queued_messages: int  #: waiting now, events included
    queued_bytes: int  #: bytes waiting now, records included
    conflated: int  #: messages replaced by newer ones of their topic (`on_full="conflate"`); no losses


@dataclass(frozen=True)
class ObjectCounts:
    """Objects of the library alive in this process, for leak checks (um_object_counts_t)."""

    contexts: int  #: contexts that have not been closed
    sources: int  #: sources
    receivers: int  #: receivers, one for each topic of a wildcard receiver
    messages: int  #: messages retained by C callbacks
    batches: int  #: pieces of memory with messages taken from collectors
    collectors: int  #: queues between the library and Python
    requests: int  #: sent and not deleted
    responses: int  #: ways back to requesters that were not deleted, those of messages included


SourceStats = Union[
    TcpSourceStats, LbtrmSourceStats, LbtruSourceStats, LbtipcSourceStats, LbtsmxSourceStats, BrokerSourceStats
]
ReceiverStats = Union[
    TcpReceiverStats,
    LbtrmReceiverStats,
    LbtruReceiverStats,
    LbtipcReceiverStats,
    LbtsmxReceiverStats,
    BrokerReceiverStats,
]

_SOURCE: dict[int, tuple[str, type[Any]]] = {
    Transport.TCP: ("tcp", TcpSourceStats),
    Transport.LBTRM: ("lbtrm", LbtrmSourceStats),
    Transport.LBTRU: ("lbtru", LbtruSourceStats),
    Transport.LBTIPC: ("lbtipc", LbtipcSourceStats),
    Transport.LBTSMX: ("lbtsmx", LbtsmxSourceStats),
    Transport.BROKER: ("broker", BrokerSourceStats),
}
_RECEIVER: dict[int, tuple[str, type[Any]]] = {
    Transport.TCP: ("tcp", TcpReceiverStats),
    Transport.LBTRM: ("lbtrm", LbtrmReceiverStats),
    Transport.LBTRU: ("lbtru", LbtruReceiverStats),
    Transport.LBTIPC: ("lbtipc", LbtipcReceiverStats),
    Transport.LBTSMX: ("lbtsmx", LbtsmxReceiverStats),
    Transport.BROKER: ("broker", BrokerReceiverStats),
}

Counts = TypeVar("Counts")
Stats = TypeVar("Stats")


def read_counts(kind: type[Counts], type_name: str, retrieve: Callable[[Any], int]) -> Counts:
    """A dataclass from the structure of the same fields that `retrieve` fills."""
    out = ffi.new(f"{type_name} *")
    check(retrieve(out))
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: int(getattr(out, name)) for name in names})


def _transport(stats: Any, table: dict[int, tuple[str, type[Any]]], side: str, member: Any) -> Any:
    name, kind = table[stats.type]
    values = ffi.cast(f"const lbm_{side}_transport_stats_{name}_t *", member(stats))
    names = [field.name for field in fields(kind)][2:]
    numbers = {field: int(getattr(values, field)) for field in names}
    return kind(transport=Transport(stats.type), source=text(stats.source), **numbers)


def source_stats(stats: Any) -> SourceStats:
    """The dataclass of one lbm_src_transport_stats_t."""
    result: SourceStats = _transport(stats, _SOURCE, "src", lib.um_py_src_transport)
    return result


def receiver_stats(stats: Any) -> ReceiverStats:
    """The dataclass of one lbm_rcv_transport_stats_t."""
    result: ReceiverStats = _transport(stats, _RECEIVER, "rcv", lib.um_py_rcv_transport)
    return result


def read_sessions(type_name: str, convert: Callable[[Any], Stats], retrieve: Callable[[Any, Any], int]) -> list[Stats]:
    """The converted elements of an array that `retrieve(count, array)` fills, grown until all of them fit."""
    count, capacity = ffi.new("int *"), 16
    while True:
        count[0] = capacity
        array = ffi.new(f"{type_name}[]", capacity)
        if retrieve(count, array) != lib.LBM_FAILURE:
            return [convert(ffi.addressof(array, at)) for at in range(count[0])]
        if count[0] <= capacity:
            check(lib.LBM_FAILURE)
        capacity = count[0]


def read_naks(retrieve: Callable[[Any, Any], int]) -> list[NakCounts]:
    """What `retrieve(array, count)` fills: the receivers that ask most first."""
    count = ffi.new("int *", 257)
    array = ffi.new("um_src_naks_t[]", 257)
    check(retrieve(array, count))
    numbers = ("nak_packets", "naks", "idle_ms")
    return [
        NakCounts(text(each.receiver), **{name: int(getattr(each, name)) for name in numbers})
        for each in array[0 : min(count[0], 257)]
    ]


def read_topics(retrieve: Callable[[Any, int, Any], int], limit: int) -> tuple[list[TopicSource], int]:
    """What `retrieve(array, size, count)` fills, at most `limit`, by topic and source; and how many there are."""
    room = min(64, limit)
    size = ffi.sizeof("um_topic_source_t")
    while True:
        array, count = ffi.new("um_topic_source_t[]", room), ffi.new("size_t *", room)
        check(retrieve(array if room else ffi.NULL, size, count))
        if count[0] <= room or room == limit:
            break
        room = min(limit, int(count[0]) * 5 // 4)
    found = [
        TopicSource(
            text(each.topic),
            text(each.source),
            _TRANSPORT_TYPES.get(each.transport, str(each.transport)),
            bool(each.in_use),
            each.age_ms / 1000,
        )
        for each in array[0 : min(int(count[0]), room)]
    ]
    return sorted(found, key=lambda each: (each.topic, each.source)), int(count[0])


def object_counts() -> ObjectCounts:
    """Objects of the library alive in this process: contexts, sources, receivers, retained messages, batches."""
    return read_counts(ObjectCounts, "um_object_counts_t", lib.um_object_counts)
