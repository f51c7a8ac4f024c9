"""Contexts: one each stands for a complete messaging engine with its thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from um_cffi import config as config_files
from um_cffi import logs
from um_cffi._attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi._base import Closing, milliseconds
from um_cffi._native import ffi, lib
from um_cffi.dispatch import Dispatcher, DispatchThread, EventQueue, Timer
from um_cffi.errors import InvalidArgument, check
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
    from any thread, callbacks included.

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
        self._children: dict[int, Closing] = {}
        self._dispatch_thread: DispatchThread | None = None
        self._processing = threading.Lock()

    # -- options --

    def getopt(self, name: str) -> str:
        """The value in force of a context option, as text. InvalidArgument for an unknown one."""
        with self._using():
            return read_option(lib.lbm_context_str_getopt, self._ctx, name)

    def setopt(self, name: str, value: object) -> None:
        """Set an option that may change while the context runs. InvalidArgument for others."""
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
        """Send now what implicit batching holds back in all sources of the context."""
        with self._using():
            check(lib.lbm_flush_all(self._ctx))

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
        """Call once on the context's callback thread, `seconds` from now. Exceptions: as in other callbacks."""
        return self._dispatcher().add_timer(self, seconds, lambda: call(*arguments), None)

    def call_every(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call every `seconds` seconds on the context's callback thread, until the timer is cancelled.

        Calls that could not be made in time because another callback was running are made up for once, not all.
        """
        return self._dispatcher().add_timer(self, seconds, lambda: call(*arguments), seconds)

    def add_reader(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call on the callback thread again and again while the descriptor is readable, until remove_reader()."""
        self._watch(file, "read", lambda: call(*arguments))

    def remove_reader(self, file: int | HasFileno) -> None:
        """Call no more. Do this before closing the descriptor. A call that is running goes on."""
        self._watch(file, "read", None)

    def add_writer(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call on the callback thread again and again while the descriptor is writable, until remove_writer()."""
        self._watch(file, "write", lambda: call(*arguments))

    def remove_writer(self, file: int | HasFileno) -> None:
        """Call no more. Do this before closing the descriptor. A call that is running goes on."""
        self._watch(file, "write", None)

    def _watch(self, file: int | HasFileno, what: str, call: Callable[[], object] | None) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        queue = self._dispatcher()
        with self._using():
            read, write = queue.callbacks_of(descriptor)
            read, write = (call, write) if what == "read" else (read, call)
            queue.watch(self, descriptor, read, write)

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

    def _adopt(self, child: Closing) -> None:
        self._children[child._number] = child

    def _release(self, child: Closing) -> None:
        self._children.pop(child._number, None)
        if child._error is not None and self._error is None and self._closed:
            self._error, child._error = child._error, None

    def _close(self, patience: float | None) -> None:
        for number in sorted(self._children, reverse=True):
            child = self._children.get(number)
            if child is not None:
                child._shut(patience)
        if self._dispatch_thread is not None:
            self._dispatch_thread.stop(patience)
        _with_callbacks.discard(self)
        if self._sequential:
            lib.lbm_context_unblock(self._ctx)
        with self._processing:
            check(lib.lbm_context_delete(self._ctx))
