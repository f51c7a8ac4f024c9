"""Monitoring records received as datagrams, let in by rates, and as batches of Arrow."""

from __future__ import annotations

import asyncio
import socket

import pytest
from monitoring_records import SESSION, WHO, one_of_each

from um_cffi import InvalidArgument
from um_cffi.monitoring import Arrival, Monitor, Rates, TopicRecord, TopicState, decode, encode, to_arrow
from um_cffi.monitoring._gate import ORIGINS, Gate
from um_cffi.monitoring._receiving import host_of

EACH = one_of_each()


def send(monitor: Monitor, *packets: bytes) -> None:
    host, _, port = monitor.address.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for packet in packets:
            sender.sendto(packet, (host, int(port)))


def test_datagrams_become_records_with_their_hosts() -> None:
    with Monitor(udp=":0") as monitor:
        send(monitor, *[encode(each, form) for each in EACH for form in ("csv", "pb")], b"nothing of ours")
        found: list[Arrival] = []
        while len(found) < 2 * len(EACH):
            found += monitor.poll(timeout=60)
        assert [each.record for each in found] == [each for each in EACH for _ in range(2)]
        assert {each.origin for each in found} == {"127.0.0.1"}
        assert monitor.poll(timeout=0) == []
        counts = monitor.counts()
        assert (counts.records, counts.malformed["signature"]) == (2 * len(EACH), 1) or monitor.poll(0) == []
    monitor.close()


def test_records_of_a_monitor_end_when_none_comes() -> None:
    with Monitor(udp=":0") as monitor:
        send(monitor, encode(EACH[0]))
        assert list(monitor.records(timeout=3)) == [EACH[0]]


def test_an_event_loop_goes_on_while_records_are_awaited() -> None:
    async def both() -> int:
        with Monitor(udp="127.0.0.1:0") as monitor:
            waiting = asyncio.ensure_future(monitor.apoll(60))
            await asyncio.sleep(0)
            send(monitor, encode(EACH[0]))
            found = await waiting
            assert await monitor.apoll(0.01) == []
            return len(found)

    assert asyncio.run(both()) == 1


def test_x4_a_flood_is_decoded_up_to_its_rate_and_counted() -> None:
    with Monitor(udp=":0", rates=Rates(each=10, total=10)) as monitor:
        send(monitor, *[encode(EACH[0])] * 100)
        taken = 0
        while (counts := monitor.counts()).packets + counts.refused + counts.dropped < 100:
            taken += len(monitor.poll(timeout=60))
        assert 20 <= taken == counts.packets <= 100 and counts.refused + counts.dropped == 100 - taken


@pytest.mark.parametrize("at", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "nowhere:2933"])
def test_what_is_no_address_is_refused(at: str) -> None:
    with pytest.raises(InvalidArgument, match="udp"):
        Monitor(udp=at)


def test_a_monitor_has_one_place_to_listen() -> None:
    with pytest.raises(InvalidArgument, match="either a context or udp"):
        Monitor()


def test_hosts_of_source_strings() -> None:
    assert host_of("TCP:10.1.2.3:14371:a1b2c3d4[7]") == "10.1.2.3"
    assert host_of("LBT-SMX:fe12:10001[7]") == host_of("") == "local"


# ---- the gate, in virtual time ----


def test_x4_a_hundred_thousand_forged_records_a_second_leave_room_for_the_others() -> None:
    gate = Gate(Rates(each=20_000, total=40_000), now=0.0)
    taken = {"stranger": 0, "known": 0}
    for tick in range(600):
        now = tick / 10
        taken["stranger"] += gate.take("stranger", 10_000, now)
        taken["known"] += gate.take("known", 1_000, now)
    assert taken["known"] == 600_000, "the others lose nothing"
    assert taken["stranger"] <= 20_000 * 62
    assert gate.refused == 6_000_000 - taken["stranger"]


def test_x4_forged_hosts_share_a_bucket_when_there_are_too_many() -> None:
    gate = Gate(Rates(each=10, total=1_000_000), now=0.0)
    for number in range(100_000):
        gate.take(f"host {number}", 1, 0.0)
    assert len(gate._hosts) <= ORIGINS + 1 and gate.refused > 90_000
    assert gate.take("another", 1, 100.0) == 1 and len(gate._hosts) <= 2


# ---- Arrow ----


def test_a_batch_of_arrow_has_a_row_for_each_record() -> None:
    batch = to_arrow([*EACH, TopicRecord(WHO, "t", (TopicState(SESSION),))])
    rows = batch.to_pylist()
    assert len(rows) == len(EACH) + 1 and rows[-1]["sources"] == [SESSION] and rows[-1]["name"] == "t"
    assert rows[0]["host"] == "10.1.2.3" and rows[0]["timestamp"].year == 2023
    assert dict(rows[0]["numbers"]) == dict(EACH[0].values)  # type: ignore[union-attr]


def test_a_batch_of_one_kind_has_a_column_for_each_number() -> None:
    batch = to_arrow(EACH, "receiver")
    rows = {row["transport"]: row for row in batch.to_pylist()}
    assert set(rows) == {"tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx"}
    assert rows["tcp"]["lost"] is None and rows["lbtrm"]["lost"] == 1004
    assert to_arrow([], "event_queue").num_columns == 11 + 57
    with pytest.raises(ValueError, match="must be one of"):
        to_arrow([], "topic")


def test_arrow_takes_whatever_strangers_send() -> None:
    record = decode(encode(EACH[0]))[0]
    object.__setattr__(record.attributes, "timestamp", 2**64 - 1)
    assert to_arrow([record]).num_rows == 1


def test_a_cancellation_that_comes_with_a_datagram_is_not_lost() -> None:
    """asyncio.wait_for() lost it: the exporter did not end at SIGTERM amid a flood."""

    async def run(turns: int) -> None:
        with Monitor(udp=":0") as monitor:
            task = asyncio.ensure_future(monitor.apoll(60))
            await asyncio.sleep(0)  # it waits
            send(monitor, encode(EACH[0]))
            for _ in range(turns):  # of the loop: in one of them the datagram wakes the task
                await asyncio.sleep(0)
            cancelled = task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() == cancelled, turns

    for turns in range(8):
        asyncio.run(run(turns))
