"""The server of `um web`: what it answers, and whom it bears with for how long. Requirement X4 of web pages:
loopback by default, read-only, a process of its own, limited, with a token where one is asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from interpreter import ENV, needs_plain_library, python
from made_fleet import MadeReception, desk_fleet
from web_pages import Page, page

from um_cffi.commands.exporter import endpoint
from um_cffi.commands.web import token_of
from um_cffi.errors import InvalidArgument
from um_cffi.monitoring import Arrival, Attributes, MonitorCounts, ReceiverRecord
from um_cffi.web import Settings
from um_cffi.web._app import ASSETS

pytestmark = needs_plain_library
TOKEN = "0123456789abcdefTOKEN"


def until(condition: object, seconds: float = 60.0) -> None:
    """Wait for a state."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.05)


def test_x4_it_listens_on_loopback_unless_told_otherwise() -> None:
    assert Settings().loopback and Settings().host == "127.0.0.1"
    assert endpoint(":8060") == ("127.0.0.1", 8060)
    for wrong in ("", "x", "1.2.3.4:", ":70000", "host:1e3"):
        with pytest.raises(InvalidArgument, match="--listen"):
            endpoint(wrong)
    with page() as served, served.connect() as made:
        assert made.getpeername()[0] == "127.0.0.1"


def test_it_answers_pages_files_and_views() -> None:
    with page() as served:
        for path in ("/", "/list?kind=receiver", "/events", "/o/0123456789abcdef"):
            status, headers, body = served.get(path)
            assert status == 200 and headers["content-type"].startswith("text/html") and b"<main" in body, path
        for asset in ASSETS.iterdir():
            status, headers, body = served.get(f"/assets/{asset.name}")
            assert (status, body) == ((200, asset.read_bytes()) if asset.name != "index.html" else (404, body))
        until(lambda: served.json("/api/overview")["totals"]["receivers"] == 14)
        row = served.json("/api/objects?kind=receiver&q=pricer")["list"]["rows"][0]
        assert served.json(f"/api/object?id={row['id']}")["object"]["kind"] == "receiver"
        assert served.json("/api/events?q=appeared")["events"]
        assert served.json("/api/events?kind=process")["events"] and not served.json("/api/events?kind=log")["events"]
        assert served.get("/api/events?kind=else")[0] == 404


def test_every_answer_forbids_content_of_others() -> None:
    with page(token=TOKEN) as served:
        for path, expected in (("/", 401), (f"/?token={TOKEN}", 303), ("/nothing", 401)):
            status, headers, _ = served.get(path)
            assert status == expected
            assert headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self'; style-src 'self'"
            )
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
            assert "server" not in headers


def test_the_files_of_the_page_name_no_other_host() -> None:
    for asset in ASSETS.iterdir():
        text = asset.read_text()
        for scheme in ("http://", "https://", "//cdn"):
            found = [part.split()[0] for part in text.split(scheme)[1:]]
            allowed = ("www.w3.org/2000/svg", "github.com/leeoniya/uPlot", "leeoniya.github.io")
            assert all(each.startswith(allowed) for each in found), (asset.name, found)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_x4_it_is_read_only(method: str) -> None:
    with page() as served:
        assert served.get("/api/overview", method)[0] == 405
        assert served.health()["refused_method"] == 1


def test_x4_a_token_is_asked_for_and_kept_out_of_the_address() -> None:
    with page(token=TOKEN) as served:
        for wrong in ("", "/?token=", "/?token=wrong", f"/?token={TOKEN}x", f"/?token={TOKEN[:-1]}", "/?token=%00"):
            assert served.get(wrong or "/")[0] == 401, wrong
        assert served.get("/", authorization="Bearer wrong")[0] == 401
        assert served.get("/", cookie="um_web=wrong; um_web=\xff")[0] == 401
        assert served.get("/api/overview", authorization=f"Bearer {TOKEN}")[0] == 200
        status, headers, _ = served.get(f"/list?kind=host&token={TOKEN}")
        assert (status, headers["location"]) == (303, "/list?kind=host")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert served.get("/list?kind=host", cookie=cookie.split(";")[0])[0] == 200
        status, headers, _ = served.get(f"//elsewhere.example/%0d%0ax:y?token={TOKEN}")
        assert headers["location"].startswith("/") and not headers["location"].startswith("//")
        served.headers["authorization"] = f"Bearer {TOKEN}"
        assert served.health()["refused_token"] == 8


