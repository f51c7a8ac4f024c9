"""What the commands share: options of the library on the command line, formats of payloads, tables."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from um_cffi import Context, Source
from um_cffi.binding.attributes import unknown_option
from um_cffi.binding.options import OPTIONS

MULTICAST_WAIT = 1.0  # seconds in which receivers find a source that cannot know about them
TRANSPORTS = {"tcp": "tcp", "rm": "lbtrm", "ru": "lbtru", "ipc": "lbtipc", "smx": "lbtsmx"}
SCOPES = ("context", "source", "receiver", "wildcard_receiver")


@dataclass
class Settings:
    """Options given on the command line, by scope."""

    config: list[str] = field(default_factory=list)
    options: dict[str, dict[str, object]] = field(default_factory=lambda: {scope: {} for scope in SCOPES})

    def context(self) -> Context:
        """A context with the configuration files and context options."""
        from um_cffi import config

        for path in self.config:
            config.load(path)
        return Context(options=self.options["context"])

    def source(self) -> dict[str, object]:
        """Options of sources."""
        return self.options["source"]

    def receiver(self) -> dict[str, object]:
        """Options of receivers."""
        return self.options["receiver"]

    def wildcard(self) -> dict[str, object]:
        """Options of wildcard receivers, those of the receivers they make included."""
        return {**self.options["receiver"], **self.options["wildcard_receiver"]}


def add_library_options(parser: argparse.ArgumentParser, *option: str) -> None:
    """The options that all commands have which make a context; `option` are other names of -o."""
    group = parser.add_argument_group("library")
    group.add_argument("-c", "--config", action="append", default=[], metavar="FILE", help="configuration file")
    group.add_argument("-i", "--interface", metavar="ADDRESS", help="default_interface, for example 10.0.0.0/8")
    group.add_argument("-d", "--daemon", metavar="HOST:PORT", help="lbmrd to find topics through instead of multicast")
    group.add_argument(
        "-T", "--transport", choices=TRANSPORTS, help="of sources; with rm and ru the profile low_latency applies"
    )
    group.add_argument(
        *(option or ("-o", "--option")),
        action="append",
        default=[],
        metavar="[SCOPE.]NAME=VALUE",
        help="any option of docs/options.md",
    )


def settings(arguments: argparse.Namespace) -> Settings:
    """The library options of a parsed command line."""
    result = Settings(list(arguments.config))
    if arguments.interface:
        result.options["context"]["default_interface"] = arguments.interface
    if arguments.daemon:
        result.options["context"]["resolver_unicast_daemon"] = arguments.daemon
    if arguments.transport:
        result.options["source"]["transport"] = TRANSPORTS[arguments.transport]
        if arguments.transport in ("rm", "ru"):
            result.options["context"]["um_profile"] = "low_latency"
    for text in arguments.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise SystemExit(f"um: option {text}: must be NAME=VALUE or SCOPE.NAME=VALUE")
        scope, dot, rest = name.partition(".")
        if dot:
            if scope not in SCOPES:
                raise SystemExit(f"um: option {text}: the scope must be one of {', '.join(SCOPES)}")
            name = rest
        else:
            found = next((each for each in SCOPES if name in OPTIONS[each]), None)
            if found is None:
                raise SystemExit(f"um: {unknown_option(SCOPES, name)}")
            scope = found
        result.options[scope][name] = value
    return result


def await_receivers(source: Source, count: int, timeout: float) -> bool:
    """Wait until so many receivers are connected. False: multicast sources do not know, so they got a second."""
    if source.getopt("transport") == "lbtrm":
        time.sleep(min(MULTICAST_WAIT, timeout))
        return False
    source.wait_receivers(count, timeout)
    return True


def positive(text: str) -> int:
    """An argument that counts something."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return value


def count(text: str) -> int:
    """An argument that counts something, or 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 or more")
    return value


def per_second(text: str) -> float:
    """An argument that is a rate; 0 is as fast as possible."""
    value = float(text)
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text}: must be a number from 0 (as fast as possible) to 1e9")
    return value


def seconds(text: str) -> float:
    """An argument that is a time."""
    value = float(text)
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text}: must be a number of seconds, 0 or more")
    return value


def payload_fields(data: bytes) -> dict[str, str]:
    """A payload for a JSON object: `data` when it is text, else `data_hex`."""
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_hex": data.hex()}


def payload_from_json(line: str) -> tuple[str | None, bytes]:
    """Topic (None if the object has none) and payload of one line of JSON; the reverse of what `um sub` writes."""
    value: Any = json.loads(line)
    if isinstance(value, dict) and "data_hex" in value:
        return value.get("topic"), bytes.fromhex(value["data_hex"])
    if isinstance(value, dict) and "data" in value:
        data = value["data"]
        return value.get("topic"), (data if isinstance(data, str) else json.dumps(data)).encode()
    return None, line.encode()


def plain_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table in plain text; the columns with the numbers `right` are aligned to the right."""
    lines = [list(columns), *[list(row) for row in rows]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at in right else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def has_rich() -> bool:
    """Whether tables may be drawn with rich: it is installed and a person looks."""
    if not sys.stdout.isatty():
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


def amount(value: float) -> str:
    """A number for a narrow column: 950, 12.3k, 4.5M."""
    for limit, divisor, unit in ((1e4, 1.0, ""), (1e7, 1e3, "k"), (1e10, 1e6, "M")):
        if value < limit:
            return f"{value / divisor:,.0f}{unit}" if divisor == 1 else f"{value / divisor:,.1f}{unit}"
    return f"{value / 1e9:,.1f}G"
