"""`um ping`: measure round trips between two hosts. One runs `um ping --echo NAME`, the other `um ping NAME`."""

from __future__ import annotations

import argparse
import contextlib
import queue
import struct
import sys
import threading
import time
from typing import Any

from um_cffi import Context, Message, Receiver, Source
from um_cffi.commands import _common

PROBE = 0xFFFFFFFF  # number of messages that are not timed
PROBE_INTERVAL = 0.1  # seconds
HEADER = struct.Struct("<IQ")  # number, when it was sent: CLOCK_MONOTONIC nanoseconds of the asking side


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "ping",
        help="measure round trips",
        description='Send on NAME/ping and time the answers on NAME/pong, from "um ping --echo NAME" elsewhere.',
    )
    parser.add_argument("name", metavar="NAME", nargs="?", default="um", help="prefix of the two topics (um)")
    parser.add_argument("--echo", action="store_true", help="answer until interrupted")
    parser.add_argument("-n", "--count", type=_common.positive, default=5, help="messages to send (5)")
    parser.add_argument("--interval", type=_common.seconds, default=0.2, help="seconds between them (0.2)")
    parser.add_argument("-s", "--size", type=int, default=64, help=f"bytes of payload, at least {HEADER.size} (64)")
    parser.add_argument(
        "-t", "--timeout", type=_common.seconds, default=5, help="seconds to wait for the other side (5)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="the summary only")
    _common.add_library_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Answer or ask; the status is 1 when an answer is missing."""
    settings = _common.settings(arguments)
    if arguments.echo:  # whatever it is asked by, see --transport
        settings.options["context"].setdefault("um_profile", "low_latency")
    with settings.context() as ctx:
        if arguments.echo:
            return _echo(ctx, settings, arguments.name)
        return _ask(ctx, settings, arguments)


def _echo(ctx: Context, settings: _common.Settings, name: str) -> int:
    sources: dict[str, Source] = {}

    def answer(message: Message) -> None:
        transport = message.source.split(":")[0].replace("-", "").lower()
        source = sources.get(transport)
        if source is None:  # the way back goes over the transport of the way there
            options = {**settings.source(), "transport": transport}
            source = sources[transport] = Source(ctx, f"{name}/pong/{transport}", options=options)
        source.send(message.data, flush=True)

    Receiver(ctx, f"{name}/ping", answer, options=settings.receiver())
    print(f"answering what comes on {name}/ping, over the transport it comes by", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    return 0


def _ask(ctx: Context, settings: _common.Settings, arguments: argparse.Namespace) -> int:
    answers: queue.SimpleQueue[tuple[int, int, int]] = queue.SimpleQueue()

    def answered(message: Message) -> None:
        now = time.monotonic_ns()
        if len(message) >= HEADER.size:
            number, sent = HEADER.unpack(message.data[: HEADER.size])
            answers.put((number, sent, now))

    source = Source(ctx, f"{arguments.name}/ping", options=settings.source())
    transport = source.getopt("transport")
    Receiver(ctx, f"{arguments.name}/pong/{transport}", answered, options=settings.receiver())
    _common.await_receivers(source, 1, arguments.timeout)
    _probe(source, answers, arguments.timeout)
    filling = bytes(max(0, arguments.size - HEADER.size))
    times: list[float] = []
    for number in range(arguments.count):
        begin = time.monotonic_ns()
        source.send(HEADER.pack(number, begin) + filling, flush=True)
        micros = _wait(answers, number, begin, arguments.timeout)
        if micros is None:
            print(f"no answer to {number} within {arguments.timeout:g} s")
        else:
            times.append(micros)
            if not arguments.quiet:
                print(f"{HEADER.size + len(filling)} bytes from {arguments.name}: number {number} time {micros:.1f} us")
        sys.stdout.flush()
        time.sleep(arguments.interval if number + 1 < arguments.count else 0)
    return _summary(arguments.count, sorted(times), transport)


def _probe(source: Source, answers: queue.SimpleQueue[tuple[int, int, int]], timeout: float) -> None:
    """Ask until something comes back over the same transport, for `timeout` seconds at most."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        source.send(HEADER.pack(PROBE, 0), flush=True)
        with contextlib.suppress(queue.Empty):
            answers.get(timeout=PROBE_INTERVAL)
            return


def _wait(answers: queue.SimpleQueue[tuple[int, int, int]], number: int, begin: int, timeout: float) -> float | None:
    """Microseconds to the answer of this message; answers to others (of other processes, or late) are passed over."""
    end = time.monotonic() + timeout
    while True:
        try:
            answer, sent, now = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            return None
        if (answer, sent) == (number, begin):
            return (now - sent) / 1000


def _summary(count: int, times: list[float], transport: str) -> int:
    print(f"{count} sent, {len(times)} answered, {count - len(times)} lost, over {transport} both ways")
    if times:
        middle = times[len(times) // 2]
        print(f"round trip min/median/max = {times[0]:.1f}/{middle:.1f}/{times[-1]:.1f} us")
    return 0 if len(times) == count else 1
