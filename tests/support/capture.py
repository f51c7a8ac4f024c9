"""Captures with tcpdump, judged by tshark: its stock dissectors must understand every packet."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hosts import Host

REASSEMBLE = ("-o", "lbmc.reassemble_fragments:TRUE", "-o", "tcp.desegment_tcp_streams:TRUE")


class Capture:
    def __init__(self, host: Host, path: Path, device: str = "lo") -> None:
        if shutil.which("tcpdump") is None or shutil.which("tshark") is None:
            pytest.skip("captures need tcpdump and tshark")
        self.path = path
        self._options: list[str] = []
        command = ("tcpdump", "-i", device, "-s", "0", "-U", "--immediate-mode", "-B", "65536", "-w", str(path))
        self._process = host.start_command(*command)
        self._process.expect("listening on")

    def decode_as(self, rule: str) -> None:
        """For ports outside the dissectors' default ranges, e.g. "tcp.port==20000,lbttcp"."""
        self._options += ["-d", rule]

    def stop(self) -> None:
        size = -1
        while size != self.path.stat().st_size:  # until what is still in the kernel's buffer has been written
            size = self.path.stat().st_size
            time.sleep(0.3)
        self._process.signal(signal.SIGINT)
        self._process.wait()
        assert "0 packets dropped by kernel" in self._process.output, self._process.output

    def close(self) -> None:
        self._process.close()

    def tshark(self, *arguments: str) -> str:
        """Two passes: in one, fragments are complained about before the last of their message has been read."""
        done = subprocess.run(
            ["tshark", "-2", "-r", str(self.path), *REASSEMBLE, *self._options, *arguments],
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

        Two warnings do not count: the one that every NAK has by itself, and the one of the kernel's own
        acknowledgements of a needless TCP retransmission (D-SACK), seen on busy machines.
        """
        bad = []
        suspect = "_ws.malformed || (_ws.expert.severity >= 0x600000 && !(tcp.len == 0 && tcp.options.sack.dsack))"
        fields = ("frame.number", "_ws.col.Info", "_ws.expert.severity", "_ws.expert.message")
        wanted = [part for field in fields for part in ("-e", field)]
        for line in self.tshark(
            "-Y", suspect, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=\x1f", *wanted
        ).splitlines():
            severities, messages = (column.split("\x1f") for column in line.split("\t")[-2:])
            grave = [text for value, text in zip(severities, messages) if value and int(value, 0) >= 0x600000]
            if grave != ["NAK"]:
                bad.append(line)
        assert not bad, "tshark complains:\n" + "\n".join(bad)[:4000]
        plain = self.tshark(
            "-Y",
            "(tcp.len > 0 || udp.length > 8) && !lbmr && !lbmc && !lbttcp && !lbtrm && !lbtru && !tcp.segment_data"
            " && !tcp.segment && !tcp.reassembled_in && !icmp",
            "-T",
            "fields",
            "-e",
            "frame.number",
            "-e",
            "frame.protocols",
            "-e",
            "_ws.col.Info",
        )
        assert not plain, f"payload left undissected:\n{plain[:4000]}"

    def json(self, display_filter: str, fields: Sequence[str]) -> list[dict[str, list[str]]]:
        """The given fields of each packet that passes."""
        wanted = [part for field in fields for part in ("-e", field)]
        packets = json.loads(self.tshark("-Y", display_filter, "-T", "json", *wanted) or "[]")
        return [packet["_source"]["layers"] for packet in packets]
