"""`um doctor`: look for what keeps messages from arriving on this host; each finding comes with its remedy.

Takes less than ten seconds, changes nothing, sends nothing beyond this host (multicast with a TTL of 0). With --fleet
it listens to the monitoring records of all hosts instead, and tells what these say.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from um_cffi.commands import _checks, _common, exporter
from um_cffi.errors import InvalidArgument

OK, WARN, FAIL, NOTE = "ok", "warn", "FAIL", "note"
LISTEN_SECONDS = 8.0  # with --fleet; a look at a fleet takes less than ten seconds, too


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    name: str
    state: str
    """ok, warn (works, not well), FAIL (does not work), or note (told, not judged)."""
    text: str
    remedy: str = ""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor",
        help="check this host, or a fleet",
        description=(
            "Check interfaces, multicast, buffers, limits, clocks, permissions and firewall of this host; with --fleet"
            " what monitoring records tell of all hosts: losses and where they happen, one-sided sessions, resolution,"
            " blocked sends, slow receivers. Status 1: a FAIL."
        ),
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each check")
    group = parser.add_argument_group("fleet")
    group.add_argument("--fleet", action="store_true", help="listen to monitoring records and judge what they tell")
    group.add_argument(
        "--seconds",
        type=_common.seconds,
        default=LISTEN_SECONDS,
        metavar="S",
        help="listen so long (8); two intervals of monitoring or more",
    )
    exporter.add_monitor_options(parser)
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def examine(settings: _common.Settings) -> list[Finding]:
    """Run every check; one that breaks is a finding itself."""
    found: list[Finding] = []
    for check in _checks.CHECKS:
        found += _one(check, settings)
    return found


def examine_fleet(arguments: argparse.Namespace) -> list[Finding]:
    """Listen, and run every check of a fleet. UmError or OSError where it cannot be listened."""
    from um_cffi.commands import _fleet_checks, _fleet_watch

    with exporter.monitor_of(arguments) as monitor:
        watched = _fleet_watch.watch(monitor, arguments.seconds)
    return [Finding(*row) for row in _fleet_checks.examine(watched)]


def _one(
    check: Callable[[_common.Settings], list[tuple[str, str, str, str]]], settings: _common.Settings
) -> list[Finding]:
    try:
        return [Finding(*each) for each in check(settings)]
    except Exception as error:
        name = check.__name__.replace("_", " ")
        return [Finding(name, FAIL, f"{type(error).__name__}: {error}", "correct what the text names, and run again")]


def _print_plain(found: list[Finding]) -> None:
    width = max(len(finding.name) for finding in found)
    for finding in found:
        print(f"{finding.state:4}  {finding.name:{width}}  {finding.text}")
        if finding.remedy:
            print(f"      {'':{width}}  remedy: {finding.remedy}")


def _print_rich(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    colours = {OK: "green", WARN: "yellow", FAIL: "bold red", NOTE: "dim"}
    table = Table("", "check", "finding", box=None, pad_edge=False)
    for finding in found:
        text = escape(finding.text)
        if finding.remedy:
            text += f"\n[italic]remedy: {escape(finding.remedy)}[/italic]"
        table.add_row(f"[{colours[finding.state]}]{finding.state}[/]", finding.name, text)
    Console().print(table)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; the status is 1 when there is a FAIL."""
    begin = time.monotonic()
    for name in ("topic", "pattern", "udp", "group"):
        if getattr(arguments, name) and not arguments.fleet:
            raise InvalidArgument(f"--{name}: says where monitoring records come from, which only --fleet looks at")
    found = examine_fleet(arguments) if arguments.fleet else examine(_common.settings(arguments))
    failed = sum(finding.state == FAIL for finding in found)
    warned = sum(finding.state == WARN for finding in found)
    if arguments.json:
        for finding in found:
            print(json.dumps(asdict(finding)))
    else:
        (_print_rich if _common.has_rich() else _print_plain)(found)
        good = sum(finding.state == OK for finding in found)
        print(f"{good} ok, {warned} warnings, {failed} failures in {time.monotonic() - begin:.1f} s")
    sys.stdout.flush()
    return 1 if failed else 0
