"""Monitoring records over the topic of statistics, received in Python."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from monitoring_records import one_of_each
from pairs import HANG, until

from um_cffi import Context, InvalidArgument, Receiver, Source, config
from um_cffi.monitoring import (
    TOPIC,
    Arrival,
    ContextRecord,
    Monitor,
    ReceiverRecord,
    Record,
    SourceRecord,
    encode,
    publish,
)
from um_cffi.monitoring.fleet import Fleet

EACH = one_of_each()
# Where networks cannot be made, other runs share this one: by a port of its own topics of the same name are not theirs.
RESOLVER_PORT = 20_000 + os.getpid() % 10_000
LOCAL = {"default_interface": "127.0.0.1", "resolver_multicast_port": RESOLVER_PORT}


def test_records_come_by_the_topic_of_statistics() -> None:
    with Context(options=LOCAL) as ctx, Monitor(ctx) as monitor, Source(ctx, TOPIC) as source:
        source.wait_receivers(timeout=HANG)
        for each in EACH:
            source.send(encode(each, "pb"))
        source.send(b"garbage", flush=True)
        found: list[Arrival] = []
        while len(found) < len(EACH):
            found += monitor.poll(timeout=HANG)
        assert [each.record for each in found] == EACH
        assert {each.origin for each in found} == {"127.0.0.1"}
        while monitor.counts().packets < len(EACH) + 1:
            monitor.poll(timeout=HANG)
        assert monitor.counts().malformed["short"] == 1 and monitor.counts().dropped == 0


def test_records_come_by_a_pattern_and_on_an_event_loop() -> None:
    async def both() -> list[Arrival]:
        with (
            Context(options=LOCAL) as ctx,
            Monitor(ctx, pattern="^/mine/.*") as monitor,
            Source(ctx, "/mine/a") as source,
        ):
            waiting = asyncio.ensure_future(monitor.apoll(HANG))
            await source.await_receivers(timeout=HANG)
            source.send(encode(EACH[0]), flush=True)
            return await waiting

    assert [each.record for each in asyncio.run(both())] == [EACH[0]]


def test_a_fleet_is_made_of_what_comes() -> None:
    fleet = Fleet()
    with Context(options=LOCAL) as ctx, Monitor(ctx) as monitor, Source(ctx, TOPIC) as source:
        source.wait_receivers(timeout=HANG)
        for each in EACH:
            source.send(encode(each), flush=True)
        while fleet.counts.records < len(EACH):
            for arrival in monitor.poll(timeout=HANG):
                fleet.add(arrival.record, now=0.0, origin=arrival.origin)
    assert (fleet.summary()["processes"], len(fleet)) == (1, 6), "one of each kind, as the session is the same"


# ---- the sending side is the library's ----

PLACE = f"context|default_interface=127.0.0.1;context|resolver_multicast_port={RESOLVER_PORT}"


def until_all(monitor: Monitor, kinds: set[type]) -> dict[type, Record]:
    """The last record of each of these kinds, when there is one of each."""
    found: dict[type, Record] = {}
    while not kinds <= set(found):
        for arrival in monitor.poll(timeout=HANG):
            found[type(arrival.record)] = arrival.record
    return found


@pytest.mark.parametrize("form", ["csv", "pb"])
@pytest.mark.parametrize("transport", ["lbm", "udp"])
def test_what_a_context_publishes_is_what_it_has_counted(form: Any, transport: Any) -> None:
    with Context(options=LOCAL) as ctx, Source(ctx, "prices") as source, Receiver(ctx, "prices") as receiver:
        source.wait_receivers(timeout=HANG)
        for _ in range(10):
            source.send(b"x", flush=True)
        until(lambda: receiver.counts().delivered == 10)
        with Context(options=LOCAL) as other, contextlib.ExitStack() as stack:
            monitor = stack.enter_context(Monitor(other) if transport == "lbm" else Monitor(udp=":0"))
            port = monitor.address.rpartition(":")[2]
            options = PLACE if transport == "lbm" else f"address=127.0.0.1;port={port}"
            publisher = publish(
                ctx, 1, application="orders", format=form, transport=transport, transport_options=options
            )
            found: dict[type, Record] = {}

            def told_what_it_has_counted() -> bool:  # a packet of the transport may come between
                found.update(until_all(monitor, {ContextRecord, SourceRecord, ReceiverRecord}))
                (theirs,) = receiver.stats()
                ours, told, about = source.stats(), found[ReceiverRecord], found[SourceRecord]
                assert isinstance(told, ReceiverRecord) and told.transport == "tcp" and told.source == theirs.source
                assert isinstance(about, SourceRecord)
                return told.values == {name: getattr(theirs, name) for name in told.values} and about.values == {
                    name: getattr(ours, name) for name in about.values
                }

            until(told_what_it_has_counted)
            assert {(each.attributes.application, each.attributes.process_id) for each in found.values()} == {
                ("orders", os.getpid())
            }
            context = found[ContextRecord]
            assert isinstance(context, ContextRecord) and context.values["tr_src_topics"] == 1
            assert len({each.attributes.context_instance for each in found.values()}) == 1
            assert publisher.context is ctx
            until(lambda: publisher.counts().packets >= 3)  # they are counted when they have been sent
            assert sum(monitor.counts().malformed.values()) == 0
            publisher.close()
            with pytest.raises(InvalidArgument):
                publisher.sample()


def test_records_on_demand_and_a_context_that_closes_its_publisher() -> None:
    with Monitor(udp=":0") as monitor:
        ctx = Context(options=LOCAL)
        port = monitor.address.rpartition(":")[2]
        publisher = publish(ctx, 0, transport="udp", transport_options=f"address=127.0.0.1;port={port}")
        assert monitor.poll(timeout=0.2) == []
        publisher.sample()
        until_all(monitor, {ContextRecord})
        ctx.close()
        with pytest.raises(InvalidArgument):
            publisher.sample()


def test_records_by_the_options_of_a_context_alone() -> None:
    """Topics come from receivers with an interval; the monitoring context has its own interface."""
    monitored = {
        **LOCAL,
        "monitor_interval": 1,
        "monitor_appid": "alone",
        "monitor_transport_opts": PLACE,
    }
    fleet = Fleet()
    with contextlib.ExitStack() as stack:
        monitor = stack.enter_context(Monitor(stack.enter_context(Context(options=LOCAL))))
        ctx = stack.enter_context(Context(options=monitored))
        source = stack.enter_context(Source(ctx, "prices"))
        stack.enter_context(Receiver(ctx, "prices", monitor_interval=1))
        source.wait_receivers(timeout=HANG)
        while not any(fleet.topics(each) for each in fleet.objects("receiver")):
            for arrival in monitor.poll(timeout=HANG):
                fleet.add(arrival.record, now=0.0, origin=arrival.origin)
    (receiver,) = fleet.objects("receiver")
    assert fleet.topics(receiver) == ("prices",) and receiver.application == "alone"
    assert fleet.receivers_of(fleet.objects("source")[0]) == [receiver]


def test_what_the_library_logs_comes_with_the_records_and_is_an_event(tmp_path: Path) -> None:
    """Also what it logged before: here that a file has an option which does not exist."""
    (tmp_path / "um.cfg").write_text("context nothing_of_the_kind 1\n")
    fleet = Fleet()
    with Context(options=LOCAL) as ctx, Monitor(udp=":0") as monitor:
        with contextlib.suppress(InvalidArgument):
            config.load(tmp_path / "um.cfg")
        port = monitor.address.rpartition(":")[2]
        publish(ctx, 1, application="logs", transport="udp", transport_options=f"address=127.0.0.1;port={port}")
        while not any("nothing_of_the_kind" in each.text for each in fleet.events()):
            for arrival in monitor.poll(timeout=HANG):
                fleet.add(arrival.record, now=0.0, origin=arrival.origin)
    event = next(each for each in fleet.events() if "nothing_of_the_kind" in each.text)
    assert event.kind in ("log_warning", "log_notice", "log_error") and event.line
    assert (event.application, event.process_id) == ("logs", os.getpid())


@pytest.mark.parametrize(
    "wrong", [{"interval": -1}, {"interval": 1.5}, {"interval": True}, {"format": "xml"}, {"transport": "smoke"}]
)
def test_what_cannot_be_published_is_refused(wrong: dict[str, Any]) -> None:
    with Context(options=LOCAL) as ctx, pytest.raises(InvalidArgument, match="publish"):
        publish(ctx, **wrong)
