"""A small HTTP server for pages of numbers: GET and HEAD, one request for each connection, everything bounded.

Clients may be strangers: their number, the size and the time of what they ask, the rate of it and the time they take to
read have limits; what is beyond is refused with a status where there is somebody to read it, and counted. It runs on
the event loop that starts it.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from um_cffi.monitoring._gate import Gate, Rates

PIECE = 256 << 10  # bytes given to the transport at once
FIELDS = 100  # of a header
STATUS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@dataclass(frozen=True)
class HttpLimits:
    """Bounds of a HttpServer; times in seconds."""

    clients: int = 64  #: connections at a time
    clients_of_host: int = 32  #: of one address
    requests: int = 50  #: a second, of one address; bursts of two seconds' worth
    requests_in_all: int = 100  #: a second
    head: int = 8192  #: bytes of a request line and its header
    read: float = 5.0  #: for the head to come
    write: float = 30.0  #: for the answer to be read


class Request(NamedTuple):
    """What a client asks for."""

    method: str  #: GET or HEAD
    path: str  #: without query
    headers: dict[str, str]  #: names in lower case


class Answer(NamedTuple):
    """What it gets."""

    pieces: Sequence[bytes]  #: of the body
    type: str = "text/plain; charset=utf-8"
    status: int = 200


@dataclass
class HttpCounts:
    """What a HttpServer has done so far."""

    answered: dict[int, int] = field(default_factory=dict)  #: requests by status
    too_many: int = 0  #: connections refused, as there were too many
    unread: int = 0  #: answers that were not read in time
    broken: int = 0  #: connections that ended before their request or answer


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(STATUS[status])
        self.status = status


class HttpServer:
    """Serves what `handler` answers to requests.

    With `token`, requests need the header "Authorization: Bearer TOKEN". Where it listens on loopback, the header Host
    must name loopback too, so that no page of a browser gets at it by a name of its own.
    """

    def __init__(
        self, handler: Callable[[Request], Answer], limits: HttpLimits | None = None, token: str | None = None
    ) -> None:
        self.limits = limits or HttpLimits()
        self.counts = HttpCounts()
        self._handler = handler
        self._token = token
        self._clients: dict[str, int] = {}
        self._open = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._gate = Gate(Rates(self.limits.requests, self.limits.requests_in_all), 0.0)

    async def start(self, host: str, port: int) -> None:
        """Listen. OSError if the address cannot be had."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=self.limits.head, backlog=128)

    @property
    def address(self) -> str:
        """Where it listens, "ADDRESS:PORT"."""
        assert self._server is not None
        host, port, *_ = self._server.sockets[0].getsockname()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def close(self) -> None:
        """Listen no more, and end what is being served."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        host = str((writer.get_extra_info("peername") or ("",))[0])
        if self._open >= self.limits.clients or self._clients.get(host, 0) >= self.limits.clients_of_host:
            self.counts.too_many += 1
            writer.write(_head(503, 0, "text/plain"))
            writer.transport.close()
            return
        self._open += 1
        self._clients[host] = self._clients.get(host, 0) + 1
        self._tasks.add(task)
        try:
            await self._answer(reader, writer, host)
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.counts.broken += 1
            writer.transport.abort()
        except asyncio.TimeoutError:
            self.counts.unread += 1
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            self._open -= 1
            self._clients[host] -= 1
            if not self._clients[host]:
                del self._clients[host]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        with_body = True
        try:
            request = await self._request(reader)
            with_body = request.method == "GET"
            if not self._gate.take(host, 1, asyncio.get_running_loop().time()):
                raise _Refused(429)
            self._check(request)
            answer = self._handler(request)
        except _Refused as refused:
            answer = Answer((f"{refused}\n".encode(),), status=refused.status)
        self.counts.answered[answer.status] = self.counts.answered.get(answer.status, 0) + 1
        await asyncio.wait_for(self._write(writer, answer, with_body), self.limits.write)

    async def _request(self, reader: asyncio.StreamReader) -> Request:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self.limits.read)
        except asyncio.TimeoutError:
            raise _Refused(408) from None
        except asyncio.LimitOverrunError:
            raise _Refused(431) from None
        return parsed(head)

    def _check(self, request: Request) -> None:
        if self._token is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise _Refused(401)
        assert self._server is not None
        if _is_loopback(self._server.sockets[0].getsockname()[0]) and not _is_loopback(
            _without_port(request.headers.get("host", "localhost"))
        ):
            raise _Refused(403)

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer, with_body: bool) -> None:
        writer.transport.set_write_buffer_limits(high=0)  # what is drained is with the kernel
        writer.write(_head(answer.status, sum(map(len, answer.pieces)), answer.type))
        for piece in answer.pieces if with_body else ():
            view = memoryview(piece)
            for at in range(0, len(view), PIECE):
                writer.write(view[at : at + PIECE])
                await writer.drain()
        await writer.drain()


def parsed(head: bytes) -> Request:
    """The request of a head that ends with an empty line. Refused if it is none, or asks for more than reading."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or not words[1].startswith("/"):
        raise _Refused(400)
    if len(lines) > 2 + FIELDS:
        raise _Refused(400)
    headers: dict[str, str] = {}
    for line in lines[1:-2]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _Refused(400)
        headers[name.lower()] = value.strip()
    if words[0] not in ("GET", "HEAD"):
        raise _Refused(405)
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise _Refused(400)
    return Request(words[0], words[1].partition("?")[0], headers)


def _head(status: int, length: int, kind: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {STATUS[status]}",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if status == 401:
        lines.append("WWW-Authenticate: Bearer")
    if status == 405:
        lines.append("Allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode()


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
