"""The manifest of a recording: lines of JSON that are only appended to, until what they say is mostly over.

Owned by the thread that writes the recording. Readers need no lock: a line is either there with its line feed or not,
and a manifest that is written anew takes the place of the old one in one step.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from um_cffi.errors import InvalidArgument, InvalidOperation
from um_cffi.recording import _layout

Line = Mapping[str, Any]
_NUMBER_END = 1 << 62
_COMPACT_BYTES = 1 << 20  # below that a manifest is left as it is
_POSITIONS_MAX = 65536  # sessions whose next number is remembered
_POSITIONS_KEPT = 4096  # sessions without segments that are, the last ones, when it is written anew


@dataclass(frozen=True)
class Segment:
    """A finished segment, as the manifest tells of it."""

    path: str
    """Of the file, relative to the folder of the recording."""
    topic: str
    """Of all its rows."""
    source: str
    """Likewise."""
    session: str
    """Likewise."""
    first: int
    """Sequence number that it begins with, of a message or of a loss."""
    next: int
    """The number behind its last one: where the next segment of the session begins, if nothing is missing."""
    rows: int
    """Messages, losses and drops together."""
    messages: int
    """Messages alone."""
    lost: int
    """Messages that rows of the kinds loss and dropped stand for."""
    bytes: int
    """Size of the file."""
    first_ns: int
    """The earliest `timestamp` of its rows, nanoseconds since 1970."""
    last_ns: int
    """The latest one."""


_FIELDS = tuple(field.name for field in fields(Segment))
_NUMBERS = ("first", "next", "rows", "messages", "lost", "bytes")


def _is_number(value: object) -> bool:
    """Whether it can be a sequence number, a size or a time; larger ones would not fit columns of 64 bits."""
    return isinstance(value, int) and 0 <= value < _NUMBER_END


def _is_time(value: object) -> bool:
    """Whether it can be the time of a row; clocks may be before 1970."""
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 63


def _is_name(value: object) -> bool:
    """Whether it can be the name of a topic, source or session, which are bytes where they come from."""
    try:
        return isinstance(value, str) and "\0" not in value and value.encode("utf-8", "surrogateescape") is not None
    except UnicodeEncodeError:
        return False


def _is_path(value: object) -> bool:
    """Whether it can be the path of a segment: nothing else is ever opened, or removed."""
    if not isinstance(value, str) or not _is_name(value):
        return False
    parts = value.split("/")
    return parts[0] == _layout.TOPICS and len(parts) > 1 and not {"", ".", ".."} & set(parts)


def segment_of(line: Line) -> Segment | None:
    """The segment that a line tells of; None when it is not as it should be."""
    values: dict[str, Any] = {name: line.get(name) for name in _FIELDS}
    right = _is_path(values["path"]) and all(_is_name(values[name]) for name in ("topic", "source", "session"))
    right = right and all(_is_number(values[name]) for name in _NUMBERS)
    return Segment(**values) if right and all(_is_time(values[name]) for name in ("first_ns", "last_ns")) else None


class State:
    """What the lines say when all of them are read."""

    def __init__(self) -> None:
        self.segments: dict[str, Segment] = {}
        self.dropped: set[str] = set()
        """Paths that are to be removed, or were."""
        self.positions: dict[tuple[str, str, str], int] = {}
        """The next sequence number of each (topic, source, session), in the order in which they last grew."""
        self.runs = 0
        """How often recording has begun."""
        self.unended = False
        """The last run has not told of its end."""
        self.damaged = 0
        """Lines that could not be understood."""

    def add(self, line: Line) -> None:
        """Take a line into account."""
        op = line.get("op")
        if op == "segment":
            segment = segment_of(line)
            if segment is None:
                self.damaged += 1
                return
            self.segments[segment.path] = segment
            self.dropped.discard(segment.path)
            self._reach((segment.topic, segment.source, segment.session), segment.next)
        elif op == "drop":
            path = line.get("path")
            if not isinstance(path, str) or not _is_path(path):
                self.damaged += 1
                return
            self.segments.pop(path, None)
            self.dropped.add(path)
        elif op == "position":
            names = [line.get(name) for name in ("topic", "source", "session")]
            if not all(map(_is_name, names)):
                self.damaged += 1
                return
            self._reach((str(names[0]), str(names[1]), str(names[2])), line.get("next"))
        elif op == "begin":
            run = line.get("run")
            self.runs = max(self.runs + 1, run if isinstance(run, int) and _is_number(run) else 0)
            self.unended = True
        elif op == "end":
            self.unended = False

    def _reach(self, session: tuple[str, str, str], following: object) -> None:
        if not isinstance(following, int) or not _is_number(following):
            self.damaged += 1
            return
        known = self.positions.pop(session, following)
        self.positions[session] = max(known, following)
        if len(self.positions) > _POSITIONS_MAX:
            del self.positions[next(iter(self.positions))]


def parse(data: bytes) -> tuple[State, int]:
    """The state that a manifest tells of, and the length of its whole lines: what follows was never finished."""
    state = State()
    end = data.rfind(b"\n") + 1
    for text in data[:end].splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            state.damaged += 1
            continue
        if isinstance(line, dict):
            if line.get("op") == "recording" and line.get("version") != _layout.VERSION:
                raise InvalidArgument(
                    f"a recording of layout version {line.get('version')!r}: this program knows {_layout.VERSION}"
                )
            state.add(line)
        else:
            state.damaged += 1
    return state, end


def line_of(op: str, **values: object) -> Line:
    """A line of the manifest."""
    return {"op": op, **values}


def segment_line(segment: Segment) -> Line:
    """The line that tells of a finished segment."""
    return line_of("segment", **asdict(segment))


class Manifest:
    """The manifest of a recording that this process writes; it holds the recording's lock.

    InvalidOperation when another process does. OSError when the folder or the file cannot be written. No file is open
    for writing between two calls, so that the file system may be made read-only.
    """

    compact_bytes = _COMPACT_BYTES

    def __init__(self, folder: Path, sync: bool) -> None:
        self._path = folder / _layout.MANIFEST
        self._sync = sync
        self._torn = False  # there may be something behind _end
        self._end = 0
        self._lock = os.open(folder / _layout.LOCK, os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidOperation(
                    f"{folder} is being recorded into by another process: end that, or choose another folder"
                ) from None
            data = self._path.read_bytes() if self._path.exists() else b""
            self.state, self._end = parse(data)
            self._torn = self._end < len(data)
            if self._end == 0:
                self.append([line_of("recording", version=_layout.VERSION)])
                _layout.sync_folder(folder)
            self._over = 2 * len(self.state.dropped)
        except BaseException:
            self.close()
            raise

    def append(self, lines: Iterable[Line]) -> None:
        """Add lines, all or none of them. OSError: none."""
        told = list(lines)
        data = b"".join(json.dumps(line).encode() + b"\n" for line in told)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            if self._torn:
                os.ftruncate(descriptor, self._end)
            self._torn = True
            try:
                _layout.write_all(descriptor, data, self._end)
                if self._sync:
                    os.fdatasync(descriptor)
            except OSError:
                # A tail that is whole by chance must not be taken for something that was told.
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, self._end)
                raise
            self._torn = False
        finally:
            os.close(descriptor)
        self._end += len(data)
        for line in told:
            self.state.add(line)

    def removed(self, paths: Iterable[str]) -> None:
        """Files that were dropped are gone: nothing needs to be remembered of them."""
        for path in paths:
            self.state.dropped.discard(path)
            self._over += 2

    def compact(self) -> bool:
        """Write it anew when most of what it says is over; whether that was so. OSError: it is as it was."""
        state = self.state
        held = {(each.topic, each.source, each.session) for each in state.segments.values()}
        others = [item for item in state.positions.items() if item[0] not in held][-_POSITIONS_KEPT:]
        if self._end < self.compact_bytes or self._over < len(state.segments) + len(state.dropped) + len(others):
            return False
        lines = [
            line_of("recording", version=_layout.VERSION),
            line_of("begin", run=state.runs),
            *(
                line_of("position", topic=topic, source=source, session=session, next=following)
                for (topic, source, session), following in others
            ),
            *(segment_line(each) for each in state.segments.values()),
            *(line_of("drop", path=path, reason="again") for path in state.dropped),
        ]
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        _layout.replace_file(self._path, data)
        self._end, self._torn, self._over = len(data), False, 0
        state.positions = {key: following for key, following in state.positions.items() if key in held} | dict(others)
        return True

    def close(self) -> None:
        """Let go of the lock, which children of fork() do not keep then either."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)
