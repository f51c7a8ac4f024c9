"""Sockets of the library are marked as its own, and unmarked where they are closed.

A child of fork() closes what is marked (csrc/base/um_fork.h): a socket that is not marked stays open in workers, one
that is closed without being unmarked makes a child close what has got its number since.
"""

from __future__ import annotations

import re
from pathlib import Path

CSRC = Path(__file__).resolve().parents[2] / "csrc"
FOLDERS = ("net", "resolver", "transport")
OPENS = re.compile(r"(?<!->)\b(socket|accept4?|open)\(")
CLOSES = re.compile(r"(?<![\w>.])close\(")
# Opened and closed in one function, or (the loop's event and epoll descriptors) nothing that a child could hold up.
PASSING = {"net/um_notify.c", "transport/shm/um_shm_list.c", "transport/shm/um_shm_host.c"}
HARMLESS = {"net/um_loop.c"}


def sources() -> list[tuple[str, str]]:
    files = [path for folder in FOLDERS for path in sorted((CSRC / folder).rglob("*.c"))]
    texts = [(str(path.relative_to(CSRC)), path.read_text()) for path in files]
    return [(name, re.sub(r"/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"", "", text, flags=re.DOTALL)) for name, text in texts]


def test_sockets_and_segments_are_marked() -> None:
    found = [
        (name, line.strip())
        for name, text in sources()
        if name not in PASSING
        for line in text.splitlines()
        if OPENS.search(line)
    ]
    assert len(found) > 5
    assert not [(name, line) for name, line in found if "um_fd_own(" not in line]


def test_they_are_unmarked_when_closed() -> None:
    raw = {name for name, text in sources() if CLOSES.search(text)}
    assert raw <= PASSING | HARMLESS
