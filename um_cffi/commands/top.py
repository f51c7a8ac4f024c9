"""`um top`: a live table of topics and sources, their rates and losses, and of receivers that do not keep up.

It is made in _top.py, which reads numpy: what only lists the commands, as `um --help` and the shell completions do,
starts in half the time without.
"""

from __future__ import annotations

import argparse
from typing import Any

from um_cffi.commands import _common

ORDERS = ("rate", "bytes", "messages", "lost", "topic")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "top", help="live table of topics", description="Watch topics, sources, rates, losses and slow receivers."
    )
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default=".*", help="of topics (all)")
    parser.add_argument("--interval", type=_common.seconds, default=1.0, help="seconds between tables (1)")
    parser.add_argument("-n", "--count", type=_common.positive, help="end after so many tables")
    parser.add_argument("-s", "--sort", choices=ORDERS, default="rate", help="column to sort by (rate)")
    parser.add_argument("-l", "--lines", type=_common.positive, default=30, help="rows at most (30)")
    parser.add_argument("-w", "--wide", action="store_true", help="do not cut names to fit the terminal")
    parser.add_argument("--json", action="store_true", help="one JSON object for each row instead of tables")
    parser.add_argument("--no-records", action="store_true", help="do not listen to monitoring records")
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show tables until COUNT or an interrupt."""
    from um_cffi.commands import _top

    return _top.run(arguments)