def test_tokens_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UM_WEB_TOKEN", raising=False)
    assert token_of(None) == ""
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert token_of(str(tmp_path / "token")) == TOKEN
    for wrong in ("short", TOKEN + ";", TOKEN + " x", TOKEN + "é"):
        monkeypatch.setenv("UM_WEB_TOKEN", wrong)
        with pytest.raises(InvalidArgument, match="16 or more"):
            token_of(None)


def test_a_name_that_is_not_ours_is_refused() -> None:
    """Else a page of another host could be given our address, and read this one."""
    with page(names=("fleet.example",)) as served:
        for name, status in (
            ("evil.example", 421),
            ("", 421),
            ("fleet.example", 200),
            ("[::1]:80", 200),
            ("LOCALHOST", 200),
        ):
            assert served.get("/", host=name)[0] == status, name
        assert served.health()["refused_host"] == 2


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../_app.py",
        "/assets/%2e%2e/_app.py",
        "/assets/..%2f_app.py",
        "/o/a/b",
        "/api/",
        "/api/nothing",
        "/api/object",
        "/api/object?id=..",
        "/api/object?id=" + "f" * 17,
        "/api/object?id=0123456789abcdef",
        "/api/objects?kind=nothing",
        "/api/objects?sort=nothing",
        "/api/objects?page=0",
        "/api/objects?page=99999",
        "/api/objects?page=%D9%A3",
        "/api/stream",
        "/api/stream?view=nothing",
        "/" + "x" * 7000,
    ],
)
def test_paths_that_are_not_there(path: str, nothing: Page) -> None:
    assert nothing.get(path)[0] == 404


@pytest.fixture(name="nothing", scope="module")
def one_page_for_all_paths() -> object:
    with page() as served:
        yield served


def test_garbage_is_refused_and_counted() -> None:
    rng = random.Random(5)
    garbage = [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # a browser that wants TLS
        b"GET / HTTP/1.1\r\n\r\n",  # without Host
        b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: other\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"z" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"a%d: b\r\n" % at for at in range(2_000)) + b"\r\n",
        *[rng.randbytes(rng.randrange(1, 4000)) + b"\r\n\r\n" for _ in range(100)],
    ]
    with page() as served:
        for each in garbage:
            with contextlib.suppress(OSError), served.connect(each) as made:
                made.shutdown(socket.SHUT_WR)
                made.settimeout(60)
                while made.recv(65536):
                    pass
        counts = served.health()
        assert counts["requests_malformed"] >= 100
        assert served.json("/api/overview")["verdict"]


def test_a_browser_that_says_half_a_sentence_is_closed() -> None:
    with page(quiet=2.0) as served:
        with served.connect(b"GET / HTTP/1.1\r\nHost: 127") as made, served.connect() as silent:
            for each in (made, silent):
                with contextlib.suppress(ConnectionResetError):
                    assert each.recv(1) == b""
        until(lambda: served.health()["connections_quiet"] >= 2)


