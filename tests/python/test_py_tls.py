"""Encrypted contexts from Python, with OpenSSL itself (pyOpenSSL) as the other side: one that behaves, and those that
do not: without a certificate, in the middle, replaying, cutting, renegotiating, slow, or a thousand at a time.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import make_certificates
import pytest
from OpenSSL import SSL
from pairs import HANG, until

from um_cffi import Context, ImmediateReceiver, InvalidArgument, Receiver, Source, UmError

LOCAL = {
    "default_interface": "127.0.0.1/32",
    "resolver_multicast_interface": "127.0.0.1/32",
    "request_tcp_port_low": 0,
    "request_tcp_port_high": 0,
    "transport_tcp_port_low": 0,
    "transport_tcp_port_high": 0,
    "request_tcp_listen_backlog": 128,
}
BACKLOG = {"transport_tcp_listen_backlog": 128}  # strangers of whom the kernel drops some would wait a second each
FILES = Path(__file__).resolve().parents[1] / "certificates"
HOST, PEER, STRANGER = "host", "peer", "stranger"


def options(name: str = HOST, **others: object) -> dict[str, object]:
    tls = {
        "use_tls": 1,
        "tls_certificate": str(FILES / f"{name}.pem"),
        "tls_certificate_key": str(FILES / f"{name}.key"),
        "tls_trusted_certificates": str(FILES / "ca.pem"),
    }
    return {**LOCAL, **tls, **others}


def request_port(ctx: Context) -> int:
    return int(ctx.immediate_target.split(":")[2])


def source_port(source: Source) -> int:
    return int(source.getopt("transport_tcp_port"))


def taken(receiver: Receiver | ImmediateReceiver) -> bytes:
    message = receiver.recv(timeout=HANG)
    assert message is not None
    return bytes(message)


# -- the other side --


def openssl(name: str | None = PEER, version: int | None = None, certificate: Path | None = None) -> SSL.Context:
    """Settings of OpenSSL's own: `name` is whose certificate it shows; None: it shows none."""
    context = SSL.Context(SSL.TLS_METHOD)
    if name is not None:
        context.use_certificate_chain_file(str(certificate or FILES / f"{name}.pem"))
        context.use_privatekey_file(str(FILES / f"{name}.key"))
    context.load_verify_locations(str(FILES / "ca.pem"))
    context.set_verify(SSL.VERIFY_PEER, lambda conn, cert, error, depth, good: bool(good))
    context.set_session_cache_mode(SSL.SESS_CACHE_CLIENT)
    if version is not None:
        context.set_min_proto_version(version)
        context.set_max_proto_version(version)
    return context


def tls_client(port: int, context: SSL.Context) -> SSL.Connection:
    connection = SSL.Connection(context, socket.create_connection(("127.0.0.1", port), HANG))
    connection.set_connect_state()
    finish_handshake(connection)
    return connection


def finish_handshake(connection: SSL.Connection) -> None:
    shake: Any = connection.do_handshake
    wait_while(connection, shake)


def wait_while(connection: SSL.Connection, call: Any, *arguments: object) -> Any:
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        try:
            return call(*arguments)
        except SSL.WantReadError:
            select.select([connection], [], [], 1)
        except SSL.WantWriteError:
            select.select([], [connection], [], 1)
    raise AssertionError("OpenSSL waits for ever")


def read_until(connection: SSL.Connection, words: bytes) -> bytes:
    got = b""
    while words not in got:
        got += wait_while(connection, connection.recv, 65536)
    return got


def is_refused(port: int, context: SSL.Context) -> bool:
    """In TLS 1.3 who connects hears of it behind the handshake."""
    with pytest.raises((SSL.Error, SSL.SysCallError, ConnectionError)):
        connection = tls_client(port, context)
        while True:
            wait_while(connection, connection.recv, 1)
    return True


