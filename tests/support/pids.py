"""Processes that a test knows by their ids."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Not when it has ended and only waits for its parent to look."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
