"""Runs the Python blocks of a Markdown page in order, in one namespace, as a notebook does.

A block of language `text` right after a Python block is its output and has to match; `...` stands for any text, as in
doctest. `run_page.py PAGE --write` puts the real output there instead.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import traceback
from pathlib import Path

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def main() -> int:
    page = Path(sys.argv[1])
    write = "--write" in sys.argv[2:]
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "page"}
    result, at = [], 0
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + block["code"], str(page), "exec"), namespace)
        except BaseException:
            traceback.print_exc()
            print(f"{page}:{line}: the block raises", file=sys.stderr)
            return 1
        wanted, got = block["output"], re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)
        matches = doctest.OutputChecker().check_output(wanted or "", got, doctest.ELLIPSIS)
        if wanted is not None and not write and not matches:
            print(f"{page}:{line}: the page says\n{wanted}\nbut the block prints\n{got}", file=sys.stderr)
            return 1
        result.append(text[at : block.start()])
        output = "" if wanted is None else f"\n```text\n{wanted if matches else got}```\n"
        result.append(f"```python\n{block['code']}```\n{output}")
        at = block.end()
    if write:
        page.write_text("".join([*result, text[at:]]))
    print(f"{page.name}: {len(BLOCK.findall(text))} blocks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
