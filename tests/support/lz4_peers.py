"""The other side of compressed TCP connections, written from the specification with the python package lz4 alone."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Iterator

import forger
import lz4.block

HELLO = b"UMZ1\x01\0\0\0"
LOOPBACK = "127.0.0.1"
HANG = 60.0  # seconds; only catches hangs


def frame(data: bytes, stored: bool = False) -> bytes:
    """One frame; stored where LZ4 does not make it shorter."""
    block = data if stored else lz4.block.compress(data, store_size=False)
    block = block if len(block) < len(data) else data
    return struct.pack(">HH", len(data), len(block)) + block


def message(topic: int, number: int, data: bytes) -> bytes:
    """A message with data, without headers."""
    return struct.pack(">BBHII", 0, 0, 12 + len(data), topic, number) + data


class Peer:
    """A connection whose other side compresses."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(HANG)
        self.frames: list[tuple[int, int]] = []  # original and compressed length of each that came
        self._stream = b""

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self._connection.sendall(data)

    def send_split(self, data: bytes, rng: random.Random) -> None:
        """Bytes in pieces of any length, each a segment of its own."""
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        at = 0
        while at < len(data):
            part = rng.choice((1, 2, 3, 5, rng.randrange(1, 2000)))
            self.send(data[at : at + part])
            at += part

    def finish(self) -> None:
        """The end of what is sent, in order."""
        self._connection.shutdown(socket.SHUT_WR)

    def exactly(self, count: int) -> bytes:
        """Bytes as they are; EOFError: the connection ends before."""
        got = b""
        while len(got) < count:
            part = self._connection.recv(count - len(got))
            if not part:
                raise EOFError(got)
            got += part
        return got

    def greet(self) -> None:
        """Both hellos."""
        self.send(HELLO)
        assert self.exactly(len(HELLO)) == HELLO

    def closed(self) -> bytes:
        """What comes until the other side closes the connection."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while part := self._connection.recv(65536):
                got += part
        return got

    def read_frame(self) -> bytes:
        """The contents of the next frame."""
        original, compressed = struct.unpack(">HH", self.exactly(4))
        assert 1 <= compressed <= original
        block = self.exactly(compressed)
        self.frames.append((original, compressed))
        data = block if compressed == original else lz4.block.decompress(block, uncompressed_size=original)
        assert len(data) == original
        return bytes(data)

    def messages(self) -> Iterator[bytes]:
        """LBMC messages; none lies in two frames."""
        while True:
            data = self.read_frame()
            while data:
                (length,) = struct.unpack_from(">H", data, 2)
                assert 4 <= length <= len(data), "a message that goes on in the next frame"
                yield data[:length]
                data = data[length:]


def connect(port: int) -> Peer:
    """To a source, or to a request port."""
    return Peer(socket.create_connection((LOOPBACK, port)))


@contextlib.contextmanager
def listener() -> Iterator[socket.socket]:
    """Where the library connects to."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        listening.settimeout(HANG)
        yield listening


def accept(listening: socket.socket) -> Peer:
    return Peer(listening.accept()[0])


def advertise(topic: str, port: int, index: int, flags: int = 0x8008) -> None:
    """A source of TCP; the flags of the version option say that its context compresses (8), or encrypts (4)."""
    address = struct.unpack(">I", socket.inet_aton(LOOPBACK))[0]
    record = forger.advertisement(topic.encode(), address, port, index)
    trailer = struct.pack(">BBHI", 0x83, 8, flags, 0x06110000) + struct.pack(">BBH", 0x80, 4, 12)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
        out.sendto(struct.pack(">BBH", 8, 0, 1) + record + trailer, forger.GROUP)
