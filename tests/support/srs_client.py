"""A client of the SRS in Python, made from the wire format alone: an independent peer of the daemon's codec."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType

from hosts import SLOW

SETUP, KEEPALIVE, REQUEST_RESPONSE, REQUEST_FNF, REQUEST_STREAM, REQUEST_N = 1, 3, 4, 5, 6, 8
PAYLOAD, ERROR = 10, 11
RESPOND = 0x80
NEXT, COMPLETE = 0x20, 0x40
SIR, SDR, RIR, RDR, WIR, WDR, SLR = 4, 5, 6, 7, 9, 10, 12
FLOOD, FILTER = 0, 1
MIME = b"application/octet-stream"
SOURCE = "TCP:127.0.0.1:14371:5eed0001"
HANG = 30.0  # seconds; only catches hangs


def frame(kind: int, stream: int, body: bytes = b"", flags: int = 0) -> bytes:
    return (6 + len(body)).to_bytes(3, "big") + struct.pack(">IH", stream, kind << 10 | flags) + body


def string(text: str) -> bytes:
    data = text.encode() + b"\0"
    return bytes([len(data)]) + data


class Closed(Exception):
    """The daemon has closed the connection; `error` is the code of its last ERROR frame, 0 without one."""

    def __init__(self, error: int) -> None:
        super().__init__(f"closed, error {error:#x}")
        self.error = error


class SrsClient:
    """One connection. `sources` maps an OTID to (topic, source string); `log` has every record as it came."""

    def __init__(self, port: int, session: int, host: str = "127.0.0.1") -> None:
        self.session = session
        self.socket = socket.create_connection((host, port), timeout=HANG * SLOW)
        self._data = b""
        self._stream = 1
        self.bytewise = False  # a segment for each byte
        self.error = 0
        self.client_id = 0
        self.frames = 0
        self.keepalives = 0
        self.sources: dict[bytes, tuple[str, str]] = {}
        self.log: list[tuple[str, str, bytes]] = []

    def __enter__(self) -> SrsClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Ends the connection as a killed host does: without a word in order."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # what it says

    def send(self, *frames: bytes) -> None:
        data = b"".join(frames)
        step = 1 if self.bytewise else max(len(data), 1)
        for at in range(0, len(data), step):
            self.socket.sendall(data[at : at + step])

    def _next(self) -> int:
        stream, self._stream = self._stream, self._stream + 2
        return stream

    def setup(self, keepalive: int = 60000, lifetime: int = 600000) -> None:
        """The longest lifetime: a test on a busy machine may be silent for long."""
        mime = bytes([len(MIME)]) + MIME
        self.send(frame(SETUP, 0, struct.pack(">HHII", 1, 0, keepalive, lifetime) + mime + mime))

    def register(self, mode: int = FILTER, app_type: int = 0, version: int = 1) -> None:
        ip, port = self.socket.getsockname()
        body = struct.pack(">HB4sHIIBBI", 1, app_type, socket.inet_aton(ip), port, self.session, 7, version, mode, 0)
        self.send(frame(REQUEST_RESPONSE, self._next(), body))

    def stream(self, count: int = 128) -> None:
        self.send(frame(REQUEST_STREAM, self._next(), struct.pack(">IHB", count, 3, 0)))

    def join(self, mode: int = FILTER) -> SrsClient:
        self.setup()
        self.register(mode)
        self.wait(lambda: self.client_id != 0)
        self.stream()
        return self

    def otid(self, number: int) -> bytes:
        return struct.pack(">II24x", self.session, number)

    def _context(self) -> bytes:
        return struct.pack(">QBII", self.session, 0, 0x06110000, 0)

    def sir(self, number: int, topic: str, source: str = SOURCE) -> bytes:
        head = struct.pack(">H32s", SIR, self.otid(number)) + string(topic) + string(source)
        middle = struct.pack(">III4sHIBBIIQ", 7, number, 1, socket.inet_aton("127.0.0.1"), 14391, 0, 0, 0, 0, 0, 0)
        return head + middle + self._context() + struct.pack(">Hi", 0, 0)

    def sdr(self, number: int, topic: str) -> bytes:
        return struct.pack(">H32s", SDR, self.otid(number)) + string(topic)

    def want(self, kind: int, topic: str) -> bytes:
        return struct.pack(">H", kind) + string(topic) + struct.pack(">I", 0) + self._context() + bytes(4)

    def slr(self, otid: bytes, topic: str, source: str = SOURCE) -> bytes:
        return struct.pack(">H32s", SLR, otid) + string(topic) + string(source) + self._context() + bytes(4)

    def batch(self, *records: bytes) -> None:
        self.send(frame(REQUEST_FNF, self._next(), b"".join(records)))

    def keepalive(self) -> None:
        self.send(frame(KEEPALIVE, 0, bytes(8), RESPOND))

    # what it hears

    def _string(self, data: bytes, at: int) -> tuple[str, int]:
        end = at + 1 + data[at]
        assert data[end - 1] == 0
        return data[at + 1 : end - 1].decode(), end

    def _records(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            assert struct.unpack_from(">H", data, at) == (SIR,)
            otid = data[at + 2 : at + 34]
            topic, at = self._string(data, at + 34)
            source, at = self._string(data, at)
            at += 63
            (cost,) = struct.unpack_from(">i", data, at - 4)
            self.log.append(("SER" if cost < 0 else "SIR", topic, otid))
            if cost < 0:
                self.sources.pop(otid, None)
            else:
                self.sources[otid] = (topic, source)

    def _frame(self, body: bytes) -> None:
        stream, word = struct.unpack_from(">IH", body)
        kind, data = word >> 10, body[6:]
        self.frames += 1
        if kind == ERROR:
            self.error = struct.unpack_from(">I", data)[0]
        elif kind == KEEPALIVE:
            self.keepalives += 1
        elif kind == PAYLOAD and stream == 1:
            assert word & (NEXT | COMPLETE) == NEXT | COMPLETE and len(data) == 15
            self.client_id = struct.unpack_from(">HQ", data)[1]
        elif kind == PAYLOAD:
            self._records(data)
            self.send(frame(REQUEST_N, stream, struct.pack(">I", 1)))

    def read(self, seconds: float) -> None:
        """What comes within this time, up to one read; Closed when the connection is at its end."""
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1 << 16)
        except TimeoutError:
            return
        except ConnectionResetError:
            raise Closed(self.error) from None
        if not data:
            raise Closed(self.error)
        self._data += data
        while len(self._data) >= 3 and len(self._data) >= 3 + (size := int.from_bytes(self._data[:3], "big")):
            body, self._data = self._data[3 : 3 + size], self._data[3 + size :]
            self._frame(body)

    def wait(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + HANG * SLOW
        while not condition():
            assert time.monotonic() < end, f"client {self.session}: what it waits for does not come: {self.log[-10:]}"
            self.read(0.2)

    def wait_closed(self) -> int:
        """The code of the ERROR frame before the end."""
        end = time.monotonic() + HANG * SLOW
        while time.monotonic() < end:
            try:
                self.read(0.2)
            except Closed as closed:
                return closed.error
        raise AssertionError(f"client {self.session} is not closed")
