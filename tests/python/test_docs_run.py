"""The Python pages of the documentation and the Python examples do what they say. Each runs in a host of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hosts import BUILD, Host

ROOT = Path(__file__).resolve().parents[2]
ENV = {"PYTHONPATH": str(ROOT), "UM_BUILD_DIR": str(BUILD), "PYTHONUNBUFFERED": "1"}
PAGES = sorted(page.name for page in (ROOT / "docs" / "python").glob("*.md") if "```python" in page.read_text())
EXAMPLES = sorted(path.name for path in (ROOT / "examples" / "python").glob("*.py"))

pytestmark = pytest.mark.skipif(bool(os.environ.get("UM_SANITIZED")), reason="the sanitizer would have to be preloaded")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs_and_prints_what_it_says(host: Host, page: str) -> None:
    runner = ROOT / "tests" / "support" / "run_page.py"
    output = host.start_command(sys.executable, str(runner), str(ROOT / "docs" / "python" / page), env=ENV).finish()
    assert f"{page}: " in output


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ("publish.py", "subscribe_callback.py")])
def test_the_example_runs_by_itself(host: Host, name: str) -> None:
    assert host.start_command(sys.executable, str(ROOT / "examples" / "python" / name), env=ENV).finish()


def test_the_publishing_and_the_subscribing_example_meet(host: Host) -> None:
    folder = ROOT / "examples" / "python"
    subscriber = host.start_command(sys.executable, str(folder / "subscribe_callback.py"), "news", "3", env=ENV)
    host.start_command(sys.executable, str(folder / "publish.py"), "news", "3", env=ENV).finish()
    lines = [line for line in subscriber.finish().splitlines() if "#" in line]
    assert lines == ["news #0: message 0", "news #1: message 1", "news #2: message 2"]
