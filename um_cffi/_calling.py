"""Callbacks of receivers: dispatched by a queue's thread, or awaited on an event loop. Direct ones are in C."""

from __future__ import annotations

import inspect
import threading
import time

from um_cffi._channels import OnMessage
from um_cffi._pulling import Pulling
from um_cffi.batch import event_of
from um_cffi.binding.deferred import asyncio, running_loop

_DISPATCH_MAX = 8192  # messages of one receiver before the others of its queue have their turn
_LOOP_CHECK = 0.1  # seconds between looks whether an event loop still runs whose callback a close() waits for


class Calling(Pulling):
    """A receiver that calls back, if it was given a callback."""

    _pump: asyncio.Task[None] | None = None  # awaits the callbacks that are coroutines
    _idle: threading.Event  # with _pump: it is not inside one

    def _begin(self) -> None:
        if self._awaits:
            assert self._loop is not None and self._on_message is not None
            self._idle = threading.Event()
            self._idle.set()
            self._pump = self._loop.create_task(self._give_awaiting(self._on_message))

    def _dispatch(self) -> int:
        """On the dispatching thread: give what waits to the callbacks. Returns how many there were."""
        intake, done = self._intake, 0
        most = _DISPATCH_MAX if self._ahead > 1 else 1
        try:
            while done < _DISPATCH_MAX and not self._closed and intake.fill(most, 0):
                self._newest_ns = intake.newest_ns
                done += self._give()
                if most > 1:
                    break
            return done
        except BaseException:
            if intake.pending and self._queue is not None:  # the next dispatch goes on with the message after
                self._queue._interrupted(self)
            raise

    def _give(self) -> int:
        """Give what is pending to the callbacks, each kind to its own. Returns how many there were."""
        call, done = self._on_message, 0
        assert call is not None
        while True:
            done += self._intake.run(call, self._failed)
            event = self._intake.event()
            if event is None:
                return done
            done += 1
            self._tell(event_of(event))

    def _waiting(self) -> tuple[int, float]:
        """Messages that wait for dispatch, and by how many seconds the last dispatched one was late."""
        waiting = self.queue_stats().queued_messages
        behind = (time.time_ns() - self._newest_ns) / 1e9 if waiting and self._newest_ns else 0.0
        return waiting, behind

    async def _give_awaiting(self, call: OnMessage) -> None:
        """The task that awaits the callbacks of messages, one after the other."""
        while True:
            try:
                message = await self._next_message()
            except StopAsyncIteration:
                return
            self._idle.clear()
            try:
                result = call(message)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:
                self._failed(error)
            finally:
                self._idle.set()

    def _await_callbacks(self, patience: float | None) -> None:
        """Until the coroutine that is being awaited has come to its end; not on the event loop, which has to run it."""
        loop, end = self._loop, None if patience is None else time.monotonic() + patience
        if self._pump is None or loop is None or running_loop() is loop:
            return
        while not self._idle.wait(_LOOP_CHECK) and loop.is_running():
            if end is not None and time.monotonic() >= end:
                return
