"""`um topics`: list the topics and sources that are there, without joining any of them."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from um_cffi.commands import _common

if TYPE_CHECKING:
    from um_cffi.stats import TopicSource

ASKING = 0.5  # seconds between requests while listening
COLUMNS = ("topic", "transport", "sources", "age")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "topics",
        help="list topics and sources",
        description="Ask all contexts which sources they have, listen, and list the topics. Nothing is joined.",
    )
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", help="of topics, PCRE (all)")
    parser.add_argument(
        "-t", "--timeout", type=_common.seconds, default=2.0, help="seconds to ask and to listen for answers (2)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each source")
    parser.add_argument("-l", "--lines", type=_common.positive, default=10000, help="sources at most (10000)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each source")
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is known; the status is 1 when there is nothing."""
    settings = _common.settings(arguments)
    with settings.context() as ctx:
        end = time.monotonic() + arguments.timeout
        while (left := end - time.monotonic()) > 0:
            ctx.request_resolution(duration=0)
            time.sleep(min(ASKING, left))
        found = ctx.topics(arguments.pattern, arguments.lines)
    if arguments.json:
        for each in found:
            print(json.dumps(asdict(each)))
    elif arguments.verbose:
        rows = [[each.topic, each.transport, each.source, f"{each.age:.0f} s"] for each in found]
        print(_common.plain_table(("topic", "transport", "source", "age"), rows, (3,)))
    else:
        print(_common.plain_table(COLUMNS, _by_topic(found), (2, 3)))
    if not arguments.json:
        topics = len({each.topic for each in found})
        print(f"{topics} topics, {len(found)} sources", file=sys.stderr)
    return 0 if found else 1


def _by_topic(found: list[TopicSource]) -> list[list[str]]:
    """A row for each topic: its transports, how many sources, and how long ago the youngest was heard of."""
    groups: dict[str, list[TopicSource]] = collections.defaultdict(list)
    for each in found:
        groups[each.topic].append(each)
    return [
        [
            topic,
            ",".join(sorted({each.transport for each in group})),
            str(len(group)),
            f"{min(each.age for each in group):.0f} s",
        ]
        for topic, group in groups.items()
    ]
