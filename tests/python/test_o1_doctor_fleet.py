"""Requirement O1 for a fleet: `um doctor --fleet` tells from monitoring records who loses, who is deaf, who waits, and
what helps. The checks run in virtual time; the command listens to records that a process of the test publishes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hosts import Host
from interpreter import ENV, printed, python

from um_cffi.commands import _fleet_checks
from um_cffi.commands._fleet_watch import Watched, of_this_process, watch
from um_cffi.monitoring import (
    Arrival,
    Attributes,
    ContextRecord,
    EventQueueRecord,
    MonitorCounts,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
    TopicState,
)

SESSION = "LBTRM:10.0.0.1:14400:a1b2c3d4:224.1.1.1:14400"
TCP = "TCP:10.0.0.1:14371"


def at(host: int, process: int = 1, object_id: int = 0) -> Attributes:
    return Attributes(
        host=f"10.0.0.{host}", application="app", process_id=process, context_instance="ff", object_id=object_id
    )


def receiver(host: int, session: str = SESSION, **values: int) -> ReceiverRecord:
    return ReceiverRecord(at(host), "lbtrm" if session.startswith("LBTRM") else "tcp", session, values)


def source(session: str = SESSION, **values: int) -> SourceRecord:
    return SourceRecord(at(1), "lbtrm" if session.startswith("LBTRM") else "tcp", session, values)


def topic(host: int, name: str = "news", session: str | None = SESSION) -> TopicRecord:
    return TopicRecord(at(host), name, (TopicState(f"{session}[1]"),) if session else ())


def seen(*moments: Iterable[Any]) -> Watched:
    """What was watched when these records came, a second after another."""
    watched = Watched()
    for now, records in enumerate(moments):
        watched.add([Arrival(record, "10.0.0.9") for record in records], float(now))
        watched.fleet.expire(float(now))
        watched.seconds = float(now)
    return watched


def found(watched: Watched) -> dict[str, tuple[str, str, str]]:
    rows = _fleet_checks.examine(watched)
    assert all(bool(remedy) == (state in ("warn", "FAIL")) for _, state, _, remedy in rows), rows
    assert len({name for name, *_ in rows}) == len(rows)
    return {name: (state, text, remedy) for name, state, text, remedy in rows}


def troubles(watched: Watched) -> dict[str, str]:
    return {name: state for name, (state, _, _) in found(watched).items() if state in ("warn", "FAIL")}


def good(now: int) -> list[Record]:
    return [
        source(msgs_sent=1000 * now, naks_rcved=3 * now),
        *(receiver(host, msgs_rcved=1000 * now) for host in (2, 3, 4)),
        *(topic(host) for host in (2, 3, 4)),
        *(ContextRecord(at(host), {"tr_dgrams_sent": now}) for host in (1, 2, 3, 4)),
        EventQueueRecord(at(2), {"events": 3}),
    ]


def test_o1_a_good_fleet_has_no_trouble() -> None:
    watched = seen(*map(good, range(5)))
    assert troubles(watched) == {}
    assert "4 processes on 4 hosts" in found(watched)["records"][1] or "records of 4" in found(watched)["records"][1]


def test_o1_nothing_heard_is_a_failure_that_names_the_option_to_set() -> None:
    (name, state, _, remedy), *rest = _fleet_checks.examine(seen([]))
    assert (name, state, rest) == ("records", "FAIL", []) and "monitor_interval" in remedy


def test_o1_one_receiver_that_loses_alone_is_told_from_all_that_lose() -> None:
    watched = seen(*([*good(now), receiver(3, msgs_rcved=990 * now, lost=10 * now)] for now in range(5)))
    state, text, remedy = found(watched)["loss at one receiver"]
    assert state == "warn" and "40 datagrams at 10.0.0.3 app (process 1)" in text and "(news)" in text
    assert "10.0.0.2" not in text and "10.0.0.4" not in text
    assert "um doctor on 10.0.0.3:" in remedy and "rmem_max" in remedy
    everybody = seen(*([source(), *(receiver(host, lost=10 * now) for host in (2, 3, 4))] for now in range(5)))
    state, text, remedy = found(everybody)["loss at all receivers"]
    assert state == "warn" and "3 receivers" in text and "host of the source" in remedy
    only = seen(*([receiver(2, lost=now)] for now in range(3)))
    assert "the only receiver known" in found(only)["loss"][1]


def test_o1_loss_of_before_is_no_trouble_now() -> None:
    watched = seen(*([receiver(2, lost=50, unrecovered_tmo=7)] for _ in range(3)))
    state, text, _ = found(watched)["loss"]
    assert state == "ok" and "before that 7 were lost for good at 10.0.0.2" in text


@pytest.mark.parametrize(
    ("record", "name", "state", "option"),
    [
        (lambda n: receiver(2, lost=n, unrecovered_txw=n), "transmission window", "FAIL", "transmission_window_size"),
        (lambda n: receiver(2, lost=n, unrecovered_tmo=n), "repairs", "FAIL", "retransmit_rate_limit"),
        (lambda n: source(naks_rcved=10 * n, naks_ignored=3 * n), "NAK timing", "warn", "ignore_interval"),
        (lambda n: source(naks_rcved=10 * n, naks_shed=n), "repair rate", "warn", "retransmit_rate_limit"),
        (lambda n: receiver(2, dgrams_dropped_size=n), "datagram sizes", "FAIL", "datagram_max_size"),
        (lambda n: receiver(2, dgrams_dropped_version=n), "datagrams", "warn", "versions"),
        (lambda n: ContextRecord(at(2), {"tr_dgrams_send_failed": n}), "resolver sends", "FAIL", "wmem_max"),
        (lambda n: ContextRecord(at(2), {"tr_dgrams_dropped_malformed": n}), "resolver datagrams", "warn", "port"),
        (lambda n: ContextRecord(at(2), {"lbtrm_unknown_msgs_rcved": 500 * n}), "unwanted sessions", "warn", "group"),
        (lambda n: ContextRecord(at(1), {"send_blocked": n}), "blocked sends", "warn", "data_rate_limit"),
        (lambda n: source(rctlr_data_msgs=9), "rate limit", "warn", "um_profile low_latency"),
        (lambda n: source(TCP, bytes_buffered=1 << 20, num_clients=1), "slow clients", "warn", "um top"),
        (lambda n: EventQueueRecord(at(2), {"events": 5000, "age_max": 10}), "event queues", "warn", "dispatch"),
        (lambda n: ContextRecord(at(2), {"rcv_cb_svc_time_max": 250_000}), "callbacks", "warn", "event queue"),
    ],
)
def test_o1_each_trouble_is_told_with_its_place_and_remedy(record: object, name: str, state: str, option: str) -> None:
    make = record
    assert callable(make)
    watched = seen(*([make(now)] for now in range(4)))
    rows = found(watched)
    assert rows[name][0] == state and "app (process 1)" in rows[name][1]
    assert option in rows[name][2]
    assert set(troubles(watched)) - {name} <= {"loss"}


def test_o1_a_receiver_that_hears_nothing_of_what_is_sent() -> None:
    """With a receiver that counts nothing, and with none at all in a process that knows the source."""
    deaf = seen(*([*good(now), receiver(5, msgs_rcved=0), topic(5), topic(6)] for now in range(5)))
    state, text, remedy = found(deaf)["one-sided sessions"]
    assert state == "FAIL" and "10.0.0.5" in text and "10.0.0.6" in text and "10.0.0.2" not in text
    assert "um doctor on 10.0.0.5, 10.0.0.6;" in remedy and "IGMP" in remedy
    assert set(troubles(deaf)) == {"one-sided sessions"}


def test_o1_a_receiver_that_came_after_the_last_message_is_not_deaf() -> None:
    sent = (0, 1000, 1000, 1000, 1000)
    watched = seen(*([source(msgs_sent=sent[now]), *([receiver(2)] if now > 1 else [])] for now in range(5)))
    assert troubles(watched) == {}
    late = seen(*([source(msgs_sent=1000 * (now == 4)), receiver(2)] for now in range(5)))
    assert troubles(late) == {}, "what was sent at the end may be under way"


def test_o1_a_tcp_source_without_the_client_that_wants_it() -> None:
    watched = seen(*([source(TCP, num_clients=0), topic(2, session=TCP)] for _ in range(3)))
    state, text, remedy = found(watched)["connections"]
    assert (
        state == "FAIL" and "10.0.0.2 app (process 1) wants TCP:10.0.0.1:14371 (news)" in text and "firewall" in remedy
    )
    assert troubles(seen(*([source(TCP, num_clients=1), topic(2, session=TCP)] for _ in range(3)))) == {}


def test_o1_a_topic_that_one_side_resolves_and_the_other_does_not() -> None:
    watched = seen(*([topic(2), topic(3, session=None), topic(4, "lonely", None)] for _ in range(3)))
    rows = found(watched)
    assert rows["resolution"][0] == "FAIL"
    assert (
        "10.0.0.3 app (process 1) finds no source of news, and 10.0.0.2 app (process 1) does" in rows["resolution"][1]
    )
    assert rows["topics without source"][:2] == ("note", "nobody knows one of lonely")


def test_o1_a_process_that_stops_to_speak_is_told() -> None:
    watched = seen(*([receiver(2, msgs_rcved=now), *([receiver(3)] if now < 4 else [])] for now in range(12)))
    state, text, _ = found(watched)["silent processes"]
    assert state == "FAIL" and text == "10.0.0.3 app (process 1)"


def test_o1_what_was_told_once_is_not_judged_and_said_to_be() -> None:
    watched = seen([receiver(2, lost=500, msgs_rcved=0), source(msgs_sent=10_000)])
    assert troubles(watched) == {"rates": "warn"}
    assert "monitor_interval" in found(watched)["rates"][2]


def test_o1_what_cannot_be_judged_is_said() -> None:
    assert "not in records" in found(seen(*map(good, range(3))))
    assert "topics" not in found(seen(*map(good, range(3))))
    assert found(seen([receiver(2)], [receiver(2)]))["topics"][0] == "note"


def test_o1_many_troubles_stay_a_few_lines() -> None:
    many = [
        [receiver(2, f"LBTRM:10.0.0.1:14400:{number:08x}:224.1.1.1:14400", lost=now) for number in range(1000)]
        for now in range(3)
    ]
    assert found(seen(*many))["loss"][1].endswith("; and 996 more")


def test_o1_what_nobody_could_read_and_what_came_too_fast_is_told() -> None:
    watched = seen(*map(good, range(3)))
    watched.counts = MonitorCounts(10, 100, {"too short": 3}, 5, 2)
    rows = found(watched)
    assert rows["malformed records"][:2] == ("warn", "3 packets are no monitoring records: 3 too short")
    assert rows["missed records"][1].startswith("7 packets")


class FakeMonitor:
    """Gives a record at each poll, in the time of a clock that goes on by what is waited."""

    def __init__(self) -> None:
        self.now = 0.0

    def poll(self, timeout: float) -> list[Arrival]:
        self.now += max(timeout, 0.01)
        return [Arrival(receiver(2, lost=int(self.now * 10)), "10.0.0.2")]

    def counts(self) -> MonitorCounts:
        return MonitorCounts(1, 1, {}, 0, 0)


def test_o1_listening_ends_in_time() -> None:
    monitor = FakeMonitor()
    watched = watch(monitor, 8.0, lambda: monitor.now)  # type: ignore[arg-type]
    assert 8.0 <= watched.seconds <= 8.1 and watched.counts.packets == 1
    assert "75 datagrams" in found(watched)["loss"][1]


def test_o1_who_looks_does_not_tell_of_itself() -> None:
    itself = Attributes(host="127.0.0.1", application="doctor", process_id=os.getpid())
    other = Attributes(host="10.0.0.99", application="other", process_id=os.getpid())
    watched = Watched(of_this_process)
    watched.add([Arrival(ContextRecord(each, {}), "10.0.0.9") for each in (itself, other)], 0.0)
    assert [each.application for each in watched.fleet.processes()] == ["other"]


# ---- the command ----

PUBLISH = """
import time
from um_cffi import Context, Source
from um_cffi.monitoring import TOPIC, Attributes, ReceiverRecord, encode
with Context(default_interface="127.0.0.1") as ctx, Source(ctx, TOPIC) as source:
    print("there", flush=True)
    for number in range(100000):
        who = Attributes(host="10.0.0.7", application="feed", process_id=77, timestamp=1700000000 + number)
        numbers = {"lost": 3 * number, "unrecovered_tmo": number}
        source.send(encode(ReceiverRecord(who, "lbtrm", "SESSION", numbers)), flush=True)
        time.sleep(0.1)
