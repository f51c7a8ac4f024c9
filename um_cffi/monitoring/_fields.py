"""Which numbers a monitoring record has, in the order of csv and in that of protobuf; which of them may fall.

Read by the decoders, the model of the fleet and the metrics. Constant, from any thread.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """The numbers of one kind of record: their names in the order of csv, and in that of protobuf (tags 1, 2...)."""

    csv: tuple[str, ...]
    pb: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _same(text: str) -> Shape:
    return Shape(_words(text), _words(text))


_NAKED = """msgs_rcved bytes_rcved nak_pckts_sent naks_sent lost ncfs_ignored ncfs_shed ncfs_rx_delay ncfs_unknown
nak_stm_min nak_stm_mean nak_stm_max nak_tx_min nak_tx_mean nak_tx_max duplicate_data unrecovered_txw unrecovered_tmo
lbm_msgs_rcved lbm_msgs_no_topic_rcved lbm_reqs_rcved dgrams_dropped_size dgrams_dropped_type dgrams_dropped_version
dgrams_dropped_hdr"""
_SHARED = "msgs_rcved bytes_rcved lbm_msgs_rcved lbm_msgs_no_topic_rcved lbm_reqs_rcved"
_CLIENTS = Shape(_words("num_clients msgs_sent bytes_sent"), _words("msgs_sent bytes_sent num_clients"))
_NAKS = "nak_pckts_rcved naks_rcved naks_ignored naks_shed naks_rx_delay_ignored rxs_sent"

#: Numbers of transport types in records, and what they are called here.
TRANSPORTS = {0: "tcp", 1: "lbtru", 4: "lbtsmx", 16: "lbtrm", 32: "lbtrdma", 64: "lbtipc", 128: "broker", 255: "daemon"}
NUMBERS = {name: number for number, name in TRANSPORTS.items()}

SOURCES: dict[str, Shape] = {
    "tcp": _same("num_clients bytes_buffered"),
    "lbtrm": Shape(
        _words(f"msgs_sent bytes_sent txw_msgs txw_bytes {_NAKS} rctlr_data_msgs rctlr_rx_msgs rx_bytes_sent"),
        _words(f"msgs_sent bytes_sent txw_msgs txw_bytes {_NAKS} rx_bytes_sent rctlr_data_msgs rctlr_rx_msgs"),
    ),
    "lbtru": Shape(
        _words(f"msgs_sent bytes_sent {_NAKS} num_clients rx_bytes_sent"),
        _words(f"msgs_sent bytes_sent {_NAKS} rx_bytes_sent num_clients"),
    ),
    "lbtipc": _CLIENTS,
    "lbtsmx": _CLIENTS,
    "lbtrdma": _CLIENTS,
    "broker": _same("msgs_sent bytes_sent"),
    "daemon": _same("bytes_buffered"),
}
RECEIVERS: dict[str, Shape] = {
    "tcp": _same("bytes_rcved lbm_msgs_rcved lbm_msgs_no_topic_rcved lbm_reqs_rcved"),
    "lbtrm": _same(f"{_NAKED} dgrams_dropped_other out_of_order"),
    "lbtru": Shape(
        _words(f"{_NAKED} dgrams_dropped_sid dgrams_dropped_other"),
        _words(f"{_NAKED} dgrams_dropped_other dgrams_dropped_sid"),
    ),
    "lbtipc": _same(_SHARED),
    "lbtsmx": Shape(
        _words("msgs_rcved bytes_rcved lbm_msgs_rcved lbm_msgs_no_topic_rcved reserved1"),
        _words("msgs_rcved bytes_rcved lbm_msgs_rcved lbm_msgs_no_topic_rcved"),
    ),
    "lbtrdma": _same(_SHARED),
    "broker": _same("msgs_rcved bytes_rcved"),
    "daemon": _same("bytes_rcved"),
}
CONTEXT = Shape(
    _words(
        """tr_dgrams_sent tr_bytes_sent tr_dgrams_rcved tr_bytes_rcved tr_dgrams_dropped_ver tr_dgrams_dropped_type
        tr_dgrams_dropped_malformed tr_dgrams_send_failed tr_src_topics tr_rcv_topics tr_rcv_unresolved_topics
        lbtrm_unknown_msgs_rcved lbtru_unknown_msgs_rcved send_blocked send_would_block resp_blocked resp_would_block
        uim_dup_msgs_rcved uim_msgs_no_stream_rcved fragments_lost fragments_unrecoverably_lost rcv_cb_svc_time_min
        rcv_cb_svc_time_max rcv_cb_svc_time_mean"""
    ),
    _words(
        """tr_dgrams_sent tr_bytes_sent tr_dgrams_rcved tr_bytes_rcved tr_src_topics tr_rcv_topics
        tr_rcv_unresolved_topics send_blocked send_would_block resp_blocked resp_would_block uim_dup_msgs_rcved
        uim_msgs_no_stream_rcved fragments_lost fragments_unrecoverably_lost lbtrm_unknown_msgs_rcved
        lbtru_unknown_msgs_rcved tr_dgrams_dropped_ver tr_dgrams_dropped_type tr_dgrams_dropped_malformed
        tr_dgrams_send_failed rcv_cb_svc_time_min rcv_cb_svc_time_max rcv_cb_svc_time_mean"""
    ),
)
#: What an event queue counts five numbers of each: waiting, taken so far, and the time each took.
QUEUE_PARTS = (
    "data_msgs",
    "resp_msgs",
    "topicless_im_msgs",
    "wrcv_msgs",
    "io_events",
    "timer_events",
    "source_events",
    "cancel_events",
    "context_source_events",
    "callback_events",
)


def _queue() -> Shape:
    def five(*parts: str) -> str:
        return " ".join(f"{part} {part}_tot {part}_svc_min {part}_svc_mean {part}_svc_max" for part in parts)

    ends = "unblock_events unblock_events_tot"
    ages = "events events_tot age_min age_mean age_max"
    return _same(f"{five(*QUEUE_PARTS[:7])} {ends} {five(*QUEUE_PARTS[7:9])} {ages} {five(QUEUE_PARTS[9])}")


EVENT_QUEUE = _queue()

#: A minimum of which nothing was measured yet.
UNSET = 2**64 - 1


def is_level(name: str) -> bool:
    """Whether the number says how something is now, and not how often something has happened so far."""
    return name in _LEVELS or name.endswith(("_min", "_mean", "_max"))


_LEVELS = {
    *_words("num_clients bytes_buffered txw_msgs txw_bytes rctlr_data_msgs rctlr_rx_msgs reserved1 tr_src_topics"),
    *_words("tr_rcv_topics tr_rcv_unresolved_topics events unblock_events"),
    *QUEUE_PARTS,
}
