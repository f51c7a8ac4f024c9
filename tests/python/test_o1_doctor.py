"""Requirement O1: `um doctor` says what is wrong with a host, and the remedy, in under ten seconds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import SLOW, Host
from interpreter import ENV, needs_plain_library, printed, python

ROOT = Path(__file__).resolve().parents[2]


NO_GROUPS = """nft add table ip t; nft 'add chain ip t c { type filter hook input priority 0; }';
nft add rule ip t c ip daddr 224.0.0.0/4 drop;"""


def doctor(host: Host, *arguments: str, before: str = "") -> tuple[int, dict[str, dict[str, str]]]:
    """Status and findings by name; `before` is shell text run first in the same place. Where its contexts can meet and
    do not, it is asked again: it gives them some seconds, which a busy machine may need for something else.
    """
    command = python("-m", "um_cffi", "doctor", "--json", *arguments)
    for _ in range(1 if ("drop" in before and "-d" not in arguments) or "down" in before else 3):
        process = host.start_command("sh", "-c", f'{before} exec "$@"', "sh", *command, env=ENV)
        status = process.wait()
        found = {each["name"]: each for each in map(json.loads, re.findall(r"^\{.*$", process.output, re.MULTILINE))}
        assert found, process.output
        if "exchange" not in failing(found):
            break
    return status, found


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


@pytest.mark.alone
def test_o1_takes_less_than_ten_seconds_where_it_has_to_wait(host: Host) -> None:
    begin = time.monotonic()
    doctor(host, before=NO_GROUPS)
    assert time.monotonic() - begin < 10 * SLOW


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
    assert "held up for more than 0.52 ms loses datagrams" in found["receive buffers"]["text"]
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
    host.start_command(sys.executable, "-c", f"{code}; time.sleep(3600)").expect("1")
    status, found = doctor(host, "-o", "transport_tcp_port_high=14371")
    assert status == 1
    assert "TCP ports" in failing(found) and "14371..14371" in found["TCP ports"]["text"]


def test_o1_ports_of_both_ranges_and_what_waits_in_time_wait(host: Host, tmp_path: Path) -> None:
    """Connections closed from the side of the listener keep its port for a minute."""
    code = (
        "import socket\n"
        "for port in (14371, 14391):\n"
        "    with socket.socket() as server, socket.socket() as client:\n"
        "        server.bind((str(), port)); server.listen(); client.connect(('127.0.0.1', port))\n"
        "        server.accept()[0].close(); client.recv(1)\n"
    )
    host.run(sys.executable, "-c", code)
    both = ("transport_tcp_port_high=14371", "request_tcp_port_high=14391")
    status, found = doctor(host, *(word for each in both for word in ("-o", each)))
    assert status == 1 and failing(found) >= {"TCP ports", "request ports"}
    for name, option in (("TCP ports", "transport_tcp_port_high"), ("request ports", "request_tcp_port_high")):
        assert "1 in TIME-WAIT" in found[name]["text"] and option in found[name]["remedy"]
    config = tmp_path / "um.cfg"
    config.write_text("context request_tcp_port_low 0\ncontext request_tcp_port_high 0\n")
    _, found = doctor(host, "-c", str(config))
    assert found["TCP ports"]["state"] == "ok" and "19 of 20 free, 1 in TIME-WAIT" in found["TCP ports"]["text"]
    assert found["request ports"]["text"].startswith("any free port")


def test_o1_default_ranges_that_are_used_up_are_no_failure(host: Host) -> None:
    code = (
        "import socket, time\nkept = [socket.socket() for _ in range(25)]\n"
        "for one, port in zip(kept, range(14371, 14396)): one.bind((str(), port))\n"
        "print(1, flush=True); time.sleep(3600)"
    )
    host.start_command(sys.executable, "-c", code).expect("1")
    status, found = doctor(host)
    assert status == 0
    for name in ("TCP ports", "request ports"):
        assert found[name]["state"] == "warn" and "any free port is taken instead" in found[name]["text"]


def test_o1_a_wrong_line_in_a_configuration_file(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "um.cfg"
    path.write_text("context resolver_multicast_adress 1.2.3.4\n")
    status, found = doctor(host, "-c", str(path))
    assert status == 1
    assert "did you mean resolver_multicast_address" in found["configuration"]["text"]


def test_o1_the_plain_text_shows_state_finding_and_remedy(host: Host) -> None:
    process = host.start_command(
        "sh", "-c", 'ulimit -S -n 200; exec "$@"', "sh", *python("-m", "um_cffi", "doctor"), env=ENV
    )
    assert process.wait() == 1
    assert "FAIL  open files" in process.output and "remedy: " in process.output
    assert " 1 failures in " in printed(process.output)[-1]


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
            host.command(*python("-c", SEGMENTS, transport, fate)),
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


@needs_plain_library
def test_o1_who_removes_shared_memory_at_logout(tmp_path: Path) -> None:
    from um_cffi.commands._checks import removes_ipc

    file = tmp_path / "logind.conf"
    assert not removes_ipc(str(file))  # no systemd here
    for text, removes in (("[Login]\n", True), ("[Login]\nRemoveIPC=no\n", False), ("#RemoveIPC=no\n", True)):
        file.write_text(text)
        assert removes_ipc(str(file)) is removes
