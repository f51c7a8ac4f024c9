"""The identifiers of log lines in the sources of C, for docs/log-messages.md and its test.

Errors of calls (um_error and its kin) are no log lines: their texts are those of lbm_errmsg(), and lines of daemons,
which have no other calls than their own. Everything else that
looks like an identifier is taken for one of a line, also where a table or a variable brings it to the log.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ID = re.compile(r'(?:"|: )((?:Core|CoreApi|Lbmrd|OpenUM|SRS|Resolver)-(?:\w+-)*\d+)(?:: [^"]*)?"')
ERRORS = ("um_error", "um_error_os", "um_error_nomem")


def caller(text: str, at: int) -> str:
    """The function or macro in whose arguments a place is; empty in a table or an assignment."""
    depth = 0
    for i in range(at - 1, max(0, at - 2000), -1):
        if text[i] == ")":
            depth += 1
        elif text[i] == "(":
            if depth == 0:
                found = re.search(r"(\w+)$", text[max(0, i - 64) : i])
                return found.group(1) if found else ""
            depth -= 1
        elif text[i] in ";{}" and depth == 0:
            return ""
    return ""


def log_ids() -> dict[str, str]:
    """Identifier: the text that follows it, where it does."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "csrc").rglob("*.[ch]")):
        text = path.read_text()
        for match in ID.finditer(text):
            name = match.group(1)
            function = caller(text, match.start())
            error = function in ERRORS and name.startswith(("Core", "Resolver"))
            if error or (name.startswith("CoreApi-") and not function.startswith("um_log")):
                continue
            after = re.match(r'\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*|PRI\w+\s*)+)', text[match.end() :])
            words = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', after.group(1))) if after else ""
            found[name] = found.get(name) or words
    return found


def main() -> int:
    for name, words in sorted(log_ids().items()):
        print(f"{name}\t{words}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
