"""The Python binding. Each case runs in a Python process of its own inside a host, where multicast stays."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "support" / "binding_cases.py"
NAMES = re.findall(r"^def case_(\w+)", CASES.read_text(), re.MULTILINE)


@pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")
@pytest.mark.parametrize("name", NAMES)
def test_binding(host: Host, name: str) -> None:
    env = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD)}
    host.start_command(sys.executable, str(CASES), name, env=env).finish()
