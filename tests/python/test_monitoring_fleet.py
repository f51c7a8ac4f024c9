"""The model of a fleet, in virtual time: records in, questions answered, nothing without bound."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Mapping

from um_cffi.monitoring import (
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
from um_cffi.monitoring.fleet import KINDS, Fleet, Limits

SESSION = "LBTRM:10.0.0.1:14400:a1b2c3d4:224.1.1.1:14400"


def who(process: int = 1, application: str = "app", host: str = "10.0.0.2", **other: object) -> Attributes:
    return Attributes(host=host, application=application, process_id=process, context_instance="00ff", **other)  # type: ignore[arg-type]


def receiver(process: int = 1, source: str = SESSION, **values: int) -> ReceiverRecord:
    return ReceiverRecord(who(process), "lbtrm", source, values)


def kinds(fleet: Fleet) -> list[str]:
    return [event.kind for event in fleet.events()]


def test_an_object_has_its_last_numbers_and_their_rates() -> None:
    fleet = Fleet()
    for at in range(3):
        found = fleet.add(receiver(lost=10 * at, msgs_rcved=1000 * at), now=float(2 * at))
    assert found is not None
    assert (found.value("msgs_rcved"), found.rate("msgs_rcved"), found.rate("lost")) == (2000, 500.0, 5.0)
    assert found.values["naks_sent"] == 0 and found.rates["msgs_rcved"] == 500.0
    assert "nak_stm_mean" not in found.rates, "a level has no rate"
    assert fleet.get(found.link) is found and fleet.process(found.process.link) is found.process
    assert fleet.objects("receiver") == [found] and fleet.objects("source") == []


def test_a_counter_that_fell_was_reset() -> None:
    fleet = Fleet()
    for at, lost in enumerate((50, 60, 4)):
        found = fleet.add(receiver(lost=lost), now=float(at))
    assert found is not None and found.rate("lost") == 4.0


def test_records_in_quick_succession_make_no_wild_rate() -> None:
    fleet = Fleet()
    fleet.add(receiver(msgs_rcved=0), now=0.0)
    fleet.add(receiver(msgs_rcved=100), now=1.0)
    found = fleet.add(receiver(msgs_rcved=110), now=1.001)
    assert found is not None and found.value("msgs_rcved") == 110 and found.rate("msgs_rcved") <= 110


def test_a_link_is_the_same_in_every_process_that_watches() -> None:
    links = {Fleet().add(receiver(), now=float(at)).link for at in range(2)}  # type: ignore[union-attr]
    assert links == {"787509b7a5b74e90"}


def test_topics_of_a_receiver_and_of_a_source_come_from_topic_records() -> None:
    fleet = Fleet()
    fleet.add(TopicRecord(who(), "prices", (TopicState(f"{SESSION}[77]"),)), now=0.0)
    fleet.add(TopicRecord(who(2), "trades", (TopicState(f"{SESSION}[78]"),)), now=0.0)
    mine = fleet.add(receiver(), now=0.0)
    source = fleet.add(SourceRecord(who(9), "lbtrm", SESSION, {}), now=0.0)
    assert mine is not None and source is not None
    assert fleet.topics(mine) == ("prices",)
    assert fleet.topics(source) == ("prices", "trades")
    assert fleet.receivers_of(source) == [mine]
    assert [each.kind for each in fleet.find("prices 10.0.0.2")] == ["topic", "receiver", "source"]
    assert fleet.find("source 10.0.0.2 trades") == [source]
    assert fleet.find("prices elsewhere") == []


def test_a_source_that_a_topic_record_calls_deleted_is_told_once() -> None:
    fleet = Fleet()
    fleet.add(TopicRecord(who(), "prices", (TopicState(SESSION),)), now=0.0)
    for at in (1.0, 2.0):
        fleet.add(TopicRecord(who(), "prices", (TopicState(SESSION, state="deleted"),)), now=at)
    gone = [event for event in fleet.events() if event.kind == "source_gone"]
    assert len(gone) == 1 and gone[0].topics == ("prices",) and SESSION in gone[0].text


def test_loss_is_an_event_with_place_topic_and_amount() -> None:
    fleet = Fleet()
    fleet.add(TopicRecord(who(), "prices", (TopicState(SESSION),)), now=0.0)
    fleet.add(receiver(lost=5), now=0.0)
    fleet.add(receiver(lost=12, unrecovered_tmo=1), now=1.0)
    loss = [event for event in fleet.events() if event.kind in ("loss", "unrecovered")]
    assert [(each.kind, each.amount) for each in loss] == [("loss", 7), ("unrecovered", 1)]
    assert loss[0].host == "10.0.0.2" and loss[0].application == "app" and loss[0].topics == ("prices",)
    assert fleet.get(loss[0].link) is not None


def test_what_was_lost_before_the_first_record_is_no_event() -> None:
    fleet = Fleet()
    fleet.add(receiver(lost=5), now=0.0)
    assert kinds(fleet) == ["process_started"]


def test_loss_that_goes_on_is_told_every_five_seconds() -> None:
    fleet = Fleet()
    for at in range(13):
        fleet.add(receiver(lost=at), now=float(at))
        fleet.expire(float(at))
    assert kinds(fleet).count("loss") == 3


def test_s4_a_stopped_process_is_silent_within_five_seconds_and_ranked_first() -> None:
    fleet = Fleet()
    for at in range(10):
        for process in range(1, 6):
            if process != 3 or at < 5:
                fleet.add(receiver(process, naks_sent=at if process == 2 else 0), now=float(at))
        fleet.expire(float(at))
        if at == 4 + 4:
            break
    silent = [event for event in fleet.events() if event.kind == "process_silent"]
    assert [event.process_id for event in silent] == [3]
    assert silent[0].time - 4.0 < 5.0
    ranking = fleet.slow_receivers()
    assert [each.object.process_id for each in ranking] == [3, 2]
    assert ranking[0].reasons[0] == "its process is silent"


def test_s4_loss_on_one_link_names_that_receiver_and_no_other() -> None:
    fleet = Fleet()
    for at in range(20):
        for process in range(1, 6):
            fleet.add(receiver(process, lost=at * 3 if process == 4 else 0), now=float(at))
    assert [each.object.process_id for each in fleet.slow_receivers()] == [4]
    assert {event.process_id for event in fleet.events() if event.kind == "loss"} == {4}


def test_trouble_that_is_over_leaves_the_ranking() -> None:
    fleet = Fleet()
    for at in range(200):
        fleet.add(receiver(lost=min(at, 3)), now=float(at))
        if at == 5:
            assert fleet.slow_receivers()
    assert fleet.slow_receivers() == []


def test_waiting_events_and_bytes_are_in_the_ranking() -> None:
    fleet = Fleet()
    fleet.add(EventQueueRecord(who(), {"events": 5000}), now=0.0)
    fleet.add(SourceRecord(who(2), "tcp", "TCP:1", {"bytes_buffered": 9_000_000, "num_clients": 3}), now=0.0)
    kinds = {each.object.kind: each.reasons[0] for each in fleet.slow_receivers()}
    assert kinds == {"event_queue": "5000 events wait", "source": "9,000 kB wait for its 3 clients"}


def test_a_process_is_silent_back_gone_and_restarted() -> None:
    fleet = Fleet()
    for at in (0.0, 1.0, 2.0):
        fleet.add(receiver(), now=at)
    fleet.expire(6.0)
    assert fleet.processes()[0].silent
    fleet.add(receiver(), now=7.0)
    assert not fleet.processes()[0].silent
    fleet.expire(100.0)
    assert len(fleet) == 0 and fleet.processes() == []
    fleet.add(receiver(2), now=110.0)
    expected = ["process_started", "process_silent", "process_back", "process_silent", "process_gone"]
    assert kinds(fleet) == [*expected, "process_restarted"]
    assert set(kinds(fleet)) <= set(KINDS)


def test_a_process_that_came_before_the_old_one_was_missed_is_a_restart_too() -> None:
    fleet = Fleet()
    for at in (0.0, 1.0, 2.0):
        fleet.add(receiver(1), now=at)
    for at in (2.5, 3.5, 4.5, 5.5):
        fleet.add(receiver(2), now=at)
    fleet.expire(6.0)
    assert kinds(fleet) == ["process_started", "process_started", "process_silent", "process_restarted"]
    assert fleet.events()[-1].process_id == 2


def test_slow_intervals_are_no_silence() -> None:
    fleet = Fleet()
    for at in range(0, 100, 10):
        fleet.add(receiver(), now=float(at))
        fleet.expire(at + 9.0)
    assert kinds(fleet) == ["process_started"]


def test_all_kinds_of_objects_are_counted() -> None:
    fleet = Fleet()
    records: list[Record] = [
        receiver(),
        SourceRecord(who(), "tcp", "TCP:1", {}),
        ContextRecord(who(), {}),
        EventQueueRecord(who(), {}),
        TopicRecord(who(), "t", ()),
        WildcardRecord(who(), "t.*", "regex"),
    ]
    for record in records:
        assert fleet.add(record, now=0.0) is not None
    summary = fleet.summary()
    assert {summary[f"{kind}s"] for kind in ("receiver", "source", "context", "event_queue", "topic", "wildcard")} == {
        1
    }
    assert fleet.objects("wildcard")[0].pattern_type == "regex"
    assert fleet.processes()[0].contexts == ["00ff"]


# ---- lines of logs ----

UNSTABLE = "Core-9030-1: interface eth0 is down: nothing passes until it is up again"


def log(*lines: LogLine, process: int = 1) -> LogRecord:
    return LogRecord(who(process, timestamp=1000), lines)


def test_lines_of_a_log_are_events_of_their_process_at_their_time() -> None:
    fleet = Fleet()
    fleet.add(receiver(), now=100.0)
    lines = (
        LogLine(1, 5, "Core-5688-3274: buffer", 998, 0),
        LogLine(2, 5, UNSTABLE, 1000, 0),
        LogLine(3, 3, "Core-1-1: x", 1000, 0),
        LogLine(4, 6, "Core-9030-2: interface eth0 is up again", 1000, 0),
        LogLine(5, 6, "Core-2-2: y", 1, 0),
    )
    assert fleet.add(log(*lines), now=100.0) is None
    told = fleet.events()[1:]
    assert [each.kind for each in told] == [
        "log_warning",
        "interface_change",
        "log_error",
        "interface_change",
        "log_notice",
    ]
    assert [each.time for each in told] == [98.0, 100.0, 100.0, 100.0, 100.0 - fleet.limits.line_age + 2600.0 + 1.0]
    assert {(each.host, each.application, each.process_id) for each in told} == {("10.0.0.2", "app", 1)}
    assert {each.link for each in told} == {fleet.processes()[0].link} and set(kinds(fleet)) <= set(KINDS)


def test_lines_that_two_controllers_of_a_process_tell_are_told_once() -> None:
    fleet = Fleet()
    fleet.add(receiver(), now=0.0)
    first, second = LogLine(7, 5, "Core-1-1: a"), LogLine(8, 5, "Core-1-1: b")
    for record in (log(first), log(first, second), log(first)):
        fleet.add(record, now=1.0)
    assert [each.text for each in fleet.events()[1:]] == ["Core-1-1: a", "Core-1-1: b"]


def test_lines_that_come_over_two_transports_are_told_once() -> None:
    fleet = Fleet()
    fleet.add(receiver(), now=0.0, origin="one")
    fleet.add(log(LogLine(1, 5, "Core-1-1: a"), LogLine(2, 5, "Core-1-1: b")), now=0.0, origin="one")
    later = [LogLine(1, 5, "Core-1-1: a"), LogLine(2, 5, "Core-1-1: b"), LogLine(3, 5, "Core-1-1: a")]
    fleet.add(log(*later), now=1000.0, origin="other")
    assert [each.text for each in fleet.events() if each.line] == ["Core-1-1: a", "Core-1-1: b", "Core-1-1: a"]


def test_x4_a_forged_number_of_a_line_silences_nobody() -> None:
    fleet = Fleet()
    fleet.add(receiver(), now=0.0, origin="its own")
    for stranger in range(20):
        fleet.add(log(LogLine(2**64 - 1, 5, f"forged {stranger}")), now=0.0, origin=f"{stranger}")
    fleet.add(log(LogLine(1, 5, "genuine")), now=0.0, origin="its own")
    assert fleet.events()[-1].text == "genuine"
    assert len(fleet.processes()[0].last_lines) == 4


def test_x4_lines_of_strangers_are_few_short_and_counted() -> None:
    fleet = Fleet()
    fleet.add(log(LogLine(1, 5, "of nobody"), process=9), now=0.0)
    assert fleet.events() == [] and fleet.counts.refused_lines == 1 and len(fleet.processes()) == 0
    for process in (1, 2):
        fleet.add(receiver(process), now=0.0, origin=f"{process}")
    flood = tuple(LogLine(number, 5, f"{number} " + "x" * 5000) for number in range(1, 2001))
    fleet.add(log(*flood), now=0.0, origin="1")
    lines = [each for each in fleet.events() if each.line]
    assert len(lines) == 2 * fleet.limits.lines_per_origin and max(len(each.text) for each in lines) == 512
    assert fleet.counts.refused_lines == 1 + 2000 - len(lines)
    fleet.add(log(LogLine(1, 5, "of the other"), process=2), now=0.0, origin="2")
    assert fleet.events()[-1].text == "of the other"


# ---- strangers ----


def stranger(number: int, values: Mapping[str, int] | None = None) -> ReceiverRecord:
    return ReceiverRecord(who(number, f"a{number}", f"h{number}"), "lbtrm", "x" * 5000 + str(number), values or {})


def test_x4_one_stranger_cannot_take_the_room_of_others() -> None:
    fleet = Fleet(Limits(objects=100, objects_per_origin=60, processes=80, processes_per_origin=70))
    for number in range(1000):
        fleet.add(stranger(number), now=0.0, origin="stranger")
    assert len(fleet) == 60 and fleet.counts.refused_origin == 940
    assert fleet.add(receiver(), now=0.0, origin="known") is not None
    for number in range(1000, 2000):
        fleet.add(stranger(number), now=0.0, origin=f"stranger {number}")
    assert len(fleet) == 80 and fleet.counts.refused_processes == 981
    fleet.expire(1000.0)
    assert len(fleet) == 0 and fleet.add(stranger(1), now=1000.0, origin="stranger") is not None


def test_x4_one_stranger_cannot_invent_all_processes() -> None:
    fleet = Fleet(Limits(processes=80, processes_per_origin=70))
    for number in range(1000):
        fleet.add(stranger(number), now=0.0, origin="stranger")
    assert len(fleet.processes()) == 70 and fleet.counts.refused_processes == 930
    assert fleet.add(receiver(), now=0.0, origin="known") is not None


def test_texts_of_strangers_are_cut() -> None:
    fleet = Fleet()
    found = fleet.add(stranger(1), now=0.0)
    assert found is not None and len(found.source) == 256 and fleet.counts.cut_texts == 1


def test_x4_memory_is_flat_over_an_hour_of_churn_in_virtual_time() -> None:
    """Contexts come and go, forged ones among them; what is kept after each ten minutes is the same."""
    fleet = Fleet(Limits(objects=500, objects_per_origin=400, processes=100, expire_after=20.0))
    chance = random.Random(7)
    sizes = []
    tracemalloc.start()
    try:
        for second in range(3600):
            for _ in range(6):
                number = second // 30 * 10 + chance.randrange(10)
                topic = TopicState(f"{SESSION}:{number}[{second}]")
                fleet.add(stranger(number, {"lost": second}), float(second), f"o{number % 7}")
                fleet.add(TopicRecord(who(number), f"topic {number}", (topic,)), float(second), f"o{number % 7}")
            fleet.expire(float(second))
            if second % 600 == 599:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert fleet.counts.objects_expired > 1000
    assert max(sizes[1:]) - sizes[1] < 1 << 20, sizes
    fleet.expire(10_000.0)
    assert (
        not fleet._sessions
        and not fleet._origins
        and not fleet._process_origins
        and not fleet._links
        and not fleet._process_links
    )