class Relay:
    """Connections to `port` go on to `target`; what passes towards it is kept in `seen`, as `change` makes it."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.seen = b""
        self.change: Callable[[bytes], bytes] = bytes
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                with near, far, contextlib.suppress(OSError):
                    self._pass(near, far)

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [])
            for one in ready:
                data = one.recv(65536)
                if not data:
                    return
                if one is near:
                    data = self.change(data)
                    self.seen += data
                    far.sendall(data)
                else:
                    near.sendall(data)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def is_closed(sock: socket.socket) -> bool:
    """Until the other side closes it."""
    sock.settimeout(HANG)
    with contextlib.suppress(ConnectionError):
        while sock.recv(4096):
            pass
    return True


@pytest.fixture
def here() -> Iterator[Context]:
    with Context(options()) as ctx:
        yield ctx


@pytest.fixture
def there() -> Iterator[Context]:
    with Context(options(PEER)) as ctx:
        yield ctx


@contextlib.contextmanager
def delivering(here: Context, there: Context) -> Iterator[Source]:
    """A source whose messages still arrive when the block is over."""
    with Receiver(there, "proof") as receiver, Source(here, "proof") as source:
        source.wait_receivers(1, HANG)
        yield source
        source.send(b"still", flush=True)
        assert taken(receiver) == b"still"


# -- contexts with each other --


def test_encrypted_contexts_of_python_exchange_messages(here: Context, there: Context) -> None:
    with Receiver(there, "news") as receiver, Source(here, "news") as source, ImmediateReceiver(here) as immediate:
        source.wait_receivers(1, HANG)
        source.send(b"x" * 100_000, flush=True)
        assert taken(receiver) == b"x" * 100_000
        there.send_immediate(here.immediate_target, b"aside")
        assert taken(immediate) == b"aside"


def test_wrong_settings_are_errors_that_name_the_option(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, object], str]] = [
        ({"tls_certificate": str(tmp_path / "none.pem")}, "tls_certificate .*No such file"),
        ({"tls_certificate_key": str(FILES / "peer.key")}, "tls_certificate_key .*not the key"),
        ({"tls_certificate_key": str(FILES / "encrypted.key")}, "tls_certificate_key_password"),
        ({"tls_cipher_suites": "NULL-SHA256"}, "tls_cipher_suites.*weak"),
        ({"tls_compression_negotiation_timeout": 0}, "tls_compression_negotiation_timeout 0: must be 1"),
    ]
    for change, words in changes:
        with pytest.raises(InvalidArgument, match=words):
            Context({**options(), **change})
    password = make_certificates.PASSWORD.decode()
    right = options(tls_certificate_key=str(FILES / "encrypted.key"), tls_certificate_key_password=password)
    with Context(right) as ctx:
        assert ctx.getopt("use_tls") == "1"


def test_sources_of_other_transports_are_refused(here: Context) -> None:
    with pytest.raises(UmError, match="transport lbt-rm is not encrypted"):
        Source(here, "open", options={"transport": "lbt-rm"})


# -- OpenSSL as a receiver and as a sender --


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_an_independent_client_receives_what_a_source_sends(here: Context, version: int) -> None:
    with Source(here, "news") as source:
        connection = tls_client(source_port(source), openssl(PEER, version))
        source.wait_receivers(1, HANG)
        source.send(b"for an independent client", flush=True)
        assert read_until(connection, b"for an independent client")
        certificate = connection.get_peer_certificate(as_cryptography=True)
        assert certificate is not None and certificate.subject.rfc4514_string() == "CN=host.test"
        source.close()
        with pytest.raises(SSL.ZeroReturnError):  # the end in order
            while True:
                wait_while(connection, connection.recv, 4096)
        connection.close()


def data_message(payload: bytes) -> bytes:
    """Of LBMC, with a topic index and a number of 0."""
    return bytes([0, 0]) + (12 + len(payload)).to_bytes(2, "big") + bytes(8) + payload


def test_an_independent_client_sends_an_immediate_message(here: Context) -> None:
    with ImmediateReceiver(here) as receiver:
        connection = tls_client(request_port(here), openssl())
        connection.sendall(data_message(b"hello"))
        assert taken(receiver) == b"hello"
        connection.shutdown()
        connection.close()


# -- whoever is not one of us --


def test_clients_without_a_certificate_of_ours_are_refused(here: Context, there: Context) -> None:
    with delivering(here, there) as source, ImmediateReceiver(here) as receiver:
        for port in (source_port(source), request_port(here)):
            for version in (SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION):
                assert is_refused(port, openssl(None, version))
                assert is_refused(port, openssl(STRANGER, version))
                assert is_refused(port, openssl(HOST, version, FILES / "expired.pem"))
        assert receiver.recv(timeout=0.01) is None
        until(lambda: here.counts().unicast_expired >= 6)


def test_versions_before_1_2_are_refused(here: Context) -> None:
    context = openssl(PEER)
    context.set_cipher_list(b"ALL:@SECLEVEL=0")
    context.set_min_proto_version(SSL.TLS1_1_VERSION)
    context.set_max_proto_version(SSL.TLS1_1_VERSION)
    assert is_refused(request_port(here), context)


def test_a_man_in_the_middle_with_a_certificate_of_his_own_is_refused(here: Context) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    here.send_immediate(f"TCP:127.0.0.1:{listening.getsockname()[1]}", b"secret")
    accepted, _ = listening.accept()
    connection = SSL.Connection(openssl(STRANGER), accepted)
    connection.set_accept_state()
    with pytest.raises(SSL.Error):
        finish_handshake(connection)
        wait_while(connection, connection.recv, 100)
    connection.close()
    listening.close()


def test_what_a_man_in_the_middle_changes_is_not_delivered(here: Context, there: Context) -> None:
    with Relay(request_port(here)) as relay, ImmediateReceiver(here) as receiver, delivering(here, there):
        connection = tls_client(relay.port, openssl())
        connection.sendall(data_message(b"untouched"))
        assert taken(receiver) == b"untouched"
        relay.change = lambda data: data[:-1] + bytes([data[-1] ^ 1])
        connection.sendall(data_message(b"altered"))
        with pytest.raises((SSL.Error, SSL.SysCallError)):
            wait_while(connection, connection.recv, 1)
        assert receiver.recv(timeout=0.01) is None


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_a_recorded_connection_cannot_be_played_again(here: Context, there: Context, version: int) -> None:
    with Relay(request_port(here)) as relay, ImmediateReceiver(here) as receiver, delivering(here, there):
        connection = tls_client(relay.port, openssl(PEER, version))
        connection.sendall(data_message(b"once"))
        assert taken(receiver) == b"once"
        connection.close()
        with socket.create_connection(("127.0.0.1", request_port(here))) as again:
            with contextlib.suppress(ConnectionError):
                again.sendall(relay.seen)
            assert is_closed(again)
        assert receiver.recv(timeout=0.01) is None


def test_a_stream_that_is_cut_delivers_nothing_of_the_cut_record(here: Context, there: Context) -> None:
    with Relay(request_port(here)) as relay, ImmediateReceiver(here) as receiver, delivering(here, there):
        connection = tls_client(relay.port, openssl())
        connection.sendall(data_message(b"whole"))
        assert taken(receiver) == b"whole"
        before = len(relay.seen)
        relay.change = lambda data: data[: len(data) // 2]
        connection.sendall(data_message(b"half of this is missing"))
        until(lambda: len(relay.seen) > before)
        connection.sock_shutdown(socket.SHUT_RDWR)
        connection.close()
        assert receiver.recv(timeout=0.05) is None


def test_a_client_that_negotiates_again_is_not_answered(here: Context, there: Context) -> None:
    with ImmediateReceiver(here) as receiver, delivering(here, there):
        connection = tls_client(request_port(here), openssl(PEER, SSL.TLS1_2_VERSION))
        connection.sendall(data_message(b"before"))
        assert taken(receiver) == b"before"
        with pytest.raises((SSL.Error, SSL.SysCallError)):
            assert connection.renegotiate()
            finish_handshake(connection)
            assert connection.total_renegotiations() > 0, "refused without a word"
            raise AssertionError("renegotiated")
        connection.close()


# -- those who only cost something --


def hello_bytes() -> bytes:
    """What a client of OpenSSL begins with."""
    near, far = socket.socketpair()
    connection = SSL.Connection(openssl(), near)
    connection.set_connect_state()
    near.setblocking(False)
    with pytest.raises(SSL.WantReadError):
        connection.do_handshake()
    data = far.recv(65536)
    near.close()
    far.close()
    return data


def test_a_slow_handshake_is_closed_when_its_time_is_over(there: Context) -> None:
    hello = hello_bytes()
    with Context(options(tls_compression_negotiation_timeout=300)) as here, delivering(here, there) as source:
        for port in (source_port(source), request_port(here)):
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", port)) as slow:
                with contextlib.suppress(ConnectionError):
                    for byte in hello:
                        slow.sendall(bytes([byte]))
                        time.sleep(0.02)
                    raise AssertionError("the whole hello was waited for")
                assert time.monotonic() - began >= 0.29


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_thousand_connections_that_are_half_open_keep_nobody_out(there: Context) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 3000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    half = hello_bytes()[:100]
    with (
        Context(options(tls_compression_negotiation_timeout=2000)) as here,
        Receiver(there, "steady") as receiver,
        Source(here, "steady", options=BACKLOG) as source,
    ):
        source.wait_receivers(1, HANG)
        before = descriptors()
        ports = (source_port(source), request_port(here))
        held: list[socket.socket] = []
        for number in range(1000):
            sock = socket.create_connection(("127.0.0.1", ports[number % 2]), HANG)
            with contextlib.suppress(ConnectionError):
                sock.sendall(half)
            held.append(sock)
            if number % 100 == 99:
                source.send(b"%d" % number, flush=True)
                assert taken(receiver) == b"%d" % number
        with Receiver(there, "steady") as another:  # one more connection of someone of ours
            until(lambda: another.counts().sources == 1)
        until(lambda: descriptors() <= before + 1000 + 2 * 64 + 8)  # what the context holds is bounded
        for sock in held:
            sock.close()
        until(lambda: descriptors() <= before + 2)
        source.send(b"over", flush=True)
        assert taken(receiver) == b"over"
