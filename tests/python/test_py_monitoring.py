"""Monitoring records over the topic of statistics, received in Python."""

from __future__ import annotations

import asyncio

from monitoring_records import one_of_each

from um_cffi import Context, Source
from um_cffi.monitoring import TOPIC, Arrival, Monitor, encode
from um_cffi.monitoring.fleet import Fleet

EACH = one_of_each()
LOCAL = {"default_interface": "127.0.0.1"}


def test_records_come_by_the_topic_of_statistics() -> None:
    with Context(options=LOCAL) as ctx, Monitor(ctx) as monitor, Source(ctx, TOPIC) as source:
        source.wait_receivers(timeout=60)
        for each in EACH:
            source.send(encode(each, "pb"))
        source.send(b"garbage", flush=True)
        found: list[Arrival] = []
        while len(found) < len(EACH):
            found += monitor.poll(timeout=60)
        assert [each.record for each in found] == EACH
        assert {each.origin for each in found} == {"127.0.0.1"}
        while monitor.counts().packets < len(EACH) + 1:
            monitor.poll(timeout=60)
        assert monitor.counts().malformed["short"] == 1 and monitor.counts().dropped == 0


def test_records_come_by_a_pattern_and_on_an_event_loop() -> None:
    async def both() -> list[Arrival]:
        with (
            Context(options=LOCAL) as ctx,
            Monitor(ctx, pattern="^/mine/.*") as monitor,
            Source(ctx, "/mine/a") as source,
        ):
            waiting = asyncio.ensure_future(monitor.apoll(60))
            await source.await_receivers(timeout=60)
            source.send(encode(EACH[0]), flush=True)
            return await waiting

    assert [each.record for each in asyncio.run(both())] == [EACH[0]]


def test_a_fleet_is_made_of_what_comes() -> None:
    fleet = Fleet()
    with Context(options=LOCAL) as ctx, Monitor(ctx) as monitor, Source(ctx, TOPIC) as source:
        source.wait_receivers(timeout=60)
        for each in EACH:
            source.send(encode(each), flush=True)
        while fleet.counts.records < len(EACH):
            for arrival in monitor.poll(timeout=60):
                fleet.add(arrival.record, now=0.0, origin=arrival.origin)
    assert (fleet.summary()["processes"], len(fleet)) == (1, 6), "one of each kind, as the session is the same"
