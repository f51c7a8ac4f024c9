"""Console commands of the daemons and example programs: each replaces this process by the program in the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from um_cffi.binding.paths import get_program


def main() -> None:
    """Run the packaged program that has the name of the command."""
    name = Path(sys.argv[0]).name
    path = get_program(name)
    # Unpacking by other means than pip may have lost the permission to execute.
    if not os.access(path, os.X_OK):
        raise SystemExit(f"{path} is not executable: chmod +x it")
    os.execv(path, [name, *sys.argv[1:]])
