"""Publishing a recording again."""

from __future__ import annotations

import heapq
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

from um_cffi.binding._native import lib
from um_cffi.errors import InvalidArgument
from um_cffi.events import MessageFlags
from um_cffi.hot_failover import HFSource
from um_cffi.properties import Extras, properties_of
from um_cffi.recording._manifest import Segment
from um_cffi.recording._recording import Recording
from um_cffi.source import Source

if TYPE_CHECKING:
    from um_cffi.context import Context

_COLUMNS = ("payload", "flags", "hf_number", "properties_bytes", "channel")
_SENT = ("message", "reset")
_HF_64 = int(MessageFlags.HF_64)
_OPTIONAL = int(MessageFlags.HF_OPTIONAL)
_LATE_NS = 1_000_000  # sleeping for less is not worth it

Row = tuple[int, int, int, bool, list[Any]]
"""When it came, the number of its session, its number there, whether it is a reset, and _COLUMNS."""


@dataclass(frozen=True)
class Replayed:
    """What replay() has published."""

    messages: int
    """Messages sent."""
    lost: int
    """Messages that the recording lacks, of what it has rows for."""
    topics: int
    """Topics that they were of."""
    seconds: float
    """How long it took."""


def replay(
    ctx: Context,
    folder: str | os.PathLike[str],
    *,
    speed: float | None = 1.0,
    topic: str | None = None,
    receivers: int = 0,
    timeout: float = 10.0,
    options: Mapping[str, object] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Replayed:
    """Publish the finished segments of the recording in `folder` again in the context `ctx`, on the same topics.

    Messages of all topics, or of one `topic`, are sent in the order of their arrival, `speed` times as fast as they
    came; None: as fast as possible. Before the first one, sources are made for all topics, and each waits for so many
    `receivers` for up to `timeout` seconds. Numbers of hot failover, properties and channels are sent with their
    messages; a source that had such numbers gets an HFSource of its own, which sends resets as well. `options` are
    those of sources. `progress` is called with the number of messages now and then. InvalidArgument when there is no
    recording, or speed is not above 0.
    """
    if speed is not None and not 0 < speed <= 1e9:
        raise InvalidArgument(f"replay(): speed {speed!r}: must be above 0, or None for as fast as possible")
    recording = Recording(folder)
    segments = [each for each in recording.segments() if topic is None or each.topic == topic]
    player = _Player(ctx, recording, dict(options or {}), speed, progress)
    try:
        return player.play(segments, receivers, timeout)
    finally:
        player.close()


class _Player:
    """Sources by what they replay, and the pace."""

    def __init__(
        self,
        ctx: Context,
        recording: Recording,
        options: dict[str, object],
        speed: float | None,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._ctx = ctx
        self._recording = recording
        self._options = options
        self._speed = speed
        self._progress = progress
        self._plain: dict[str, Source] = {}
        self._numbered: dict[tuple[str, str], HFSource] = {}
        self._sent = 0

    def play(self, segments: list[Segment], receivers: int, timeout: float) -> Replayed:
        sessions = [
            list(group)
            for _, group in itertools.groupby(segments, lambda each: (each.topic, each.source, each.session))
        ]
        senders = [self._sender(session) for session in sessions]
        for source in (*self._plain.values(), *self._numbered.values()):
            if receivers > 0:
                source.wait_receivers(receivers, timeout)
        begin = time.monotonic_ns()
        first: int | None = None
        rows = heapq.merge(*(self._rows(number, session) for number, session in enumerate(sessions)))
        for row in rows:
            if self._speed is not None:
                first = row[0] if first is None else first
                self._wait(begin + int((row[0] - first) / self._speed))
            senders[row[1]](row)
            self._sent += not row[3]
            if self._progress is not None and self._sent % 1000 == 0:
                self._progress(self._sent)
        self._ctx.flush()
        lost = sum(each.lost for each in segments)
        topics = len({each.topic for each in segments})
        return Replayed(self._sent, lost, topics, (time.monotonic_ns() - begin) / 1e9)

    def _wait(self, until_ns: int) -> None:
        left = until_ns - time.monotonic_ns()
        if left > _LATE_NS:
            self._ctx.flush()
            time.sleep(left / 1e9)

    def _rows(self, number: int, session: list[Segment]) -> Iterator[Row]:
        """The messages and resets of a session in their order: time never goes back within one."""
        latest = count = 0
        for segment in session:
            for batch in self._recording.batches(segment):
                kinds = batch.column("kind").cast("string").to_pylist()
                times = batch.column("timestamp").cast("int64").to_pylist()
                rest = [batch.column(name).to_pylist() for name in _COLUMNS]
                for kind, stamp, *row in zip(kinds, times, *rest):
                    if kind in _SENT:
                        latest = max(latest, stamp)
                        count += 1
                        yield latest, number, count, kind == "reset", row

    def _sender(self, session: list[Segment]) -> Callable[[Row], None]:
        """What sends the messages of a session."""
        segment = session[0]
        if self._is_numbered(session):
            key = (segment.topic, segment.source)
            numbered = self._numbered.get(key)
            if numbered is None:
                numbered = self._numbered[key] = HFSource(self._ctx, segment.topic, bits=64, options=self._options)
            return partial(_send_numbered, numbered)
        plain = self._plain.get(segment.topic)
        if plain is None:
            plain = self._plain[segment.topic] = Source(self._ctx, segment.topic, options=self._options)
        return partial(_send_plain, plain)

    def _is_numbered(self, session: list[Segment]) -> bool:
        """Whether messages of a session have numbers of hot failover."""
        return any(
            batch.column("hf_number").null_count < len(batch)
            for segment in session
            for batch in self._recording.batches(segment)
        )

    def close(self) -> None:
        for source in (*self._plain.values(), *self._numbered.values()):
            source.close()


def _send_plain(source: Source, row: Row) -> None:
    payload, _, _, properties, channel = row[4]
    source.send(payload, properties=None if properties is None else properties_of(properties), channel=channel)


def _send_numbered(source: HFSource, row: Row) -> None:
    """The width of a number is that of the message: a source may have sent both."""
    payload, flags, number, properties, channel = row[4]
    extras: Extras | None
    if row[3]:
        extras = source._reset("replay()", number)
    else:
        optional = number is not None and bool(flags & _OPTIONAL)
        found = None if properties is None else properties_of(properties)
        extras = source._numbered("replay()", number, optional, found, channel)
    if extras is not None and number is not None and not flags & _HF_64:
        extras.sent.hf_flags = extras.sent.hf_flags & ~lib.LBM_SRC_SEND_EX_FLAG_HF_64 | lib.LBM_SRC_SEND_EX_FLAG_HF_32
    data, flush = (b"", True) if row[3] else (payload, False)
    if not source._attempt(data, flush, extras):
        source._send_waiting(data, flush, extras)
