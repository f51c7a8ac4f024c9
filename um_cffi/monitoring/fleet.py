"""A model of all monitored objects of a fleet, made of their records: who is there, how fast, who loses, since when.

It has no input, output, clock or thread of its own: records and times are given to it, so that it is tested in virtual
time. `um exporter` and `um web` stand on it. Use it on one thread. Records may come from strangers: the numbers of
objects, processes, topics, events and the lengths of texts have bounds, what is silent expires, what is refused is
counted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, fields

from um_cffi.monitoring import _fields
from um_cffi.monitoring._gate import Gate, Rates
from um_cffi.monitoring._objects import KINDS, Event, EventLog, Key, MonitoredObject, Process, ProcessKey, kind_of_line
from um_cffi.monitoring._records import (
    ContextRecord,
    EventQueueRecord,
    LogRecord,
    ReceiverRecord,
    Record,
    SourceRecord,
    TopicRecord,
    WildcardRecord,
)

__all__ = ["KINDS", "Event", "Fleet", "FleetCounts", "Limits", "MonitoredObject", "Process", "SlowReceiver"]


@dataclass(frozen=True)
class Limits:
    """Bounds of a Fleet; times in seconds."""

    objects: int = 20_000  #: in all
    objects_per_origin: int = 15_000  #: that one sender of records may tell of
    processes: int = 5_000  #: in all
    processes_per_origin: int = 3_000  #: that one sender of records may tell of
    text: int = 256  #: characters of a source string, topic, application or pattern; longer ones are cut
    topics_per_session: int = 64  #: that topics() tells
    sources_per_topic: int = 64  #: that are remembered of a topic record
    events: int = 4_096  #: kept
    merge: float = 5.0  #: in which the same event about the same object is told once
    silent_after: float = 3.0  #: without a record, and 2.5 of its intervals: a process is silent
    expire_after: float = 60.0  #: without a record, and 6 intervals of its process: an object is removed
    restart_within: float = 600.0  #: a process of the same name after one that went is a restart of it
    lines_per_origin: int = 50  #: of logs that one sender of records may tell in a second; bursts of two seconds' worth
    lines: int = 200  #: of logs in a second, in all; likewise
    line_age: float = 3_600.0  #: a line is told of as no older than this


@dataclass
class FleetCounts:
    """What a Fleet has done so far."""

    records: int = 0  #: taken
    refused_objects: int = 0  #: records of new objects, as there were too many in all
    refused_origin: int = 0  #: records of new objects, as their sender had told of too many
    refused_processes: int = 0  #: records of new processes, as there were too many
    cut_texts: int = 0  #: records with longer texts than Limits.text
    refused_lines: int = 0  #: lines of logs beyond Limits.lines, or of processes that nothing else was told of
    objects_created: int = 0  #: so far
    objects_expired: int = 0  #: so far


@dataclass(frozen=True)
class SlowReceiver:
    """A place in the ranking of those that do not keep up."""

    object: MonitoredObject  #: the receiver, event queue or source
    score: float  #: by which they are ranked
    reasons: tuple[str, ...]  #: for people
    topics: tuple[str, ...]  #: that it is known to be about


def session_of(source: str) -> str:
    """A source string without its topic index."""
    return source.partition("[")[0]


class Fleet:
    """All monitored objects that records have told of.

    add() takes records, expire() is to be called about once a second; `now` is in seconds of any clock that does not go
    back, the same one for all calls.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.counts = FleetCounts()
        self._objects: dict[Key, MonitoredObject] = {}
        self._links: dict[str, MonitoredObject] = {}
        self._processes: dict[ProcessKey, Process] = {}
        self._process_links: dict[str, Process] = {}
        self._origins: dict[str, int] = {}  # objects of each sender of records
        self._process_origins: dict[str, int] = {}  # processes of each
        self._sessions: dict[str, dict[Key, MonitoredObject]] = {}  # topics by session
        self._departed: dict[tuple[str, str], float] = {}  # host and application, when the last process of it went
        self._lines: Gate | None = None
        self._log = EventLog(self.limits.events, self.limits.merge)

    # ---- records in ----

    def add(self, record: Record, now: float, origin: str = "") -> MonitoredObject | None:
        """Take a record that came at `now` from `origin`, which is what the network says and not the record.

        Returns the object that it tells of; None for a new one for which there is no room, and for lines of a log.
        """
        if isinstance(record, LogRecord):
            self._take_lines(record, now, origin)
            return None
        key, transport, names = self._key(record)
        found = self._objects.get(key)
        if found is None:
            found = self._create(key, transport, names, now, origin)
            if found is None:
                return None
        else:
            self._heard(found, now)
        self.counts.records += 1
        found.process.records += 1
        if isinstance(record, TopicRecord):
            self._topic(found, record, now)
        elif isinstance(record, WildcardRecord):
            found.pattern_type = record.pattern_type
            found.update({}, record.attributes.timestamp, now)
        elif not isinstance(record, LogRecord) and found.update(record.values, record.attributes.timestamp, now):
            self._look(found, now)
        return found

    def _take_lines(self, record: LogRecord, now: float, origin: str) -> None:
        """Lines of the log of a process that is known become events, those told before excepted."""
        about = record.attributes
        process = self._processes.get((self._short(about.host), self._short(about.application), about.process_id))
        if process is None:
            self.counts.refused_lines += len(record.lines)
            return
        self.counts.records += 1
        process.records += 1
        last = process.last_lines.pop(origin, 0)
        fresh = [line for line in record.lines if line.number > last]
        if self._lines is None:
            self._lines = Gate(Rates(self.limits.lines_per_origin, self.limits.lines), now)
        new = [line for line in fresh if hash((line.number, line.text)) not in process.told_lines]
        taken = self._lines.take(origin, len(new), now)
        self.counts.refused_lines += len(new) - taken
        for line in new[:taken]:
            process.told_lines.append(hash((line.number, line.text)))
            age = float(about.timestamp - line.seconds) if about.timestamp and line.seconds else 0.0
            at = now - min(max(age, 0.0), self.limits.line_age)
            self._tell(kind_of_line(line.level, line.text), process, at, self._short_line(line.text), line=True)
        if len(process.last_lines) >= LINE_SENDERS:
            process.last_lines.pop(next(iter(process.last_lines)))
        process.last_lines[origin] = max([last, *(line.number for line in fresh)])

    def _short_line(self, text: str) -> str:
        return text if len(text) <= 2 * self.limits.text else text[: 2 * self.limits.text - 1] + "\u2026"

    def _key(self, record: Record) -> tuple[Key, str, tuple[str, ...]]:
        attributes = record.attributes
        transport, names = "", ()  # type: tuple[str, tuple[str, ...]]
        if isinstance(record, ReceiverRecord):
            kind, source, transport = "receiver", record.source, record.transport
            names = _fields.RECEIVERS[transport].csv
        elif isinstance(record, SourceRecord):
            kind, source, transport = "source", record.source, record.transport
            names = _fields.SOURCES[transport].csv
        elif isinstance(record, ContextRecord):
            kind, source, names = "context", "", _fields.CONTEXT.csv
        elif isinstance(record, EventQueueRecord):
            kind, source, names = "event_queue", "", _fields.EVENT_QUEUE.csv
        elif isinstance(record, TopicRecord):
            kind, source = "topic", record.topic
        else:
            assert isinstance(record, WildcardRecord)
            kind, source = "wildcard", record.pattern
        return (
            (
                self._short(attributes.host),
                self._short(attributes.application),
                attributes.process_id,
                kind,
                self._short(attributes.context_instance),
                attributes.object_id,
                self._short(source),
                attributes.immediate,
            ),
            transport,
            names,
        )

    def _short(self, text: str) -> str:
        if len(text) <= self.limits.text:
            return text
        self.counts.cut_texts += 1
        return text[: self.limits.text]

    def _create(
        self, key: Key, transport: str, names: tuple[str, ...], now: float, origin: str
    ) -> MonitoredObject | None:
        if len(self._objects) >= self.limits.objects:
            self.counts.refused_objects += 1
            return None
        if self._origins.get(origin, 0) >= self.limits.objects_per_origin:
            self.counts.refused_origin += 1
            return None
        process = self._processes.get(key[:3]) or self._start(key[:3], now, origin)
        if process is None:
            self.counts.refused_processes += 1
            return None
        made = MonitoredObject(key, process, transport, names, now)
        made.origin = origin
        self._origins[origin] = self._origins.get(origin, 0) + 1
        self._objects[key] = self._links[made.link] = process.objects[key] = made
        self.counts.objects_created += 1
        self._spoke(process, now)
        return made

    def _start(self, key: ProcessKey, now: float, origin: str) -> Process | None:
        theirs = self._process_origins.get(origin, 0)
        if len(self._processes) >= self.limits.processes or theirs >= self.limits.processes_per_origin:
            return None
        self._process_origins[origin] = theirs + 1
        made = Process(key, now, origin)
        self._processes[key] = self._process_links[made.link] = made
        host, application, _ = key
        went = self._departed.pop((host, application), None)
        again = went is not None and now - went <= self.limits.restart_within and bool(application)
        kind = "process_restarted" if again else "process_started"
        told = "took the place of one that is silent or gone" if again else "appeared"
        self._tell(kind, made, now, f"process {made.process_id} {told}")
        return made

    def _heard(self, found: MonitoredObject, now: float) -> None:
        process, gap = found.process, now - found.last_seen
        if gap >= 0.05:
            process.interval += (gap - process.interval) / 8 if process.interval else gap
        self._spoke(process, now)

    def _spoke(self, process: Process, now: float) -> None:
        if process.silent:
            process.silent = False
            silence = now - process.last_seen
            self._departed.pop(process.key[:2], None)
            self._tell("process_back", process, now, f"process {process.process_id} is back after {silence:.1f} s")
        process.last_seen = now

    # ---- what records say ----

    def _look(self, found: MonitoredObject, now: float) -> None:
        """What has grown since the record before."""
        if found.kind == "receiver":
            found.judge()
            if lost := found.grown("lost"):
                self._tell_lost("loss", found, now, lost, f"{lost} datagrams missing")
            if gone := found.grown("unrecovered_txw") + found.grown("unrecovered_tmo"):
                self._tell_lost("unrecovered", found, now, gone, f"{gone} datagrams lost for good")
        elif found.kind == "context" and (gone := found.grown("fragments_unrecoverably_lost")):
            self._tell_lost("unrecovered", found, now, gone, f"{gone} messages or fragments lost for good")

    def _topic(self, found: MonitoredObject, record: TopicRecord, now: float) -> None:
        before = found.sessions
        ended = {self._short(session_of(each.source)) for each in record.sources if each.state == "deleted"}
        alive = {self._short(session_of(each.source)) for each in record.sources if each.state == "created"} - ended
        found.sessions = tuple(sorted(alive)[: self.limits.sources_per_topic])
        for session in set(before) - set(found.sessions):
            self._unlink(session, found)
        for session in found.sessions:
            self._sessions.setdefault(session, {})[found.key] = found
        for session in sorted(ended & set(before)):
            self._tell("source_gone", found.process, now, f"{session} ended", link=found.link, topics=(found.source,))
        found.update({}, record.attributes.timestamp, now)

    def _unlink(self, session: str, topic: MonitoredObject) -> None:
        there = self._sessions.get(session)
        if there is not None:
            there.pop(topic.key, None)
            if not there:
                del self._sessions[session]

    # ---- time ----

    def expire(self, now: float) -> int:
        """Remove what has been silent for too long, and find out which processes are silent. Returns how many went."""
        limits = self.limits
        removed = 0
        for process in list(self._processes.values()):
            silence = now - process.last_seen
            if not process.silent and process.interval and silence > process.patience(limits.silent_after, 2.5):
                process.silent = True
                self._departed[process.key[:2]] = now
                self._tell("process_silent", process, now, f"nothing from process {process.process_id}", silence)
                self._succeeded(process, now)
            patience = process.patience(limits.expire_after, 6)
            old = [each for each in process.objects.values() if now - each.last_seen > patience]
            for each in old:
                self._remove(each)
            removed += len(old)
            if process.objects:
                for each in old:
                    kind = "source_gone" if each.kind == "source" else "object_gone"
                    self._tell(kind, process, now, f"nothing more about {each.kind} {each.source}".rstrip(), each=each)
            else:
                self._leave(process, len(old), now)
        self._departed = {name: at for name, at in self._departed.items() if now - at <= limits.restart_within}
        self._log.forget(now)
        return removed

    def _succeeded(self, process: Process, now: float) -> None:
        """Tell of a process of the same name that began to speak when this one had just ceased to."""
        host, application, _ = process.key
        for other in self._processes.values():
            if application and other.key[:2] == (host, application) and other.first_seen > process.last_seen:
                text = f"process {other.process_id} took the place of {process.process_id}"
                self._tell("process_restarted", other, now, text)
                del self._departed[process.key[:2]]
                return

    def _remove(self, gone: MonitoredObject) -> None:
        gone.gone = True
        del self._objects[gone.key], self._links[gone.link], gone.process.objects[gone.key]
        _one_less(self._origins, gone.origin)
        for session in gone.sessions:
            self._unlink(session, gone)
        self.counts.objects_expired += 1

    def _leave(self, process: Process, objects: int, now: float) -> None:
        del self._processes[process.key], self._process_links[process.link]
        _one_less(self._process_origins, process.origin)
        if len(self._departed) < self.limits.processes:
            self._departed[process.key[:2]] = now
        self._tell("process_gone", process, now, f"process {process.process_id} is gone", amount=objects)

    # ---- events ----

    def _tell_lost(self, kind: str, found: MonitoredObject, now: float, amount: int, text: str) -> None:
        where = f" of {found.source}" if found.source else ""
        self._tell(kind, found.process, now, text + where, amount=amount, each=found)

    def _tell(
        self,
        kind: str,
        process: Process,
        now: float,
        text: str,
        silence: float = 0.0,
        *,
        amount: int = 0,
        link: str = "",
        each: MonitoredObject | None = None,
        topics: tuple[str, ...] = (),
        line: bool = False,
    ) -> None:
        if silence:
            text = f"{text} for {silence:.1f} s"
        if each is not None:
            link, topics = each.link, self.topics(each)
        host, application, process_id = process.key
        source = "" if each is None else each.source
        self._log.add(
            Event(
                self._log.count + 1,
                now,
                kind,
                host,
                application,
                process_id,
                link or process.link,
                source,
                topics,
                amount,
                text,
                line,
            )
        )

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The events with numbers beyond `after`, oldest first; the newest `limit` of them, and of those kept."""
        return self._log.since(after, limit)

    # ---- questions ----

    def __len__(self) -> int:
        return len(self._objects)

    def objects(self, kind: str | None = None) -> list[MonitoredObject]:
        """All objects, or those of one kind: context, source, receiver, event_queue, topic, wildcard."""
        return [each for each in self._objects.values() if kind is None or each.kind == kind]

    def processes(self) -> list[Process]:
        """All processes, by host, application and number."""
        return sorted(self._processes.values(), key=lambda each: each.key)

    def get(self, link: str) -> MonitoredObject | None:
        """The object with this link."""
        return self._links.get(link)

    def process(self, link: str) -> Process | None:
        """The process with this link."""
        return self._process_links.get(link)

    def find(self, text: str, limit: int = 100) -> list[MonitoredObject]:
        """Objects all words of `text` occur in: host, application, process, kind, context, source, topic."""
        words = text.lower().split()[:16]
        found: list[MonitoredObject] = []
        for each in self._objects.values():
            about = " ".join(map(str, (*each.key[:7], each.transport, *self.topics(each)))).lower()
            if all(word in about for word in words):
                found.append(each)
                if len(found) >= limit:
                    break
        return found

    def topics(self, found: MonitoredObject) -> tuple[str, ...]:
        """Topics that an object is about, as far as records tell: of a receiver those its process receives from the
        session, of a source those anybody receives from it."""
        if found.kind in ("topic", "wildcard"):
            return (found.source,)
        there = self._sessions.get(session_of(found.source)) if found.source else None
        if not there:
            return ()
        names: set[str] = set()
        for each in there.values():
            if found.kind == "source" or (each.key[:3] == found.key[:3] and each.context == found.context):
                names.add(each.source)
                if len(names) >= self.limits.topics_per_session:
                    break
        return tuple(sorted(names))

    def receivers_of(self, found: MonitoredObject) -> list[MonitoredObject]:
        """Receivers of the session of a source."""
        return [each for each in self._objects.values() if each.kind == "receiver" and _same_session(each, found)]

    def slow_receivers(self, limit: int = 20) -> list[SlowReceiver]:
        """Those that do not keep up, the worst first: silent processes, losses, NAKs, waiting events and bytes."""
        scored = (
            (score, number, each) for number, each in enumerate(self._objects.values()) if (score := _score(each))
        )
        best = heapq.nlargest(limit, scored)
        return [SlowReceiver(each, score, _reasons(each), self.topics(each)) for score, _, each in best]

    def summary(self) -> dict[str, int]:
        """Numbers of processes, silent ones, objects by kind, and the counts."""
        kinds = ("context", "source", "receiver", "event_queue", "topic", "wildcard")
        result = {"processes": len(self._processes), "silent": sum(each.silent for each in self._processes.values())}
        result.update({f"{kind}s": 0 for kind in kinds})
        for each in self._objects.values():
            result[f"{each.kind}s"] += 1
        result.update({each.name: getattr(self.counts, each.name) for each in fields(FleetCounts)})
        return result


def _one_less(numbers: dict[str, int], name: str) -> None:
    if numbers[name] == 1:
        del numbers[name]
    else:
        numbers[name] -= 1


def _same_session(one: MonitoredObject, other: MonitoredObject) -> bool:
    return session_of(one.source) == session_of(other.source)


LINE_SENDERS = 4  # of one process: a stranger's numbers must not pass for its own
SILENT_SCORE = 1e9  # a process that says nothing comes before one that is slow
EVENTS_MANY = 100  # waiting in an event queue
BYTES_MANY = 65_536  # waiting for clients of a TCP source


def _score(each: MonitoredObject) -> float:
    kind = each.kind
    score = 0.0
    if kind == "receiver":
        score = each.trouble
    elif kind == "event_queue" and (waiting := each.value("events")) >= EVENTS_MANY:
        score = float(waiting)
    elif kind == "source" and (size := each.value("bytes_buffered")) >= BYTES_MANY:
        score = size / 1e3
    return score + SILENT_SCORE if each.process.silent and kind in ("receiver", "event_queue") else score


def _reasons(each: MonitoredObject) -> tuple[str, ...]:
    reasons = ["its process is silent"] if each.process.silent else []
    if each.kind == "receiver":
        gone = each.rate("unrecovered_txw") + each.rate("unrecovered_tmo")
        for rate, what in ((gone, "lost for good"), (each.rate("lost"), "missed"), (each.rate("naks_sent"), "NAKs")):
            if rate > 0:
                reasons.append(f"{rate:.1f} {what}/s")
        if not reasons:
            reasons.append("losses or NAKs in the last seconds")
    elif each.kind == "event_queue" and (waiting := each.value("events")) >= EVENTS_MANY:
        reasons.append(f"{waiting} events wait")
    elif each.kind == "source":
        size, clients = each.value("bytes_buffered"), each.value("num_clients")
        reasons.append(f"{size / 1e3:,.0f} kB wait for its {clients} clients")
    return tuple(reasons)
