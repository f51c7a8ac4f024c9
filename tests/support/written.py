"""Packets that a program of the tests writes as text, without a network, dissected by the stock tshark."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from relay import support_program

PORT = 14371


@dataclass(frozen=True)
class Written:
    """A capture, and what tshark is told of it."""

    file: Path
    options: tuple[str, ...]

    def rows(self, display_filter: str, *fields: str) -> list[list[list[str]]]:
        """For each packet that passes the occurrences of each field."""
        command = ["tshark", "-2", "-r", str(self.file), *self.options, "-Y", display_filter, "-T", "fields"]
        command += [
            "-E",
            "occurrence=a",
            "-E",
            "aggregator=\x1f",
            *(part for field in fields for part in ("-e", field)),
        ]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [[column.split("\x1f") if column else [] for column in line.split("\t")] for line in out.splitlines()]

    def values(self, field: str) -> list[str]:
        """All occurrences of a field."""
        return [value for row in self.rows(field, field) for value in row[0]]


def written(program: str, folder: Path, dissector: str, *options: str) -> Written:
    """What `program` of tests/net/programs/inner prints, as TCP packets of PORT that `dissector` reads."""
    if shutil.which("text2pcap") is None or shutil.which("tshark") is None:
        pytest.skip("needs text2pcap and tshark")
    text, packets = folder / "messages.txt", folder / "messages.pcap"
    text.write_bytes(subprocess.run([support_program(program)], check=True, capture_output=True).stdout)
    command = ["text2pcap", "-q", "-T", f"{PORT},{PORT + 1}", str(text), str(packets)]
    subprocess.run(command, check=True, capture_output=True)
    return Written(packets, ("-d", f"tcp.port=={PORT},{dissector}", *options))
