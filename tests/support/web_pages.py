"""A page of `um web` in this process, of a fleet that does not exist, on a free port of the loopback interface."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from made_fleet import MadeFleet, MadeReception, desk_fleet

from um_cffi.web import Settings
from um_cffi.web._desk import Desk
from um_cffi.web._server import address_of, listening, server
from um_cffi.web._watch import Watch


@dataclass
class Page:
    """What is served."""

    address: str
    port: int
    desk: Desk
    fleet: MadeFleet
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={**self.headers, **given})
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, names, answer.read()
        finally:
            connection.close()

    def json(self, path: str) -> dict[str, Any]:
        """A view."""
        while True:
            status, _, body = self.get(path)
            if status == 200:
                return dict(json.loads(body))
            assert status in (429, 503), (path, status, body)
            time.sleep(0.2)

    def health(self) -> dict[str, int]:
        """Counters of the page."""
        return self.json("/health")

    def connect(self, sent: bytes = b"") -> socket.socket:
        """A connection that has sent this."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.sendall(sent)
        return made


@contextlib.contextmanager
def page(fleet: MadeFleet | None = None, reception: Any = None, **settings: Any) -> Iterator[Page]:
    """Serve until the block ends."""
    chosen = Settings(**{"port": 0, "interval": 0.2, "rate": 5_000.0, "burst": 5_000.0, **settings})
    fleet = fleet or desk_fleet()
    desk = Desk(chosen, Watch(chosen), reception or MadeReception(fleet, 0.3))
    begun = threading.Event()
    made = listening(chosen)
    runs = server(chosen, desk, begun.set)
    thread = threading.Thread(target=runs.run, kwargs={"sockets": [made]}, name="page")
    desk.start()
    thread.start()
    try:
        assert begun.wait(60), "the page does not listen"
        yield Page(address_of(made), made.getsockname()[1], desk, fleet)
    finally:
        runs.should_exit = True
        thread.join(60)
        desk.stop()
        made.close()
        assert desk.failure is None and not thread.is_alive()
