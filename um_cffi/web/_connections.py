"""Connections to the page: how many there may be, and the closing of those that say nothing or take nothing.

On top of the HTTP protocol of uvicorn, on the thread of its loop. A browser that sends half a request, or reads
nothing, costs a descriptor and some 100 KB for at most Settings.quiet or Settings.stalled seconds.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from um_cffi.web._limits import ServerCounts
from um_cffi.web._settings import Settings

REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\nConnection: close\r\n\r\n"
SWEEP = 1.0  # seconds between two looks at all connections


class Door:
    """Who is in, and whether somebody may enter."""

    def __init__(self, settings: Settings, counts: ServerCounts) -> None:
        self.settings, self.counts = settings, counts
        self.inside: set[Connection] = set()
        self._of: collections.Counter[str] = collections.Counter()

    def enter(self, one: Connection, address: str) -> bool:
        """Whether there is room for a connection from the address; then it is in."""
        crowd = not address.startswith("127.") and self._of[address] >= self.settings.connections_per_address
        if crowd or len(self.inside) >= self.settings.connections:
            self.counts.connections_refused += 1
            return False
        self.counts.connections += 1
        self.inside.add(one)
        self._of[address] += 1
        return True

    def leave(self, one: Connection, address: str) -> None:
        """A connection is closed."""
        if one in self.inside:
            self.inside.remove(one)
            self._of[address] -= 1
            if self._of[address] <= 0:
                del self._of[address]

    def sweep(self, seconds: float) -> None:
        """So many seconds have passed: close what waits for nothing."""
        for each in list(self.inside):
            reason = each.aged(seconds, self.settings)
            if reason:
                setattr(self.counts, reason, getattr(self.counts, reason) + 1)
                each.transport.abort()

    async def watch(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep(SWEEP)

    def protocol(self) -> type[asyncio.Protocol]:
        """The class of connections through this door, for uvicorn."""
        return type("Connection", (Connection,), {"door": self})


class Connection(H11Protocol):
    """One connection; uvicorn makes it."""

    door: Door

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state=app_state, _loop=_loop)
        self._address = ""
        self._admitted = False
        self._quiet = 0.0  # seconds without a request under way
        self._full = 0.0  # seconds in which something was always waiting to be written

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, or answer that there is no room."""
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) and peer else "local"
        self._admitted = self.door.enter(self, self._address)
        if self._admitted:
            super().connection_made(cast(asyncio.Transport, transport))
        else:
            refused = cast(asyncio.Transport, transport)
            refused.write(REFUSAL)
            refused.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        if self._admitted:
            self.door.leave(self, self._address)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._admitted:
            super().data_received(data)

    def eof_received(self) -> None:
        """The other side sends no more."""
        if self._admitted:
            super().eof_received()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self.door.counts.requests_malformed += 1
        super().send_400_response(msg)

    def aged(self, seconds: float, settings: Settings) -> str:
        """The counter of why it is to be closed, or "" ."""
        answering = self.cycle is not None and not self.cycle.response_complete
        self._quiet = 0.0 if answering else self._quiet + seconds
        self._full = self._full + seconds if self.transport.get_write_buffer_size() else 0.0
        if self._full >= settings.stalled:
            return "connections_stalled"
        return "connections_quiet" if self._quiet >= settings.quiet else ""
