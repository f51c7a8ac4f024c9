"""Requirement D5: everything that runs with multicast also runs where multicast is blocked, through lbmrd.

The end-to-end tests in C, the cases of the Python binding and the tests of the example programs run again in hosts
whose packet filter drops every packet to a multicast group; contexts find each other through one lbmrd.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import UNICAST, block_multicast, needs_namespaces
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "support" / "binding_cases.py"
CASE_NAMES = re.findall(r"^def case_(\w+)", CASES.read_text(), re.MULTILINE)
C_TESTS = (
    "receiver_test",
    "wildcard_test",
    "source_api_test",
    "um_extensions_test",
    "l1_readiness_test",
    "s2_statistics_test",
    "d1_hundred_processes_test",
)
SANITIZED = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")


@pytest.fixture
def without_multicast(tmp_path: Path) -> Iterator[tuple[Host, dict[str, str]]]:
    """A host with lbmrd and a packet filter against multicast, and the environment that makes programs use them."""
    config = tmp_path / "unicast.cfg"
    config.write_text(UNICAST)
    one = Host()
    try:
        block_multicast(one)
        one.start("lbmrd", "-i", "127.0.0.1").expect("lbmrd started on 127.0.0.1:15380")
        yield one, {"LBM_DEFAULT_CONFIG_FILE": str(config), "UM_TEST_NET_READY": "1"}
    finally:
        one.close()


def nothing_tried_multicast(host: Host) -> bool:
    return set(re.findall(r"counter packets (\d+)", host.run("nft", "list ruleset"))) == {"0"}


@needs_namespaces
@pytest.mark.parametrize("name", C_TESTS)
def test_d5_c_tests_pass_without_multicast(without_multicast: tuple[Host, dict[str, str]], name: str) -> None:
    host, env = without_multicast
    output = host.start_command(str(BUILD / "tests" / name), env=env).finish(300)
    assert re.search(r"^[1-9]\d* passed, 0 failed, 0 skipped$", output, re.MULTILINE), output[-4000:]
    assert nothing_tried_multicast(host)


@needs_namespaces
@SANITIZED
@pytest.mark.parametrize("name", CASE_NAMES)
def test_d5_binding_works_without_multicast(without_multicast: tuple[Host, dict[str, str]], name: str) -> None:
    host, env = without_multicast
    python = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}
    host.start_command(sys.executable, str(CASES), name, env={**env, **python}).finish()
    assert nothing_tried_multicast(host)


@needs_namespaces
def test_d5_examples_work_without_multicast() -> None:
    workers = ["-p", "xdist.plugin", "-n", "4"] if importlib.util.find_spec("xdist") else []  # they mostly wait
    quickly = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "tests/python/test_examples.py"],
        cwd=ROOT,
        env={**os.environ, **quickly, "UM_TEST_WITHOUT_MULTICAST": "1", "UM_BUILD_DIR": str(BUILD)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
