"""Puts what has come into segments, finishes these, tells the manifest, and removes what is over.

Used by the thread that writes the recording. Every step that touches the disk may fail with an OSError and be done
again: nothing that was taken is forgotten, and nothing is done twice.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np

from um_cffi.binding._native import lib
from um_cffi.binding.tails import PropertyTexts
from um_cffi.errors import OutOfMemory
from um_cffi.recording import _layout, _recovery, _retention
from um_cffi.recording._consumers import Consumers
from um_cffi.recording._manifest import Manifest, Segment, line_of, segment_line
from um_cffi.recording._queue import Dropped
from um_cffi.recording._rows import Arrived, Batches, Part, joined
from um_cffi.recording._segment import OpenSegment
from um_cffi.recording._settings import Settings
from um_cffi.recording._streams import Stream

_STREAMS_MAX = 65536  # sources of topics that are remembered
_SESSIONS_MAX = 1024  # of a topic that have segments at a time
_WAITING_BYTES = 1 << 20  # rows of a stream that are written at once
_WAITING_ALL_BYTES = 32 << 20  # of all streams together


@dataclass
class Totals:
    """What has been recorded since recording began."""

    messages: int = 0
    bytes: int = 0
    lost: int = 0
    dropped: int = 0
    unfilled: int = 0
    repeated: int = 0
    refused: int = 0
    segments: int = 0
    removed: int = 0


@dataclass
class Writer:
    """All streams of a recording."""

    folder: Path
    settings: Settings
    manifest: Manifest
    positions: Any
    """um_py_positions_t, where sources are to begin."""
    tell: Callable[[str, str], None]
    """Called with a kind and a text for what operators want to know."""
    totals: Totals = field(default_factory=Totals)
    _streams: OrderedDict[tuple[str, str], Stream] = field(default_factory=OrderedDict)
    _open: OrderedDict[int, Stream] = field(default_factory=OrderedDict)
    """Streams with a segment, the one written to longest ago first; by the id() of the stream."""
    _unstored: dict[int, OpenSegment] = field(default_factory=dict)
    _finishing: list[OpenSegment] = field(default_factory=list)
    _finished: list[Segment] = field(default_factory=list)
    _sessions: dict[str, set[str]] = field(default_factory=dict)
    """Folders of sessions with segments, by topic."""
    _waiting_bytes: int = 0
    _serial: int = 0
    _texts: PropertyTexts = field(default_factory=PropertyTexts)
    _makers: dict[int, Batches] = field(default_factory=dict)
    _waiting: dict[int, Stream] = field(default_factory=dict)
    """Streams with rows that wait; by the id() of the stream."""
    _refused: bool = False
    _resisting: bool = False
    _run: int = 0

    def __post_init__(self) -> None:
        names = self.settings.consumers
        self._consumers = None if names is None else Consumers(self.folder, names, self.tell)

    def begin(self) -> None:
        """Recover what the last run left behind, and tell of this one. OSError: the recording cannot be opened."""
        state = self.manifest.state
        for text in _recovery.recover(self.folder, self.manifest, self.settings):
            self.tell("recovered", text)
        for segment in state.segments.values():
            self._sessions.setdefault(segment.topic, set()).add(_layout.folder_of(*_names(segment)))
        for (topic, source, session), following in state.positions.items():
            stream = self._stream(topic, source)
            number = _layout.generation_of(session)
            if stream.next is None or number >= stream.generation:
                stream.generation, stream.next, stream.watchful = number, following, True
            self._place(stream)
        self.manifest.append(
            [line_of("begin", run=state.runs + 1, time_ns=time.time_ns(), patterns=list(self.settings.patterns))]
        )
        self._run = state.runs

    def end(self) -> None:
        """Tell of the end of this run. OSError."""
        self.manifest.append([line_of("end", run=self._run, time_ns=time.time_ns(), **vars(self.totals))])

    # -- taking --

    def take(self, arrived: Arrived, now: float) -> None:
        """Rows have come."""
        stream = self._stream(arrived.topic, arrived.source)
        if arrived.begins:
            stream.begin()
        part: Part | None = arrived.part if len(arrived.part) else None
        if part is not None and not self._may(stream):
            self._refuse(part)
            part = None
        repeated, unfilled = stream.repeated, stream.unfilled
        while part is not None:
            part = self._put(stream, partial(stream.take, part, now))
            if part is not None:
                self._end_session(stream)
                stream.renew()
        self.totals.repeated += stream.repeated - repeated
        if stream.unfilled > unfilled:
            self._tell_unfilled(stream, stream.unfilled - unfilled)
        self._place(stream)
        if arrived.ends:
            self._end_session(stream)
        elif stream.waiting_bytes >= _WAITING_BYTES:
            self._encode(stream)
        if self._waiting_bytes > _WAITING_ALL_BYTES:
            for each in list(self._waiting.values()):
                self._encode(each)

    def drop(self, topic: str, source: str, lost: Dropped, now: float) -> None:
        """Messages were dropped before they came here."""
        stream = self._stream(topic, source)
        if self._may(stream):
            self._put(stream, partial(stream.drop, lost.first, lost.last, lost.count, time.time_ns(), now))
            self._place(stream)

    def _put(self, stream: Stream, change: Callable[[], Part | None]) -> Part | None:
        """Let rows wait in a stream."""
        before = stream.waiting_bytes
        rest = change()
        self._waiting_bytes += stream.waiting_bytes - before
        if stream.waiting:
            self._waiting[id(stream)] = stream
        return rest

    def _end_session(self, stream: Stream) -> None:
        self._encode(stream)
        self._close_segment(stream)

    def _tell_unfilled(self, stream: Stream, missing: int) -> None:
        self.totals.unfilled += missing
        self.tell(
            "unfilled",
            f"{missing} messages of {stream.topic} from {stream.source} came while nobody recorded, and the source "
            "does not have them any more",
        )

    def _count(self, part: Part) -> None:
        totals = self.totals
        if part.kinds is None:
            totals.messages += len(part)
            return
        assert part.count is not None
        totals.lost += int(part.count[part.kinds == _layout.LOSS].sum())
        totals.dropped += int(part.count[part.kinds == _layout.DROPPED].sum())
        totals.messages += int((part.kinds == _layout.MESSAGE).sum())

    def _refuse(self, part: Part) -> None:
        self.totals.refused += len(part)
        if not self._refused:
            self._refused = True
            self.tell(
                "refused", f"a topic has {_SESSIONS_MAX} sessions with segments: rows of more sessions are left out"
            )

    def _stream(self, topic: str, source: str) -> Stream:
        key = (topic, source)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream(topic, source)
            stream.latest_epoch = partial(self._epoch, source)
            if len(self._streams) > _STREAMS_MAX:
                self._forget_oldest()
        else:
            self._streams.move_to_end(key)
        return stream

    def _forget_oldest(self) -> None:
        for key, stream in self._streams.items():
            if stream.segment is None and not stream.waiting:
                lib.um_py_positions_forget(self.positions, _c_text(stream.source))
                del self._streams[key]
                return

    def _place(self, stream: Stream) -> None:
        """Where the source is to begin should it be joined again."""
        if stream.next is None or not stream.source:
            return
        place = stream.epoch, stream.next & 0xFFFFFFFF
        if lib.um_py_positions_set(self.positions, _c_text(stream.source), *place) != 0:
            raise OutOfMemory("no memory for the position of a source")

    def _epoch(self, source: str) -> int:
        return int(lib.um_py_positions_epoch(self.positions, _c_text(source)))

    def _may(self, stream: Stream) -> bool:
        """Whether the session may have a segment: strangers can make up any number of sessions."""
        folders = self._sessions.setdefault(stream.topic, set())
        folder = _layout.folder_of(stream.topic, stream.source, stream.session)
        if folder in folders:
            return True
        if len(folders) >= _SESSIONS_MAX:
            return False
        folders.add(folder)
        return True

    # -- writing --

    def _encode(self, stream: Stream) -> None:
        """Make a record batch of what waits in a stream, and add it to its segment in memory."""
        if self._waiting.pop(id(stream), None) is None:
            return
        waiting, stream.waiting = stream.waiting, []
        self._waiting_bytes -= stream.waiting_bytes
        stream.waiting_bytes = 0
        part = joined([each for each, _ in waiting])
        sequence = np.concatenate([each for _, each in waiting])
        segment = stream.segment
        if segment is None:
            segment = stream.segment = self._new_segment(stream, int(sequence[0]))
        self._open.pop(id(stream), None)
        self._open[id(stream)] = stream
        maker = self._makers.get(id(segment))
        if maker is None:
            maker = self._makers[id(segment)] = Batches(*segment.names, self._texts, self.settings.source_timestamp)
        before = segment.reached
        segment.encode(maker.of(part, sequence))
        self.totals.bytes += segment.reached - before
        self._count(part)
        self._unstored[id(segment)] = segment
        if len(self._open) > self.settings.open_segments:
            self._end_session(next(iter(self._open.values())))

    def _new_segment(self, stream: Stream, first: int) -> OpenSegment:
        names = (stream.topic, stream.source, stream.session)
        self._serial += 1
        stem = f"{_layout.folder_of(*names)}/{first:020d}-{self._run}-{self._serial}"
        return OpenSegment(self.folder, stem, names, self.settings.compression, begun=time.monotonic())

    def _close_segment(self, stream: Stream) -> None:
        """Its segment gets no more rows; finish() writes it."""
        segment, stream.segment = stream.segment, None
        if segment is None:
            return
        self._open.pop(id(stream), None)
        self._makers.pop(id(segment), None)
        self._finishing.append(segment)

    def due(self, now: float, all_of_it: bool = False) -> None:
        """Encode what has waited long enough, and close segments that are large or old enough, or everything."""
        settings = self.settings
        for stream in list(self._waiting.values()):
            if all_of_it or now - stream.waiting_since >= settings.flush_seconds:
                self._encode(stream)
        for stream in list(self._open.values()):
            segment = stream.segment
            if segment is not None and (
                all_of_it
                or now - segment.begun >= settings.segment_seconds
                or segment.reached >= settings.segment_bytes
            ):
                self._end_session(stream)

    def store(self) -> None:
        """Put everything encoded into files, and finish what is to be finished. OSError: call it again."""
        sync = self.settings.sync
        for key, segment in list(self._unstored.items()):
            segment.store(sync == "batch")
            del self._unstored[key]
        while self._finishing:
            self._finished.append(self._finishing[0].finish(sync != "never"))
            del self._finishing[0]
        if not self._finished:
            return
        if sync != "never":
            self._sync_folders({(self.folder / each.path).parent for each in self._finished})
        self.manifest.append([segment_line(each) for each in self._finished])
        self.totals.segments += len(self._finished)
        self._finished = []

    def _sync_folders(self, sessions: Iterable[Path]) -> None:
        """From the inside out: a folder is worth nothing whose name is not there after a power cut."""
        folders = set(sessions)
        above = {folder.parent for folder in folders}
        for folder in (*folders, *above, self.folder / _layout.TOPICS, self.folder):
            _layout.sync_folder(folder)

    # -- what is over --

    def retain(self) -> None:
        """Remove what is too old, too much, or read by everybody. OSError: call it again."""
        gone = _retention.apply(self.folder, self.manifest, self.settings, self._consumers)
        self.totals.removed += len(gone)
        left = _recovery.remove(self.folder, self.manifest, list(self.manifest.state.dropped))
        if left and not self._resisting:
            self.tell("retention", left[0])
        self._resisting = bool(left)
        for segment in gone:
            self._empty(segment)
        self.manifest.compact()

    def _empty(self, segment: Segment) -> None:
        """Take away the folder of a session when nothing is in it and nothing will be put into it soon."""
        folder = _layout.folder_of(*_names(segment))
        if any(
            stream.segment is not None and stream.segment.stem.startswith(folder + "/")
            for stream in self._open.values()
        ):
            return
        with contextlib.suppress(OSError):
            os.rmdir(self.folder / folder)
            self._sessions.get(segment.topic, set()).discard(folder)
            os.rmdir((self.folder / folder).parent)


def _names(segment: Segment) -> tuple[str, str, str]:
    return segment.topic, segment.source, segment.session


def _c_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
