"""The services of systemd: systemd itself finds nothing to complain of in them, and little that they may do.

They are those of the build tree, with the programs of the build tree instead of the installed ones.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import SLOW, Host
from interpreter import ENV, python

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve()
NAMES = sorted(path.name.removesuffix(".in") for path in (ROOT / "packaging" / "systemd").glob("*.service.in"))
EXPOSURE = 2.0  # of 10, as systemd-analyze counts; a service without any protection has 9.6
PR_SET_MDWE = 65  # since Linux 6.3; before, the call fails, and nothing is forbidden
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def lines_of(name: str) -> list[str]:
    text = (BUILD / "systemd" / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def values(name: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in lines_of(name) if line.startswith(f"{key}=")]


def value(name: str, key: str) -> str:
    (found,) = values(name, key)
    return found


@pytest.fixture(name="unit", params=NAMES)
def unit_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit that starts the program of the build tree."""
    path = tmp_path / str(request.param)
    text = (BUILD / "systemd" / request.param).read_text()
    path.write_text(re.sub(r"^ExecStart=(?!/usr/bin/env )\S*/", f"ExecStart={BUILD}/bin/", text, flags=re.MULTILINE))
    return path


def complaints(unit: Path) -> str:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "".join(line for line in done.stderr.splitlines(True) if unit.name in line)


def exposure(unit: Path) -> float:
    command = ["systemd-analyze", "security", "--no-pager", "--offline=yes", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    assert found, done.stdout
    return float(found.group(1))


@needs_systemd
def test_systemd_has_no_complaint(unit: Path) -> None:
    assert complaints(unit) == ""


@needs_systemd
def test_systemd_complains_of_an_option_that_it_does_not_know_and_of_a_program_that_is_not_there(unit: Path) -> None:
    """So the test before can fail."""
    text = unit.read_text()
    unit.write_text(text.replace("NoNewPrivileges=", "NoNewPrivilege="))
    assert "NoNewPrivilege" in complaints(unit)
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/usr/bin/no-such-program", text, flags=re.MULTILINE))
    assert "no-such-program" in complaints(unit)


@needs_systemd
def test_there_is_little_that_a_service_may_do(unit: Path) -> None:
    assert exposure(unit) < EXPOSURE
    unit.write_text(unit.read_text().replace("CapabilityBoundingSet=\n", ""))
    assert exposure(unit) >= EXPOSURE


@pytest.mark.parametrize("name", NAMES)
def test_h3_every_service_keeps_the_rules_of_this_project(name: str) -> None:
    assert value(name, "Type") == "notify"
    assert value(name, "NoNewPrivileges") == "yes" and value(name, "ProtectSystem") == "strict"
    assert value(name, "Restart") == "always" and value(name, "StartLimitIntervalSec") == "0"
    assert not any("@" in line and not line.startswith("SystemCallFilter=") for line in lines_of(name))
    # A dynamic user implies RemoveIPC: only what has no shared memory may be one.
    shares_memory = value(name, "ExecStart").startswith("/usr/bin/env um ")
    assert bool(values(name, "DynamicUser")) is not shares_memory
    assert values(name, "RemoveIPC") == (["no"] if shares_memory else [])


def test_the_user_of_the_services_is_the_one_that_is_made() -> None:
    users = {user for name in NAMES for user in values(name, "User")}
    assert users == {"libum"}
    made = (ROOT / "packaging" / "sysusers" / "libum.conf").read_text()
    assert users == {line.split()[1] for line in made.splitlines() if line.startswith("u ")}


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_of_a_command_line_is_explained(name: str) -> None:
    """A unit says in its first lines what the operator may write where."""
    start = value(name, "ExecStart")
    file = value(name, "EnvironmentFile").lstrip("-")
    (variable,) = re.findall(r"\$(\w+)", start)
    introduction = (BUILD / "systemd" / name).read_text().partition("[Unit]")[0]
    assert file in introduction and f"{variable}=" in introduction


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("um-")])
def test_the_commands_of_um_start_under_these_rules_and_tell_that_they_are_ready(
    host: Host, tmp_path: Path, name: str
) -> None:
    """No page of memory may become executable (MemoryDenyWriteExecute), where a kernel can forbid it by itself."""
    command = value(name, "ExecStart").split()[2]
    forbid = f"ctypes.CDLL(None).prctl({PR_SET_MDWE}, 1, 0, 0, 0)"
    code = f"import ctypes, os, sys; {forbid}; os.execv(sys.argv[1], sys.argv[1:])"
    words = [
        sys.executable,
        "-c",
        code,
        *python("-m", "um_cffi", command, "-i", "127.0.0.1", "--listen", "127.0.0.1:0"),
    ]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(60 * SLOW)
        process = host.start_command(*words, env={**ENV, "NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert told.recv(100) == b"READY=1"
    process.signal(signal.SIGTERM)
    assert process.wait() in (0, -signal.SIGTERM), process.output  # systemd takes either as a good end


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("um-")])
def test_a_service_of_um_starts_a_command_that_there_is(name: str) -> None:
    command = value(name, "ExecStart").split()[2]
    assert (ROOT / "packaging" / "man" / "man1" / f"um-{command}.1").is_file()
    assert name == f"um-{command}.service"
