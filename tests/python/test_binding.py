"""The Python binding. Each case runs in a Python process of its own inside a host, where multicast stays."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hosts import Host
from interpreter import ENV, python

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from checks.process import functions  # noqa: E402

CASES = ROOT / "tests" / "support" / "binding_cases.py"
NAMES = re.findall(r"^def case_(\w+)", CASES.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_binding(host: Host, name: str) -> None:
    host.start_command(*python(CASES, name), env=ENV).finish()


LEAK = """
from um_cffi import Context
from um_cffi.binding import _native
Context(default_interface="127.0.0.1").close()
attributes = _native.ffi.new("lbm_context_attr_t **")
_native.lib.lbm_context_attr_create(attributes)
attributes[0] = _native.ffi.NULL
"""


if os.environ.get("UM_SANITIZED"):  # the only runs that look for leaks

    def test_f27_a_leak_of_a_python_process_is_found(host: Host) -> None:
        process = host.start_command(*python("-c", LEAK), env=ENV)
        assert process.wait() != 0
        assert "LeakSanitizer" in process.output, process.output
        told = "\n".join(functions(process.output))
        assert "/um_attr.c:" in told, process.output + told  # who allocated
