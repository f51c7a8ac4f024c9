"""Figures that a long run puts into docs/reliability.md: `tools/run_tests.py --soak` names the file in UM_FIGURES."""

from __future__ import annotations

import os


def record(what: str, value: str) -> None:
    """Note one figure; printed in any case, so that it stands in the output of a failing test."""
    print(f"{what}: {value}")
    path = os.environ.get("UM_FIGURES")
    if path:
        with open(path, "a") as file:
            file.write(f"{what}\t{value}\n")
