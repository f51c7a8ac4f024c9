"""Captures with tcpdump, judged by tshark: its stock dissectors must understand every packet.

Each start of tshark takes 0.2 s of a processor, however short the capture: a test asks once for all fields that it
looks at (Capture.read()), and looks at them here.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import SLOW, Host

REASSEMBLE = ("-o", "lbmc.reassemble_fragments:TRUE", "-o", "tcp.desegment_tcp_streams:TRUE")
# The far end of a connection has any port, also one that some other protocol calls its own (48898 is that of AMS):
# what the bytes look like counts before the port does.
BYTES_BEFORE_PORTS = ("-o", "tcp.try_heuristic_first:TRUE", "-o", "udp.try_heuristic_first:TRUE")
# What is sent last: when it is in the file, all before it is.
MARK = b"the capture ends here"
MARK_PORT = 9
SEND_MARK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.sendto(sys.argv[2].encode(), (sys.argv[1], int(sys.argv[3])))
"""


Packet = dict[str, list[str]]
"""The occurrences of each field that was asked for."""
Choice = Callable[[Packet], bool]


def numbers(packet: Packet, field: str) -> list[int]:
    """Occurrences of a field of numbers, whatever their base."""
    return [int(value, 0) for value in packet[field] if value]


def is_on(packet: Packet, field: str) -> bool:
    """Whether a flag is set in any of its occurrences."""
    return any(value in ("1", "True") for value in packet[field])


class Packets(list[Packet]):
    """What was read of a capture, in packet order. A field that was not asked for is a KeyError."""

    def having(self, *fields: str) -> Packets:
        """Those with each of the fields."""
        return Packets(packet for packet in self if all(packet[field] for field in fields))

    def where(self, chosen: Choice) -> Packets:
        return Packets(packet for packet in self if chosen(packet))

    def values(self, field: str) -> list[str]:
        """Every occurrence of a field."""
        return [value for packet in self for value in packet[field] if value]

    def numbers(self, field: str) -> list[int]:
        return [number for packet in self for number in numbers(packet, field)]


def fields_wanted(fields: tuple[str, ...]) -> list[str]:
    """What tshark is told for read_rows()."""
    words = ("-T", "fields", "-E", "occurrence=a", "-E", "aggregator=\x1f")
    return [*words, *(part for field in fields for part in ("-e", field))]


def read_rows(output: str, fields: tuple[str, ...]) -> Packets:
    rows = [line.split("\t") for line in output.split("\n")[:-1]]
    assert all(len(row) == len(fields) for row in rows), output[:4000]
    return Packets({field: text.split("\x1f") if text else [] for field, text in zip(fields, row)} for row in rows)


class Capture:
    def __init__(self, host: Host, path: Path, device: str = "lo") -> None:
        if shutil.which("tcpdump") is None or shutil.which("tshark") is None:
            pytest.skip("captures need tcpdump and tshark")
        self.path = path
        self._host = host
        self._far = "127.0.0.1" if device == "lo" else "10.9.7.255"  # reached through the device
        self._options: list[str] = []
        # In immediate mode each packet would take as much of the buffer as the largest may.
        command = ("tcpdump", "-i", device, "-s", "0", "-U", "-B", "65536", "-w", str(path))
        self._process = host.start_command(*command)
        self._process.expect("listening on")

    def decode_as(self, rule: str) -> None:
        """For ports outside the dissectors' default ranges, e.g. "tcp.port==20000,lbttcp"."""
        self._options += ["-d", rule]

    def stop(self) -> None:
        self._host.run(sys.executable, "-c", SEND_MARK, self._far, MARK.decode(), str(MARK_PORT))
        end = time.monotonic() + 60 * SLOW
        while MARK not in self.path.read_bytes():
            assert time.monotonic() < end, "what is in the kernel's buffer is not written"
            time.sleep(0.1)
        self._process.signal(signal.SIGINT)
        self._process.wait()
        assert "0 packets dropped by kernel" in self._process.output, self._process.output

    def close(self) -> None:
        self._process.close()

    def tshark(self, *arguments: str) -> str:
        """Two passes: in one, fragments are complained about before the last of their message has been read."""
        done = subprocess.run(
            ["tshark", "-2", "-r", str(self.path), *REASSEMBLE, *BYTES_BEFORE_PORTS, *self._options, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, *fields: str) -> Packets:
        """These fields of all packets."""
        return read_rows(self.tshark(*fields_wanted(fields)), fields)

    def judge(self) -> None:
        """Nothing malformed, no expert warning or error, no payload that the dissectors left undissected.

        Three warnings do not count: the one that every NAK has by itself, and those of the kernel's own
        acknowledgements of a needless TCP retransmission (D-SACK), and of a connection to a process that has left
        (RST), seen on busy machines. Nor are the bytes of such a retransmission dissected a second time.
        """
        kernels = "(tcp.len == 0 && (tcp.options.sack.dsack || tcp.flags.reset == 1))"
        suspect = f"_ws.malformed || (_ws.expert.severity >= 0x600000 && !{kernels})"
        plain = (
            "(tcp.len > 0 || udp.length > 8) && !lbmr && !lbmc && !lbttcp && !lbtrm && !lbtru && !tcp.segment_data"
            " && !tcp.segment && !tcp.reassembled_in && !tcp.analysis.spurious_retransmission && !icmp"
        )
        not_the_mark = f"!(udp.dstport == {MARK_PORT})"  # whose sender's port may be that of any protocol
        fields = ("_ws.expert.severity", "_ws.expert.message", "frame.number", "frame.protocols", "_ws.col.Info")
        chosen = f"(({suspect}) || ({plain})) && {not_the_mark}"
        bad = []
        for packet in read_rows(self.tshark("-Y", chosen, *fields_wanted(fields)), fields):
            severities, messages = packet["_ws.expert.severity"], packet["_ws.expert.message"]
            grave = [text for value, text in zip(severities, messages) if int(value, 0) >= 0x600000]
            if grave != ["NAK"]:  # a packet left undissected has no NAK
                bad.append(str(packet))
        assert not bad, "tshark complains, or leaves payload undissected:\n" + "\n".join(bad)[:4000]