def test_a_browser_that_reads_nothing_is_closed_and_bounded() -> None:
    with page(stalled=3.0) as served:
        deaf = [served.connect() for _ in range(8)]
        try:
            for each in deaf:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                for _ in range(400):  # answers that are never read: the page's own buffer is what bounds them
                    with contextlib.suppress(OSError):
                        each.setblocking(False)
                        each.send(b"GET /assets/uPlot.iife.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            until(lambda: served.health()["connections_stalled"] == 8)
        finally:
            for each in deaf:
                each.close()


def test_a_thousand_clients_are_bounded_and_the_page_stays_up() -> None:
    ask = b"GET /api/stream?view=overview HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with (
        page(connections=64, streams=16) as served,
        served.connect(b"GET /api/stream?view=overview HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as first,
    ):
        until(lambda: served.health()["streams_open"] == 1)
        crowd = []
        for _ in range(1_000):
            with contextlib.suppress(OSError):
                crowd.append(served.connect(ask))
        first.settimeout(60)
        seen = b""
        while seen.count(b"event: sections") < 5:  # the one that was there before goes on
            part = first.recv(65536)
            assert part, "it was closed"
            seen += part
        for each in crowd:
            each.close()
        until(lambda: _asked(served)["streams_open"] == 1)
        counts = served.health()
        assert counts["connections_refused"] > 800 and counts["streams_refused"] > 0


def _asked(served: Page) -> dict[str, int]:
    """The counters, as soon as there is room for the question."""
    while True:
        with contextlib.suppress(OSError):
            return served.health()


def test_more_requests_than_an_address_may_make() -> None:
    with page(rate=0.1, burst=20.0) as served:
        statuses = [served.get("/api/overview")[0] for _ in range(60)]
        assert statuses[:15] == [200] * 15 and statuses.count(429) > 20
        assert served.health()["requests_limited"] >= statuses.count(429)


def test_a_stream_brings_what_has_changed_and_no_more() -> None:
    fleet = desk_fleet()
    with page(fleet) as served:
        until(lambda: served.json("/api/overview")["totals"]["receivers"] == 14)
        with served.connect(b"GET /api/stream?view=overview HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as made:
            lines = made.makefile("rb")
            seen: list[set[str]] = []
            while len(seen) < 4:
                line = lines.readline()
                if line.startswith(b"data: "):
                    seen.append(set(json.loads(line[6:])))
            assert seen[0] == {"clock", "verdict", "totals", "ranking", "topology", "events", "history"}
            assert all("events" not in each and "verdict" not in each for each in seen[1:])
            fleet.receivers[1].loss = 0.2
            while True:
                line = lines.readline()
                if line.startswith(b"data: ") and b"pricer on 10.1.2.11" in line:
                    break


class Flood:
    """Far more records than can be taken, new and malformed ones among them."""

    def __init__(self) -> None:
        self.given = self.thrown = 0

    def poll(self, timeout: float | None = None) -> list[Arrival]:
        found = []
        for _ in range(2_000):
            self.given += 1
            at = self.given % 50_000
            attributes = Attributes(f"10.0.{at % 250}.1", 0, f"forged-{at}", at, at, False, f"{at:016x}")
            found.append(Arrival(ReceiverRecord(attributes, "tcp", f"TCP:{at}", {"bytes_rcved": at}), "6.6.6.6"))
        return found

    def counts(self) -> MonitorCounts:
        return MonitorCounts(self.given, self.given, {"short": 17}, 0, 4)


def test_a_flood_of_records_leaves_the_page_its_answers() -> None:
    with page(reception=Flood()) as served:
        until(lambda: served.json("/api/overview")["totals"]["refused_processes"] > 20_000)
        said = served.json("/api/overview")
        assert said["clock"]["malformed"] == 17 and said["clock"]["dropped"] == 4
        assert served.health()["alive"]


class Broken(MadeReception):
    """Fails when it is asked."""

    def poll(self, timeout: float | None = None) -> list[Arrival]:
        raise OSError("no more")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_page_without_records_says_so() -> None:
    fleet = desk_fleet()
    with pytest.raises(AssertionError), page(fleet, Broken(fleet)) as served:
        until(lambda: served.get("/health")[0] == 503)
        assert served.get("/api/overview")[0] == 503


def test_descriptors_and_threads_are_given_back() -> None:
    def have() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    with page() as served:
        served.get("/")
    before = have()
    for _ in range(3):
        with page() as served, served.connect(b"GET /api/stream?view=overview HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
            until(lambda: served.health()["streams_open"] == 1)
    until(lambda: have() <= before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_in_order(number: int) -> None:
    """Closing what it has opened, with a status that says so: containers take 143 for a failure."""
    command = python("-m", "um_cffi", "web", "--udp", ":0", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=ENV, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stderr.readline().startswith("um web: http://127.0.0.1:")
        process.send_signal(number)
        assert process.wait(60) == 0
