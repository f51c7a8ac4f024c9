"""Waiting until a receiver hears the sources that it wants to hear."""

from __future__ import annotations

import time

from um_cffi.binding._native import lib
from um_cffi.binding.arguments import whole
from um_cffi.binding.deadline import Deadline
from um_cffi.binding.deferred import asyncio
from um_cffi.binding.lifetime import Part
from um_cffi.errors import TimedOut, check, raise_last

_READY_CHECK = 0.005  # seconds between looks of await_ready()


class Readiness(Part):
    """What receivers of a topic and of a pattern tell of their sources."""

    def _ready_sources(self) -> int:
        raise NotImplementedError

    def _wait_ready_sources(self, sources: int, wait_ms: int) -> int:
        raise NotImplementedError

    def ready(self) -> int:
        """Number of sources whose sessions have begun and are alive: what they send from now on arrives here.

        InvalidArgument when the receiver is closed.
        """
        with self._using():
            return check(self._ready_sources())

    def wait_ready(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until the sessions of so many `sources` have begun.

        TimedOut after `timeout` seconds; None waits without bound. Signals are handled while waiting.
        """
        whole("sources", sources)
        deadline = Deadline(timeout)
        while True:
            with self._using():
                if self._wait_ready_sources(sources, deadline.slice()) == 0:
                    return
                if lib.lbm_errnum() != lib.LBM_ETIMEDOUT:
                    raise_last()
            if deadline.over():
                raise self._too_few(sources, timeout)

    async def await_ready(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until the sessions of so many `sources` have begun, as wait_ready(), for asyncio.

        TimedOut after `timeout` seconds; None waits without bound.
        """
        whole("sources", sources)
        deadline = Deadline(timeout)
        while self.ready() < sources:
            if deadline.over():
                raise self._too_few(sources, timeout)
            await asyncio.sleep(_READY_CHECK)

    def _joined(self) -> int:
        """How many sources are joined."""
        raise NotImplementedError

    def wait_session(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until sessions of so many `sources` are joined, whether something has come over them or not.

        For multicast: a session over LBT-RM begins for a receiver (wait_ready()) with the first packet of its source,
        which may send none until it has something to say; a receiver that has joined gets what is sent from then on.
        Over TCP and LBT-RU joined is not yet connected, and over shared memory not yet reading: use wait_ready() there.
        TimedOut after `timeout` seconds; None waits without bound. Signals are handled while waiting.
        """
        whole("sources", sources)
        deadline = Deadline(timeout)
        while self._joined() < sources:
            if deadline.over():
                raise self._too_few_joined(sources, timeout)
            time.sleep(_READY_CHECK)

    async def await_session(self, sources: int = 1, timeout: float | None = 10.0) -> None:
        """Wait until sessions of so many `sources` are joined, as wait_session(), for asyncio.

        TimedOut after `timeout` seconds; None waits without bound.
        """
        whole("sources", sources)
        deadline = Deadline(timeout)
        while self._joined() < sources:
            if deadline.over():
                raise self._too_few_joined(sources, timeout)
            await asyncio.sleep(_READY_CHECK)

    def _too_few_joined(self, sources: int, timeout: float | None) -> TimedOut:
        return TimedOut(f"{self._name}: {self._joined()} of {sources} sources are joined after {timeout} s")

    def _too_few(self, sources: int, timeout: float | None) -> TimedOut:
        return TimedOut(f"{self._name}: sessions of {self.ready()} of {sources} sources have begun after {timeout} s")
