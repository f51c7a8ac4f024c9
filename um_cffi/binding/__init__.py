"""What lies between the library and the public modules of um_cffi: the compiled part, options, lifetime of objects.

Private: programs import `um_cffi` and its public modules only.
"""

from __future__ import annotations

import os
from pathlib import Path

_root = Path(__file__).resolve().parents[2]
if (_root / "CMakeLists.txt").exists():  # a source tree: the compiled module lies in the build directory, see build.py
    _build = Path(os.environ.get("UM_BUILD_DIR", _root / "build")).resolve()
    __path__.append(str(_build / "python" / "um_cffi" / "binding"))
