"""Fixtures of the tests that run programs: one host, two hosts, a capture."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from capture import Capture
from hosts import Host, connect

LOOPBACK = """
context default_interface 127.0.0.1
"""


def _namespaces_possible() -> bool:
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not _namespaces_possible(), reason="network namespaces need root here")


@pytest.fixture
def host() -> Iterator[Host]:
    """A host with only a loopback interface, multicast routed over it."""
    if not _namespaces_possible():
        pytest.skip("network namespaces need root here")
    one = Host()
    try:
        one.route_multicast("lo")
        yield one
    finally:
        one.close()


@pytest.fixture
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts joined by a cable: 10.9.8.1 and 10.9.8.2 on eth0."""
    if not _namespaces_possible():
        pytest.skip("network namespaces need root here")
    left = Host()
    try:
        right = Host()
        try:
            connect(left, right)
            yield left, right
        finally:
            right.close()
    finally:
        left.close()


@pytest.fixture
def loopback_config(tmp_path: Path) -> Callable[..., str]:
    """Writes a configuration file for programs on the loopback interface, with more lines if given."""
    count = 0

    def write(*lines: str, base: str = LOOPBACK) -> str:
        nonlocal count
        count += 1
        path = tmp_path / f"um{count}.cfg"
        path.write_text(base + "\n".join(lines) + "\n")
        return str(path)

    return write


@pytest.fixture
def wire(host: Host, tmp_path: Path) -> Iterator[Capture]:
    """A running capture of everything on the host's loopback interface."""
    capture = Capture(host, tmp_path / "run.pcap")
    try:
        yield capture
    finally:
        capture.close()
