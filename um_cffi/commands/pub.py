"""`um pub`: send messages given as arguments, or one for each line of standard input."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from um_cffi import Context, Source
from um_cffi.commands import _common


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pub", help="send messages", description="Send each MESSAGE, or each line of standard input, on TOPIC."
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("messages", metavar="MESSAGE", nargs="*")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--hex", action="store_true", help="messages are hexadecimal digits")
    kinds.add_argument("--json", action="store_true", help='messages are JSON lines as written by "um sub --json"')
    parser.add_argument("-n", "--count", type=_common.positive, default=1, help="send the messages so many times (1)")
    parser.add_argument(
        "-r", "--rate", type=_common.per_second, default=0, help="messages per second (as fast as possible)"
    )
    parser.add_argument(
        "-w", "--wait", type=_common.count, default=1, metavar="N", help="first wait for N receivers (1); 0: none"
    )
    parser.add_argument("-t", "--timeout", type=_common.seconds, default=10, help="seconds to wait for them (10)")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not report how many were sent")
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def _payloads(arguments: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    lines = arguments.messages or (line.rstrip("\n") for line in sys.stdin)
    for line in lines:
        topic, data = arguments.topic, line.encode("utf-8", "surrogateescape")
        try:
            if arguments.hex:
                data = bytes.fromhex(line)
            elif arguments.json:
                named, data = _common.payload_from_json(line)
                topic = named or topic
        except ValueError as error:
            raise SystemExit(f"um pub: {line[:60]!r}: {error}") from None
        yield topic, data


class _Publisher:
    """Sources by topic, made when first used, and the pace."""

    def __init__(self, ctx: Context, options: dict[str, object], arguments: argparse.Namespace) -> None:
        self._ctx = ctx
        self._options = options
        self._arguments = arguments
        self._sources: dict[str, Source] = {}
        self._begin = time.monotonic()
        self.sent = 0

    def source(self, topic: str) -> Source:
        source = self._sources.get(topic)
        if source is None:
            source = self._sources[topic] = Source(self._ctx, topic, options=self._options)
            if self._arguments.wait > 0:
                _common.await_receivers(source, self._arguments.wait, self._arguments.timeout)
            if self.sent == 0:
                self._begin = time.monotonic()
        return source

    def send(self, topic: str, data: bytes) -> None:
        source = self.source(topic)
        rate = self._arguments.rate
        if rate > 0:
            time.sleep(max(0.0, self._begin + self.sent / rate - time.monotonic()))
        source.send(data, flush=0 < rate < 10000)
        self.sent += 1


def run(arguments: argparse.Namespace) -> int:
    """Send everything; the status is 1 when the receivers waited for do not come."""
    settings = _common.settings(arguments)
    with settings.context() as ctx:
        publisher = _Publisher(ctx, settings.source(), arguments)
        payloads = _payloads(arguments)
        if arguments.count > 1:
            kept = list(payloads)
            payloads = (each for _ in range(arguments.count) for each in kept)
        for topic, data in payloads:
            publisher.send(topic, data)
        ctx.flush()
    if not arguments.quiet:
        print(f"sent {publisher.sent} messages", file=sys.stderr)
    return 0
