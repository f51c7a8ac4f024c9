"""The suite of TCP with every context encrypted, compressing, or both: programs of tests/c, run again with settings
that their contexts take from the environment (UM_TEST_STREAMS, tests/c/support/um_test_rcv.h). Here some under
TLS; in the long run (UM_SOAK) all of them under each of the three.

Not here: programs that use other transports, which such contexts refuse, and those whose other side is a plain socket.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build"))
SETTINGS = ("tls", "lz4", "tls+lz4")
HANG = 600.0  # seconds; only catches hangs
FAMILIES = (
    "apphdr_test",
    "collector_test",
    "event_queue_test",
    "hf_receiver_test",
    "hfx_test",
    "hypertopic_test",
    "immediate_test",
    "l1_readiness_test",
    "message_test",
    "rcv_mail_test",
    "receiver_test",
    "request_ends_test",
    "wildcard_test",
)
SHORT = (
    "hf_receiver_test",
    "immediate_test",
    "l1_readiness_test",
    "message_test",
    "request_ends_test",
    "wildcard_test",
)
SOAK = bool(os.environ.get("UM_SOAK"))
RUNS = [(name, each) for name in FAMILIES for each in SETTINGS] if SOAK else [(name, "tls") for name in SHORT]


@pytest.mark.parametrize(("program", "settings"), RUNS)
def test_programs_of_tcp_pass_with_filters_over_their_streams(program: str, settings: str) -> None:
    folder = BUILD.resolve()
    done = subprocess.run(
        [str(ROOT / "tools" / "private_net.sh"), str(folder / "tests" / program)],
        cwd=folder,
        env={**os.environ, "UM_TEST_STREAMS": settings},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=HANG,
    )
    output = done.stdout + done.stderr
    counts = re.search(r"(\d+) passed, 0 failed", output)
    assert done.returncode == 0 and counts is not None and int(counts[1]) > 0, output[-5000:]