""".replace("SESSION", SESSION)

SEND = """
import socket, time
from um_cffi.monitoring import Attributes, ContextRecord, encode
print("there", flush=True)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for number in range(100000):
        who = Attributes(host="10.0.0.8", application="feed", process_id=78)
        sender.sendto(encode(ContextRecord(who, {"tr_dgrams_send_failed": number})), ("127.0.0.1", 2933))
        time.sleep(0.1)
"""


def doctor(host: Host, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    process = host.start_command(*python("-m", "um_cffi", "doctor", "--fleet", "--json", *arguments), env=ENV)
    status = process.wait()
    rows = [json.loads(line) for line in process.output.splitlines() if line.startswith("{")]
    assert rows, process.output
    return status, {each["name"]: each for each in rows}


def doctor_that_hears(host: Host, name: str, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Listening may end before the publisher was found, or has said something twice: then for longer."""
    for seconds in (2, 4, 8, 16, 32):
        status, rows = doctor(host, *arguments, "--seconds", str(seconds))
        if rows.get(name, {}).get("state") == "FAIL":
            break
    return status, rows


def test_o1_the_command_listens_to_messages_of_the_topic_of_statistics(host: Host) -> None:
    host.start_command(*python("-c", PUBLISH), env=ENV).expect("there")
    status, rows = doctor_that_hears(host, "repairs", "-i", "127.0.0.1")
    assert status == 1 and rows["repairs"]["state"] == "FAIL"
    assert "10.0.0.7 feed (process 77)" in rows["repairs"]["text"] and SESSION in rows["repairs"]["text"]
    assert rows["loss"]["state"] == "warn" and rows["silent processes"]["state"] == "ok"


