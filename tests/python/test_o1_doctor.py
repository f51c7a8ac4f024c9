"""Requirement O1: `um doctor` says what is wrong with a host, and the remedy, in under ten seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
ENV = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}

pytestmark = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")


NO_GROUPS = """nft add table ip t; nft 'add chain ip t c { type filter hook input priority 0; }';
nft add rule ip t c ip daddr 224.0.0.0/4 drop;"""


def doctor(host: Host, *arguments: str, before: str = "") -> tuple[int, dict[str, dict[str, str]]]:
    """Status and findings by name; `before` is shell text run first in the same place."""
    command = [sys.executable, "-m", "um_cffi", "doctor", "--json", *arguments]
    begin = time.monotonic()
    process = host.start_command("sh", "-c", f'{before} exec "$@"', "sh", *command, env=ENV)
    status = process.wait()
    assert time.monotonic() - begin < 10
    found = [json.loads(line) for line in process.output.splitlines() if line.startswith("{")]
    assert found, process.output
    return status, {each["name"]: each for each in found}


def failing(found: dict[str, dict[str, str]]) -> set[str]:
    return {name for name, each in found.items() if each["state"] == "FAIL"}


def test_o1_a_good_host_has_no_failure(host: Host) -> None:
    status, found = doctor(host)
    assert (status, failing(found)) == (0, set())
    names = (
        "interface",
        "multicast",
        "receive buffers",
        "profile",
        "open files",
        "clock",
        "shared memory",
        "segments",
        "firewall",
        "exchange",
    )
    assert set(names) <= set(found)
    assert found["exchange"]["state"] == "ok"


def test_o1_every_failure_and_warning_has_a_remedy(host: Host) -> None:
    _, found = doctor(host, before=NO_GROUPS + "ulimit -S -n 100;")
    assert all(bool(each["remedy"]) == (each["state"] != "ok") for each in found.values()), found


def test_o1_no_multicast(two_hosts: tuple[Host, Host]) -> None:
    before = "ip link set eth0 multicast off;"
    status, found = doctor(two_hosts[0], before=before)
    assert status == 1
    assert "eth0 is without multicast" in found["interface"]["text"]
    assert found["interface"]["remedy"].startswith("ip link set eth0 multicast on")
    status, found = doctor(two_hosts[0], "-i", "10.9.8.0/24", before=before)
    assert status == 1 and "multicast" in failing(found)
    assert "multicast on" in found["multicast"]["remedy"] and "lbmrd" in found["multicast"]["remedy"]


def test_o1_multicast_discarded_by_a_firewall(host: Host) -> None:
    status, found = doctor(host, before=NO_GROUPS)
    assert status == 1
    assert {"multicast", "exchange"} <= failing(found)
    assert found["firewall"]["state"] == "warn" and "224.0.0.0/4 drop" in found["firewall"]["text"]


def test_o1_without_multicast_a_daemon_is_enough(host: Host) -> None:
    host.start("lbmrd", "-i", "127.0.0.1").expect("started")
    status, found = doctor(host, "-i", "127.0.0.1", "-d", "127.0.0.1:15380", before=NO_GROUPS)
    assert (status, failing(found)) == (0, set())
    assert found["multicast"]["state"] == "warn" and found["exchange"]["state"] == "ok"


def test_o1_loopback_down(host: Host) -> None:
    status, found = doctor(host, before="ip link set lo down;")
    assert status == 1
    assert {"loopback", "interface"} <= failing(found)
    assert found["loopback"]["remedy"] == "ip link set lo up"


def test_o1_small_socket_buffers(host: Host, tmp_path: Path) -> None:
    small = tmp_path / "rmem_max"
    small.write_text("65536\n")
    # A host's commands have a mount namespace of their own, so this is seen by the doctor alone.
    status, found = doctor(host, before=f"mount --bind {small} /proc/sys/net/core/rmem_max;")
    assert status == 1
    assert failing(found) == {"receive buffers"}
    assert "65536" in found["receive buffers"]["text"]
    assert found["receive buffers"]["remedy"].startswith("sysctl -w net.core.rmem_max=8388608")


def test_o1_a_buffer_asked_for_and_not_granted(host: Host) -> None:
    status, found = doctor(host, "-o", "resolver_multicast_receiver_socket_buffer=2000000000")
    assert (status, failing(found)) == (1, {"receive buffers"})


def test_o1_few_files(host: Host) -> None:
    status, found = doctor(host, before="ulimit -S -n 200;")
    assert (status, failing(found)) == (1, {"open files"})
    assert "200" in found["open files"]["text"]
    assert "ulimit -n" in found["open files"]["remedy"] or "limits.conf" in found["open files"]["remedy"]


def test_o1_ports_taken(host: Host) -> None:
    code = "import socket as s, time; x = s.socket(); x.bind((str(), 14371)); x.listen(); print(1, flush=True)"
    host.start_command(sys.executable, "-c", f"{code}; time.sleep(60)").expect("1")
    status, found = doctor(host, "-o", "transport_tcp_port_high=14371")
    assert status == 1
    assert "TCP ports" in failing(found) and "14371..14371" in found["TCP ports"]["text"]


def test_o1_a_wrong_line_in_a_configuration_file(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "um.cfg"
    path.write_text("context resolver_multicast_adress 1.2.3.4\n")
    status, found = doctor(host, "-c", str(path))
    assert status == 1
    assert "did you mean resolver_multicast_address" in found["configuration"]["text"]


def test_o1_the_plain_text_shows_state_finding_and_remedy(host: Host) -> None:
    process = host.start_command(
        "sh", "-c", 'ulimit -S -n 200; exec "$@"', "sh", sys.executable, "-m", "um_cffi", "doctor", env=ENV
    )
    assert process.wait() == 1
    assert "FAIL  open files" in process.output and "remedy: " in process.output
    assert " 1 failures in " in process.output.splitlines()[-1]


SEGMENTS = """
import os, signal, sys
from um_cffi import Context, Source
context = Context(default_interface="127.0.0.1")
source = Source(context, "news", transport=sys.argv[1])
print("there", flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


@pytest.fixture
def shm_dir() -> Iterator[str]:
    """A directory for segments; pytest's own may be longer than a name of a segment leaves room for."""
    with tempfile.TemporaryDirectory(prefix="um-") as path:
        yield path


def test_o1_segments_left_by_killed_processes(host: Host, shm_dir: str) -> None:
    environment = {**os.environ, **ENV, "UM_SHM_DIR": shm_dir}
    processes = [
        subprocess.Popen(
            host.command(sys.executable, "-c", SEGMENTS, transport, fate),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for transport, fate in (("lbtsmx", "die"), ("lbtipc", "stay"))
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == b"there\n"
    processes[0].wait(60)
    _, found = doctor(host, before=f"export UM_SHM_DIR={shm_dir};")
    for process in processes:
        process.kill()
        process.communicate()
    assert found["segments"]["state"] == "warn"
    assert found["segments"]["text"].startswith("1 segments in use, 1 left by processes that are gone")
    assert "lbtsmx_resource_manager -reclaim" in found["segments"]["remedy"]


def test_o1_who_removes_shared_memory_at_logout(tmp_path: Path) -> None:
    from um_cffi.commands._checks import removes_ipc

    file = tmp_path / "logind.conf"
    assert not removes_ipc(str(file))  # no systemd here
    for text, removes in (("[Login]\n", True), ("[Login]\nRemoveIPC=no\n", False), ("#RemoveIPC=no\n", True)):
        file.write_text(text)
        assert removes_ipc(str(file)) is removes
