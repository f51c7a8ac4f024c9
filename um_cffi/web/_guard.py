"""What every request has to pass, and the headers that every answer has. An ASGI application around another one.

Runs on the loop of the server, before anything else looks at a request: method, Host, rate, token.
"""

from __future__ import annotations

import hmac
import time
from http import cookies
from typing import Any
from urllib.parse import parse_qs, urlencode

from um_cffi.web._limits import Buckets, ServerCounts
from um_cffi.web._settings import Settings

COOKIE = "um_web"
SECURITY = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
Scope = dict[str, Any]


class Guard:
    """Lets a request through to the application, or answers it with a short text."""

    def __init__(self, app: Any, settings: Settings, counts: ServerCounts) -> None:
        self._app, self._settings, self.counts = app, settings, counts
        self._buckets = Buckets(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """One request (or the start and end of the server, which are passed on)."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        self.counts.requests += 1

        async def sealed(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *SECURITY]
            await send(message)

        refusal = self._refusal(scope)
        if refusal:
            await _answer(sealed, *refusal)
            return
        entrance = self._entrance(scope)
        if entrance:
            await _answer(sealed, 303, "", entrance)
            return
        await self._app(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        """Status, text and headers of the answer to a request that goes no further."""
        headers = {name: value for name, value in scope["headers"]}
        if not self._buckets.take((scope.get("client") or ("local",))[0], time.monotonic()):
            self.counts.requests_limited += 1
            return 429, "too many requests: wait a moment", [(b"retry-after", b"2")]
        if scope["method"] not in ("GET", "HEAD"):
            self.counts.refused_method += 1
            return 405, "the page is read-only: GET or HEAD", [(b"allow", b"GET, HEAD")]
        if not self._settings.any_host and _host(headers.get(b"host", b"")) not in self._settings.allowed:
            self.counts.refused_host += 1
            return 421, "this name is not one of the page's: see --allow-host", []
        if self._settings.token and not self._knows(scope, headers):
            self.counts.refused_token += 1
            return 401, "a token is needed: open the page as /?token=TOKEN", [(b"www-authenticate", b"Bearer")]
        return None

    def _knows(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        bearer = headers.get(b"authorization", b"")
        jar: cookies.SimpleCookie = cookies.SimpleCookie()
        try:
            jar.load(headers.get(b"cookie", b"").decode("latin-1"))
        except cookies.CookieError:
            jar.clear()
        told = [_token(scope), jar[COOKIE].value if COOKIE in jar else ""]
        if bearer[:7].lower() == b"bearer ":
            told.append(bearer[7:].strip().decode("latin-1"))
        token = self._settings.token.encode()
        return any([hmac.compare_digest(each.encode("utf-8", "replace"), token) for each in told])

    def _entrance(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """Headers that keep a token of the address in a cookie, so that it stays in no history and no link."""
        if not self._settings.token or not _token(scope):
            return None
        rest = {name: value for name, value in _query(scope).items() if name != "token"}
        path = "/" + scope["path"].lstrip("/\\")
        target = path.encode("ascii", "ignore").decode() + ("?" + urlencode(rest, doseq=True) if rest else "")
        if any(ord(each) < 32 for each in target):
            target = "/"
        cookie = f"{COOKIE}={self._settings.token}; Path=/; HttpOnly; SameSite=Strict"
        return [(b"location", target.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]


def _query(scope: Scope) -> dict[str, list[str]]:
    try:
        return parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=16)
    except ValueError:
        return {}


def _token(scope: Scope) -> str:
    return _query(scope).get("token", [""])[0]


def _host(value: bytes) -> str:
    """The name of a Host header without its port."""
    text = value.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


async def _answer(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = text.encode() + b"\n" if text else b""
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