def test_o1_the_command_listens_to_datagrams(host: Host) -> None:
    host.start_command(*python("-c", SEND), env=ENV).expect("there")
    status, rows = doctor_that_hears(host, "resolver sends", "--udp", "127.0.0.1:2933")
    assert status == 1 and "10.0.0.8 feed (process 78)" in rows["resolver sends"]["text"]


def test_o1_the_command_says_that_nothing_came(host: Host) -> None:
    process = host.start_command(*python("-m", "um_cffi", "doctor", "--fleet", "--seconds", "0.2"), env=ENV)
    assert process.wait() == 1
    assert re.search(r"FAIL  records  no monitoring record has come in \d+ s", process.output), process.output
    assert printed(process.output)[-1].startswith("0 ok, 0 warnings, 1 failures in ")


def test_o1_an_address_that_cannot_be_listened_at_is_an_error_with_a_text(host: Host) -> None:
    process = host.start_command(*python("-m", "um_cffi", "doctor", "--fleet", "--udp", "nowhere"), env=ENV)
    assert process.wait() == 1
    assert "um doctor: udp :nowhere: must be ADDRESS:PORT" in process.output
    process = host.start_command(*python("-m", "um_cffi", "doctor", "--udp", "2933"), env=ENV)
    assert process.wait() == 1 and "--udp: says where" in process.output and "--fleet" in process.output
