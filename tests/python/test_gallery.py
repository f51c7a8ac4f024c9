"""The programs of the gallery are small, run by themselves in an empty folder, and print what the page shows."""

from __future__ import annotations

from pathlib import Path

import gallery
import pytest
from hosts import Host
from interpreter import ENV, python

NAMES = sorted(path.stem for path in gallery.PROGRAMS.glob("*.py"))


def test_the_page_shows_every_program_as_it_is() -> None:
    assert sorted(gallery.ORDER) == NAMES and len(NAMES) >= 15
    assert {name: code for name, (code, _) in gallery.shown().items()} == {
        name: (gallery.PROGRAMS / f"{name}.py").read_text() for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_program_prints_what_the_page_shows(host: Host, tmp_path: Path, name: str) -> None:
    path = gallery.PROGRAMS / f"{name}.py"
    assert len(path.read_text().splitlines()) < 40
    for module in ("pandas", "pyarrow", "polars", "duckdb"):
        if f"import {module}" in path.read_text():
            pytest.importorskip(module)
    run = host.start_command("sh", "-c", 'cd "$0" && exec "$@" 2>errors', str(tmp_path), *python(path), env=ENV)
    printed = [line.rstrip() for line in run.finish().splitlines()]
    assert printed == gallery.shown()[name][1].splitlines(), (tmp_path / "errors").read_text()
