"""A fleet as text for Prometheus, written at once: prometheus_client would take seconds for ten thousand objects.

Labels of an object are written once and kept beside it, so that a scrape joins texts. Used on the thread of the Fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from operator import add, mul

from um_cffi.monitoring import _fields
from um_cffi.monitoring._families import MEMBERS, Family, Member
from um_cffi.monitoring._objects import Key, MonitoredObject
from um_cffi.monitoring.fleet import Fleet

TOPIC = Family("um_receiver_topic", "info", "Topics that contexts receive, and the sessions they come from.")
UP = Family("um_process_up", "gauge", "1 while records of a process come as usual, 0 when it has become silent.")
AGE = Family("um_process_record_age_seconds", "gauge", "Time since the last record of a process.")
SLOW = Family("um_slow_score", "gauge", "Place in the ranking of slow receivers; the worst have most.")
SLOWEST = 20


def escaped(text: str) -> str:
    """A value of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(pairs: Mapping[str, str]) -> str:
    """Labels without braces; those without a value are left out."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in pairs.items() if value)


def labels_of(each: MonitoredObject) -> dict[str, str]:
    """What tells an object from all others."""
    return {
        "host": each.host,
        "application": each.application,
        "process": str(each.process_id),
        "context": each.context,
        "object": f"{each.object_id:x}",
        "source": each.source,
        "transport": each.transport,
        "immediate": "true" if each.immediate else "",
    }


def head(family: Family, open_metrics: bool) -> str:
    """What comes before the samples of a metric, in OpenMetrics or in the older text format of Prometheus."""
    if not open_metrics:
        name = f"{family.name}_info" if family.type == "info" else family.sample
        return f"# HELP {name} {family.help}\n# TYPE {name} {'gauge' if family.type == 'info' else family.type}\n"
    unit = next((unit for unit in ("seconds", "bytes") if family.name.endswith(f"_{unit}")), "")
    told = f"# UNIT {family.name} {unit}\n" if unit else ""
    return f"# TYPE {family.name} {family.type}\n{told}# HELP {family.name} {family.help}\n"


class FleetText:
    """Writes a Fleet as OpenMetrics."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._labels: dict[Key, str] = {}
        self._plans: dict[tuple[str, ...], list[tuple[int, Member]]] = {}

    def render(self, now: float, open_metrics: bool = True) -> list[bytes]:
        """All samples of the fleet, in pieces of up to megabytes; the line that ends the text is not there."""
        parts: list[str] = []
        groups: dict[tuple[str, tuple[str, ...]], tuple[list[str], list[tuple[int, ...]]]] = {}
        known = self._labels
        fresh: dict[Key, str] = {}
        for each in self._fleet.objects():
            if each.kind in MEMBERS and each.numbers:
                told = known.get(each.key)
                if told is None:
                    told = labels(labels_of(each)) + "} "
                fresh[each.key] = told
                objects, rows = groups.setdefault((each.kind, each.names), ([], []))
                objects.append(told)
                rows.append(each.numbers)
        self._labels = fresh
        written: dict[Family, list[str]] = {}
        for (kind, names), (objects, rows) in groups.items():
            columns = list(zip(*rows))
            for at, member in self._plan(kind, names):
                written.setdefault(member.family, []).append(_samples(member, objects, columns[at]))
        for family, samples in written.items():
            parts.append(head(family, open_metrics))
            parts += samples
        self._topics(parts, open_metrics)
        self._processes(parts, now, open_metrics)
        self._slow(parts, open_metrics)
        return list(map(str.encode, parts))

    def _plan(self, kind: str, names: tuple[str, ...]) -> list[tuple[int, Member]]:
        plan = self._plans.get(names)
        if plan is None:
            members = MEMBERS[kind]
            plan = [(at, members[name]) for at, name in enumerate(names) if name in members]
            self._plans[names] = plan
        return plan

    def _topics(self, parts: list[str], open_metrics: bool) -> None:
        topics = self._fleet.objects("topic")
        if not topics:
            return
        parts.append(head(TOPIC, open_metrics))
        for each in topics:
            about = {**labels_of(each), "source": "", "object": "", "topic": each.source}
            for session in each.sessions or ("",):
                about["source"] = session
                about["object"] = f"{each.object_id:x}"
                parts.append(f"{TOPIC.name}_info{{{labels(about)}}} 1\n")

    def _processes(self, parts: list[str], now: float, open_metrics: bool) -> None:
        processes = self._fleet.processes()
        told = [
            (labels({"host": each.host, "application": each.application, "process": str(each.process_id)}), each)
            for each in processes
        ]
        parts.append(head(UP, open_metrics))
        parts += [f"{UP.name}{{{about}}} {0 if each.silent else 1}\n" for about, each in told]
        parts.append(head(AGE, open_metrics))
        parts += [f"{AGE.name}{{{about}}} {max(0.0, now - each.last_seen):.3f}\n" for about, each in told]

    def _slow(self, parts: list[str], open_metrics: bool) -> None:
        parts.append(head(SLOW, open_metrics))
        for slow in self._fleet.slow_receivers(SLOWEST):
            about = labels_of(slow.object)
            about["topic"] = slow.topics[0] if len(slow.topics) == 1 else ""
            about["kind"] = slow.object.kind
            parts.append(f"{SLOW.name}{{{labels(about)}}} {slow.score:.6g}\n")


def _samples(member: Member, objects: list[str], column: tuple[int, ...]) -> str:
    """A line for each object. The loops run in C: there may be hundreds of thousands of lines."""
    family, label, scale = member
    if family.type == "gauge" and _fields.UNSET in column:
        pairs = [(about, number) for about, number in zip(objects, column) if number != _fields.UNSET]
        if not pairs:
            return ""
        objects, column = [about for about, _ in pairs], tuple(number for _, number in pairs)
    begin = f"{family.sample}{{{label}," if label else f"{family.sample}{{"
    texts = map(str, column) if scale == 1.0 else map("{:.6g}".format, map(mul, column, repeat(scale)))
    return begin + f"\n{begin}".join(map(add, objects, texts)) + "\n"
