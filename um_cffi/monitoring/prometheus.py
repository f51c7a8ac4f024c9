"""The counters of this process's contexts for prometheus_client, beside what else the program exports by it.

    import prometheus_client
    from um_cffi.monitoring import prometheus

    prometheus.register(ctx, "orders")
    prometheus_client.start_http_server(9465, "127.0.0.1")

Nothing is sampled in between: a scrape reads the counters of the context, its sources and its receivers, on the thread
that scrapes. For a fleet without code in its programs there is `um exporter`. Needs prometheus_client.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from um_cffi.context import Context
from um_cffi.errors import NotSupported, UmError
from um_cffi.monitoring._families import MEMBERS
from um_cffi.monitoring._fields import UNSET
from um_cffi.receiver import Receiver, WildcardReceiver
from um_cffi.source import Source
from um_cffi.stats import ContextCounts, ReceiverCounts, SourceCounts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

__all__ = ["Collector", "register"]

LIMIT = 1000
NAKS = 20  # receiving contexts of a session that are told by address
_LEVELS = {
    "receivers",
    "blocked_by_pid",
    "sources",
    "joins_waiting",
    "joins_under_way",
    "retransmit_waiting",
    "mim_senders",
    "mim_silent",
    "services_connected",
}
_QUEUE_LEVELS = {"queued_messages", "queued_bytes"}


def _named(field: str) -> tuple[str, float]:
    """A field's name and scale in base units."""
    if field.endswith("_ns"):
        return field[:-3] + "_seconds", 1e-9
    return field, 1.0


class _Families:
    """Metrics made as samples come; one sample for each set of labels."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, name: str, told: str, level: bool, labels: dict[str, str], value: float) -> None:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        family = self._found.get(name)
        if family is None:
            kind = GaugeMetricFamily if level else CounterMetricFamily
            family = self._found[name] = kind(name, told, labels=list(labels))
        values = tuple(labels.values())
        if (name, values) not in self._seen:
            self._seen.add((name, values))
            family.add_metric(list(values), value)

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._found.values())


class Collector:
    """Reads the counters of a context, its sources and its receivers, whenever it is asked to collect().

    `name` is the label `context`; without one it is the context's option context_name, or "". At most `limit` sources
    and as many receivers and sessions are told of, those made first; um_left_out has the number of the others. The
    context is not kept alive; nothing is told when it is closed. Any thread may scrape.
    """

    def __init__(self, ctx: Context, name: str = "", limit: int = LIMIT) -> None:
        self._ctx = weakref.ref(ctx)
        self._name = name or ctx.getopt("context_name")
        self._limit = limit

    def describe(self) -> list[Metric]:
        """For prometheus_client: nothing is read when the collector is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics of the context as it is now."""
        found = _Families()
        ctx = self._ctx()
        if ctx is not None:
            try:
                self._context(ctx, found)
                self._parts(ctx, found)
            except UmError:  # it is being closed: what has been read is told
                pass
        yield from found

    def _context(self, ctx: Context, found: _Families) -> None:
        about = {"context": self._name}
        counts, stats = ctx.counts(), ctx.stats()
        for field in fields(ContextCounts):
            name, scale = _named(field.name)
            value = getattr(counts, field.name) * scale
            found.add(f"um_context_{name}", _told(field.name), field.name in _LEVELS, about, value)
        for name, member in MEMBERS["context"].items():
            _add_member(found, member, about, getattr(stats, name))

    def _parts(self, ctx: Context, found: _Families) -> None:
        parts = list(ctx._children.values())
        sources = [each for each in parts if isinstance(each, Source)]
        receivers = [each for each in parts if isinstance(each, (Receiver, WildcardReceiver))]
        for what, number in (("sources", len(sources)), ("receivers", len(receivers))):
            left = max(0, number - self._limit)
            found.add("um_left_out", "Objects that are not told of.", True, {"context": self._name, "what": what}, left)
        numbers: dict[str, int] = {}
        for each in (*sources[: self._limit], *receivers[: self._limit]):
            side = "source" if isinstance(each, Source) else "receiver"
            topic = each.pattern if isinstance(each, WildcardReceiver) else each.topic
            numbers[f"{side} {topic}"] = number = numbers.get(f"{side} {topic}", 0) + 1
            about = {"context": self._name, "topic": topic, "number": str(number)}
            try:
                self._part(each, side, about, found)
            except UmError:  # closed meanwhile
                continue

    def _part(self, each: Any, side: str, about: dict[str, str], found: _Families) -> None:
        counts = each.counts()
        kind: Any = SourceCounts if side == "source" else ReceiverCounts
        for field in fields(kind):
            name, scale = _named(field.name)
            value = getattr(counts, field.name) * scale
            found.add(f"um_{side}_{name}", _told(field.name), field.name in _LEVELS, about, value)
        if side == "receiver":
            queue = each.queue_stats()
            for name in ("dropped", "pauses", "conflated", *sorted(_QUEUE_LEVELS)):
                value = getattr(queue, name)
                found.add(f"um_receiver_queue_{name}", _told(name), name in _QUEUE_LEVELS, about, value)
            for session in each.stats()[: self._limit]:
                self._session(side, session, found)
            return
        try:
            stats = each.stats()
        except NotSupported:  # a transport without numbers
            return
        self._session(side, stats, found)
        for asking in each.naks()[:NAKS]:
            labels = {"context": self._name, "source": stats.source, "receiver": asking.receiver}
            told = "Datagrams that a receiving context asked to be repaired."
            found.add("um_source_receiver_naks", told, False, labels, asking.naks)

    def _session(self, side: str, stats: Any, found: _Families) -> None:
        """Objects that share a session tell the same of it; it is told once."""
        about = {"context": self._name, "source": stats.source, "transport": stats.transport.name.lower()}
        for field in fields(stats)[2:]:
            member = MEMBERS[side].get(field.name)
            if member is not None:
                _add_member(found, member, about, getattr(stats, field.name))


def _add_member(found: _Families, member: Any, about: dict[str, str], value: int) -> None:
    family, label, scale = member
    labels = dict(about)
    if label:
        name, _, text = label.partition("=")
        labels[name] = text.strip('"')
    if family.type == "counter" or value != UNSET:
        found.add(family.name, family.help, family.type != "counter", labels, value * scale if scale != 1.0 else value)


def _told(field: str) -> str:
    return f"{field.replace('_', ' ')}: see um_cffi.stats."


def register(
    ctx: Context, name: str = "", *, registry: CollectorRegistry | None = None, limit: int = LIMIT
) -> Collector:
    """Let prometheus_client export the counters of `ctx`; see Collector for `name` and `limit`, a number of objects.

    `registry` is that of prometheus_client unless given. Returns the collector, for registry.unregister(). ImportError
    without prometheus_client.
    """
    from prometheus_client import REGISTRY

    made = Collector(ctx, name, limit)
    (REGISTRY if registry is None else registry).register(made)
    return made
