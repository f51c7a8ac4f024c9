"""Requirement X4: strangers at the ports of the exporter, forged records and HTTP clients, are bounded and counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import ENV, python
from monitoring_records import one_of_each

from um_cffi.monitoring import Attributes, ContextRecord, encode
from um_cffi.monitoring._http import Answer, HttpLimits, HttpServer, Request, _Refused, parsed

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HANG = 60.0
LARGE = 64 << 20


def pages(request: Request) -> Answer:
    return Answer((bytes(LARGE),)) if request.path == "/large" else Answer((b"hello",))


@contextlib.asynccontextmanager
async def serving(limits: HttpLimits | None = None, token: str | None = None) -> AsyncIterator[tuple[HttpServer, int]]:
    server = HttpServer(pages, limits, token)
    await server.start("127.0.0.1", 0)
    try:
        yield server, int(server.address.rpartition(":")[2])
    finally:
        await server.close()


async def asked(port: int, request: bytes) -> bytes:
    """What the server says to these bytes, until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), HANG)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 2 * HANG))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_request_has_an_answer_with_its_length() -> None:
    async def test() -> None:
        async with serving() as (server, port):
            answer = await asked(port, GET)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert body == b"hello" and b"Content-Length: 5" in head and b"Connection: close" in head
            assert (await asked(port, GET.replace(b"GET", b"HEAD"))).endswith(b"\r\n\r\n")
            assert server.counts.answered == {200: 2}

    run(test())


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", 403),
        (b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n", 400),
    ],
)
def test_x4_what_cannot_be_asked_is_refused_with_a_status(request_bytes: bytes, expected: int) -> None:
    async def test() -> None:
        async with serving() as (server, port):
            answer = await asked(port, request_bytes)
            # A client that sends more than is read may see its connection reset before it reads the answer.
            assert status(answer) in ((expected, 0) if len(request_bytes) > 8192 else (expected,))
            assert server.counts.answered == {expected: 1}
            assert status(await asked(port, GET)) == 200

    run(test())


@given(st.binary(max_size=300))
@settings(max_examples=500, deadline=None)
def test_x4_any_head_is_a_request_or_refused(head: bytes) -> None:
    with contextlib.suppress(_Refused):
        assert parsed(head + b"\r\n\r\n").method in ("GET", "HEAD")


def test_x4_a_head_that_does_not_come_ends_the_connection() -> None:
    async def test() -> None:
        async with serving(HttpLimits(read=0.2)) as (server, port):
            assert status(await asked(port, b"GET / HT")) == 408
            assert server._open == 0 and server.counts.answered == {408: 1}

    run(test())


def test_x4_an_answer_that_is_not_read_ends_the_connection() -> None:
    async def test() -> None:
        async with serving(HttpLimits(write=0.2)) as (server, port):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(GET.replace(b"/ ", b"/large "))
                await until(lambda: server.counts.unread == 1)
            assert server._open == 0 and status(await asked(port, GET)) == 200

    run(test())


def test_x4_a_client_that_goes_within_an_answer_is_counted() -> None:
    async def test() -> None:
        async with serving() as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET.replace(b"/ ", b"/large "))
            await reader.read(100)
            writer.transport.abort()
            await until(lambda: server.counts.broken == 1)
            assert server._open == 0

    run(test())


def test_x4_a_thousand_clients_are_refused_beyond_the_limit_and_others_served_afterwards() -> None:
    async def test() -> None:
        async with serving(HttpLimits(clients=20, clients_of_host=20, read=2 * HANG)) as (server, port):
            clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1000)]
            await until(lambda: server.counts.too_many == 980)
            assert server._open == 20
            refused = [await asyncio.wait_for(reader.read(), HANG) for reader, _ in clients[20:40]]
            assert {status(answer) for answer in refused} == {503}
            for _, writer in clients:
                writer.close()
            await until(lambda: server._open == 0)
            assert status(await asked(port, GET)) == 200 and not server._clients

    run(test())


