"""The thread that takes records, keeps the Watch, and answers questions about it.

The Desk is made and asked on the thread of the server; what it owns (the Watch, the reception) is touched by its own
thread alone. Questions and answers cross by a bounded queue. Records may take a share of the time only, so that a flood
of them leaves the page its answers; what they do not get through is dropped by the reception, and counted.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Protocol

from um_cffi.monitoring import Arrival, MonitorCounts
from um_cffi.web._settings import Settings
from um_cffi.web._views import Views
from um_cffi.web._watch import Watch

QUESTIONS = 64  # that wait at a time
CACHED = 256  # answers
NAP = 0.05  # seconds to wait for records before looking for questions

Question = tuple[str, ...]
Answer = dict[str, bytes]


class Reception(Protocol):
    """Where records come from: a um_cffi.monitoring.Monitor, or what stands in for it. Used on one thread."""

    def poll(self, timeout: float | None = None) -> Sequence[Arrival]:
        """Some thousand records at most; waits up to `timeout` seconds for the first."""

    def counts(self) -> MonitorCounts:
        """What was done with what came."""


def told(counts: MonitorCounts) -> dict[str, int]:
    """Counters of the reception for the foot of the page."""
    return {
        "received": counts.records,
        "malformed": sum(counts.malformed.values()),
        "dropped": counts.dropped + counts.refused,
    }


class Busy(Exception):
    """Too many questions wait."""


class Desk:
    """Keeps the state of the page on a thread of its own, from start() to stop()."""

    def __init__(
        self, settings: Settings, watch: Watch, reception: Reception, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._watch, self._reception, self._clock = settings, watch, reception, clock
        self._questions: deque[tuple[Question, asyncio.AbstractEventLoop]] = deque()  # both threads
        self._asked: dict[Question, asyncio.Future[Answer | None]] = {}  # the server's
        self._answers: OrderedDict[Question, tuple[int, Answer | None]] = OrderedDict()  # the server's
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="um-web-desk", daemon=True)
        self._next_tick = 0.0
        self.version = 0  # of the state, written by the thread of the desk
        self.failure: BaseException | None = None  # that ended the thread

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for that."""
        self._stop.set()
        self._thread.join(10)

    @property
    def alive(self) -> bool:
        """Whether it keeps the state."""
        return self._thread.is_alive()

    # ---- the server's side ----

    async def ask(self, question: Question) -> Answer | None:
        """The sections of a view as JSON, None when there is no such thing. Raises Busy."""
        known = self._answers.get(question)
        if known is not None and known[0] == self.version:
            return known[1]
        future = self._asked.get(question)
        if future is None:
            if len(self._asked) >= QUESTIONS or not self.alive:
                raise Busy
            loop = asyncio.get_running_loop()
            future = self._asked[question] = loop.create_future()
            self._questions.append((question, loop))
        return await asyncio.shield(future)

    def _answered(self, question: Question, version: int, answer: Answer | None) -> None:
        self._answers[question] = (version, answer)
        self._answers.move_to_end(question)
        while len(self._answers) > CACHED:
            self._answers.popitem(last=False)
        future = self._asked.pop(question, None)
        if future is not None and not future.done():
            future.set_result(answer)

    # ---- the desk's own thread ----

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._turn()
        except BaseException as error:
            self.failure = error
            raise

    def _turn(self) -> None:
        begin = time.thread_time()
        arrivals = self._reception.poll(0.0 if self._questions else NAP)
        now = self._clock()
        for record, origin in arrivals:
            self._watch.add(record, now, origin)
        if now >= self._next_tick:
            self._watch.tick(now)
            self.version = self._watch.version
            self._next_tick = now + self._settings.interval
        self._watch.go_on()
        spent = time.thread_time() - begin
        for _ in range(min(4, len(self._questions))):
            self._answer(*self._questions.popleft())
        if arrivals:
            self._stop.wait(min(0.1, spent * (1 / self._settings.duty - 1)))

    def _answer(self, question: Question, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        views = Views(self._watch, now, time.time() - now, told(self._reception.counts()))
        sections = views.render(question)
        answer = None
        if sections is not None:
            answer = {name: json.dumps(part, separators=(",", ":")).encode() for name, part in sections.items()}
        try:
            loop.call_soon_threadsafe(self._answered, question, self.version, answer)
        except RuntimeError:
            return  # the server has ended meanwhile
