"""`um record`: write what is published on topics that match patterns into a folder, until interrupted."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from um_cffi.commands import _common
from um_cffi.errors import InvalidArgument

_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def size(text: str) -> int:
    """An argument that is a size: bytes, or with k, M, G, T."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _SIZES and text[-1:] else (text, "")
    try:
        value = int(float(number) * _SIZES[unit])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: must be a size such as 500M or 10G") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 or more")
    return value


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "record",
        help="write topics into a folder",
        description="Record what is published on topics that match a PATTERN, into segments of Arrow data in DIR, "
        "until interrupted. A recording that is there is continued.",
    )
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="of topics, PCRE")
    parser.add_argument("-o", "--output", metavar="DIR", dest="out", required=True, help="folder of the recording")
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="a topic by its name")
    parser.add_argument("--compression", choices=("lz4", "zstd", "none"), default="lz4", help="of segments (lz4)")
    parser.add_argument("--segment-bytes", type=size, default=64 << 20, metavar="SIZE", help="of a segment (67M)")
    parser.add_argument(
        "--segment-seconds", type=_common.seconds, default=10.0, help="a segment is finished after so long (10)"
    )
    parser.add_argument("--flush", type=_common.seconds, default=0.5, help="seconds until a row is in a file (0.5)")
    parser.add_argument(
        "--sync",
        choices=("never", "segment", "batch"),
        default="segment",
        help="what survives a power cut: finished segments (segment), every row in a file (batch)",
    )
    parser.add_argument(
        "--queue", type=size, default=256 << 20, metavar="SIZE", help="that may wait for the disk (268M)"
    )
    parser.add_argument("--retain-bytes", type=size, metavar="SIZE", help="of all segments; the oldest are removed")
    parser.add_argument("--retain-seconds", type=_common.seconds, metavar="S", help="remove segments older than that")
    parser.add_argument(
        "--consumer",
        action="append",
        metavar="NAME",
        help="remove segments that this consumer, and every other one that is named, has read",
    )
    parser.add_argument("--parquet", metavar="OUT", help="write finished segments as Parquet into this folder as well")
    parser.add_argument("--source-timestamp", metavar="PROPERTY", help="message property with the time of sending, ns")
    parser.add_argument(
        "--progress", type=_common.seconds, metavar="S", help="a line every S seconds (1 on a terminal)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only what goes wrong")
    _common.add_library_options(parser, "-O", "--option")
    parser.set_defaults(run=run)


@contextlib.contextmanager
def interrupted() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    event = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: event.set()) for number in numbers}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress:
    """A line about what has been recorded: the same one again and again on a terminal."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._live = sys.stderr.isatty()
        self._messages = 0
        self._time = time.monotonic()

    def show(self) -> None:
        stats, now = self._recorder.stats(), time.monotonic()
        rate = (stats.messages - self._messages) / max(now - self._time, 1e-9)
        self._messages, self._time = stats.messages, now
        text = f"{described(stats)}, {_common.amount(rate)}/s, {_common.amount(stats.queued_bytes)}B waiting"
        end = "\r" if self._live else "\n"
        print(f"{text:<100}" if self._live else text, end=end, file=sys.stderr, flush=True)


def described(stats: Any) -> str:
    """What has been recorded, in a line."""
    parts = [f"{stats.messages} messages", f"{_common.amount(stats.bytes)}B", f"{stats.segments} segments"]
    for name in ("lost", "dropped", "unfilled", "repeated", "refused", "removed"):
        if getattr(stats, name):
            parts.append(f"{getattr(stats, name)} {name}")
    return ", ".join(parts)


@contextlib.contextmanager
def _parquet(arguments: argparse.Namespace, tell: Callable[[str, str], object]) -> Iterator[None]:
    """What is finished is written as Parquet too, if that is wanted; entered before the recorder, left behind it."""
    if arguments.parquet is None:
        yield
        return
    from um_cffi.recording._parquet import ParquetWriter

    writer = ParquetWriter(arguments.out, arguments.parquet, lambda text: tell("parquet", text))
    try:
        yield
    finally:
        writer.close()
        if not arguments.quiet:
            print(f"wrote {writer.files} files of Parquet", file=sys.stderr)


def run(arguments: argparse.Namespace) -> int:
    """Record until SIGINT or SIGTERM; the status is 1 when recording ended by itself."""
    try:
        from um_cffi.recording import Recorder
    except ImportError as error:
        raise InvalidArgument(str(error)) from None

    def tell(kind: str, text: str) -> None:
        print(f"um record: {text}", file=sys.stderr, flush=True)

    if arguments.parquet is not None:
        Path(arguments.parquet).mkdir(parents=True, exist_ok=True)  # what cannot be is said before anything begins
    settings = _common.settings(arguments)
    with interrupted() as over, settings.context() as ctx:
        try:
            recorder = Recorder(
                ctx,
                arguments.out,
                arguments.patterns,
                topics=arguments.topic,
                compression=arguments.compression,
                segment_bytes=arguments.segment_bytes,
                segment_seconds=arguments.segment_seconds,
                flush_seconds=arguments.flush,
                sync=arguments.sync,
                queue_bytes=arguments.queue,
                retain_bytes=arguments.retain_bytes,
                retain_seconds=arguments.retain_seconds,
                consumers=arguments.consumer,
                source_timestamp=arguments.source_timestamp,
                on_state=tell,
                options=settings.wildcard(),
            )
        except ImportError as error:
            raise InvalidArgument(str(error)) from None
        with _parquet(arguments, tell), recorder:
            what = " ".join([*arguments.patterns, *arguments.topic])
            print(f"recording {what} into {recorder.folder}", file=sys.stderr, flush=True)
            every = arguments.progress if arguments.progress is not None else 1.0 if sys.stderr.isatty() else 0.0
            progress = _Progress(recorder)
            while not over.wait(every or 0.5) and not recorder.wait(0):
                if every and not arguments.quiet:
                    progress.show()
    if not arguments.quiet:
        print(f"recorded {described(recorder.stats())}", file=sys.stderr)
    return 0
