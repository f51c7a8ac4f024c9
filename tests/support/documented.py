"""The Python of the documentation as files, for the type checker: what a reader pastes is right in their editor too.

The blocks of a page that goes on from block to block are one file; where each is a program, each is a file. A file has
its blocks on the lines that they have in the page, so that what is found is found there.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PROGRAMS = ("gallery.md", "comparison.md")  # each block by itself


def pages() -> list[Path]:
    """The pages with Python in them."""
    found = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs" / "python").glob("*.md")),
    ]
    return [page for page in found if BLOCK.search(page.read_text())]


def write_modules(folder: Path) -> list[Path]:
    """The files, written into the folder."""
    modules = []
    for page in pages():
        text = page.read_text()
        stem = re.sub(r"\W", "_", page.stem.lower())
        lines: list[str] = []
        for number, block in enumerate(BLOCK.finditer(text)):
            first = text.count("\n", 0, block.start(1))
            if page.name in PROGRAMS:
                lines = []
            lines += [""] * (first - len(lines)) + block[1].splitlines()
            name = f"{stem}_{number + 1}" if page.name in PROGRAMS else stem
            module = folder / f"{name}.py"
            module.write_text("\n".join([*lines, ""]))
            if module not in modules:
                modules.append(module)
    return modules
