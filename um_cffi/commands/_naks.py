"""Who asks for repairs: NAKs of LBT-RM and LBT-RU as they pass a host, counted by receiver and session for `um top`.

NAKs go to their source alone, so they are seen on its host and on that of the receiver, by a packet socket (root, or
CAP_NET_RAW). The kernel lets NAKs alone through to it.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import socket
import struct
from dataclasses import dataclass

SO_ATTACH_FILTER = 26
ETH_P_IP = 0x0800
PACKET_OUTGOING = 4
NAK = 3  # type of packet, LBT-RM and LBT-RU
BUFFER_BYTES = 4 << 20

# UDP, not a later fragment, first nibble of the payload 0 (version) and the second one NAK: (code, jt, jf, k)
FILTER = (
    (0x30, 0, 0, 9),
    (0x15, 0, 6, socket.IPPROTO_UDP),
    (0x28, 0, 0, 6),
    (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 0),
    (0x50, 0, 0, 8),
    (0x15, 0, 1, NAK),
    (0x06, 0, 0, 0xFFFF),
    (0x06, 0, 0, 0),
)


@dataclass
class Asking:
    """What one receiver has asked one session for."""

    packets: int = 0
    naks: int = 0
    shown: int = 0
    rate: float = 0.0

    def tick(self, seconds: float) -> None:
        """Begin a new interval."""
        self.rate = (self.naks - self.shown) / seconds
        self.shown = self.naks


class NakWatch:
    """NAKs by receiver (address:port) and session (source string without topic)."""

    def __init__(self) -> None:
        self.asking: dict[tuple[str, str], Asking] = collections.defaultdict(Asking)
        self._socket = _open()

    @property
    def works(self) -> bool:
        """Whether this user may look at packets."""
        return self._socket is not None

    def read(self, sources: list[str]) -> None:
        """Count what has passed since the last call; NAKs for other sessions than those of `sources` are ignored."""
        if self._socket is None:
            return
        sessions = {key: session for source in sources for key, session in _key(source)}
        while True:
            try:
                packet, address = self._socket.recvfrom(65536)
            except OSError:  # nothing more
                return
            if address[2] != PACKET_OUTGOING or not address[0].startswith("lo"):  # loopback shows everything twice
                self._count(packet, sessions)

    def _count(self, packet: bytes, sessions: dict[str, str]) -> None:
        at = 4 * (packet[0] & 0x0F)
        if len(packet) < at + 8 + 12:
            return
        receiver, target = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
        port, target_port = struct.unpack_from("!HH", packet, at)
        data = packet[at + 8 :]
        session_id, count = struct.unpack_from("!IH", data, 4)
        session = sessions.get(f"LBTRM:{session_id:08x}")
        if session is None:
            session, count = sessions.get(f"LBT-RU:{target}:{target_port}"), struct.unpack_from("!H", data, 4)[0]
        if session is not None:
            asking = self.asking[f"{receiver}:{port}", session]
            asking.packets += 1
            asking.naks += int(count)

    def ranking(self) -> list[tuple[str, str, Asking]]:
        """Receiver, session and what it has asked for: those that ask most now first, then most in all."""
        rows = [(receiver, session, each) for (receiver, session), each in self.asking.items()]
        return sorted(rows, key=lambda row: (row[2].rate, row[2].naks), reverse=True)

    def close(self) -> None:
        """Look no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _key(source: str) -> list[tuple[str, str]]:
    """How NAKs name the session of a source string, and that string without the topic."""
    session = source.partition("[")[0]
    parts = session.split(":")
    if parts[0] == "LBTRM" and len(parts) > 3:
        return [(f"LBTRM:{parts[3].lower()}", session)]
    if parts[0] == "LBT-RU" and len(parts) > 2:
        return [(":".join(parts[:3]), session)]
    return []


def is_repaired(source: str) -> bool:
    """Whether the transport of a source string has NAKs."""
    return bool(_key(source))


def _open() -> socket.socket | None:
    try:
        watching = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    except OSError:
        return None
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in FILTER))
    program = struct.pack("HL", len(FILTER), ctypes.addressof(code))
    watching.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    watching.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    watching.setblocking(False)
    with contextlib.suppress(OSError):
        while True:  # what came before there was a filter
            watching.recv(65536)
    return watching
