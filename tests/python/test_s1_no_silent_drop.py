"""Requirement S1: nothing is dropped silently.

The table "Where a discard is counted" of docs/reliability.md names, for everything the library may throw away, the
counter and the log line or event that tells of it. This test holds the code to the table:

* every counter of the table is incremented in csrc, and every field of the counting structures of the public header
  um.h that means a discard is in the table;
* every log id of the table is written, and rate-limited (um_log_limited);
* every function of the message path that speaks of dropping, discarding, ignoring, refusing or giving up, in its name,
  its comments or its texts, touches one of the counters, calls a function that does, reports an error to its caller, or
  is exempt for a stated reason. So whoever writes code that throws something away writes down that it does, and counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("delivery", "transport", "resolver", "core", "daemons")
WORDS = re.compile(r"(?i)(drop|discard|ignor|throw|refus|g(?:i|a)ven? up)")
LANGUAGE = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)

# Functions that speak of it without throwing away anything that matters to an application, and why.
EVENT = "an event of an object that the application deletes: what deleting it means"
REPORT = "tells about discards that are counted elsewhere"
CONFLICT = "an option of a later source is without effect; warned of, and no data is concerned"
HELPER = "helper of a function that counts"
NAK = "what becomes of each NAK is counted by kind (naks_ignored, naks_shed, naks_rx_delay_ignored)"
RANGE = "keeps the ranges of missing numbers; what is given up goes through um_lbtr_rx_report_lost()"
ASKED_AGAIN = "counts by reason (um_retransmitter_stats.drops); who asks asks again until its time is over"
EXEMPT = {
    "core/um_context_events.c:discard_event": EVENT,
    "core/um_immediate.c:discard_event": EVENT,
    "core/um_immediate.c:tell_dropped": HELPER,
    "core/um_immediate.c:um_immediate_dropped": REPORT,
    "core/um_request.c:discard_event": EVENT,
    "core/um_request.c:on_dropped": REPORT,
    "core/um_request.c:wait_for_callback": "no message: what belongs to a request that its application has deleted",
    "core/um_hfx_merge.c:drop": HELPER,
    "core/um_hfx_merge.c:log_report": REPORT,
    "core/um_hfx_merge.c:on_discarded": REPORT,
    "core/um_rcv_hf.c:log_given_early": REPORT,
    "core/um_rcv_hf.c:on_discarded": REPORT,
    "core/um_rcv_recovery.c:on_note": REPORT,
    "core/um_retransmission.c:on_dropped": REPORT,
    "delivery/um_retransmitter.c:drop": ASKED_AGAIN,
    "transport/unicast/um_unicast_in.c:tell_unopened": REPORT,
    "resolver/um_srs_client.c:on_error": "the server ended the connection: all is told again on the next one",
    "resolver/um_tr_srs.c:learn_domain": "no message: a number other than the one that was learnt",
    "transport/session/um_rcv_filter.c:um_rcv_filter_go_on": "what was refused is asked for again",
    "transport/lbtr/um_lbtr_answer.c:refuse": NAK,
    "transport/lbtr/um_lbtr_answer.c:refuse_gone": NAK,
    "transport/lbtr/um_lbtr_answer.c:refuse_once": NAK,
    "transport/lbtr/um_lbtr_answer.c:send_refusals": NAK,
    "transport/lbtr/um_lbtr_numbers.c:drop_oldest": "ends the time in which a datagram can be repaired; it was sent",
    "transport/lbtr/um_lbtr_reception.c:um_lbtr_rx_add_gap": RANGE,
    "transport/lbtr/um_lbtr_reception.c:advance": RANGE,
    "transport/lbtr/um_lbtr_reception.c:fill": RANGE,
    "transport/lbtr/um_lbtr_reception.c:um_lbtr_rx_hear_trail": RANGE,
    "transport/lbtr/um_lbtr_doubts.c:um_lbtr_rx_retract_claims": RANGE,
    "transport/lbtr/um_lbtr_reception.c:remember_given_up": RANGE,
    "transport/lbtr/um_lbtr_reception.c:um_lbtr_rx_forget_old": RANGE,
    "transport/lbtr/um_lbtr_doubts.c:revive": RANGE,
    "transport/lbtr/um_lbtr_reception.c:come_late": "passes up what was counted as lost, and counts that it came",
    "transport/lbtr/um_lbtr_counters.c:um_lbtr_counters_drop": "counts through a table of counters",
    "transport/lbtr/um_lbtru_src_engine.c:drop_silent_clients": "DISCONNECT tells of it; no data is concerned",
    "core/um_user_fds.c:um_fd_event_discard": EVENT,
    "core/um_source.c:event_discard": EVENT,
    "core/um_user_timers.c:um_user_timer_event_discard": EVENT,
    "core/um_rcv_handing.c:discard_event": EVENT,
    "core/um_collector_gather.c:log_dropped": HELPER,
    "core/um_collector_drops.c:tell_dropped": HELPER,
    "core/um_collector_drops.c:um_collector_drop_oldest": HELPER,
    "core/um_collector_take.c:wait_for_records": "gives up a lock",
    "core/um_event_queue.c:um_event_owner_purge": EVENT,
    "core/um_event_queue.c:um_event_discard_all": EVENT,
    "core/um_event_queue.c:um_event_drop": EVENT,
    "core/um_user_fds.c:um_watched_drop_if_empty": "frees an object",
    "core/um_receiver.c:um_rcv_topic_discard": "frees an object",
    "core/um_receiver.c:lookup_with_options": CONFLICT,
    "core/um_rcv_handing.c:um_rcv_log_refusal": "the application refused; the message was delivered",
    "daemons/lbmrd/lbmrd.c:serve": REPORT,
    "daemons/srs/srs.c:print_usage": "command line",
    "daemons/srs/srs.c:run": "configuration of what is missing; warned of",
    "daemons/srs/srs_server.c:log_sums": REPORT,
    "resolver/um_srs_frames.c:refuse": "counts by the pointer it is given (um_srs_stats), and logs",
    "resolver/um_srs_frames.c:srs_refused": "has the client come again later; the refusal is counted where it is made",
    "resolver/um_srs_patterns.c:srs_topic_match_all": "refuses costly patterns by refuse_pattern, which counts them",
    "resolver/um_srs_patterns.c:refuse_pattern": "counts refused_records, and logs",
    "resolver/um_srs_queue.c:srs_queue_drop": "of a connection that has ended: the client begins anew",
    "resolver/um_srs_sources.c:refuse_delete": "counts by the pointer it is given (um_srs_stats), and logs",
    "resolver/um_srs_sources.c:refuse_source": "counts refused_records, and logs",
    "resolver/um_srs_sources.c:srs_leaves_drop": "of a connection that has ended: the client begins anew",
    "resolver/um_srs_state.c:srs_address_drop": "frees an object",
    "delivery/um_reassembly.c:drop_data": HELPER,
    "delivery/um_reassembly.c:evict": HELPER,
    "resolver/um_lbmrd_config.c:refuse": "a configuration file, which is not used then; an error",
    "resolver/um_lbmrd_config.c:refuse_entry": "a configuration file, which is not used then; an error",
    "resolver/um_resolver.c:um_resolver_discards": REPORT,
    "resolver/um_tr_engine.c:learn_domain": "the datagram is used, only its domain is not; logged",
    "resolver/um_tr_inbox.c:um_tr_send_to": "the result is counted by the engine",
    "resolver/um_tr_receiver_side.c:ignorable": "sources of transports this context cannot join, or of another host",
    "resolver/um_tr_receiver_side.c:tell_portless": "the record is used, only one option is not; logged",
    "transport/udp/um_udp_receivers.c:um_udp_tell_unknown": HELPER,
    "transport/udp/um_udp_receivers.c:um_udp_rcv_session_kernel_drops": REPORT,
    "transport/udp/um_udp_receivers.c:um_udp_watch_drops": REPORT,
    "transport/ipc/um_ipc_rcv_session.c:tell_refusal": "a session that is not joined; tried with every advertisement",
    "transport/session/um_loss_rate.c:read_environment": "a setting that cannot be read; warned of, no data concerned",
    "transport/session/um_rcv_session.c:um_rcv_stream_kernel_drops": REPORT,
    "transport/shm/um_shm_segment.c:discard": "unmaps a segment that was not opened after all",
    "transport/shm/um_shm_control.c:discard_control": "unmaps an object that was not opened after all",
    "transport/smx/um_smx_ring.c:scan": "takes the slot of a receiver that wrote nonsense; counted in receivers_lost",
    "transport/smx/um_smx_send.c:spin_for_room": "gives the lock up while it waits",
    "transport/smx/um_smx_src_session.c:on_stall_timer": "speaks of a send refused with an error, and of its WAKEUP",
    "transport/smx/um_smx_src_session.c:notices": CONFLICT,
    "transport/tcp/um_tcp_client.c:um_tcp_client_discard": "what is still queued is counted when the queue is freed",
    "transport/tcp/um_tcp_queue.c:drop_oldest": HELPER,
    "transport/tcp/um_tcp_queue.c:um_tcp_report_drops": REPORT,
    "transport/tcp/um_tcp_src_session.c:take_options": CONFLICT,
    "transport/session/um_src_pool.c:um_src_pool_warn": CONFLICT,
    "transport/session/um_src_session.c:um_src_stream_drops": REPORT,
    "transport/session/um_src_send.c:send_fragments": "speaks of a send refused with an error, and of its WAKEUP",
    "transport/unicast/um_unicast_peer.c:say": REPORT,
    "transport/udp/um_lbtru_src_session.c:report_odd_requests": REPORT,
    "transport/udp/um_udp_rcv_session.c:warn": CONFLICT,
    "transport/udp/um_udp_stamps.c:um_udp_stamps_before": "times of datagrams, not the datagrams",
    "daemons/srs/srs_commands.c:take_snapshot": "the answer says so to who asked",
    "daemons/srs/srs_commands.c:take_interval": "the answer says so to who asked",
}


@dataclass(frozen=True)
class Row:
    what: str
    counter: str
    log: str


def table() -> list[Row]:
    page = (ROOT / "docs" / "reliability.md").read_text()
    part = page.split("## Where a discard is counted", 1)[1].split("\n## ", 1)[0]
    rows = []
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] != "what" and not cells[0].startswith("---"):
            rows.append(Row(cells[0], cells[1].strip("`"), cells[3]))
    assert len(rows) > 15, "the table of docs/reliability.md is not there"
    return rows


def sources() -> dict[str, str]:
    base = ROOT / "csrc"
    return {str(p.relative_to(base)): p.read_text() for folder in FOLDERS for p in sorted((base / folder).rglob("*.c"))}


def functions(text: str) -> dict[str, str]:
    """Name to text of each function, the comment in front of it included."""
    found = {}
    pattern = re.compile(
        r"((?:/\*(?:[^*]|\*(?!/))*\*/\n)?)"  # a comment
        r"^((?:static |inline |const |struct |enum |unsigned )*\w[^\n;={]*?\**(\w+)\([^;{]*\))\n\{\n(.*?)^\}",
        re.MULTILINE | re.DOTALL,
    )
    for match in pattern.finditer(text):
        found[match.group(3)] = match.group(0)
    return found


def inside(body: str) -> str:
    return body.split("\n{\n", 1)[1]


def increments(counter: str) -> re.Pattern[str]:
    """`stats.dropped++`, `drops.bytes += n`, `discard(dc, UM_DC_LATE, ...)`, or an atomic addition."""
    if counter.startswith("UM_DC_"):
        return re.compile(rf"\b{counter}\b(?=[,;\]])")
    name = re.escape(counter.split(".")[-1])
    return re.compile(rf"[.>]{name}(\+\+| \+= )|atomic_fetch_add\w*\(&[^,]*[.>]{name},")


def test_s1_every_counter_of_the_table_is_counted() -> None:
    everything = "\n".join(sources().values())
    bodies = [item for text in sources().values() for item in functions(text).items()]
    silent = []
    for row in table():
        pattern = increments(row.counter)
        counting = [name for name, body in bodies if pattern.search(body)]
        if not any(len(re.findall(rf"\b{name}\b", everything)) > 1 for name in counting):  # and somebody calls it
            silent.append(row.counter)
    assert not silent, f"no longer counted: {silent}"


def test_s1_every_discard_counter_is_in_the_table() -> None:
    header = (ROOT / "csrc" / "delivery" / "um_dc.h").read_text()
    reasons = re.search(r"enum um_dc_discard \{(.*?)UM_DC_DISCARD_COUNT", header, re.DOTALL)
    assert reasons is not None
    names = set(re.findall(r"^\s+(UM_DC_\w+)", reasons.group(1), re.MULTILINE))
    for path, struct in (
        ("transport/session/um_src_session.h", "um_src_drops"),
        ("transport/unicast/um_unicast.h", "um_unicast_stats"),
        ("resolver/um_tr_engine.h", "um_tr_stats"),
        ("resolver/um_lbmrd_engine.h", "um_lbmrd_stats"),
    ):
        body = re.search(rf"struct {struct} \{{(.*?)\n\}};", (ROOT / "csrc" / path).read_text(), re.DOTALL)
        assert body is not None, struct
        plain = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL)
        names |= set(
            re.findall(
                r"\b(\w*(?:drop|refus|unsent|ignored|invalid|from_self|failed|errors|foreign|malformed"
                r"|unknown|circling|corrupt|filtered|unheard)\w*)[,;\[]",
                plain,
            )
        )
    known = {row.counter.split(".")[-1] for row in table()}
    assert names <= known, f"counted, but not in the table of docs/reliability.md: {sorted(names - known)}"


def test_s1_every_log_line_of_the_table_is_written_and_limited() -> None:
    everything = "\n".join(sources().values())
    for row in table():
        for log_id in re.findall(r"`([A-Z]\w+-[\w-]+)`", row.log):
            at = everything.find(f'"{log_id}"')
            assert at >= 0, f"{row.what}: {log_id} is not logged"
            before = everything[max(0, at - 260) : at]
            assert re.search(r"um_log_(limited|left_out)\(", before), f"{row.what}: {log_id} is not rate-limited"
        assert row.log, f"{row.what}: no log line, event or reason"


def test_s1_what_speaks_of_dropping_counts_it() -> None:
    counted = [increments(row.counter) for row in table()] + [re.compile(r"discards\[why\]\+\+")]
    bodies = {f"{path}:{name}": body for path, text in sources().items() for name, body in functions(text).items()}
    counting = {place.split(":")[1] for place, body in bodies.items() if any(c.search(body) for c in counted)}
    calls = re.compile(r"\b(" + "|".join(sorted(counting)) + r")\(")
    counting |= {place.split(":")[1] for place, body in bodies.items() if calls.search(inside(body))}
    silent = []
    for place, body in bodies.items():
        name = place.split(":")[1]
        said = " ".join([name, *LANGUAGE.findall(body)])
        if WORDS.search(said) and name not in counting and "um_error" not in body and place not in EXEMPT:
            silent.append(place)
    assert not silent, "discards something without counting it, or needs a reason in EXEMPT:\n" + "\n".join(silent)
    stale = [place for place in EXEMPT if place not in bodies]
    assert not stale, f"exempt, but not there: {stale}"
