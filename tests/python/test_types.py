"""The type checker knows the package: options by name, what calls return."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from um_cffi import Batch, Context, Message, Receiver, Source
with Context(default_interface="127.0.0.1") as ctx:
    source = Source(ctx, "x", transport_tcp_nodelay=True)
    receiver = Receiver(ctx, "x")
    batch: Batch | None = receiver.recv_batch()
    source.send([b"x", bytearray(b"y")])
    wrong: int = source.send(b"x")  # two errors: no value, and not an int
    Source(ctx, "x", transport_tcp_nodelai=True)  # one error: no such option
"""


def test_type_checker_knows_options_and_results() -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "transport_tcp_nodelai" in done.stdout and "Found 3 errors" in done.stdout, done.stdout
