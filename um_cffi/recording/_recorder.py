"""Recorder: what is published on topics, written into a folder by a thread that the receiver never waits for."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context
from um_cffi.errors import InvalidArgument, InvalidOperation, OutOfMemory, check
from um_cffi.receiver import QUEUE_BYTES, WildcardReceiver
from um_cffi.recording import _layout
from um_cffi.recording._manifest import Manifest
from um_cffi.recording._queue import Item, Queue
from um_cffi.recording._rows import arrived
from um_cffi.recording._settings import Settings
from um_cffi.recording._writer import Writer

if TYPE_CHECKING:
    import os

    from um_cffi.binding.attributes import Attributes
    from um_cffi.context import Context

OnState = Callable[[str, str], object]

_FIXED = {"ordered_delivery": 1, "hf_receiver": 0}  # what each source sends, in the order of its numbers
_GATHER_SECONDS = 0.005  # messages of so long make a batch: batches of a few would cost more than all the rest
_IDLE_SECONDS = 0.2  # between looks whether there is room again, where nothing comes
_LOOK_SECONDS = 0.05  # between looks at what is due
_AGAIN_SECONDS = 0.1  # between attempts to write to a disk that refuses
_RETAIN_SECONDS = 0.5  # between looks at what is over


@dataclass(frozen=True)
class RecorderStats:
    """What a Recorder has done so far; messages and losses are counted when their rows are made."""

    messages: int
    """Messages recorded."""
    bytes: int
    """Written into segments, compressed."""
    lost: int
    """Messages that rows of the kind `loss` stand for."""
    dropped: int
    """Messages dropped because the disk was slower than the network, or did not take anything: rows of the kind
    `dropped`."""
    unfilled: int
    """Of the lost ones those that were sent while nobody recorded, and could not be had again."""
    repeated: int
    """Messages that came again, and were left out."""
    refused: int
    """Messages left out because strangers made up too many sessions of a topic."""
    segments: int
    """Segments finished."""
    removed: int
    """Segments that retention has removed."""
    queued_bytes: int
    """Waiting to be written now."""
    state: str
    """What has been told last that still is so: "recording", "dropping", "disk", "failed" or "closed"."""


class _Receiver(WildcardReceiver):
    """A receiver whose sources begin where the recording ends."""

    def __init__(
        self, ctx: Context, pattern: str, positions: Any, queue_bytes: int, options: dict[str, object]
    ) -> None:
        self._positions = positions
        super().__init__(ctx, pattern, queue_bytes=queue_bytes, options=options)

    def _prepare(self, receivers: Attributes) -> None:
        check(lib.um_py_positions_install(self._positions, receivers.pointer))
        check(lib.um_collector_see_numbers(self._collector))


class Recorder:
    """Records what is published in the context `ctx` on topics that match one of `patterns` (PCRE), or are `topics`.

    The rows go into the folder `folder`, which is made if need be: docs/python/recording.md tells what is in it. One
    process at a time records into a folder (InvalidOperation). If there is a recording already, it is continued: what
    the sources still have of the messages in between (late join) is asked for, from the number on where the recording
    of each source ends, and what they do not have any more is recorded as lost.

    `compression` of segments is "lz4", "zstd" or "none". A segment is finished, and with it visible to readers, when it
    has `segment_bytes` or is `segment_seconds` old; rows are in its file at most `flush_seconds` after they came.
    `sync` says what survives a power cut: "segment", every finished segment; "batch", every row that is in a file;
    "never", what the system has written by then. `queue_bytes` bounds what waits for the disk: what comes when it is
    full is dropped, counted and recorded as a row. At most `open_segments` grow at a time; the one that got nothing for
    the longest time is finished for another. `retain_bytes` and `retain_seconds` bound the finished segments; with
    `consumers`, a list of names, those are removed that all of them have read, see commit(). `source_timestamp` names a
    message property that holds the time of sending in nanoseconds, for the column of that name.

    `on_state(kind, text)` is told of what operators want to know, once for each change: a disk that refuses ("disk"),
    messages dropped ("dropping"), all well again ("recording"), what a crash left behind ("recovered"), messages that
    could not be had again ("unfilled"), consumers whose file is damaged ("consumer"), and the end because of a mistake
    in the program ("failed"). It is called by threads of the recorder, before the constructor returns by that one; it
    must not close the recorder (InvalidOperation) and is best kept short. `options` are those of WildcardReceiver; the
    order is always that of the numbers (`ordered_delivery` 1).

    Methods may be called from any thread. InvalidArgument for settings out of their bounds; OSError when the folder
    cannot be written; ImportError without pyarrow.
    """

    def __init__(
        self,
        ctx: Context,
        folder: str | os.PathLike[str],
        patterns: str | Sequence[str] = (),
        *,
        topics: str | Sequence[str] = (),
        compression: str = "lz4",
        segment_bytes: int = 64 << 20,
        segment_seconds: float = 10.0,
        flush_seconds: float = 0.5,
        sync: str = "segment",
        queue_bytes: int = 256 << 20,
        open_segments: int = 4096,
        retain_bytes: int | None = None,
        retain_seconds: float | None = None,
        consumers: Sequence[str] | None = None,
        source_timestamp: str | None = None,
        on_state: OnState | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        expect_context("Recorder(ctx, folder, patterns)", ctx)
        _layout.arrow()
        pattern, told = _pattern(patterns, topics)
        settings = Settings(
            told,
            compression,
            segment_bytes,
            segment_seconds,
            flush_seconds,
            sync,
            queue_bytes,
            open_segments,
            retain_bytes,
            retain_seconds,
            consumers,
            source_timestamp,
        )
        for name, value in _FIXED.items():
            if name in (options or {}):
                raise InvalidArgument(f"Recorder: the option {name} is always {value}: leave it out")
        self._folder = Path(folder)
        self._on_state = on_state
        self._state = "recording"
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._gave_up = threading.Event()
        self._ended = threading.Event()
        self._closing = threading.Lock()
        self._queue = Queue(queue_bytes)
        self._collector_dropped = 0
        self._dropping = False
        self._before = 0  # messages dropped when that began
        self._refusals: dict[str, str] = {}
        self._folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as undo:
            self._manifest = Manifest(self._folder, sync != "never")
            undo.callback(self._manifest.close)
            positions = lib.um_py_positions_create()
            if positions == ffi.NULL:
                raise OutOfMemory("no memory for the positions of sources")
            self._positions = ffi.gc(positions, lib.um_py_positions_delete)
            self._writer = Writer(self._folder, settings, self._manifest, self._positions, self._tell)
            self._writer.begin()
            undo.callback(self._writer.end)
            wanted = {"use_late_join": True, "retransmit_request_maximum": 0, **(options or {}), **_FIXED}
            self._receiver = _Receiver(ctx, pattern, self._positions, min(queue_bytes, QUEUE_BYTES), wanted)
            undo.callback(self._receiver.close)
            self._threads = [
                threading.Thread(target=self._take, name="um-recorder-take", daemon=True),
                threading.Thread(target=self._write, name="um-recorder-write", daemon=True),
            ]
            for thread in self._threads:
                thread.start()
            undo.pop_all()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Recorder of {self._receiver.pattern} into {self._folder}>"

    @property
    def folder(self) -> Path:
        """The folder of the recording."""
        return self._folder

    @property
    def receiver(self) -> WildcardReceiver:
        """Where the messages come in, for its statistics; its messages belong to the recorder."""
        return self._receiver

    def stats(self) -> RecorderStats:
        """What has been done so far."""
        return RecorderStats(**vars(self._writer.totals), queued_bytes=self._queue.bytes, state=self._state)

    def close(self, timeout: float = 10.0) -> None:
        """Record what has come, finish all segments and let go of the folder.

        A disk that refuses is given `timeout` seconds; what it has not taken by then is lost, except what is in open
        segments, which the next recorder finds. Raises what ended the recording early. May be called again.
        InvalidOperation in on_state.
        """
        if threading.current_thread() in self._threads:
            raise InvalidOperation("close() of a Recorder in its on_state: set an event, and close it elsewhere")
        with self._closing:
            self._stopping.set()
            if not self._ended.wait(timeout):
                self._gave_up.set()
            for thread in self._threads:
                thread.join()
            self._receiver.close()
            self._manifest.close()
            self._state = "closed"
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def wait(self, timeout: float | None = None) -> bool:
        """Until recording has come to its end by itself, which it does for a mistake in the program alone; close()
        raises it. False when `timeout` seconds have passed."""
        return self._ended.wait(timeout)

    # -- threads --

    def _tell(self, kind: str, text: str) -> None:
        if kind in ("recording", "dropping", "disk", "failed"):
            self._state = kind
        if self._on_state is not None:
            self._on_state(kind, text)

    def _failed(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self._stopping.set()
            with contextlib.suppress(Exception):
                self._tell("failed", f"recording ends: {type(error).__name__}: {error}")

    def _take(self) -> None:
        """The thread that takes batches; it never waits for the disk."""
        try:
            while not self._stopping.is_set():
                batch = self._receiver.recv_batch(timeout=_IDLE_SECONDS)
                self._end_dropping()
                if batch is not None:
                    self._put(batch)
                    self._stopping.wait(_GATHER_SECONDS)
            left = self._receiver.queue_stats().queued_messages
            while left > 0 and (batch := self._receiver.recv_batch(timeout=0)) is not None:
                left -= len(batch)
                self._put(batch)
        except BaseException as error:
            self._failed(error)
        finally:
            self._queue.close()

    def _put(self, batch: Any) -> None:
        dropped = self._receiver.queue_stats().dropped
        fresh, self._collector_dropped = dropped - self._collector_dropped, dropped
        before = self._queue.dropped
        if not self._queue.put(batch, fresh) and not self._dropping:
            self._dropping, self._before = True, before
            self._tell("dropping", f"{self._queue.bytes:,} bytes wait for the disk: messages are dropped")

    def _end_dropping(self) -> None:
        """There is room again, also where nothing comes that needs it: say so, and have what was dropped counted."""
        if self._dropping and self._queue.bytes <= self._writer.settings.queue_bytes // 2:
            self._dropping = False
            self._queue.tell_missing()
            self._tell("recording", f"recording again; {self._queue.dropped - self._before} messages were dropped")

    def _write(self) -> None:
        """The thread that writes."""
        retained = 0.0
        try:
            while True:
                over = self._queue.over
                items = self._queue.take(_LOOK_SECONDS)
                for item in items:
                    self._put_rows(item)
                self._writer.due(time.monotonic(), over and not items)
                if not self._store():
                    return
                self._queue.done(items)
                if over and not items:
                    break
                if time.monotonic() - retained >= _RETAIN_SECONDS:
                    retained = time.monotonic()
                    self._retain()
            self._retain()
            self._writer.end()
        except BaseException as error:
            self._failed(error)
        finally:
            self._ended.set()

    def _put_rows(self, item: Item) -> None:
        now = time.monotonic()
        for (topic, source), lost in item.dropped.items():
            self._writer.drop(topic, source, lost, now)
        if item.batch is None:
            return
        for each in arrived(item.batch, item.by_collector > 0):
            self._writer.take(each, now)

    def _attempt(self, what: str, step: Callable[[], None]) -> bool:
        """Whether a step that the disk may refuse was done."""
        try:
            step()
        except OSError as error:
            text = f"{error.filename or self._folder}: {error.strerror or error}"
            if text != self._refusals.get(what):
                self._refusals[what] = text
                self._tell("disk" if what == "write" else "retention", f"cannot {what}: {text}")
            return False
        return True

    def _store(self) -> bool:
        """Write until everything is written; False: closed before the disk took it."""
        while not self._attempt("write", self._writer.store):
            self._retain()  # which may make room
            if self._gave_up.wait(_AGAIN_SECONDS):
                self._failed(OSError(f"the disk has not taken everything: {self._refusals['write']}"))
                return False
        if self._refusals.pop("write", None) is not None:
            self._tell("recording", f"the disk takes data again; {self._queue.dropped} messages were dropped so far")
        return True

    def _retain(self) -> None:
        if self._attempt("remove what is over", self._writer.retain):
            self._refusals.pop("remove what is over", None)


def _pattern(patterns: str | Sequence[str], topics: str | Sequence[str]) -> tuple[str, list[str]]:
    """One pattern that stands for all, and what to call it."""
    told = [patterns] if isinstance(patterns, str) else list(patterns)
    names = [topics] if isinstance(topics, str) else list(topics)
    for text in (*told, *names):
        if not isinstance(text, str) or not text:
            raise InvalidArgument(f"Recorder: pattern {text!r}: must be a text that is not empty")
    told += [f"^{re.escape(name)}$" for name in names]
    if not told:
        raise InvalidArgument("Recorder: neither patterns nor topics: nothing would be recorded ('.*' is everything)")
    return told[0] if len(told) == 1 else "|".join(f"(?:{text})" for text in told), told
