"""Shared memory between programs: the example programs over LBT-IPC, who can join, and the resource managers."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts import Host, program

Config = Callable[..., str]

TRANSPORTS = ("ipc", "smx")
FIRST_ID = {"ipc": 20001, "smx": 30001}


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of segments for this test alone."""
    with tempfile.TemporaryDirectory(prefix="um-test-", dir="/dev/shm") as path:
        monkeypatch.setenv("UM_SHM_DIR", path)
        yield Path(path)


def manager(transport: str, *arguments: str) -> list[str]:
    command = [program(f"lbt{transport}_resource_manager"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def objects(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def test_lbmsrc_and_lbmrcv_over_shared_memory(host: Host, loopback_config: Config, directory: Path) -> None:
    config = loopback_config("source transport lbtipc", "source transport_lbtipc_behavior receiver_paced")
    receiver = host.start("lbmrcv", "-c", config, "-S", "-V", "news")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, "-d", 3600, "-V", "-M", 20000, "-L", 1, "-l", 100, "news")
    receiver.expect("Beginning of Transport Session")
    source.go_on()
    source.finish()
    got = receiver.finish()
    assert re.search("^Messages received : 20000$", got, re.MULTILINE), got[-2000:]
    assert re.search(r"^\[news\]\[LBT-IPC:[0-9a-f]+:20001\[\d+\]\], End of Transport Session$", got, re.MULTILINE)
    assert objects(directory) == []


def test_a_receiver_of_another_host_ignores_the_advertisement(
    host: Host, loopback_config: Config, directory: Path
) -> None:
    """Another directory of segments is another host: so it is with containers that do not share /dev/shm."""
    config = loopback_config("source transport lbtipc")
    with tempfile.TemporaryDirectory(prefix="um-test-", dir="/dev/shm") as elsewhere:
        far = host.start("lbmrcv", "-c", config, "-v", "news", env={"UM_SHM_DIR": elsewhere})
        near = host.start("lbmrcv", "-c", config, "-v", "news")
        for receiver in (far, near):
            receiver.expect("Immediate messaging target")
        source = host.start("lbmsrc", "-c", config, "-M", 1 << 30, "-P", 1, "news")
        near.expect("Beginning of Transport Session")
        source.signal(signal.SIGKILL)
        near.expect("End of Transport Session")
        assert "Transport Session" not in far.output
        assert "not joined" not in far.output + near.output
        assert "Core-" not in re.sub("Core-(5688-3362|10403-150)[^\n]*", "", far.output)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_resource_manager_lists_the_living_and_reclaims_the_dead(
    host: Host, loopback_config: Config, directory: Path, transport: str
) -> None:
    config = loopback_config(f"source transport lbt{transport}")
    receiver = host.start("lbmrcv", "-c", config, "-v", "news")
    receiver.expect("Immediate messaging target")
    source = host.start("lbmsrc", "-c", config, "-M", 1000000, "-P", 1, "news")
    receiver.expect("Beginning of Transport Session")
    segment = next(name for name in objects(directory) if not name.endswith("_0"))
    session = segment.split("_")[1]
    key = next(line for line in manager(transport) if "key" in line).split(": ")[1]
    listed = [
        "Displaying Resources (to reclaim you must type '-reclaim' exactly)",
        "",
        "--Memory Resources--",
        f" Memory resource: Process ID: {source.pid} SessionID: {session} XportID: {FIRST_ID[transport]}",
        "",
        "--Semaphore Resources--",
        f" Semaphore key: {key}",
        "    Semaphore resource Index 0: reserved",
        f"    Semaphore resource: Process ID: {receiver.pid} Sem Index: 1",
    ]
    assert manager(transport) == listed
    assert manager(transport, "-Reclaim") == listed
    before = objects(directory)
    assert manager(transport, "-reclaim") == [
        "Reclaiming Resources",
        f" Process {source.pid} still active! Memory resource not reclaimed (SessionID: {session} "
        f"XPortID: {FIRST_ID[transport]})",
        f" Process {receiver.pid} still active! Semaphore resource not reclaimed (Key: {key} Sem Index: 1)",
    ]
    assert objects(directory) == before
    receiver.suspend()  # stopped, it cannot tidy up behind the source; and stopped is not dead
    source.signal(signal.SIGKILL)
    source.wait()
    assert manager(transport, "-reclaim") == [
        "Reclaiming Resources",
        f" Process {source.pid} not found: reclaiming Memory resource (SessionID: {session} "
        f"XPortID: {FIRST_ID[transport]})",
        f" Process {receiver.pid} still active! Semaphore resource not reclaimed (Key: {key} Sem Index: 1)",
    ]
    receiver.signal(signal.SIGKILL)
    receiver.wait()
    assert manager(transport, "-reclaim") == [
        "Reclaiming Resources",
        f" Process {receiver.pid} not found: reclaiming Semaphore resource: Key: {key} Sem Index: 1",
    ]
    assert objects(directory) == []


def test_a_receiver_ends_with_eos_when_its_source_is_killed_and_finds_the_next_one(
    host: Host, loopback_config: Config, directory: Path
) -> None:
    config = loopback_config("source transport lbtipc")
    receiver = host.start("lbmrcv", "-c", config, "-v", "news")
    receiver.expect("Immediate messaging target")

    def told(what: str, times: int) -> Callable[[], bool]:
        return lambda: receiver.output.count(f"{what} of Transport Session") == times

    for count in (1, 2, 3):
        source = host.start("lbmsrc", "-c", config, "-M", 1000000, "-P", 1, "news")
        wait_for(told("Beginning", count))
        source.signal(signal.SIGKILL)
        wait_for(told("End", count))
    wait_for(lambda: [name for name in objects(directory) if not name.endswith("_0")] == [])
    receiver.signal(signal.SIGKILL)


def test_modes_of_segments_come_from_the_umask_or_the_environment(
    host: Host, loopback_config: Config, directory: Path
) -> None:
    config = loopback_config("source transport lbtipc")
    for mode, env, prefix in (
        (0o644, {}, "umask 022;"),
        (0o666, {}, "umask 0;"),
        (0o600, {"UM_SHM_MODE": "600"}, "umask 0;"),
    ):
        source = host.start("lbmsrc", "-c", config, "-M", 1000000, "-P", 10, "news", env=env, prefix=prefix)
        wait_for(lambda: objects(directory))
        assert (directory / objects(directory)[0]).stat().st_mode & 0o777 == mode
        source.signal(signal.SIGKILL)
        source.wait()
        manager("ipc", "-reclaim")


def test_a_full_file_system_is_an_error_with_size_path_and_remedy(host: Host, loopback_config: Config) -> None:
    small = Path(tempfile.mkdtemp(prefix="um-test-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True)
    try:
        config = loopback_config("source transport lbtipc")
        source = host.start("lbmsrc", "-c", config, "-M", 10, "news", env={"UM_SHM_DIR": str(small)})
        assert source.wait() not in (0, -signal.SIGBUS)
        found = re.search(rf"{small}/LBTIPC_[0-9a-f]+_20001: no room for a segment of (\d+) bytes", source.output)
        assert found and int(found.group(1)) > 25165824, source.output
        assert "transmission window smaller" in source.output
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()
