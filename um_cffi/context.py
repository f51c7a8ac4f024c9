"""Contexts: one each stands for a complete messaging engine with its thread."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

from um_cffi import config as config_files
from um_cffi import logs
from um_cffi._room import Room
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import name_bytes, options_of, path_of, shown, whole
from um_cffi.binding.attributes import Attributes, check_option, merged, read_option, sorted_out
from um_cffi.binding.callbacks import check_callback
from um_cffi.binding.deadline import Deadline
from um_cffi.binding.deferred import stats
from um_cffi.binding.lifetime import Closing, Part, check_outside, counted, milliseconds
from um_cffi.dispatch import Dispatcher, DispatchThread, EventQueue, Timer
from um_cffi.errors import InvalidArgument, InvalidOperation, OutOfMemory, check, raise_last, text
from um_cffi.requests import Request, Requests, from_source, make_request
from um_cffi.responder import Responder

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from um_cffi.binding.option_types import ContextOptions, ReceiverOptions
    from um_cffi.properties import PropertyValue
    from um_cffi.responder import Handler
    from um_cffi.source import Source
    from um_cffi.stats import ContextCounts, ContextStats, ReceiverStats, SourceStats, TopicSource

    Target = Union[str, "Context"]


class HasFileno(Protocol):
    """A socket or file."""

    def fileno(self) -> int: ...


_with_callbacks: set[Context] = set()  # a context with callbacks lives until it is closed, referenced or not
# C memory of contexts that are not closed, by their numbers: the collector of cycles would release what ffi.gc() gave
# to a forgotten context before that is closed.
_kept: dict[int, list[Any]] = {}


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
        given = merged(options_of("Context()", options), keywords)
        if isinstance(config, Mapping):
            given = merged(options_of("Context()", config), given)
        elif config is not None:
            config_files.load(path_of("Context()", config))
        chosen = sorted_out(("context",), given)["context"]
        holder = ffi.new("lbm_context_t **")
        with Attributes("context", chosen) as attributes:
            self._sequential = attributes.get("operational_mode") == "sequential"
            mapping = lib.um_py_mapping_create()
            if mapping == ffi.NULL:
                raise OutOfMemory("no memory for a context")
            self._mapping: Any = ffi.gc(mapping, lib.um_py_mapping_delete)  # of sessions to XSPs
            check(lib.um_py_mapping_install(mapping, attributes.pointer))
            self._room = Room()  # for what is sent without a source
            self._room.install(attributes.pointer)
            check(lib.lbm_context_create(holder, attributes.pointer, ffi.NULL, ffi.NULL))
        self._ctx: Any = holder[0]
        gate = lib.um_py_gate_create(self._ctx)
        if gate == ffi.NULL:
            lib.lbm_context_delete(self._ctx)
            raise OutOfMemory("no memory for a context")
        self._gate: Any = ffi.gc(gate, lib.um_py_gate_delete)  # for calls that may wait for the context's thread
        self._deleted = False
        super().__init__("context")
        _kept[self._number] = [self._mapping, self._gate, self._room.state]
        self._children: dict[int, Part] = {}
        self._dispatch_thread: DispatchThread | None = None
        self._processing = threading.Lock()
        self._turns: dict[str, Any] = {}  # of sessions of LBT-SMX, by source string
        self._requests: Requests | None = None

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
            return stats.read_counts(
                stats.ContextStats, "lbm_context_stats_t", lambda out: lib.lbm_context_retrieve_stats(self._ctx, out)
            )

    def counts(self) -> ContextCounts:
        """What the context has discarded that belongs to no source or receiver."""
        with self._using():
            return stats.read_counts(
                stats.ContextCounts, "um_context_stats_t", lambda out: lib.um_context_stats(self._ctx, out)
            )

    def topics(self, pattern: str | None = None, limit: int = 10000) -> list[TopicSource]:
        """The sources that the context knows by topic resolution, by topic and source, without joining any.

        `pattern` (PCRE, unanchored; None: all) chooses by topic; at most `limit` are given. A context knows what it has
        heard advertised: a new one knows nothing, and sources that nobody asks for advertise seldom after their first
        minute. request_resolution() makes all advertise again; what is there is known about a second later. A source
        that ends is forgotten at once when it is received here or has resolver_send_final_advertisements, otherwise
        after a long silence: look at `age`. Any thread, callbacks included. InvalidArgument for a
        pattern that does not compile, or when the context is closed.
        """
        wanted = ffi.NULL if pattern is None else name_bytes("topics()", "pattern", pattern)
        most = whole("topics() with limit", limit)
        with self._using():
            return stats.read_topics(
                lambda array, size, count: lib.um_context_topics(self._ctx, wanted, array, size, count), most
            )[0]

    def receiver_stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that this context receives."""
        with self._using():
            return stats.read_sessions(
                "lbm_rcv_transport_stats_t",
                stats.receiver_stats,
                lambda count, array: lib.lbm_context_retrieve_rcv_transport_stats(self._ctx, count, array),
            )

    def source_stats(self) -> list[SourceStats]:
        """One entry for each transport session that this context sends."""
        with self._using():
            return stats.read_sessions(
                "lbm_src_transport_stats_t",
                stats.source_stats,
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

    def process_events(self, timeout: float | None = 0) -> None:
        """Sequential mode (`operational_mode="sequential"`): handle what comes and is due for `timeout` seconds.

        0 is what is there now, None until the context is closed. The application must call this again and again from
        one thread. Signals are handled meanwhile. InvalidArgument on an ordinary context.
        """
        if not self._sequential:
            raise InvalidArgument('process_events() needs a context with operational_mode="sequential"')
        self._check_open()
        deadline = Deadline(timeout)
        while True:
            with self._processing:  # and not the guard: other threads' calls may need this one to run the context
                if self._closed:
                    return
                check(lib.lbm_context_process_events(self._ctx, deadline.slice()))
            if deadline.over():
                return

    # -- requests --

    def request(
        self,
        source: Source,
        data: Buffer,
        timeout: float | None = 5.0,
        *,
        responses: int | None = None,
        flush: bool = True,
        properties: Mapping[str, PropertyValue] | None = None,
        channel: int | None = None,
    ) -> Request:
        """Ask, with the bytes `data`, who receives the topic of `source`: sent when the Request is awaited or iterated.

        `await ctx.request(...)` gives the first Response, and raises TimedOut when none comes within `timeout` seconds
        (None: no bound). `async for response in ctx.request(...)` gives all that come until then, or `responses` of
        them. On a thread `ctx.request(...).result()` and `for response in ctx.request(...)` do the same; signals are
        handled meanwhile. Nobody tells whether there is a receiver: see Source.wait_receivers(). `flush` sends out
        now what implicit batching holds back; without it the request may wait with others for a batch to be full.
        `properties` and `channel` are those of Source.send(). InvalidArgument when the source is another context's or
        closed, NotSupported where its transport carries no requests (lbtsmx). A context with the option
        request_tcp_bind_request_port 0 gets no responses.
        """
        return make_request(self, from_source(self, source, flush, properties, channel), data, timeout, responses)

    def request_immediate(
        self,
        target: Target,
        data: Buffer,
        topic: str | None = None,
        timeout: float | None = 5.0,
        *,
        responses: int | None = None,
    ) -> Request:
        """Ask one context, with the bytes `data` as an immediate message: `target` and `topic` as of send_immediate().

        The Request, `timeout` in seconds, `responses` and errors are as of request(). That nobody there receives the
        topic, or that the context is not there, shows as no response.
        """
        from um_cffi.immediate import ImmediateWay, unicast

        way = ImmediateWay(self, unicast("request_immediate()", target, topic), False)
        return make_request(self, way, data, timeout, responses)

    def request_multicast(
        self,
        data: Buffer,
        topic: str | None = None,
        timeout: float | None = 5.0,
        *,
        responses: int | None = None,
        flush: bool = True,
    ) -> Request:
        """Ask all contexts that listen, with the bytes `data` as a multicast immediate message, see send_multicast().

        The Request, `timeout` in seconds, `responses`, `flush` and errors are as of request(); `topic` None asks the
        receivers of messages without a topic.
        """
        from um_cffi.immediate import ImmediateWay, multicast

        way = ImmediateWay(self, multicast("request_multicast()", topic), flush)
        return make_request(self, way, data, timeout, responses)

    # -- immediate messages --

    @property
    def immediate_target(self) -> str:
        """Where this context gets unicast immediate messages, "TCP:address:port".

        Of a context that listens on all interfaces (request_tcp_interface), the address is the one by which it
        resolves topics; its others do as well. InvalidOperation when the option request_tcp_bind_request_port is 0,
        and it gets none.
        """
        if self.getopt("request_tcp_bind_request_port") == "0":
            raise InvalidOperation(
                "the context gets no immediate messages: its option request_tcp_bind_request_port is 0"
            )
        names = ("request_tcp_interface", "resolver_multicast_interface")
        found = [self.getopt(name).partition("/")[0] for name in names]
        address = next((each for each in found if each != "0.0.0.0"), "127.0.0.1")
        return f"TCP:{address}:{self.getopt('request_tcp_port')}"

    def send_immediate(
        self, target: Target, data: Buffer, topic: str | None = None, timeout: float | None = None
    ) -> None:
        """Send one message, the bytes `data`, to one context, without a source and without topic resolution.

        `target` is the context: its `immediate_target`, "TCP:address:port"; "SOURCE:" and the `source` of a message,
        for the context that sent it (of a source with `retain`, which advertises the address); or a Context of this
        process. There it goes to the receivers of `topic`, or without a topic to the ImmediateReceiver. A connection is
        made when it is not there and kept for a while; each message is at most 65264 bytes. Waits while it has no room:
        TimedOut after `timeout` seconds (None: no bound). That it returns does not say that the message arrived, or
        that the context is there: the log tells of connections that fail. Any thread; signals are handled while
        waiting; in a callback with direct=True WouldBlock instead of waiting. InvalidArgument for a target that is
        none, or a source that is not known.
        """
        from um_cffi.immediate import unicast

        address = unicast("send_immediate()", target, topic)
        self._room.retry(address.attempt_of(self, data, False), timeout, f"send_immediate() {address.name}")

    async def asend_immediate(self, target: Target, data: Buffer, topic: str | None = None) -> None:
        """Send `data` on `topic` to `target` as send_immediate() does, for asyncio: waits without blocking the loop."""
        from um_cffi.immediate import unicast

        await self._room.aretry(unicast("asend_immediate()", target, topic).attempt_of(self, data, False))

    def send_multicast(
        self, data: Buffer, topic: str | None = None, timeout: float | None = None, *, flush: bool = True
    ) -> None:
        """Send one message, the bytes `data`, to all contexts that listen to multicast immediate messages.

        These are the contexts with the option mim_address, or mim_incoming_address, set to the group this one sends
        to. There it goes to the receivers of `topic`, or without a topic to the ImmediateReceiver. At most 7866 bytes;
        meant for seldom messages: each context of the group gets each of them. `flush` sends out now what implicit
        batching holds back. Waits for the rate limit: TimedOut after `timeout` seconds (None: no bound). Any thread;
        signals are handled while waiting; in a callback with direct=True WouldBlock instead of waiting.
        InvalidArgument for a message that is too long, or when the context is closed.
        """
        from um_cffi.immediate import multicast

        address = multicast("send_multicast()", topic)
        self._room.retry(address.attempt_of(self, data, flush), timeout, f"send_multicast() {address.name}")

    async def asend_multicast(self, data: Buffer, topic: str | None = None, *, flush: bool = True) -> None:
        """Send `data` on `topic` with `flush` as send_multicast() does, for asyncio: without blocking the loop."""
        from um_cffi.immediate import multicast

        await self._room.aretry(multicast("asend_multicast()", topic).attempt_of(self, data, flush))

    def _gate_of(self) -> Any:
        self._check_open()
        return self._gate

    def responder(
        self, topic: str, *, options: Mapping[str, object] | None = None, **keywords: Unpack[ReceiverOptions]
    ) -> Callable[[Handler], Responder]:
        """Decorator that makes the function a Responder of `topic`: `@ctx.responder("prices")`.

        The name of the function stands for the Responder then, which is closed with its context or before.
        """

        def decorate(handler: Handler) -> Responder:
            return Responder(self, topic, handler, options=options, **keywords)

        return decorate

    def _requests_of(self) -> Requests:
        known = self._requests
        if known is not None and not self._closed and not self._inherited:
            return known  # which looks again when it is used
        with self._using():
            if self._requests is None:
                self._requests = Requests(self)
                self._adopt(self._requests)
            return self._requests

    # -- timers and descriptors --

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` once on the context's callback thread, `seconds` from now.

        The Timer that is returned can be cancelled. Exceptions: as in other callbacks. InvalidArgument for negative
        times.
        """
        check_callback(f"call_later() of the {self._name}", "call", call, arguments)
        return self._dispatcher()._add_timer(self, seconds, lambda: call(*arguments), None)

    def call_every(self, seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
        """Call `call(*arguments)` every `seconds` seconds on the context's callback thread, until the timer is
        cancelled.

        Calls that could not be made in time because another callback was running are made up for once, not all.
        """
        check_callback(f"call_every() of the {self._name}", "call", call, arguments)
        return self._dispatcher()._add_timer(self, seconds, lambda: call(*arguments), seconds)

    def add_reader(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call `call(*arguments)` on the callback thread again and again while `file` is readable, until
        remove_reader().

        `file` is a descriptor or has fileno(). A descriptor has one reader; a second call replaces the first one's.
        """
        check_callback(f"add_reader() of the {self._name}", "call", call, arguments)
        self._watch(file, "read", lambda: call(*arguments))

    def remove_reader(self, file: int | HasFileno) -> None:
        """Call no more for `file`. Do this before closing it. A call that is running goes on."""
        self._watch(file, "read", None)

    def add_writer(self, file: int | HasFileno, call: Callable[..., object], *arguments: object) -> None:
        """Call `call(*arguments)` on the callback thread again and again while `file` is writable, until
        remove_writer().

        `file` is a descriptor or has fileno(). A descriptor has one writer; a second call replaces the first one's.
        """
        check_callback(f"add_writer() of the {self._name}", "call", call, arguments)
        self._watch(file, "write", lambda: call(*arguments))

    def remove_writer(self, file: int | HasFileno) -> None:
        """Call no more for `file`. Do this before closing it. A call that is running goes on."""
        self._watch(file, "write", None)

    def _watch(self, file: int | HasFileno, what: str, call: Callable[[], object] | None) -> None:
        try:
            descriptor = file if isinstance(file, int) else file.fileno()
        except (AttributeError, OSError, ValueError):
            raise InvalidArgument(f"{shown(file)} is neither an open descriptor nor an object with fileno()") from None
        if descriptor < 0 and call is not None:
            raise InvalidArgument(f"descriptor {descriptor}: must be 0 or more, of an open file")
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
        if not isinstance(queue, EventQueue):
            raise InvalidArgument(f"queue {shown(queue)}: give an EventQueue, or None for the context's thread")
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
            _kept[self._number].append(self._turns[session])
        return self._turns[session]

    def _adopt(self, child: Part) -> None:
        self._children[child._number] = child

    def _release(self, child: Part) -> None:
        self._children.pop(child._number, None)
        if child._error is not None and self._error is None and self._closed:
            self._error, child._error = child._error, None

    def _facts(self) -> str:
        name = read_option(lib.lbm_context_str_getopt, self._ctx, "context_name")
        parts = [each._name.partition(" of ")[0] for each in list(self._children.values())]
        sources, receivers = parts.count("source"), sum(each.endswith("receiver") for each in parts)
        called = f"{name!r}, " if name else ""
        return f"{called}{counted(sources, 'source')}, {counted(receivers, 'receiver')}"

    def _check_closing(self, patience: float | None) -> None:
        check_outside(self._name, self._ctx)

    def _is_deleted(self) -> bool:
        return self._deleted

    def _close(self, patience: float | None) -> None:
        parts = list(self._children.values())
        for part in sorted(parts, key=lambda each: (not each._closes_last, each._number), reverse=True):
            child = self._children.get(part._number)
            if child is not None:
                child._shut(patience)
                child._give_up()  # another thread may be closing it and wait for this one
        if self._sequential:
            lib.lbm_context_unblock(self._ctx)
        self._room.wake()
        lib.um_py_gate_close(self._gate)
        with self._processing:
            if lib.lbm_context_delete(self._ctx) != 0:
                lib.um_py_gate_open(self._gate, self._ctx)
                raise_last()
        self._deleted = True
        _kept.pop(self._number, None)
        if self._dispatch_thread is not None:
            self._dispatch_thread.stop(patience)
        _with_callbacks.discard(self)