def test_x4_requests_beyond_the_rate_are_refused_and_counted() -> None:
    async def test() -> None:
        async with serving(HttpLimits(requests=1, requests_in_all=100)) as (server, port):
            answers = [status(await asked(port, GET)) for _ in range(20)]
            assert answers[0] == 200 and 429 in answers
            assert server.counts.answered[429] == answers.count(429)

    run(test())


def test_x4_a_token_is_asked_for() -> None:
    async def test() -> None:
        async with serving(token="secret") as (_, port):
            assert status(await asked(port, GET)) == 401
            for given, expected in ((b"Bearer secret", 200), (b"Bearer secre", 401), (b"Basic secret", 401)):
                with_token = GET.replace(b"\r\n\r\n", b"\r\nAuthorization: " + given + b"\r\n\r\n")
                assert status(await asked(port, with_token)) == expected

    run(test())


# ---- the command ----


class Running:
    """`um exporter` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = python("-m", "um_cffi", "exporter", "--udp", ":0", "--listen", "127.0.0.1:0", *arguments)
        self.process = subprocess.Popen(command, env=ENV, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        found = re.search(r"(http://[\d.:]+)/metrics, records from datagrams at ([\d.]+):(\d+)", self.line)
        assert found, self.line + self.process.stderr.read()
        self.url, self.records = found[1], (found[2], int(found[3]))

    def get(self, path: str = "/metrics") -> str:
        request = urllib.request.Request(self.url + path, headers={"Accept": "application/openmetrics-text"})
        time.sleep(0.1)  # it is asked for again and again, but not faster than it answers
        with urllib.request.urlopen(request, timeout=HANG) as answer:
            body: bytes = answer.read()
        return body.decode()

    def total(self, name: str) -> float:
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", self.get(), re.M))

    def memory(self) -> int:
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


@pytest.fixture(name="exporter")
def exporter_of_this_test() -> Iterator[Running]:
    running = Running()
    try:
        yield running
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(HANG) == 0
    finally:
        running.process.kill()
        running.process.wait()


def send(exporter: Running, *packets: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for packet in packets:
            sender.sendto(packet, exporter.records)


def test_records_are_metrics_a_second_later(exporter: Running) -> None:
    each = one_of_each()
    while exporter.total("um_exporter_records_total") < len(each):
        send(exporter, *map(encode, each))
    told = exporter.get()
    assert 'um_receiver_topic_info{host="10.1.2.3",application="orders"' in told and told.endswith("# EOF\n")
    health = json.loads(exporter.get("/health"))
    assert health["status"] == "ok" and health["processes"] == 1 and health["objects"] == 6
    with pytest.raises(urllib.error.HTTPError, match="404"):
        exporter.get("/else")


def test_x4_forged_records_leave_the_exporter_up_and_its_memory_bounded(exporter: Running) -> None:
    good = encode(ContextRecord(Attributes(application="good", process_id=1), {}))
    chance = random.Random(1)
    forged = [
        encode(ContextRecord(Attributes(application="x" * 60_000, process_id=number, host="1.2.3.4"), {}))
        for number in range(300)
    ]
    garbage = [chance.randbytes(chance.randrange(200)) for _ in range(300)]
    send(exporter, good)
    before = exporter.memory()
    for _ in range(10):
        send(exporter, *forged, *garbage)
        assert "um_exporter_records_total" in exporter.get()
    send(exporter, good)
    while exporter.total("um_exporter_malformed_packets_total") == 0:
        send(exporter, *garbage)
    while 'application="good"' not in exporter.get():
        send(exporter, good)
    assert exporter.memory() - before < 64 << 20
    assert exporter.total("um_exporter_cut_texts_total") > 0


def test_wrong_options_name_themselves() -> None:
    for options, words in (
        (("--listen", "nowhere"), "--listen nowhere: must be ADDRESS:PORT"),
        (("--udp", "127.0.0.1:99999"), "must be ADDRESS:PORT"),
        (("--group", "224.9.9.9"), "--group: needs --udp"),
    ):
        command = python("-m", "um_cffi", "exporter", *options)
        done = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 1 and words in done.stderr, done.stderr
