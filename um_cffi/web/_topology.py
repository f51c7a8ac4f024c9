"""Who is connected to whom: processes that send, transport sessions, processes that receive, and the links between.

A pure function of the fleet. What there is too much of to be drawn is left out, the quiet before the troubled, and
counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from um_cffi.monitoring.fleet import Fleet, MonitoredObject, Process, session_of
from um_cffi.web._watch import level_of, speed

SESSIONS = 12  # that are drawn
PROCESSES = 16  # in each of the outer columns
BAD = ("ok", "waits", "missed", "lost", "silent")  # the last one is the worst


def natural(text: str) -> list[tuple[int, str]]:
    """To sort by: numbers in the text by their size."""
    return [
        (int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in re.split(r"(\d{1,9})", text)
    ]


def worse(one: str, other: str) -> str:
    """The worse of two levels."""
    return max(one, other, key=BAD.index)


@dataclass
class _Node:
    level: str = "ok"
    rate: float = 0.0

    def add(self, each: MonitoredObject, rate: float) -> None:
        self.level = worse(self.level, level_of(each))
        self.rate += rate

    @property
    def weight(self) -> tuple[int, float]:
        return BAD.index(self.level), self.rate


@dataclass
class _Session(_Node):
    transport: str = ""
    source: MonitoredObject | None = None
    senders: dict[str, _Node] = field(default_factory=dict)
    receivers: dict[str, _Node] = field(default_factory=dict)
    receiver: MonitoredObject | None = None


def topology(fleet: Fleet) -> dict[str, Any]:
    """Nodes and links for drawing."""
    sessions: dict[str, _Session] = {}
    people: dict[str, Process] = {}
    for each in fleet.objects():
        if each.kind not in ("source", "receiver"):
            continue
        session = sessions.setdefault(session_of(each.source), _Session())
        session.transport = each.transport
        people[each.process.link] = each.process
        if each.kind == "source":
            session.source = each
            session.add(each, 0.0)
            session.senders.setdefault(each.process.link, _Node()).add(each, speed(each, "msgs_sent"))
        else:
            session.receiver = each
            rate = speed(each, "lbm_msgs_rcved", "msgs_rcved")
            session.rate = max(session.rate, rate)
            session.receivers.setdefault(each.process.link, _Node()).add(each, rate)
    for session in sessions.values():
        for node in session.receivers.values():
            session.level = worse(session.level, node.level)
    chosen = sorted(sessions, key=lambda name: (sessions[name].weight, name), reverse=True)[:SESSIONS]
    senders = _column([sessions[name].senders for name in chosen])
    receivers = _column([sessions[name].receivers for name in chosen])
    return {
        "senders": [_person(people[link], node) for link, node in sorted(senders.items(), key=_by_name(people))],
        "receivers": [_person(people[link], node) for link, node in sorted(receivers.items(), key=_by_name(people))],
        "sessions": [_told(fleet, name, sessions[name]) for name in sorted(chosen)],
        "links": [link for name in chosen for link in _links(name, sessions[name], senders, receivers)],
        "left_out": {
            "sessions": len(sessions) - len(chosen),
            "senders": len({link for each in sessions.values() for link in each.senders}) - len(senders),
            "receivers": len({link for each in sessions.values() for link in each.receivers}) - len(receivers),
        },
    }


def _column(parts: list[dict[str, _Node]]) -> dict[str, _Node]:
    """The processes of a column, each with all it does in the sessions that are drawn."""
    whole: dict[str, _Node] = {}
    for part in parts:
        for link, node in part.items():
            there = whole.setdefault(link, _Node())
            there.level = worse(there.level, node.level)
            there.rate += node.rate
    kept = sorted(whole, key=lambda link: (whole[link].weight, link), reverse=True)[:PROCESSES]
    return {link: whole[link] for link in kept}


def _by_name(people: dict[str, Process]) -> Any:
    return lambda item: (natural(people[item[0]].host), *people[item[0]].key[1:])


def _person(process: Process, node: _Node) -> dict[str, Any]:
    host, application, number = process.key
    return {
        "id": process.link,
        "host": host,
        "name": application or f"process {number}",
        "pid": number,
        "level": node.level,
        "rate": round(node.rate, 1),
    }


def _told(fleet: Fleet, name: str, session: _Session) -> dict[str, Any]:
    known = session.source or session.receiver
    topics = fleet.topics(session.source) if session.source else ()
    if not topics and session.receiver:
        topics = fleet.topics(session.receiver)
    return {
        "id": known.link if known else "",
        "name": name,
        "transport": session.transport,
        "topics": list(topics[:8]),
        "more_topics": max(0, len(topics) - 8),
        "level": session.level,
        "rate": round(session.rate, 1),
        "watched": session.source is not None,
    }


def _links(
    name: str, session: _Session, senders: dict[str, _Node], receivers: dict[str, _Node]
) -> list[dict[str, Any]]:
    into = [
        {"from": link, "to": name, "side": "send", "level": node.level, "rate": round(session.rate, 1)}
        for link, node in session.senders.items()
        if link in senders
    ]
    out = [
        {"from": name, "to": link, "side": "receive", "level": node.level, "rate": round(node.rate, 1)}
        for link, node in session.receivers.items()
        if link in receivers
    ]
    return into + out
