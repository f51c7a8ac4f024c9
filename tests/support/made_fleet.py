"""A fleet that does not exist: its records, second by second, for the page of `um web` and its tests.

python tests/support/made_fleet.py [PORT [CONTEXTS]] serves a page of it, to be looked at.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

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

LBTRM = "LBTRM:10.1.1.{0}:14400:a1b2c3d{0}:224.9.1.{0}:14400"
TCP = "TCP:10.1.1.{0}:14371:5f0{0}a1b2"


@dataclass
class Receiving:
    """A process that receives sessions."""

    host: str
    application: str
    process_id: int
    sessions: dict[str, str]  #: topic by source string
    loss: float = 0.0  #: share of datagrams
    stopped: bool = False  #: it says nothing
    waiting: int = 0  #: events in its queue
    context: str = ""


@dataclass
class Sending:
    """A process that sends sessions."""

    host: str
    application: str
    process_id: int
    sessions: dict[str, str]
    rate: float = 1000.0  #: messages a second
    buffered: int = 0  #: bytes that wait for TCP clients
    context: str = ""


@dataclass
class MadeFleet:
    """What all of them count; records(now) tells it."""

    senders: list[Sending] = field(default_factory=list)
    receivers: list[Receiving] = field(default_factory=list)
    counters: dict[tuple[int, str, str], float] = field(default_factory=dict)
    at: float | None = None

    def add(self, who: int, session: str, name: str, much: float) -> int:
        """Count, and tell the count."""
        key = (who, session, name)
        self.counters[key] = self.counters.get(key, 0.0) + much
        return int(self.counters[key])

    def records(self, now: float, timestamp: int = 0) -> Iterator[Record]:
        """The records of everybody who speaks, at this moment."""
        seconds = 0.0 if self.at is None else now - self.at
        self.at = now
        naks: dict[str, float] = {}
        for each in self.receivers:
            if not each.stopped:
                yield from self._received(each, seconds, timestamp, naks)
        for sender in self.senders:
            yield from self._sent(sender, seconds, timestamp, naks)

    def rate_of(self, session: str) -> float:
        """Messages a second on a session."""
        return next((each.rate for each in self.senders if session in each.sessions), 1000.0)

    def _received(self, each: Receiving, seconds: float, timestamp: int, naks: dict[str, float]) -> Iterator[Record]:
        who, context = each.process_id, each.context or f"{each.process_id:016x}"
        for number, (session, topic) in enumerate(each.sessions.items()):
            attributes = Attributes(each.host, timestamp, each.application, 0x100 + number, who, False, context)
            sent = self.rate_of(session) * seconds
            lost = sent * each.loss
            naks[session] = naks.get(session, 0.0) + lost * 1.2
            values = {"lbm_msgs_rcved": self.add(who, session, "messages", sent)}
            values["bytes_rcved"] = self.add(who, session, "bytes", sent * 120)
            if session.startswith("LBTRM"):
                values["msgs_rcved"] = values["lbm_msgs_rcved"]
                values["lost"] = self.add(who, session, "lost", lost)
                values["naks_sent"] = self.add(who, session, "naks", lost * 1.2)
                values["nak_stm_min"], values["nak_stm_mean"], values["nak_stm_max"] = 2, 5, 31
            yield ReceiverRecord(attributes, session.split(":")[0].lower(), session, values)
            yield TopicRecord(attributes, topic, (TopicState(session + "[1]"),))
        mine = Attributes(each.host, timestamp, each.application, 0x10, who, False, context)
        yield ContextRecord(mine, {"tr_rcv_topics": len(each.sessions), "rcv_cb_svc_time_mean": 18})
        queue = {"events": each.waiting, "events_tot": self.add(who, "", "events", 900 * seconds)}
        queue.update(age_mean=40 + 30 * each.waiting, age_min=3, age_max=90 + 60 * each.waiting, data_msgs_svc_mean=12)
        yield EventQueueRecord(Attributes(each.host, timestamp, each.application, 0x20, who, False, ""), queue)

    def _sent(self, each: Sending, seconds: float, timestamp: int, naks: dict[str, float]) -> Iterator[Record]:
        who, context = each.process_id, each.context or f"{each.process_id:016x}"
        for number, session in enumerate(each.sessions):
            attributes = Attributes(each.host, timestamp, each.application, 0x200 + number, who, False, context)
            clients = sum(session in other.sessions for other in self.receivers)
            if session.startswith("TCP"):
                yield SourceRecord(
                    attributes, "tcp", session, {"num_clients": clients, "bytes_buffered": each.buffered}
                )
                continue
            values = {
                "msgs_sent": self.add(who, session, "sent", each.rate * seconds),
                "bytes_sent": self.add(who, session, "sent_bytes", each.rate * seconds * 120),
                "naks_rcved": self.add(who, session, "naks_rcved", naks.get(session, 0.0)),
                "txw_bytes": 8_000_000,
            }
            yield SourceRecord(attributes, "lbtrm", session, values)
        mine = Attributes(each.host, timestamp, each.application, 0x10, who, False, context)
        yield ContextRecord(mine, {"tr_src_topics": len(each.sessions), "send_blocked": 0})


def desk_fleet() -> MadeFleet:
    """A small trading floor: two feeds by multicast, orders over TCP, five hosts."""
    prices, news, orders = LBTRM.format(5), LBTRM.format(6), TCP.format(7)
    made = MadeFleet()
    made.senders = [
        Sending("10.1.1.5", "feed-equities", 4101, {prices: "prices.equities"}, 42_000),
        Sending("10.1.1.6", "feed-news", 4102, {news: "news.headlines"}, 140),
        Sending("10.1.1.7", "order-gateway", 2210, {orders: "orders.accepted"}, 2_600),
    ]
    every = {prices: "prices.equities", news: "news.headlines", orders: "orders.accepted"}
    made.receivers = [
        Receiving("10.1.2.11", "risk", 811, every),
        Receiving("10.1.2.11", "pricer", 812, {prices: "prices.equities"}),
        Receiving("10.1.2.12", "surveillance", 905, every),
        Receiving("10.1.2.13", "algo-1", 3001, {prices: "prices.equities", orders: "orders.accepted"}),
        Receiving("10.1.2.13", "algo-2", 3002, {prices: "prices.equities", orders: "orders.accepted"}),
        Receiving("10.1.2.14", "archive", 77, every),
    ]
    return made


def crowd(contexts: int, objects: int = 10) -> MadeFleet:
    """So many receiving processes of so many objects each: half receivers, half topics, and a context and a queue."""
    made = MadeFleet()
    sessions = {LBTRM.format(each): f"topic.{each}" for each in range(1, 41)}
    names = list(sessions)
    made.senders = [
        Sending(f"10.1.1.{at}", f"feed-{at}", 1000 + at, {name: sessions[name]}) for at, name in enumerate(names, 1)
    ]
    each = max(1, (objects - 2) // 2)
    for at in range(contexts):
        mine = {name: sessions[name] for name in (names[(at + step) % len(names)] for step in range(each))}
        host = f"10.1.{2 + at // 200}.{at % 200 + 1}"
        made.receivers.append(Receiving(host, f"app-{at}", 10_000 + at, mine))
    return made


class MadeReception:
    """Gives the records of a made fleet once a second, as a Monitor would."""

    def __init__(self, fleet: MadeFleet, interval: float = 1.0) -> None:
        self.fleet, self.interval = fleet, interval
        self.given = 0
        self._next = 0.0
        self._waiting: list[Record] = []

    def poll(self, timeout: float | None = None) -> Sequence[Arrival]:
        """What is due."""
        now = time.monotonic()
        if not self._waiting and now >= self._next:
            self._next = now + self.interval
            self._waiting = list(self.fleet.records(now, int(now)))[::-1]
        if not self._waiting:
            time.sleep(min(timeout or 0.0, max(0.0, self._next - now)))
        found = [Arrival(self._waiting.pop(), "127.0.0.1") for _ in range(min(2000, len(self._waiting)))]
        self.given += len(found)
        return found

    def counts(self) -> MonitorCounts:
        """Nothing is ever wrong."""
        return MonitorCounts(self.given, self.given, {}, 0, 0)


def main() -> None:
    """Serve a page in which something is wrong."""
    from um_cffi.web import Settings
    from um_cffi.web._server import run

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8060
    fleet = crowd(int(sys.argv[2])) if len(sys.argv) > 2 else desk_fleet()
    if len(sys.argv) <= 2:
        fleet.receivers[2].loss = 0.01
    run(
        Settings(port=port, title="Trading floor"),
        MadeReception(fleet),
        begun=lambda address: print(address, flush=True),
    )


if __name__ == "__main__":
    main()
