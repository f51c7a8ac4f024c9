"""The files of others that the page brings: unchanged, and where they are from."""

from __future__ import annotations

import hashlib
import re

from um_cffi.web._app import ASSETS


def test_the_files_of_others_are_those_of_the_table() -> None:
    table = (ASSETS / "PROVENANCE.md").read_text()
    listed = dict(re.findall(r"^\| `(\S+)` \|.*\| ([0-9a-f]{64}) \|$", table, re.MULTILINE))
    there = {each.name for each in ASSETS.iterdir() if each.name.startswith("uPlot")}
    assert set(listed) == there
    for name, digest in listed.items():
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest, name
    assert "Permission is hereby granted, free of charge" in (ASSETS / "uPlot.LICENSE").read_text()
