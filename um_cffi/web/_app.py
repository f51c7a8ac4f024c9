"""The paths of the page: its files, questions about the fleet, and a stream of what has changed.

    /  /list  /events  /o/ID    the page; which view it shows is in the path, so that each has a permanent link
    /assets/NAME                its files
    /api/VIEW                   a view as JSON
    /api/stream?view=VIEW...    the same again and again, by server-sent events: sections that have changed
    /health                     200 while records are taken and kept; counters of the page itself

Runs on the loop of the server.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from um_cffi.web._desk import Answer, Busy, Desk, Question
from um_cffi.web._limits import ServerCounts
from um_cffi.web._settings import Settings
from um_cffi.web._views import EVENT_KINDS, KINDS

ASSETS = Path(__file__).resolve().parent / "assets"
TEXT = 200  # characters of a search
LINK = re.compile(r"[0-9a-f]{16}|host-[0-9A-Za-z.:_-]{0,64}")
SORTS = ("name", "level", "rate", "missed", "naks", "since")
GONE: Answer = {}  # of what is not there
HEARTBEAT = 15.0  # seconds between two signs of life where nothing changes
MIME = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


class Site:
    """What answers requests."""

    def __init__(self, settings: Settings, desk: Desk, counts: ServerCounts) -> None:
        self._settings, self._desk, self._counts = settings, desk, counts
        self._files = {
            each.name: (each.read_bytes(), MIME.get(each.suffix) or mimetypes.guess_type(each.name)[0] or "text/plain")
            for each in ASSETS.iterdir()
            if each.is_file() and each.name != "index.html"
        }
        self._index = (ASSETS / "index.html").read_text().replace("{title}", _escaped(settings.title))
        self._streams = 0
        self._closing = False

    def close(self) -> None:
        """Let the streams end."""
        self._closing = True

    def app(self) -> Starlette:
        """The application."""
        pages = [Route(path, self._page) for path in ("/", "/list", "/events", "/o/{link}")]
        return Starlette(
            routes=[
                *pages,
                Route("/assets/{name}", self._asset),
                Route("/api/stream", self._stream),
                Route("/api/{view}", self._view),
                Route("/health", self._health),
                Route("/{path:path}", self._nothing),
            ]
        )

    # ---- files ----

    async def _page(self, request: Request) -> Response:
        return Response(self._index, media_type="text/html; charset=utf-8", headers={"cache-control": "no-cache"})

    async def _asset(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            return await self._nothing(request)
        return Response(found[0], media_type=found[1], headers={"cache-control": "no-cache"})

    async def _nothing(self, request: Request) -> Response:
        self._counts.not_found += 1
        return PlainTextResponse("there is nothing here; the page is at /\n", 404)

    async def _health(self, request: Request) -> Response:
        state = {"alive": self._desk.alive, "version": self._desk.version, "streams_open": self._streams}
        return JSONResponse({**state, **self._counts.told()}, 200 if self._desk.alive else 503)

    # ---- views ----

    async def _view(self, request: Request) -> Response:
        question = question_of(request.path_params["view"], request)
        if question is None:
            return await self._nothing(request)
        try:
            answer = await self._desk.ask(question)
        except Busy:
            return self._busy()
        if answer is None:
            return await self._nothing(request)
        body = b"{" + b",".join(b'"%s":%s' % (name.encode(), part) for name, part in answer.items()) + b"}"
        return Response(body, media_type="application/json", headers={"cache-control": "no-store"})

    def _busy(self) -> Response:
        self._counts.busy += 1
        return PlainTextResponse("busy: ask again in a moment\n", 503, headers={"retry-after": "2"})

    async def _stream(self, request: Request) -> Response:
        question = question_of(request.query_params.get("view", ""), request)
        if question is None:
            return await self._nothing(request)
        if self._streams >= self._settings.streams:
            self._counts.streams_refused += 1
            return PlainTextResponse("too many browsers are kept up to date\n", 503, headers={"retry-after": "10"})
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        self._streams += 1
        self._counts.streams += 1
        return _Stream(self._changes(question), self._ended, media_type="text/event-stream", headers=headers)

    def _ended(self) -> None:
        self._streams -= 1

    async def _changes(self, question: Question) -> AsyncIterator[bytes]:
        """Events `section` with the name and value of what has changed since the one before; `gone` when it is gone."""
        told: Answer = {}
        quiet = 0.0
        yield b"retry: 3000\n\n"
        while not self._closing:
            try:
                answer = await self._desk.ask(question)
            except Busy:
                self._counts.busy += 1
                answer = told
            if answer is None:
                answer = GONE
                if told is not GONE:
                    yield b"event: gone\ndata: {}\n\n"
            changed = [(name, part) for name, part in answer.items() if told.get(name) != part]
            told = answer
            if changed:
                fields = b",".join(b'"%s":%s' % (name.encode(), part) for name, part in changed)
                yield b"event: sections\ndata: {" + fields + b"}\n\n"
            quiet = 0.0 if changed else quiet + self._settings.interval
            if quiet >= HEARTBEAT:
                quiet = 0.0
                yield b": \n\n"
            await asyncio.sleep(self._settings.interval)


class _Stream(StreamingResponse):
    """Says when it has ended, also if the browser went away before it began."""

    def __init__(self, content: AsyncIterator[bytes], ended: Callable[[], None], **keywords: Any) -> None:
        super().__init__(content, **keywords)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def question_of(view: str, request: Request) -> Question | None:
    """The question that a request asks; None when it is none."""
    given = request.query_params
    text = "".join(each for each in given.get("q", "")[:TEXT] if each.isprintable())
    if view == "overview":
        return ("overview",)
    if view == "events":
        kind = given.get("kind", "")
        return ("events", text, kind) if kind in EVENT_KINDS else None
    if view == "object":
        link = given.get("id", "")
        return ("object", link) if LINK.fullmatch(link) else None
    if view == "objects":
        kind, sort, page = given.get("kind", ""), given.get("sort", "level"), given.get("page", "1")
        number = page.isascii() and page.isdigit() and 0 < int(page[:6]) < 10_000 and len(page) < 6
        if (kind and kind not in KINDS) or sort not in SORTS or not number:
            return None
        return ("objects", kind, text, sort, page)
    return None


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
