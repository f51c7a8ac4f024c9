"""What the page shows, as values for JSON: the first screen, lists, one object, events. Pure functions of a Watch.

Called on the thread of the Desk. Times leave as seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from um_cffi.monitoring.fleet import Event, MonitoredObject, Process
from um_cffi.web._topology import BAD, natural, topology
from um_cffi.web._watch import FLEET, Trouble, Watch, level_of, speed

SHOWN_EVENTS = 30  # on the first screen
LOOKED_BACK = 500  # events that these are made of
SHOWN_RANKED = 12
PAGE = 100  # rows of a list
BRIEF = 6  # topics that are named
NAMED = 3  # processes in the verdict
KINDS = ("host", "process", "context", "source", "receiver", "event_queue", "topic", "wildcard")
SEVERE = {
    "unrecovered": "bad",
    "process_silent": "bad",
    "process_gone": "bad",
    "loss": "warn",
    "log_error": "bad",
    "log_warning": "warn",
    "interface_change": "warn",
}
#: Which events the filter of their view lets through.
EVENT_KINDS = {
    "": (),
    "loss": ("loss", "unrecovered"),
    "process": ("process_started", "process_restarted", "process_silent", "process_back", "process_gone"),
    "source": ("source_gone", "object_gone"),
    "log": ("log_error", "log_warning", "log_notice"),
    "interface": ("interface_change",),
}
WORDS = {
    "silent": "say nothing",
    "lost": "lose messages for good",
    "missed": "miss datagrams",
    "waits": "are waited for",
}
WORD = {
    "silent": "says nothing",
    "lost": "loses messages for good",
    "missed": "misses datagrams",
    "waits": "is waited for",
}

Sections = dict[str, Any]


class Views:
    """All views of one watch at one moment."""

    def __init__(self, watch: Watch, now: float, wall: float, reception: dict[str, int]) -> None:
        self._watch, self._now, self._wall, self._reception = watch, now, wall, reception
        self._fleet = watch.fleet
        self._began = {each.slow.object.link: each for each in watch.troubles}

    def render(self, question: tuple[str, ...]) -> Sections | None:
        """The sections of a view; None when there is no such thing."""
        name, *rest = question
        made: dict[str, Callable[..., Sections | None]] = {
            "overview": self.overview,
            "object": self.object,
            "objects": self.objects,
            "events": self.events,
        }
        return made[name](*rest) if name in made else None

    # ---- the first screen ----

    def overview(self) -> Sections:
        """Who is connected to whom, who loses or delays, since when."""
        drawn = topology(self._fleet)
        return {
            "clock": self._clock(),
            "verdict": self._verdict(),
            "totals": self._totals(drawn),
            "ranking": self._ranking(),
            "topology": drawn,
            "events": self._together(self._fleet.events(0, LOOKED_BACK))[:SHOWN_EVENTS],
            "history": self._watch.history.series(FLEET, FLEET, self._wall),
        }

    def _clock(self) -> dict[str, Any]:
        return {"now": round(self._now + self._wall, 1), "version": self._watch.version, **self._reception}

    def _verdict(self) -> dict[str, Any]:
        people: dict[str, dict[str, str]] = {}  # by level: processes and their names
        since: dict[str, float] = {}
        for each in self._watch.troubles:
            process = each.slow.object.process
            host, application, number = process.key
            name = f"{application or f'process {number}'} on {host or 'unknown host'}"
            people.setdefault(each.level, {}).setdefault(process.link, name)
            since[each.level] = min(since.get(each.level, each.since), each.since)
        parts = []
        for level in reversed(BAD):
            there = people.get(level)
            if there:
                first = list(there.values())[:NAMED]
                more = len(there) - len(first)
                who = ", ".join(first) + (f" and {more} more" if more else "")
                says = (WORD if len(there) == 1 else WORDS)[level]
                parts.append({"level": level, "who": who, "says": says, "since": self._time(since[level])})
        receivers = sum(1 for each in self._fleet.objects("receiver"))
        calm = self._watch.calm_since
        return {
            "level": parts[0]["level"] if parts else "ok" if len(self._fleet) else "empty",
            "parts": parts,
            "receivers": receivers,
            "calm_since": self._time(calm) if calm is not None else None,
        }

    def _totals(self, drawn: dict[str, Any]) -> dict[str, Any]:
        counts = self._fleet.summary()
        messages = missed = naks = size = 0.0
        for each in self._fleet.objects("receiver"):
            messages += speed(each, "lbm_msgs_rcved", "msgs_rcved")
            size += speed(each, "bytes_rcved")
            missed += speed(each, "lost")
            naks += speed(each, "naks_sent")
        hosts = len({each.host for each in self._fleet.processes()})
        rates = {"messages": messages, "bytes": size, "missed": missed, "naks": naks}
        return {
            **counts,
            "hosts": hosts,
            "sessions": len(drawn["sessions"]) + drawn["left_out"]["sessions"],
            "rates": {name: round(rate, 2) for name, rate in rates.items()},
        }

    def _ranking(self) -> list[dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for each in self._watch.troubles:
            row = self._ranked(each)
            name = row["process_id"] if each.level == "silent" else row["id"]  # one row for a silent process
            there = rows.get(name)
            if there is None:
                rows[name] = row
            else:
                there["topics"] = sorted({*there["topics"], *row["topics"]})[:BRIEF]
                there["objects"] += 1
        return list(rows.values())[:SHOWN_RANKED]

    def _ranked(self, trouble: Trouble) -> dict[str, Any]:
        each = trouble.slow.object
        host, application, number = each.process.key
        return {
            "id": each.link,
            "kind": each.kind,
            "level": trouble.level,
            "host": host,
            "application": application or f"process {number}",
            "pid": number,
            "process_id": each.process.link,
            "source": each.source,
            "topics": list(trouble.slow.topics[:BRIEF]),
            "reasons": list(trouble.slow.reasons),
            "since": self._time(trouble.since),
            "missed": round(speed(each, "lost"), 2),
            "naks": round(speed(each, "naks_sent"), 2),
            "objects": 1,
        }

    # ---- lists ----

    def objects(self, kind: str, text: str, sort: str, page: str) -> Sections:
        """Rows of one kind, or of all, that have all words of the text."""
        rows: list[dict[str, Any]] = []
        words = text.lower().split()[:16]
        if kind in ("", "host"):
            rows += [each for each in self._hosts() if _matches(words, each)]
        if kind in ("", "process"):
            rows += [each for each in map(self._process_row, self._fleet.processes()) if _matches(words, each)]
        if kind not in ("host", "process"):
            found: Iterable[MonitoredObject]
            found = self._fleet.find(text, 1 << 20) if words else self._fleet.objects(kind or None)
            rows += [self._row(each) for each in found if not kind or each.kind == kind]
        orders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "level": lambda row: -BAD.index(row["level"]),
            "rate": lambda row: -row["rate"],
            "missed": lambda row: -row["missed"],
            "naks": lambda row: -row["naks"],
            "since": lambda row: -row["first_seen"],
        }
        rows.sort(key=lambda row: (natural(row["host"]), natural(row["name"]), row["about"]))
        if sort in orders:
            rows.sort(key=orders[sort])
        first = (int(page) - 1) * PAGE
        return {
            "clock": self._clock(),
            "list": {
                "kind": kind,
                "text": text,
                "count": len(rows),
                "page": int(page),
                "pages": max(1, -(-len(rows) // PAGE)),
                "rows": rows[first : first + PAGE],
            },
        }

    def _hosts(self) -> list[dict[str, Any]]:
        hosts: dict[str, list[Process]] = {}
        for each in self._fleet.processes():
            hosts.setdefault(each.host, []).append(each)
        return [
            {
                "id": f"host-{host}",
                "kind": "host",
                "name": host,
                "about": f"{len(there)} processes",
                "host": host,
                "level": max((self._process_level(each) for each in there), key=BAD.index),
                "rate": 0.0,
                "missed": 0.0,
                "naks": 0.0,
                "first_seen": self._time(min(each.first_seen for each in there)),
            }
            for host, there in hosts.items()
        ]

    def _process_level(self, process: Process) -> str:
        return max((level_of(each) for each in process.objects.values()), key=BAD.index, default="ok")

    def _process_row(self, process: Process) -> dict[str, Any]:
        host, application, number = process.key
        receivers = [each for each in process.objects.values() if each.kind == "receiver"]
        return {
            "id": process.link,
            "kind": "process",
            "name": application or f"process {number}",
            "about": f"pid {number}, {len(process.objects)} objects",
            "host": host,
            "level": self._process_level(process),
            "rate": round(sum(speed(each, "lbm_msgs_rcved", "msgs_rcved") for each in receivers), 1),
            "missed": round(sum(speed(each, "lost") for each in receivers), 2),
            "naks": round(sum(speed(each, "naks_sent") for each in receivers), 2),
            "first_seen": self._time(process.first_seen),
        }

    def _row(self, each: MonitoredObject) -> dict[str, Any]:
        topics = self._fleet.topics(each) if each.kind in ("source", "receiver") else ()
        return {
            "id": each.link,
            "kind": each.kind,
            "name": each.application or f"process {each.process_id}",
            "about": each.source or each.context or f"object {each.object_id:x}",
            "topics": list(topics[:BRIEF]),
            "host": each.host,
            "level": level_of(each),
            "rate": round(speed(each, "lbm_msgs_rcved", "msgs_rcved", "msgs_sent", "events_tot"), 1),
            "missed": round(speed(each, "lost"), 2),
            "naks": round(speed(each, "naks_sent", "naks_rcved"), 2),
            "first_seen": self._time(each.first_seen),
        }

    # ---- one object ----

    def object(self, link: str) -> Sections | None:
        """Everything about an object, a process or a host."""
        if link.startswith("host-"):
            return self._host(link[5:])
        process = self._fleet.process(link)
        if process is not None:
            return self._process(process)
        each = self._fleet.get(link)
        return self._object(each) if each is not None else self._departed(link)

    def _host(self, host: str) -> Sections | None:
        there = [each for each in self._fleet.processes() if each.host == host]
        if not there:
            return None
        rows = [self._process_row(each) for each in there]
        about = {
            "id": f"host-{host}",
            "kind": "host",
            "name": host,
            "level": max((row["level"] for row in rows), key=BAD.index),
            "path": [],
            "facts": [["processes", len(there)]],
            "first_seen": self._time(min(each.first_seen for each in there)),
            "last_seen": self._time(max(each.last_seen for each in there)),
        }
        return self._page(about, [("Processes", rows)], lambda event: event.host == host)

    def _process(self, process: Process) -> Sections:
        host, application, number = process.key
        rows = sorted((self._row(each) for each in process.objects.values()), key=lambda row: row["about"])
        about = {
            "id": process.link,
            "kind": "process",
            "name": application or f"process {number}",
            "level": self._process_level(process),
            "path": [{"id": f"host-{host}", "name": host}],
            "facts": [
                ["host", host],
                ["process", number],
                ["application", application],
                ["contexts", ", ".join(process.contexts)],
                ["interval of its records", f"{process.interval:.1f} s"],
            ],
            "first_seen": self._time(process.first_seen),
            "last_seen": self._time(process.last_seen),
        }
        parts = [
            (f"{kind.replace('_', ' ')}s".capitalize(), [row for row in rows if row["kind"] == kind][:PAGE])
            for kind in KINDS
        ]
        return self._page(about, parts, lambda event: event.host == host and event.process_id == number)

    def _object(self, each: MonitoredObject) -> Sections:
        trouble = self._began.get(each.link)
        topics = self._fleet.topics(each)
        about = {
            "id": each.link,
            "kind": each.kind,
            "name": each.source or each.context or f"{each.kind} {each.object_id:x}",
            "level": level_of(each),
            "path": self._path(each),
            "facts": [
                ["host", each.host],
                ["application", each.application],
                ["process", each.process_id],
                ["context", each.context],
                ["transport", each.transport],
                ["topics", ", ".join(topics)],
                ["pattern", each.pattern_type],
                ["object", f"{each.object_id:x}"],
                ["told by", each.origin],
            ],
            "reasons": list(trouble.slow.reasons) if trouble else [],
            "since": self._time(trouble.since) if trouble else None,
            "first_seen": self._time(each.first_seen),
            "last_seen": self._time(each.last_seen),
        }
        sections = self._page(about, self._related(each), lambda event: event.link == each.link)
        rates = {} if each.process.silent else each.rates
        sections["numbers"] = [
            [name, None if value >= 1 << 63 else value, round(rates[name], 2) if name in rates else None]
            for name, value in each.values.items()
        ]
        sections["history"] = self._watch.history.series(each.link, each.kind, self._wall)
        return sections

    def _path(self, each: MonitoredObject) -> list[dict[str, str]]:
        process = each.process
        return [
            {"id": f"host-{each.host}", "name": each.host},
            {"id": process.link, "name": each.application or f"process {each.process_id}"},
        ]

    def _related(self, each: MonitoredObject) -> list[tuple[str, list[dict[str, Any]]]]:
        """Whom it is connected to."""
        if each.kind == "source":
            return [("Received by", [self._row(other) for other in self._fleet.receivers_of(each)[:PAGE]])]
        if each.kind == "receiver":
            session = each.source.partition("[")[0]
            sources = [other for other in self._fleet.objects("source") if other.source.partition("[")[0] == session]
            beside = [other for other in self._fleet.receivers_of(each) if other is not each]
            return [
                ("Sent by", [self._row(other) for other in sources[:PAGE]]),
                ("Others that receive it", [self._row(other) for other in beside[:PAGE]]),
            ]
        if each.kind == "topic":
            sessions = set(each.sessions)
            found = [
                other
                for other in self._fleet.objects()
                if other.kind in ("source", "receiver") and other.source.partition("[")[0] in sessions
            ]
            mine = [other for other in found if other.kind == "receiver" and other.process is each.process]
            sent = [other for other in found if other.kind == "source"]
            return [
                ("Sent by", [self._row(other) for other in sent[:PAGE]]),
                ("Received here", [self._row(other) for other in mine[:PAGE]]),
            ]
        same = [other for other in each.process.objects.values() if other.context == each.context and other is not each]
        return [("In the same context", [self._row(other) for other in same[:PAGE]])]

    def _departed(self, link: str) -> Sections | None:
        was = self._watch.departed.get(link)
        if was is None:
            return None
        about = {
            "id": link,
            "kind": was.kind,
            "name": was.source or was.context or was.kind,
            "level": "gone",
            "path": [{"id": f"host-{was.host}", "name": was.host}],
            "facts": [
                ["host", was.host],
                ["application", was.application],
                ["process", was.process_id],
                ["context", was.context],
                ["transport", was.transport],
            ],
            "first_seen": None,
            "last_seen": self._time(was.at),
        }
        sections = self._page(about, [], lambda event: event.link == link)
        sections["history"] = self._watch.history.series(link, was.kind, self._wall)
        return sections

    def _page(
        self,
        about: dict[str, Any],
        related: list[tuple[str, list[dict[str, Any]]]],
        mine: Callable[[Event], bool],
    ) -> Sections:
        about["facts"] = [fact for fact in about["facts"] if fact[1] not in ("", None)]
        events = self._together([each for each in self._fleet.events(0, 4096) if mine(each)])
        return {
            "clock": self._clock(),
            "object": about,
            "related": [{"title": title, "rows": rows} for title, rows in related if rows],
            "events": events[:SHOWN_EVENTS],
        }

    # ---- events ----

    def events(self, text: str, kind: str = "") -> Sections:
        """The newest events of a kind, or of all, that have all words of the text."""
        words = text.lower().split()[:16]
        chosen = EVENT_KINDS[kind]
        found = []
        for each in reversed(self._fleet.events(0, 4096)):
            if chosen and each.kind not in chosen:
                continue
            told = self._event(each)
            if all(word in f"{told['text']} {told['kind']} {told['who']} {told['topics']}".lower() for word in words):
                found.append(told)
                if len(found) >= 2 * PAGE:
                    break
        return {"clock": self._clock(), "events": found}

    def _together(self, events: list[Event]) -> list[dict[str, Any]]:
        """The newest first, of those of one kind about one object the newest with the number of all and the first."""
        told: dict[tuple[str, str, str], dict[str, Any]] = {}
        for event in reversed(events):
            name = (event.kind, event.link, event.text if event.line else "")
            if name in told:
                told[name]["times"] += 1
                told[name]["first"] = self._time(event.time)
            else:
                told[name] = self._event(event)
        return list(told.values())

    def _event(self, event: Event) -> dict[str, Any]:
        return {
            "number": event.number,
            "at": self._time(event.time),
            "kind": event.kind,
            "level": SEVERE.get(event.kind, "info"),
            "text": event.text,
            "who": f"{event.application or f'process {event.process_id}'} on {event.host or 'unknown host'}",
            "topics": list(event.topics[:BRIEF]),
            "id": event.link,
            "times": 1,
            "first": self._time(event.time),
        }

    def _time(self, clock: float) -> float:
        return round(clock + self._wall, 1)


def _matches(words: list[str], row: dict[str, Any]) -> bool:
    about = f"{row['name']} {row['about']} {row['host']} {row['kind']}".lower()
    return all(word in about for word in words)
