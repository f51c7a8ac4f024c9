"""The metrics made of records: for each number its name, unit and meaning by the conventions of Prometheus.

Base units: seconds and bytes; what counts ends in _total. Constant, from any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from um_cffi.monitoring import _fields


@dataclass(frozen=True)
class Family:
    """A metric; its samples are numbers of several fields or transports."""

    name: str  #: without _total
    type: str  #: "counter" or "gauge"
    help: str

    @property
    def sample(self) -> str:
        """The name of its samples."""
        return f"{self.name}_total" if self.type == "counter" else self.name


class Member(NamedTuple):
    """Where a number goes."""

    family: Family
    label: str  #: further label, 'reason="timeout"', or ""
    scale: float  #: from the unit of the record to that of the metric


_LINES = """
receiver msgs_rcved receiver_datagrams . 1 Datagrams, or messages of shared memory, that a transport session brought.
receiver bytes_rcved receiver_bytes . 1 Bytes with headers that a transport session brought.
receiver lbm_msgs_rcved receiver_messages . 1 Messages and fragments received.
receiver lbm_msgs_no_topic_rcved receiver_messages_without_topic . 1 Of these, for topics without a receiver here.
receiver lbm_reqs_rcved receiver_requests . 1 Of these, requests.
receiver nak_pckts_sent receiver_nak_packets . 1 NAK packets sent.
receiver naks_sent receiver_naks . 1 Sequence numbers asked for in NAKs.
receiver lost receiver_lost_datagrams . 1 Datagrams found missing; most are repaired later.
receiver ncfs_ignored receiver_ncfs reason="ignored" 1 Sequence numbers whose repair the source refused.
receiver ncfs_shed receiver_ncfs reason="shed" 1 .
receiver ncfs_rx_delay receiver_ncfs reason="rx_delay" 1 .
receiver ncfs_unknown receiver_ncfs reason="unknown" 1 .
receiver nak_stm_min receiver_recovery_min_seconds . 1e-3 Shortest time from loss to repair.
receiver nak_stm_mean receiver_recovery_mean_seconds . 1e-3 Average time from loss to repair, of late.
receiver nak_stm_max receiver_recovery_max_seconds . 1e-3 Longest time from loss to repair.
receiver nak_tx_min receiver_naks_per_datagram_min . 1 Fewest NAKs for a repaired datagram.
receiver nak_tx_mean receiver_naks_per_datagram_mean . 1 Average number of NAKs for a repaired datagram, of late.
receiver nak_tx_max receiver_naks_per_datagram_max . 1 Most NAKs for a repaired datagram.
receiver duplicate_data receiver_duplicate_datagrams . 1 Datagrams that had come already.
receiver unrecovered_txw receiver_unrecovered_datagrams reason="window" 1 Datagrams lost for good.
receiver unrecovered_tmo receiver_unrecovered_datagrams reason="timeout" 1 .
receiver dgrams_dropped_size receiver_dropped_datagrams reason="size" 1 Datagrams that were none of the protocol.
receiver dgrams_dropped_type receiver_dropped_datagrams reason="type" 1 .
receiver dgrams_dropped_version receiver_dropped_datagrams reason="version" 1 .
receiver dgrams_dropped_hdr receiver_dropped_datagrams reason="header" 1 .
receiver dgrams_dropped_sid receiver_dropped_datagrams reason="session" 1 .
receiver dgrams_dropped_other receiver_dropped_datagrams reason="other" 1 .
receiver out_of_order receiver_out_of_order_datagrams . 1 Datagrams that came after later ones.
source num_clients source_clients . 1 Receivers that are connected now.
source bytes_buffered source_buffered_bytes . 1 Bytes that wait for slow receivers now.
source msgs_sent source_datagrams . 1 Datagrams, or messages of shared memory, sent.
source bytes_sent source_bytes . 1 Bytes with headers sent.
source txw_msgs source_window_datagrams . 1 Datagrams kept for repairs now.
source txw_bytes source_window_bytes . 1 Bytes kept for repairs now.
source nak_pckts_rcved source_nak_packets . 1 NAK packets received.
source naks_rcved source_naks . 1 Sequence numbers that receivers asked for.
source naks_ignored source_refused_naks reason="ignored" 1 Of these, refused.
source naks_shed source_refused_naks reason="shed" 1 .
source naks_rx_delay_ignored source_refused_naks reason="rx_delay" 1 .
source rxs_sent source_retransmitted_datagrams . 1 Datagrams sent again.
source rx_bytes_sent source_retransmitted_bytes . 1 Bytes sent again.
source rctlr_data_msgs source_rate_limited_datagrams what="data" 1 Datagrams that wait for the rate limit now.
source rctlr_rx_msgs source_rate_limited_datagrams what="retransmission" 1 .
context tr_dgrams_sent context_resolver_sent_datagrams . 1 Datagrams of topic resolution sent.
context tr_bytes_sent context_resolver_sent_bytes . 1 Bytes of topic resolution sent.
context tr_dgrams_rcved context_resolver_received_datagrams . 1 Datagrams of topic resolution received.
context tr_bytes_rcved context_resolver_received_bytes . 1 Bytes of topic resolution received.
context tr_dgrams_dropped_ver context_resolver_dropped_datagrams reason="version" 1 Resolver datagrams dropped.
context tr_dgrams_dropped_type context_resolver_dropped_datagrams reason="type" 1 .
context tr_dgrams_dropped_malformed context_resolver_dropped_datagrams reason="malformed" 1 .
context tr_dgrams_send_failed context_resolver_failed_sends . 1 Resolver datagrams that the system did not take.
context tr_src_topics context_source_topics . 1 Topics that have sources here, now.
context tr_rcv_topics context_receiver_topics . 1 Topics that have receivers here, now.
context tr_rcv_unresolved_topics context_unresolved_topics . 1 Topics that have receivers here and no source now.
context lbtrm_unknown_msgs_rcved context_unknown_datagrams protocol="lbtrm" 1 Datagrams of sessions that are not joined.
context lbtru_unknown_msgs_rcved context_unknown_datagrams protocol="lbtru" 1 .
context send_blocked context_blocked_sends what="message" 1 Sends that had to wait.
context resp_blocked context_blocked_sends what="response" 1 .
context send_would_block context_refused_sends what="message" 1 Sends refused as they would have had to wait.
context resp_would_block context_refused_sends what="response" 1 .
context uim_dup_msgs_rcved context_immediate_duplicates . 1 Unicast immediate messages that had come already.
context uim_msgs_no_stream_rcved context_immediate_without_stream . 1 Unicast immediate messages of no known stream.
context fragments_lost context_lost_fragments . 1 Messages or fragments found missing; most are repaired later.
context fragments_unrecoverably_lost context_unrecovered_fragments . 1 Messages or fragments lost for good.
context rcv_cb_svc_time_min context_callback_min_seconds . 1e-6 Shortest callback of a receiver.
context rcv_cb_svc_time_mean context_callback_mean_seconds . 1e-6 Average callback of a receiver, of late.
context rcv_cb_svc_time_max context_callback_max_seconds . 1e-6 Longest callback of a receiver.
event_queue events event_queue_waiting_events . 1 Events that wait now.
event_queue events_tot event_queue_events . 1 Events put into the queue.
event_queue age_min event_queue_age_min_seconds . 1e-6 Shortest time that an event has waited.
event_queue age_mean event_queue_age_mean_seconds . 1e-6 Average time that events have waited, of late.
event_queue age_max event_queue_age_max_seconds . 1e-6 Longest time that an event has waited.
event_queue unblock_events event_queue_waiting event="unblock_events" 1 Events of one type that wait now.
event_queue unblock_events_tot event_queue_taken event="unblock_events" 1 Events of one type so far.
"""
_QUEUE = """
event_queue {0} event_queue_waiting event="{0}" 1 Events of one type that wait now.
event_queue {0}_tot event_queue_taken event="{0}" 1 Events of one type so far.
event_queue {0}_svc_min event_queue_service_min_seconds event="{0}" 1e-6 Shortest time that an event has taken.
event_queue {0}_svc_mean event_queue_service_mean_seconds event="{0}" 1e-6 Average time that events have taken, of late.
event_queue {0}_svc_max event_queue_service_max_seconds event="{0}" 1e-6 Longest time that an event has taken.
"""


def _members() -> dict[str, dict[str, Member]]:
    families: dict[str, Family] = {}
    found: dict[str, dict[str, Member]] = {"receiver": {}, "source": {}, "context": {}, "event_queue": {}}
    for line in (_LINES + "".join(_QUEUE.format(part) for part in _fields.QUEUE_PARTS)).strip().splitlines():
        if not line:
            continue
        kind, field, name, label, scale, meaning = line.split(maxsplit=5)
        name = f"um_{name}"
        counts = not _fields.is_level(field)
        family = families.setdefault(name, Family(name, "counter" if counts else "gauge", meaning))
        found[kind][field] = Member(family, "" if label == "." else label, float(scale))
    return found


#: By kind of object, then by field, where its numbers go. `reserved1` goes nowhere.
MEMBERS = _members()
