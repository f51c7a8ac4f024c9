"""`um replay`: publish a recording again, or write it as Parquet."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from um_cffi.commands import _common
from um_cffi.errors import InvalidArgument


def speed(text: str) -> float:
    """An argument that says how fast: 1 as it was, 0 as fast as possible."""
    value = float(text)
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text}: must be a number from 0 (as fast as possible) to 1e9")
    return value


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "replay",
        help="publish a recording again",
        description="Publish the recording in DIR again on the same topics, or write it as Parquet.",
    )
    parser.add_argument("folder", metavar="DIR", help="folder of the recording")
    parser.add_argument("--topic", metavar="TOPIC", help="this one alone")
    parser.add_argument(
        "-s",
        "--speed",
        type=speed,
        default=1.0,
        help="1 as it was recorded (1), 2 twice as fast, 0 as fast as possible",
    )
    parser.add_argument(
        "-w", "--wait", type=_common.count, default=1, metavar="N", help="first wait for N receivers of each topic (1)"
    )
    parser.add_argument("-t", "--timeout", type=_common.seconds, default=10, help="seconds to wait for them (10)")
    parser.add_argument("--parquet", metavar="OUT", help="publish nothing: write Parquet into this folder")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not report how many were sent")
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Publish everything; the status is 1 when receivers waited for do not come."""
    try:
        from um_cffi.recording import replay, to_parquet

        if arguments.parquet is not None:
            made = to_parquet(arguments.folder, arguments.parquet, arguments.topic)
            if not arguments.quiet:
                print(f"wrote {len(made)} files", file=sys.stderr)
            return 0
        settings = _common.settings(arguments)
        live = sys.stderr.isatty() and not arguments.quiet
        with settings.context() as ctx:
            done = replay(
                ctx,
                arguments.folder,
                speed=arguments.speed or None,
                topic=arguments.topic,
                receivers=arguments.wait,
                timeout=arguments.timeout,
                options=settings.source(),
                progress=_show if live else None,
            )
    except ImportError as error:
        raise InvalidArgument(str(error)) from None
    if not arguments.quiet:
        lost = f"; {done.lost} are missing in the recording" if done.lost else ""
        print(f"sent {done.messages} messages of {done.topics} topics in {done.seconds:.1f} s{lost}", file=sys.stderr)
    return 0


def _show(sent: int) -> None:
    print(f"{sent} messages", end="\r", file=sys.stderr, flush=True)
