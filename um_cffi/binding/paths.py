"""Where the C side lies: headers, library and programs, in an installed package and in a source tree."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def _root() -> Path:
    """The folder that holds include/, lib/ and bin/: the package itself, or the build directory of a source tree."""
    if (_PACKAGE / "lib" / "libum.so.0").exists():
        return _PACKAGE
    return Path(os.environ.get("UM_BUILD_DIR", _PACKAGE.parent / "build")).resolve()


def get_include() -> str:
    """The folder to give to the C compiler with -I; programs include <lbm/lbm.h> and <lbm/um.h>."""
    return str(_root() / "include")


def get_library() -> str:
    """The path of the shared library, libum.so.0. C programs link it with -L and -Wl,-rpath of its folder and
    -l:libum.so.0, or by `pkg-config um` with PKG_CONFIG_PATH from get_pkgconfig_dir()."""
    return str(_root() / "lib" / "libum.so.0")


def get_pkgconfig_dir() -> str:
    """The folder with um.pc, for PKG_CONFIG_PATH."""
    root = _root()
    return str(root / "lib" / "pkgconfig" if root == _PACKAGE else root)


def get_share() -> str:
    """The folder with units of systemd, alert rules and a dashboard; in a source tree packaging/, without the units."""
    root = _root()
    return str(root / "share" if root == _PACKAGE else _PACKAGE.parent / "packaging")


def get_program(name: str) -> str:
    """The path of the daemon or example program `name` (`lbmrd`, `lbmsrc`, ...).

    FileNotFoundError lists what there is.
    """
    path = _root() / "bin" / name
    if not path.is_file():
        raise FileNotFoundError(f"program {name} does not exist; there are: {', '.join(programs())}")
    return str(path)


def programs() -> list[str]:
    """Names of the daemons and example programs."""
    folder = _root() / "bin"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
