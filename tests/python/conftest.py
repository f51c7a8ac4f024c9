"""Modules named test_py_* use the binding in the process that runs them. Each is run by a pytest of its own inside a
private network, and what came out is reported here test by test.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_outcomes: dict[Path, dict[str, tuple[str, str]]] = {}


def inside() -> bool:
    """Also where namespaces are not permitted: then the network is that of the machine."""
    return os.environ.get("UM_PRIVATE_NET") in ("0", "1")


def run_module(path: Path, report: Path) -> dict[str, tuple[str, str]]:
    """Outcome and text of each test of a module, by name."""
    inside_net = importlib.import_module("inside")  # tests/support; found when the tests are
    environment = {**os.environ, **inside_net.ENV}
    command = inside_net.command(f"--junitxml={report}", path)
    output = report.with_suffix(".txt")
    with output.open("w") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            process.wait(inside_net.HANG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
    words = output.read_text(errors="replace")[-20000:]
    if not report.exists():
        return {"": ("failure", f"pytest ended with {process.returncode} and no report:\n{words}")}
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        bad = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        text = "" if bad is None else f"{bad.get('message')}\n{bad.text or ''}"
        found[case.get("name", "")] = ("passed" if bad is None else bad.tag, text)
    if process.returncode not in (0, 1):
        found[""] = ("failure", f"pytest ended with {process.returncode}:\n{words}")
    return found


_stderr = -1  # what it is where nothing is captured


def pytest_configure() -> None:
    global _stderr
    _stderr = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, bool | None, bool | None]:
    """The stacks of all threads are printed where a test takes too long. By a signal: the thread that pytest has for it
    (faulthandler_timeout) allocates while the test begins, and with the address sanitizer of GCC 12 a process that is
    forked at that moment waits for ever for the lock of the allocator.
    """
    if not inside():
        return (yield)
    faulthandler.register(signal.SIGALRM, _stderr)  # each time: a test may use the signal for itself
    signal.setitimer(signal.ITIMER_REAL, importlib.import_module("inside").HANG_SECONDS / 3)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture(autouse=True)
def log_begins_anew() -> None:
    """Of what others cause a process logs one line a minute: a test hears of it also when the one before has. Whoever
    takes the lines has been told of nothing.
    """
    logs = sys.modules.get("um_cffi.logs")
    if logs is not None and logs._bridge is not None:
        logs.lib.um_py_log_to(logs._bridge._queue)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    path = pyfuncitem.path
    if not path.name.startswith("test_py_") or inside():
        return None
    if path not in _outcomes:
        factory = pyfuncitem.config._tmp_path_factory  # type: ignore[attr-defined]
        _outcomes[path] = run_module(path, factory.mktemp("module") / "report.xml")
    outcomes = _outcomes[path]
    outcome, text = outcomes.get(pyfuncitem.name) or outcomes.get("") or ("failure", "the test did not run")
    if outcome == "skipped":
        pytest.skip(text)
    if outcome != "passed":
        pytest.fail(text, pytrace=False)
    if "" in outcomes:
        pytest.fail(outcomes[""][1], pytrace=False)
    return True
