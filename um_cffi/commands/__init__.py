"""The command `um`: publish, subscribe, measure, watch and diagnose from a shell. `um COMMAND --help` tells the rest.

Exit status: 0 done, 1 a failure with one line on standard error, 2 a wrong command line, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from um_cffi.errors import UmError

# Each a module of this package, with `_` for `-`. Only the one that is asked for is read: all of them, with what they
# import, would double what this package adds to the start of Python.
COMMANDS = (
    "pub",
    "sub",
    "ping",
    "top",
    "topics",
    "record",
    "replay",
    "pipeline",
    "tls-init",
    "exporter",
    "web",
    "doctor",
    "completion",
)


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, from which the shell completions are made too; or what the one command understands."""
    result = argparse.ArgumentParser(prog="um", description="Publish, subscribe and diagnose with libum.")
    result.add_argument("--version", action="store_true", help="versions, features and paths")
    commands = result.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS if only is None else (only,):
        importlib.import_module(f"{__name__}.{name.replace('-', '_')}").add_parser(commands)
    return result


def _print_whole_lines() -> None:
    """Unbuffered (PYTHONUNBUFFERED, as containers often have it), print() writes a line and its end one by one, and the
    thread of the library's log may write between them.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.write_through:
        sys.stdout.reconfigure(line_buffering=True, write_through=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    root = parser(words[0] if words and words[0] in COMMANDS else None)
    arguments, rest = root.parse_known_args(words)
    if rest:
        late = arguments.command == "pub" and not any(word.startswith("-") for word in rest)
        if not late:
            root.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.messages += rest  # those that follow options
    if arguments.version:
        from um_cffi.__main__ import print_report

        print_report()
        return 0
    if arguments.command is None:
        root.print_help()
        return 2
    _print_whole_lines()
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has had enough, as `head` does; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (UmError, OSError) as error:
        print(f"um {arguments.command}: {error}", file=sys.stderr)
        return 1


def console() -> None:
    """The console command `um`."""
    sys.exit(main())
