"""What the page of `um web` knows and says, in virtual time: no server, no records from a network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from interpreter import needs_plain_library
from made_fleet import LBTRM, MadeFleet, crowd, desk_fleet

from um_cffi.monitoring import Attributes, EventQueueRecord, LogLine, LogRecord, ReceiverRecord, TopicRecord
from um_cffi.monitoring.fleet import Fleet, Limits
from um_cffi.web import Settings
from um_cffi.web._history import HOUR, STEP
from um_cffi.web._limits import ADDRESSES, Buckets
from um_cffi.web._views import EVENT_KINDS, Views
from um_cffi.web._watch import Watch

pytestmark = needs_plain_library
WALL = 1_700_000_000.0
QUIET = {"received": 0, "malformed": 0, "dropped": 0}


class Run:
    """A fleet watched in virtual time."""

    def __init__(self, fleet: MadeFleet, settings: Settings | None = None, limits: Limits | None = None) -> None:
        self.fleet, self.now = fleet, 1000.0
        self.watch = Watch(settings or Settings(), Fleet(limits))

    def seconds(self, count: int) -> None:
        """Let time pass."""
        for _ in range(count):
            self.now += 1
            for record in self.fleet.records(self.now):
                self.watch.add(record, self.now, "10.0.0.1")
            self.watch.tick(self.now)
            while not self.watch.go_on():
                pass

    def ask(self, *question: str) -> dict[str, Any]:
        """A view as the page gets it."""
        sections = self.maybe(*question)
        assert sections is not None
        return sections

    def maybe(self, *question: str) -> dict[str, Any] | None:
        """A view, or None."""
        sections = Views(self.watch, self.now, WALL, QUIET).render(question)
        return None if sections is None else dict(json.loads(json.dumps(sections)))


@pytest.fixture(name="run")
def a_small_fleet() -> Run:
    return Run(desk_fleet())


def test_the_first_screen_says_that_nothing_is_wrong_and_since_when(run: Run) -> None:
    run.seconds(10)
    run.now += 0.5
    said = run.ask("overview")
    assert said["verdict"] == {"level": "ok", "parts": [], "receivers": 14, "calm_since": 1001.0 + WALL}
    assert said["ranking"] == []
    assert (said["totals"]["hosts"], said["totals"]["processes"], said["totals"]["sources"]) == (7, 9, 3)
    assert said["totals"]["rates"]["messages"] == pytest.approx(5 * 42_000 + 3 * 140 + 5 * 2_600 + 42_000, rel=0.01)


def test_who_is_connected_to_whom(run: Run) -> None:
    run.seconds(3)
    drawn = run.ask("overview")["topology"]
    names = {each["id"]: each["name"] for each in [*drawn["senders"], *drawn["receivers"]]}
    into = {(names[each["from"]], each["to"]) for each in drawn["links"] if each["side"] == "send"}
    out = {(each["from"], names[each["to"]]) for each in drawn["links"] if each["side"] == "receive"}
    assert into == {(each.application, session) for each in run.fleet.senders for session in each.sessions}
    assert out == {(session, each.application) for each in run.fleet.receivers for session in each.sessions}
    topics = {each["name"]: each["topics"] for each in drawn["sessions"]}
    assert topics[LBTRM.format(5)] == ["prices.equities"]


def test_s4_a_receiver_that_loses_is_named_and_no_other(run: Run) -> None:
    run.seconds(5)
    run.fleet.receivers[1].loss = 0.01
    run.seconds(3)
    said = run.ask("overview")
    (row,) = said["ranking"]
    assert (row["application"], row["host"], row["pid"]) == ("pricer", "10.1.2.11", 812)
    assert row["topics"] == ["prices.equities"]
    assert row["since"] == 1006.0 + WALL and row["missed"] == pytest.approx(420, rel=0.01)
    assert [part["who"] for part in said["verdict"]["parts"]] == ["pricer on 10.1.2.11"]
    bad = [each for each in said["topology"]["links"] if each["level"] != "ok"]
    assert [each["from"] for each in bad] == [LBTRM.format(5)]
    assert any(each["kind"] == "loss" and each["who"] == "pricer on 10.1.2.11" for each in said["events"])


def test_lines_of_logs_and_changes_of_interfaces_are_events_with_a_filter(run: Run) -> None:
    run.seconds(2)
    process = run.watch.fleet.processes()[0]
    about = Attributes(process.host, 0, process.application, process_id=process.process_id)
    lines = (LogLine(1, 5, "Core-1-1: a buffer is small"), LogLine(2, 5, "Core-9030-1: interface eth0 is down"))
    run.watch.add(LogRecord(about, lines), run.now, process.host)
    filtered = {kind: run.ask("events", "", kind)["events"] for kind in EVENT_KINDS}
    assert [(each["text"], each["level"]) for each in filtered["log"]] == [("Core-1-1: a buffer is small", "warn")]
    assert [each["text"] for each in filtered["interface"]] == ["Core-9030-1: interface eth0 is down"]
    assert len(filtered[""]) > len(filtered["process"]) > 0 and filtered["loss"] == []
    assert [each["text"] for each in run.ask("events", "eth0", "")["events"]] == [lines[1].text]
    shown = [each["text"] for each in run.ask("overview")["events"]]
    assert {line.text for line in lines} <= set(shown), "lines of different words are not one event"
    there = run.ask("object", process.link)["events"]
    assert {line.text for line in lines} <= {each["text"] for each in there}


def test_trouble_keeps_its_beginning_and_ends(run: Run) -> None:
    run.seconds(2)
    run.fleet.receivers[0].loss = 0.02
    run.seconds(20)
    first = run.ask("overview")["ranking"][0]["since"]
    assert first == 1003.0 + WALL
    run.fleet.receivers[0].loss = 0.0
    run.seconds(200)
    said = run.ask("overview")
    assert said["verdict"]["level"] == "ok" and said["verdict"]["calm_since"] > first


def test_s4_a_stopped_process_comes_first_with_its_topics(run: Run) -> None:
    run.fleet.receivers[1].loss = 0.3
    run.seconds(5)
    run.fleet.receivers[3].stopped = True
    run.seconds(5)
    said = run.ask("overview")
    row = said["ranking"][0]
    assert (row["level"], row["application"], row["host"], row["pid"]) == ("silent", "algo-1", "10.1.2.13", 3001)
    assert row["topics"] == ["orders.accepted", "prices.equities"]
    assert row["since"] == 1005.0 + WALL
    assert said["verdict"]["parts"][0]["who"] == "algo-1 on 10.1.2.13"
    assert [each["application"] for each in said["ranking"]].count("algo-1") == 1


def test_queues_and_tcp_sources_that_are_waited_for(run: Run) -> None:
    run.seconds(2)
    run.fleet.receivers[4].waiting = 5_000
    run.fleet.senders[2].buffered = 3_000_000
    run.seconds(2)
    rows = run.ask("overview")["ranking"]
    assert {(each["kind"], each["application"], each["level"]) for each in rows} == {
        ("event_queue", "algo-2", "waits"),
        ("source", "order-gateway", "waits"),
    }


def test_every_object_has_a_link_that_stays(run: Run) -> None:
    run.seconds(3)
    other = Run(desk_fleet())
    other.now = 5000.0
    other.seconds(2)
    links = set()
    for kind in ("host", "process", "context", "source", "receiver", "event_queue", "topic"):
        rows = run.ask("objects", kind, "", "level", "1")["list"]["rows"]
        assert rows, kind
        for row in rows:
            assert run.ask("object", row["id"])["object"]["id"] == row["id"]
            assert other.maybe("object", row["id"]) is not None, row
            links.add(row["id"])
    assert len(links) == len(run.watch.fleet) + 9 + 7
    assert run.maybe("object", "0123456789abcdef") is None


def test_an_object_that_is_gone_keeps_its_link_and_its_hour(run: Run) -> None:
    run.seconds(30)
    (row,) = run.ask("objects", "receiver", "pricer", "level", "1")["list"]["rows"]
    run.fleet.receivers[1].stopped = True
    run.seconds(120)
    said = run.ask("object", row["id"])
    assert said["object"]["level"] == "gone" and said["object"]["last_seen"] == 1030.0 + WALL
    assert said["history"]["series"][0]["values"][0] == pytest.approx(42_000, rel=0.01)


def test_an_object_shows_whom_it_is_connected_to_and_its_numbers(run: Run) -> None:
    run.seconds(12)
    (row,) = run.ask("objects", "source", "equities", "level", "1")["list"]["rows"]
    said = run.ask("object", row["id"])
    (received,) = said["related"]
    assert received["title"] == "Received by" and len(received["rows"]) == 6
    numbers = {name: (value, rate) for name, value, rate in said["numbers"]}
    assert numbers["msgs_sent"][1] == pytest.approx(42_000, rel=0.01) and numbers["txw_bytes"] == (8_000_000, None)
    assert [path["name"] for path in said["object"]["path"]] == ["10.1.1.5", "feed-equities"]


def test_search_finds_by_host_process_topic_and_session(run: Run) -> None:
    run.seconds(2)

    def count(text: str, kind: str = "") -> int:
        return int(run.ask("objects", kind, text, "level", "1")["list"]["count"])

    assert count("10.1.2.13 algo-1", "process") == 1
    assert count("news.headlines", "receiver") == 3
    assert count("224.9.1.5", "receiver") == 6
    assert count("no such thing") == 0
    assert count("surveillance prices", "topic") == 1


def test_lists_are_sorted_and_paged() -> None:
    run = Run(crowd(60))
    run.seconds(3)
    first = run.ask("objects", "receiver", "", "rate", "1")["list"]
    assert (first["count"], first["pages"], len(first["rows"])) == (240, 3, 100)
    assert len(run.ask("objects", "receiver", "", "rate", "3")["list"]["rows"]) == 40
    assert run.ask("objects", "receiver", "", "rate", "4")["list"]["rows"] == []


# ---- history ----


def test_the_last_hour_and_no_more(run: Run) -> None:
    run.watch.history = type(run.watch.history)(100)
    run.seconds(int(HOUR) + 600)
    hour = run.ask("overview")["history"]
    assert len(hour["t"]) == HOUR / STEP
    assert hour["t"][-1] - hour["t"][0] == HOUR - STEP and run.now + WALL - hour["t"][-1] < 2 * STEP
    assert all(each == pytest.approx(265_420, rel=0.001) for each in hour["series"][0]["values"])


def test_a_burst_of_losses_between_two_looks_is_in_the_history(run: Run) -> None:
    run.seconds(20)
    run.fleet.receivers[1].loss = 0.5
    run.seconds(1)
    run.fleet.receivers[1].loss = 0.0
    run.seconds(30)
    hour = run.ask("overview")["history"]
    missed = next(each for each in hour["series"] if each["title"] == "missed")
    assert sum(missed["values"]) * STEP == pytest.approx(21_000, rel=0.02)


def test_the_history_has_a_bound_and_uses_what_is_gone_again() -> None:
    run = Run(crowd(40), Settings(history_objects=100))
    run.seconds(30)
    history = run.watch.history
    size = history.nbytes
    assert len(history) <= 128 and history.refused > 0
    for turn in range(20):  # others come, those before go
        for each in run.fleet.receivers:
            each.process_id += 1000
            each.application = f"{each.application}-{turn}"
        run.seconds(70)
    assert history.nbytes == size and len(history) <= 128
    assert len(run.watch.departed) <= 2_000


# ---- strangers ----


def test_names_of_strangers_leave_as_they_came_and_bounded(run: Run) -> None:
    name = "<script>alert(1)</script>" + "x" * 10_000
    attributes = Attributes("10.9.9.9", 0, name, 1, 2, False, "\x00\u2028")
    run.watch.add(ReceiverRecord(attributes, "tcp", name, {"bytes_rcved": 1 << 64}), run.now, "6.6.6.6")
    run.watch.add(TopicRecord(attributes, name, ()), run.now, "6.6.6.6")
    run.watch.add(EventQueueRecord(attributes, {"events": 1 << 63}), run.now, "6.6.6.6")
    run.seconds(12)
    assert len(json.dumps(run.ask("overview"))) < 100_000
    for row in run.ask("objects", "", "script", "level", "1")["list"]["rows"]:
        run.ask("object", row["id"])


def test_a_million_forged_objects_are_bounded_here_too() -> None:
    run = Run(desk_fleet(), Settings(history_objects=200), Limits(objects=500, processes=50, objects_per_origin=400))
    run.seconds(2)
    for number in range(20_000):
        attributes = Attributes(f"10.{number % 250}.0.1", 0, f"forged {number}", number, number, False, f"{number:x}")
        run.watch.add(
            ReceiverRecord(attributes, "tcp", f"TCP:1.2.3.4:{number}", {"bytes_rcved": 1}), run.now, "6.6.6.6"
        )
    run.seconds(10)
    assert len(run.watch.fleet) <= 500 and len(run.watch.history) <= 256
    assert run.ask("overview")["totals"]["refused_processes"] > 10_000


# ---- 10,000 objects ----


def test_ten_thousand_objects_are_kept_in_virtual_time() -> None:
    run = Run(crowd(1_000))
    run.seconds(6)
    run.fleet.receivers[617].stopped = True
    run.seconds(6)
    said = run.ask("overview")
    assert (
        said["totals"]["contexts"] == 1_040
        and sum(said["totals"][kind] for kind in ("contexts", "sources", "receivers", "topics", "event_queues"))
        == 1_040 + 40 + 4_000 + 4_000 + 1_000
    )
    assert said["verdict"]["parts"][0]["who"] == "app-617 on 10.1.5.18"
    assert len(said["topology"]["sessions"]) == 12 and said["topology"]["left_out"]["sessions"] == 28
    assert "app-617" in {each["name"] for each in said["topology"]["receivers"]}
    assert len(json.dumps(said)) < 100_000


# ---- rates of requests ----


def test_buckets_let_bursts_through_and_no_more() -> None:
    buckets = Buckets(10, 20)
    assert sum(buckets.take("10.0.0.1", 0.0) for _ in range(100)) == 20
    assert sum(buckets.take("10.0.0.1", 1.0) for _ in range(100)) == 10
    assert buckets.take("10.0.0.2", 1.0)
    for number in range(5_000):
        buckets.take(f"10.1.{number // 250}.{number % 250}", 1.0)
    assert len(buckets) == ADDRESSES
