"""Packets that a program of the tests writes as text, without a network, dissected by the stock tshark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from capture import Packets, fields_wanted, read_rows
from relay import support_program

PORT = 14371


def written(program: str, folder: Path, dissector: str, *fields: str, options: tuple[str, ...] = ()) -> Packets:
    """The fields of what `program` of tests/net/programs/inner prints: TCP packets of PORT, read by `dissector`."""
    if shutil.which("text2pcap") is None or shutil.which("tshark") is None:
        pytest.skip("needs text2pcap and tshark")
    text, packets = folder / "messages.txt", folder / "messages.pcap"
    text.write_bytes(subprocess.run([support_program(program)], check=True, capture_output=True).stdout)
    command = ["text2pcap", "-q", "-T", f"{PORT},{PORT + 1}", str(text), str(packets)]
    subprocess.run(command, check=True, capture_output=True)
    command = ["tshark", "-2", "-r", str(packets), "-d", f"tcp.port=={PORT},{dissector}", *options]
    command += fields_wanted(fields)
    return read_rows(subprocess.run(command, check=True, capture_output=True, text=True).stdout, fields)
