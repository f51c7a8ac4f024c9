"""The gallery, docs/python/gallery.md: the programs of examples/gallery and what they print.

UM_BUILD_DIR=build tools/private_net.sh .venv/bin/python tests/support/gallery.py    writes the page anew
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "gallery"
PAGE = ROOT / "docs" / "python" / "gallery.md"
ORDER = [
    "ticker_to_pandas",
    "fan_in",
    "many_publishers",
    "latest_value",
    "record_to_parquet",
    "replay",
    "late_joiner",
    "duckdb_live",
    "asyncio_pipeline",
    "service",
    "sdm_to_pdm",
    "stats_json",
    "shared_memory",
    "forward",
    "low_latency",
    "logging_setup",
    "xml_config",
]
INTRODUCTION = """# Gallery

Small programs, each complete and of fewer than 40 lines, with what they print. They are in `examples/gallery`; each
runs as a test. To keep them in one file they publish and subscribe in one process: in yours, these are two programs.
"""
SECTION = re.compile(r"^## (\w+)\n\n.*?```python\n(.*?)```\n\n```text\n(.*?)```\n", re.DOTALL | re.MULTILINE)


def shown() -> dict[str, tuple[str, str]]:
    """Program and output on the page, by name."""
    return {name: (code, output) for name, code, output in SECTION.findall(PAGE.read_text())}


def main() -> None:
    sections = [INTRODUCTION]
    for name in ORDER:
        path = PROGRAMS / f"{name}.py"
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, str(path)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        output = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        sections.append(f"## {name}\n\n```python\n{path.read_text()}```\n\n```text\n{output}\n```\n")
    PAGE.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
