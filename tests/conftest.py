"""Makes tests/support importable in every test folder and offers its fixtures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ.setdefault("UM_BUILD_DIR", str(ROOT / "build"))

from fixtures import host, loopback_config, two_hosts, wire  # noqa: E402, F401
from packaging_support import built  # noqa: E402, F401
