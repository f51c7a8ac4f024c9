"""Serves the page: one loop for browsers on the calling thread, one thread for records (the Desk).

Called by `um web`, by the demo and by tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from um_cffi.monitoring.fleet import Fleet
from um_cffi.web._app import Site
from um_cffi.web._connections import Door
from um_cffi.web._desk import Desk, Reception
from um_cffi.web._guard import Guard
from um_cffi.web._limits import ServerCounts
from um_cffi.web._settings import Settings
from um_cffi.web._watch import Watch

HEADERS = 8192  # bytes of the headers of a request
FIRST = 3  # descriptor that service managers hand on
FAREWELL = 2  # seconds that browsers have to take the last answers


class _Server(uvicorn.Server):
    """Says when it listens; watches its door."""

    def __init__(self, config: uvicorn.Config, door: Door, site: Site, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._door, self._site, self._begun = door, site, begun
        self._watching: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._watching = asyncio.create_task(self._door.watch())
        self._begun()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything; browsers come again by themselves when there is a page again."""
        if self._watching is not None:
            self._watching.cancel()
        self._site.close()
        await super().shutdown(sockets)


def inherited() -> socket.socket | None:
    """The socket that a service manager has handed to this process (LISTEN_FDS), if it has."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    del os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"]
    return socket.socket(fileno=FIRST)


def listening(settings: Settings) -> socket.socket:
    """A socket for the page. OSError names the address."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
    except OSError as error:
        made.close()
        raise OSError(error.errno, f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error
    return made


def address_of(made: socket.socket) -> str:
    """What to open in a browser."""
    host, port = made.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def server(settings: Settings, desk: Desk, begun: Callable[[], None]) -> uvicorn.Server:
    """A server of the page, for serve(sockets=[...])."""
    counts = ServerCounts()
    door = Door(settings, counts)
    site = Site(settings, desk, counts)
    app: Any = Guard(site.app(), settings, counts)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=door.protocol(),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADERS,
        timeout_keep_alive=int(settings.quiet),
        timeout_graceful_shutdown=FAREWELL,
        backlog=128,
    )
    return _Server(config, door, site, begun)


@contextlib.contextmanager
def _ended_by_sigterm(serving: uvicorn.Server) -> Iterator[None]:
    """The signal ends the server and not the process: uvicorn raises it again when it has ended in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: setattr(serving, "should_exit", True))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run(
    settings: Settings,
    reception: Reception,
    fleet: Fleet | None = None,
    begun: Callable[[str], None] = lambda address: None,
    door: socket.socket | None = None,
) -> None:
    """Serve the page until SIGINT or SIGTERM; `begun` is told its address once it listens. `reception` stays open.

    On the socket `door`, or one of its own.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # browsers that go away are no news
    desk = Desk(settings, Watch(settings, fleet), reception)
    with door or listening(settings) as made:
        serving = server(settings, desk, lambda: begun(address_of(made)))
        desk.start()
        try:
            with _ended_by_sigterm(serving), contextlib.suppress(KeyboardInterrupt):
                serving.run(sockets=[made])
        finally:
            desk.stop()
    if desk.failure is not None:
        raise desk.failure
