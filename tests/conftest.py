"""Makes tests/support importable in every test folder and offers its fixtures; says which tests belong together.

Tests may run side by side on several workers (pytest-xdist): each host is a network namespace of its own,
files lie in folders of their own. What shares an expensive fixture or a process stays on one worker, and what takes
long begins first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ.setdefault("UM_BUILD_DIR", str(ROOT / "build"))

from fixtures import host, loopback_config, two_hosts, wire  # noqa: E402, F401
from packaging_support import built  # noqa: E402, F401

WHEEL = ("test_i2_", "test_i3_", "test_i4_")  # one building of the wheel
WHOLE_FILES = ("test_py_", "test_install_i1", "test_types")  # one process, or one fixture
LONG = ("test_i2_", "test_py_safety", "test_d5_examples", "test_ten_thousand_topics", "test_o4_source_side_filtering")


def group_of(nodeid: str) -> str:
    """Tests of one group run on one worker, one after the other."""
    name = Path(nodeid.partition("::")[0]).name
    return "wheel" if name.startswith(WHEEL) else name if name.startswith(WHOLE_FILES) else nodeid


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not any(word in item.nodeid for word in LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False  # keep the order of pytest_collection_modifyitems()
    return Grouped(config, log)
