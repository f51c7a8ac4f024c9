"""Captures with tcpdump, judged by tshark: its stock dissectors must understand every packet."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
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

    def count(self, display_filter: str) -> int:
        return len(self.tshark("-Y", display_filter, "-T", "fields", "-e", "frame.number").split())

    def values(self, field: str, display_filter: str = "") -> list[str]:
        """Every occurrence of a field, in packet order."""
        chosen = ["-Y", f"({field}) and ({display_filter})" if display_filter else field]
        lines = self.tshark(*chosen, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=\x1f", "-e", field)
        return [value for line in lines.splitlines() for value in line.split("\x1f") if value]

    def judge(self) -> None:
        """Nothing malformed, no expert warning or error, no payload that the dissectors left undissected.

        Three warnings do not count: the one that every NAK has by itself, and those of the kernel's own
        acknowledgements of a needless TCP retransmission (D-SACK), and of a connection to a process that has left
        (RST), seen on busy machines.
        """
        kernels = "(tcp.len == 0 && (tcp.options.sack.dsack || tcp.flags.reset == 1))"
        suspect = f"_ws.malformed || (_ws.expert.severity >= 0x600000 && !{kernels})"
        plain = (
            "(tcp.len > 0 || udp.length > 8) && !lbmr && !lbmc && !lbttcp && !lbtrm && !lbtru && !tcp.segment_data"
            " && !tcp.segment && !tcp.reassembled_in && !icmp"
        )
        not_the_mark = f"!(udp.dstport == {MARK_PORT})"  # whose sender's port may be that of any protocol
        fields = ("frame.number", "frame.protocols", "_ws.col.Info", "_ws.expert.severity", "_ws.expert.message")
        wanted = [part for field in fields for part in ("-e", field)]
        bad = []
        for line in self.tshark(
            "-Y",
            f"(({suspect}) || ({plain})) && {not_the_mark}",
            "-T",
            "fields",
            "-E",
            "occurrence=a",
            "-E",
            "aggregator=\x1f",
            *wanted,
        ).splitlines():
            severities, messages = (column.split("\x1f") for column in line.split("\t")[-2:])
            grave = [text for value, text in zip(severities, messages) if value and int(value, 0) >= 0x600000]
            if grave != ["NAK"]:  # a packet left undissected has no NAK
                bad.append(line)
        assert not bad, "tshark complains, or leaves payload undissected:\n" + "\n".join(bad)[:4000]

    def json(self, display_filter: str, fields: Sequence[str]) -> list[dict[str, list[str]]]:
        """The given fields of each packet that passes."""
        wanted = [part for field in fields for part in ("-e", field)]
        packets = json.loads(self.tshark("-Y", display_filter, "-T", "json", *wanted) or "[]")
        return [packet["_source"]["layers"] for packet in packets]
