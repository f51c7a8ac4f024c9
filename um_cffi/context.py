"""Contexts: one each stands for a complete messaging engine with its thread."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from um_cffi import config as config_files
from um_cffi import logs
from um_cffi._attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi._base import Closing, Part, milliseconds
from um_cffi._native import ffi, lib
from um_cffi.dispatch import Dispatcher, DispatchThread, EventQueue, Timer
from um_cffi.errors import InvalidArgument, OutOfMemory, check, text
from um_cffi.stats import (
    ContextCounts,
    ContextStats,
    ReceiverStats,
    SourceStats,
    read_counts,
    read_sessions,
    receiver_stats,
    source_stats,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from um_cffi._options import ContextOptions


class HasFileno(Protocol):
    """A socket or file."""

    def fileno(self) -> int: ...


_with_callbacks: set[Context] = set()  # a context with callbacks lives until it is closed, referenced or not


class Context(Closing):
    """A messaging engine with a thread of its own. Sources and receivers are made in it.

    `config` names a configuration file that is loaded first (into the defaults of the whole process, see
    um_cffi.config), or is a mapping of options. Options of the scope context may be given as keywords; they win over
    `options`, which win over `config`. Closing a context closes its sources and receivers. All methods may be called
    from any thread, callbacks included. A context keeps about three file descriptors and one thread.

    InvalidArgument names an unknown option or a wrong value, and what is allowed; it is also what every method raises
    once the context is closed. SystemFailure when a port range is exhausted or an interface is not there.

    Callbacks of the context's objects run on one thread that belongs to the context, made when first needed (unless an
    EventQueue is given); a slow callback delays the other callbacks only. An exception in a callback is logged, and the
    first one is raised again by `close()` of the object, or of the context.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | Mapping[str, object] | None = None,
        *,
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[ContextOptions],
    ) -> None:
        logs.start_unless_disabled()
        given = merged(options, keywords)
        if isinstance(config, Mapping):
            given = merged(config, given)
        elif config is not None:
            config_files.load(config)
        chosen = sorted_out(("context",), given)["context"]
        holder = ffi.new("lbm_context_t **")
        with Attributes("context", chosen) as attributes:
            self._sequential = attributes.get("operational_mode") == "sequential"
            check(lib.lbm_context_create(holder, attributes.pointer, ffi.NULL, ffi.NULL))
        self._ctx: Any = holder[0]
        super().__init__("context")
        self._children: dict[int, Part] = {}
        self._dispatch_thread: DispatchThread | None = None
        self._processing = threading.Lock()
        self._turns: dict[str, Any] = {}  # of sessions of LBT-SMX, by source string

    # -- options --

    def getopt(self, name: str) -> str:
        """The value in force of the context option `name`, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_context_str_getopt, self._ctx, name)

    def setopt(self, name: str, value: object) -> None:
        """Set the option `name`, one that may change while the context runs, to `value`. InvalidArgument for others."""
        _, written = check_option(("context",), name, value)
        with self._using():
            check(lib.lbm_context_str_setopt(self._ctx, name.encode(), written.encode()))

    # -- statistics --

    def stats(self) -> ContextStats:
        """Topic resolution, sends that waited and loss of this context, since its creation."""
        with self._using():
            return read_counts(
                ContextStats, "lbm_context_stats_t", lambda out: lib.lbm_context_retrieve_stats(self._ctx, out)
            )

    def counts(self) -> ContextCounts:
        """What the context has discarded that belongs to no source or receiver."""
        with self._using():
            return read_counts(ContextCounts, "um_context_stats_t", lambda out: lib.um_context_stats(self._ctx, out))

    def receiver_stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that this context receives."""
        with self._using():
            return read_sessions(
                "lbm_rcv_transport_stats_t",
                receiver_stats,
                lambda count, array: lib.lbm_context_retrieve_rcv_transport_stats(self._ctx, count, array),
            )

    def source_stats(self) -> list[SourceStats]:
        """One entry for each transport session that this context sends."""
        with self._using():
            return read_sessions(
                "lbm_src_transport_stats_t",
                source_stats,
                lambda count, array: lib.lbm_context_retrieve_src_transport_stats(self._ctx, count, array),
            )

    # -- sending and running --

    def flush(self) -> None:
        """Send now what implicit batching holds back in all sources of the context.

        InvalidArgument when it is closed.
        """
        with self._using():
            turns = list(self._turns.values())
            check(lib.um_py_flush_all(self._ctx, turns, len(turns)))

    def request_resolution(
        self,
        advertisements: bool = True,
        queries: bool = False,
        wildcard_queries: bool = False,
        context_advertisements: bool = False,
        context_queries: bool = False,
        interval: float = 1.0,
        duration: float = 10.0,
    ) -> None:
        """Ask all contexts to resolve topics again, for tools and after a repaired network; nothing else needs it.

        They send what is chosen: `advertisements` of sources, `queries` of receivers, `wildcard_queries` of wildcard
        receivers, `context_advertisements`, `context_queries`. The request goes out every `interval` seconds for
        `duration` seconds (0: once) while the context is open; this call returns at once. Callable on any thread,
        callbacks included. InvalidArgument when nothing is chosen, or a time is negative.
        """
        chosen = (
            (advertisements, lib.LBM_TOPIC_RES_REQUEST_ADVERTISEMENT),
            (queries, lib.LBM_TOPIC_RES_REQUEST_QUERY),
            (wildcard_queries, lib.LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY),
            (context_advertisements, lib.LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT),
            (context_queries, lib.LBM_TOPIC_RES_REQUEST_CONTEXT_QUERY),
        )
        bits = sum(bit for wanted, bit in chosen if wanted)
        if bits == 0:
            raise InvalidArgument("request_resolution() of nothing: choose advertisements, queries, ...")
        every, seconds = milliseconds(interval, "interval"), math.ceil(milliseconds(duration, "duration") / 1000)
        with self._using():
            check(lib.lbm_context_topic_resolution_request(self._ctx, bits, every, seconds))

    def reset_stats(self) -> None:
        """Let the counters of stats() begin at zero again. InvalidArgument when the context is closed."""
        with self._using():
            check(lib.lbm_context_reset_stats(self._ctx))

    def process_events(self, timeout: float = 0) -> None:
        """Sequential mode (`operational_mode="sequential"`): handle what is due, waiting up to `timeout` seconds.

        The application must call this again and again from one thread. InvalidArgument on an ordinary context.
        """
        if not self._sequential:
            raise InvalidArgument('process_events() needs a context with operational_mode="sequential"')
        with self._processing:  # and not the guard: other threads' calls may need this one to run the context
            self._check_open()
            check(lib.lbm_context_process_events(self._ctx, milliseconds(timeout)))

    # -- timers and descriptors --

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` once on the context's callback thread, `seconds` from now.

        The Timer that is returned can be cancelled. Exceptions: as in other callbacks. InvalidArgument for negative
        times.
        """
        return self._dispatcher()._add_timer(self, seconds, lambda: call(*arguments), None)

    def call_every(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` every `seconds` seconds on the context's callback thread, until the timer is
        cancelled.

        Calls that could not be made in time because another callback was running are made up for once, not all.
        """
        return self._dispatcher()._add_timer(self, seconds, lambda: call(*arguments), seconds)

    def add_reader(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call `call(*arguments)` on the callback thread again and again while `file` is readable, until
        remove_reader().

        `file` is a descriptor or has fileno(). A descriptor has one reader; a second call replaces the first one's.
        """
        self._watch(file, "read", lambda: call(*arguments))

    def remove_reader(self, file: int | HasFileno) -> None:
        """Call no more for `file`. Do this before closing it. A call that is running goes on."""
        self._watch(file, "read", None)

    def add_writer(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call `call(*arguments)` on the callback thread again and again while `file` is writable, until
        remove_writer().

        `file` is a descriptor or has fileno(). A descriptor has one writer; a second call replaces the first one's.
        """
        self._watch(file, "write", lambda: call(*arguments))

    def remove_writer(self, file: int | HasFileno) -> None:
        """Call no more for `file`. Do this before closing it. A call that is running goes on."""
        self._watch(file, "write", None)

    def _watch(self, file: int | HasFileno, what: str, call: Callable[[], object] | None) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        queue = self._dispatcher()
        with self._using():
            read, write = queue._callbacks_of(descriptor)
            read, write = (call, write) if what == "read" else (read, call)
            queue._watch(self, descriptor, read, write)

    # -- for the objects made in the context --

    def _dispatcher(self) -> Dispatcher:
        with self._using():
            if self._dispatch_thread is None:
                self._dispatch_thread = DispatchThread(f"{self._name} {self._number}")
                _with_callbacks.add(self)
            return self._dispatch_thread.queue

    def _queue_for(self, queue: EventQueue | None) -> Dispatcher:
        if queue is None:
            return self._dispatcher()
        queue._check_open()
        return queue

    def _turn_of(self, source: Any) -> Any:
        """What the sources of a LBT-SMX session take turns with."""
        stats = ffi.new("lbm_src_transport_stats_t *")
        check(lib.lbm_src_retrieve_transport_stats(source, stats))
        session = text(stats.source)
        if session not in self._turns:
            turn = lib.um_py_turn_create()
            if turn == ffi.NULL:
                raise OutOfMemory("no memory for a session of LBT-SMX")
            self._turns[session] = ffi.gc(turn, lib.um_py_turn_delete)
        return self._turns[session]

    def _adopt(self, child: Part) -> None:
        self._children[child._number] = child

    def _release(self, child: Part) -> None:
        self._children.pop(child._number, None)
        if child._error is not None and self._error is None and self._closed:
            self._error, child._error = child._error, None

    def _close(self, patience: float | None) -> None:
        for number in sorted(self._children, reverse=True):
            child = self._children.get(number)
            if child is not None:
                child._shut(patience)
                child._give_up()  # another thread may be closing it and wait for this one
        if self._dispatch_thread is not None:
            self._dispatch_thread.stop(patience)
        _with_callbacks.discard(self)
        if self._sequential:
            lib.lbm_context_unblock(self._ctx)
        with self._processing:
            check(lib.lbm_context_delete(self._ctx))
