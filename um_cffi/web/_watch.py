"""What the page knows: the model of the fleet, its last hour, since when something is wrong, and who has gone.

Owned by the Desk, on its thread; takes records and times, makes no input or output. The clock is monotonic; `wall` is
what has to be added to it for the time of day.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from um_cffi.monitoring._records import Record
from um_cffi.monitoring.fleet import Fleet, MonitoredObject, SlowReceiver
from um_cffi.web._history import FLEET, History
from um_cffi.web._settings import Settings

CALM = 10.0  # seconds without a sign of trouble after which it is over
RANKED = 200  # of the slow at most
LOOKED_AT = 250  # objects for the history in one turn
DEPARTED = 2_000  # of which is remembered what they were
WAITING_BYTES = 65_536  # for the clients of a source: it waits for somebody
WAITING_EVENTS = 100  # in an event queue


@dataclass(frozen=True)
class Trouble:
    """Somebody who does not keep up."""

    slow: SlowReceiver
    level: str  #: "silent", "lost" (for good), "missed", "waits"
    since: float  #: of the clock


@dataclass(frozen=True)
class Departed:
    """What an object was that is there no longer."""

    link: str
    kind: str
    host: str
    application: str
    process_id: int
    context: str
    source: str
    transport: str
    at: float


class Watch:
    """The state behind the page."""

    def __init__(self, settings: Settings, fleet: Fleet | None = None) -> None:
        self.settings = settings
        self.fleet = Fleet() if fleet is None else fleet
        self.history = History(settings.history_objects)
        self.troubles: list[Trouble] = []
        self.departed: OrderedDict[str, Departed] = OrderedDict()
        self.calm_since: float | None = None  # nobody was slow since then
        self.version = 0  # grows with each tick
        self._since: dict[str, tuple[float, float]] = {}  # by link: began, last seen in trouble
        self._known: dict[str, MonitoredObject] = {}

    def add(self, record: Record, now: float, origin: str) -> None:
        """Take one record."""
        self.fleet.add(record, now, origin)

    def tick(self, now: float) -> None:
        """Once a second: expire, rank, note since when."""
        self.version += 1
        self.fleet.expire(now)
        self._note_departed(now)
        self._rank(now)
        if self.history.due(now):
            self.history.begin(self.fleet.objects(), now)

    def go_on(self) -> bool:
        """Some of the work that may be done in parts. True when nothing is left."""
        return self.history.go_on(LOOKED_AT)

    def _note_departed(self, now: float) -> None:
        """Objects that the fleet has removed since the last tick; new ones."""
        for link, each in [(link, each) for link, each in self._known.items() if each.gone]:
            del self._known[link]
            self.departed[link] = Departed(
                link,
                each.kind,
                each.host,
                each.application,
                each.process_id,
                each.context,
                each.source,
                each.transport,
                each.last_seen,
            )
            self.history.leave(link, now)
        while len(self.departed) > DEPARTED:
            self.departed.popitem(last=False)
        if len(self._known) != len(self.fleet):
            for each in self.fleet.objects():
                if each.link not in self._known:
                    self._known[each.link] = each
                    self.departed.pop(each.link, None)

    def _rank(self, now: float) -> None:
        found = []
        for slow in self.fleet.slow_receivers(RANKED):
            each = slow.object
            level = level_of(each)
            began = each.process.last_seen if level == "silent" else now
            if each.link in self._since:
                began = min(began, self._since[each.link][0])
            self._since[each.link] = (began, now)
            found.append(Trouble(slow, level, began))
        for link, (_, seen) in list(self._since.items()):
            if now - seen > CALM:
                del self._since[link]
        self.calm_since = None if found else self.calm_since if self.calm_since is not None else now
        self.troubles = found


def level_of(each: MonitoredObject) -> str:
    """How an object is: "silent", "lost" (messages for good), "missed", "waits" or "ok"."""
    if each.process.silent:
        return "silent"
    if each.kind == "receiver" and each.trouble > 0:
        return "lost" if each.rate("unrecovered_txw") or each.rate("unrecovered_tmo") else "missed"
    if each.kind == "source" and each.value("bytes_buffered") >= WAITING_BYTES:
        return "waits"
    if each.kind == "event_queue" and each.value("events") >= WAITING_EVENTS:
        return "waits"
    return "ok"


def speed(each: MonitoredObject, *names: str) -> float:
    """How fast the first of these numbers grows; 0 where nothing comes any more."""
    if each.process.silent:
        return 0.0
    return next((each.rate(name) for name in names if name in each.names), 0.0)


__all__ = ["FLEET", "Departed", "Trouble", "Watch", "level_of", "speed"]
