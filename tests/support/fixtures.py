"""Fixtures of the tests that run programs: one host, two hosts, a capture."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from capture import Capture
from hosts import Host, connect

# Set by tests/net/test_d5_without_multicast.py: resolution through lbmrd, in hosts where multicast does not work.
WITHOUT_MULTICAST = bool(os.environ.get("UM_TEST_WITHOUT_MULTICAST"))
UNICAST = "context resolver_unicast_daemon 127.0.0.1:15380\n"
LOOPBACK = "\ncontext default_interface 127.0.0.1\n" + (UNICAST if WITHOUT_MULTICAST else "")


def _namespaces_possible() -> bool:
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


NO_NAMESPACES = (
    "network namespaces cannot be made here: run as root (CAP_SYS_ADMIN), or as root of a user namespace: "
    "unshare --map-root-user --net --mount sh -c 'mount -t tmpfs none /run && COMMAND'"
)
needs_namespaces = pytest.mark.skipif(not _namespaces_possible(), reason=NO_NAMESPACES)


def block_multicast(host: Host) -> None:
    """Route and drop: what is sent to a group leaves no trace, and the counters tell that something tried."""
    host.route_multicast("lo")
    host.run("nft", "add table ip guard")
    for hook in ("input", "output"):
        host.run("nft", f"add chain ip guard {hook} {{ type filter hook {hook} priority 0; }}")
        host.run("nft", f"add rule ip guard {hook} ip daddr 224.0.0.0/4 counter drop")


@pytest.fixture
def host() -> Iterator[Host]:
    """A host with only a loopback interface, multicast routed over it."""
    if not _namespaces_possible():
        pytest.skip(NO_NAMESPACES)
    one = Host()
    try:
        if WITHOUT_MULTICAST:
            block_multicast(one)
            one.start("lbmrd", "-i", "127.0.0.1").expect("lbmrd started on 127.0.0.1:15380")
        else:
            one.route_multicast("lo")
        yield one
    finally:
        one.close()


@pytest.fixture
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts joined by a cable: 10.9.8.1 and 10.9.8.2 on eth0."""
    if not _namespaces_possible():
        pytest.skip(NO_NAMESPACES)
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
