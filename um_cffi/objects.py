"""Context, sources and receivers. Options are keyword arguments, named and written as in the option table.

Callbacks run on the context's thread. One that raises does not stop the thread: the exception is logged, kept, and
raised again by `close()` of the object it belongs to.
"""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from um_cffi._native import ffi, lib
from um_cffi.errors import check, text

_log = logging.getLogger("um_cffi")
_open_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


@dataclass(frozen=True)
class Message:
    """What a receiver's callback gets: data, and the events of its sessions (`type` tells which; see MessageType)."""

    type: int
    topic: str
    source: str
    sequence_number: int
    flags: int
    data: bytes


class MessageType:
    """Values of Message.type."""

    DATA: int = lib.LBM_MSG_DATA
    BEGIN_OF_SESSION: int = lib.LBM_MSG_BOS
    END_OF_SESSION: int = lib.LBM_MSG_EOS
    REQUEST: int = lib.LBM_MSG_REQUEST
    LOSS: int = lib.LBM_MSG_UNRECOVERABLE_LOSS
    BURST_LOSS: int = lib.LBM_MSG_UNRECOVERABLE_LOSS_BURST
    NO_SOURCE: int = lib.LBM_MSG_NO_SOURCE_NOTIFICATION


class SourceEvent:
    """Values given to a source's event callback; connect and disconnect come with the receiver's address."""

    CONNECT: int = lib.LBM_SRC_EVENT_CONNECT
    DISCONNECT: int = lib.LBM_SRC_EVENT_DISCONNECT
    WAKEUP: int = lib.LBM_SRC_EVENT_WAKEUP


OnMessage = Callable[[Message], None]
OnSourceEvent = Callable[[int, str], None]


@ffi.def_extern(error=0)  # type: ignore[untyped-decorator]
def um_py_on_message(_rcv: Any, msg: Any, clientd: Any) -> int:
    owner: _Receiving = ffi.from_handle(clientd)
    data = bytes(ffi.buffer(msg.data, msg.len)) if msg.len else b""
    owner._deliver(Message(msg.type, text(msg.topic_name), text(msg.source), msg.sequence_number, msg.flags, data))
    return 0


@ffi.def_extern(error=0)  # type: ignore[untyped-decorator]
def um_py_on_source_event(_src: Any, event: int, ed: Any, clientd: Any) -> int:
    owner: Source = ffi.from_handle(clientd)
    with_address = event in (SourceEvent.CONNECT, SourceEvent.DISCONNECT)
    owner._event(event, text(ffi.cast("const char *", ed)) if with_address else "")
    return 0


class _Attributes:
    """An attribute object filled from keyword arguments, deleted on leaving the block."""

    def __init__(self, prefix: str, options: dict[str, object]) -> None:
        self._prefix = prefix
        self._options = options

    def __enter__(self) -> Any:
        holder = ffi.new(f"{self._prefix}_t **")
        check(getattr(lib, f"{self._prefix}_create")(holder))
        self._attr = holder[0]
        try:
            for name, value in self._options.items():
                option = str(int(value)) if isinstance(value, bool) else str(value)
                check(getattr(lib, f"{self._prefix}_str_setopt")(self._attr, name.encode(), option.encode()))
        except BaseException:
            self.__exit__()
            raise
        return self._attr

    def __exit__(self, *_: object) -> None:
        check(getattr(lib, f"{self._prefix}_delete")(self._attr))


class _Closing:
    """Context manager protocol on top of close()."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()


class _CallbackErrors:
    """Keeps the first exception of a callback until close()."""

    _error: BaseException | None = None

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            _log.exception("callback raised")
            if self._error is None:
                self._error = error

    def _raise_callback_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def _counts(type_name: str, retrieve: Callable[[Any], int]) -> dict[str, int]:
    """The fields of a structure of um.h, which are all counters, by name."""
    stats = ffi.new(f"{type_name} *")
    check(retrieve(stats))
    return {name: int(getattr(stats, name)) for name, _ in ffi.typeof(type_name).fields}


class Context(_Closing):
    """A context of the library with its thread. Closing it closes the sources and receivers made from it."""

    def __init__(self, config: str | None = None, **options: object) -> None:
        if config is not None:
            check(lib.lbm_config(config.encode()))
        holder = ffi.new("lbm_context_t **")
        with _Attributes("lbm_context_attr", options) as attr:
            check(lib.lbm_context_create(holder, attr, ffi.NULL, ffi.NULL))
        self._ctx = holder[0]
        self._children: list[_Closing] = []
        _open_contexts.add(self)

    def getopt(self, name: str) -> str:
        """The value of an option in force, in its text form."""
        room = ffi.new("char[]", 4096)
        size = ffi.new("size_t *", 4096)
        check(lib.lbm_context_str_getopt(self._handle(), name.encode(), room, size))
        return text(room)

    def receiver_stats(self) -> list[dict[str, object]]:
        """One dictionary for each session that this context receives."""
        count, capacity = ffi.new("int *"), 64
        while True:
            stats = ffi.new("lbm_rcv_transport_stats_t[]", capacity)
            count[0] = capacity
            if lib.lbm_context_retrieve_rcv_transport_stats(self._handle(), count, stats) != lib.LBM_FAILURE:
                break
            if count[0] <= capacity:
                check(lib.LBM_FAILURE)
            capacity = count[0]
        return [_receiver_stats(stats[i]) for i in range(count[0])]

    def counts(self) -> dict[str, int]:
        """What the context discarded that belongs to no source or receiver; see um_context_stats_t in um.h."""
        return _counts("um_context_stats_t", lambda out: lib.um_context_stats(self._handle(), out))

    def close(self) -> None:
        if self._ctx is None:
            return
        for child in reversed(self._children):
            child.close()
        ctx, self._ctx = self._ctx, None
        _open_contexts.discard(self)
        check(lib.lbm_context_delete(ctx))

    def _handle(self) -> Any:
        if self._ctx is None:
            raise ValueError("the context is closed")
        return self._ctx


class Source(_Closing, _CallbackErrors):
    """A publisher of one topic."""

    def __init__(self, ctx: Context, topic: str, on_event: OnSourceEvent | None = None, **options: object) -> None:
        self._src: Any = None
        self._on_event = on_event
        self._self = ffi.new_handle(self)
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_src_t **")
        with _Attributes("lbm_src_topic_attr", options) as attr:
            check(lib.lbm_src_topic_alloc(topic_holder, ctx._handle(), topic.encode(), attr))
        proc = lib.um_py_on_source_event if on_event is not None else ffi.NULL
        check(lib.lbm_src_create(holder, ctx._handle(), topic_holder[0], proc, self._self, ffi.NULL))
        self._src = holder[0]
        self.topic = topic
        ctx._children.append(self)

    def send(self, data: bytes | bytearray | memoryview, flush: bool = False, block: bool = True) -> None:
        """Send one message. Not blocking raises UMWouldBlock when it would have to wait."""
        flags = (lib.LBM_MSG_FLUSH if flush else 0) | (lib.LBM_SRC_BLOCK if block else lib.LBM_SRC_NONBLOCK)
        view = ffi.from_buffer(data)
        check(lib.lbm_src_send(self._handle(), view, len(view), flags))

    def flush(self) -> None:
        """Send what implicit batching holds back."""
        check(lib.lbm_src_flush(self._handle()))

    def wait_receivers(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until so many contexts are connected; every later message reaches them. UMTimeout after `timeout` s."""
        check(lib.um_src_wait_receivers(self._handle(), count, int(timeout * 1000)))

    def stats(self) -> dict[str, object]:
        """Statistics of the session that carries the topic."""
        stats = ffi.new("lbm_src_transport_stats_t *")
        check(lib.lbm_src_retrieve_transport_stats(self._handle(), stats))
        result: dict[str, object] = {"type": stats.type, "source": text(stats.source)}
        if stats.type == lib.LBM_TRANSPORT_STAT_TCP:
            tcp = lib.um_py_src_tcp(stats)
            result.update(num_clients=tcp.num_clients, bytes_buffered=tcp.bytes_buffered)
        return result

    def counts(self) -> dict[str, int]:
        """Messages and bytes sent, and what its session discarded; see um_src_stats_t in um.h."""
        return _counts("um_src_stats_t", lambda out: lib.um_src_stats(self._handle(), out))

    def close(self) -> None:
        src, self._src = self._src, None
        if src is not None:
            check(lib.lbm_src_delete(src))
        self._raise_callback_error()

    def _event(self, event: int, address: str) -> None:
        callback = self._on_event
        if callback is not None:
            self._guarded(lambda: callback(event, address))

    def _handle(self) -> Any:
        if self._src is None:
            raise ValueError(f"the source of {self.topic} is closed")
        return self._src


class _Receiving(_Closing, _CallbackErrors):
    """What receivers of a topic and of a pattern have in common."""

    _delete = ""

    def __init__(self, on_message: OnMessage, on_event: OnMessage | None) -> None:
        self._rcv: Any = None
        self._on_message = on_message
        self._on_event = on_event
        self._self = ffi.new_handle(self)

    def _deliver(self, message: Message) -> None:
        if message.type == MessageType.DATA:
            self._guarded(lambda: self._on_message(message))
            return
        callback = self._on_event
        if callback is not None:
            self._guarded(lambda: callback(message))

    def _handle(self) -> Any:
        if self._rcv is None:
            raise ValueError("the receiver is closed")
        return self._rcv

    def close(self) -> None:
        rcv, self._rcv = self._rcv, None
        if rcv is not None:
            check(getattr(lib, self._delete)(rcv))
        self._raise_callback_error()


class Receiver(_Receiving):
    """A subscriber of one topic. `on_message` gets data, `on_event` the other messages (see MessageType)."""

    _delete = "lbm_rcv_delete"

    def __init__(
        self, ctx: Context, topic: str, on_message: OnMessage, on_event: OnMessage | None = None, **options: object
    ) -> None:
        super().__init__(on_message, on_event)
        topic_holder, holder = ffi.new("lbm_topic_t **"), ffi.new("lbm_rcv_t **")
        with _Attributes("lbm_rcv_topic_attr", options) as attr:
            check(lib.lbm_rcv_topic_lookup(topic_holder, ctx._handle(), topic.encode(), attr))
        check(lib.lbm_rcv_create(holder, ctx._handle(), topic_holder[0], lib.um_py_on_message, self._self, ffi.NULL))
        self._rcv = holder[0]
        ctx._children.append(self)

    def wait_ready(self, sources: int = 1, timeout: float = 10.0) -> None:
        """Wait until the sessions of so many sources have begun. UMTimeout after `timeout` seconds."""
        check(lib.um_rcv_wait_ready(self._handle(), sources, int(timeout * 1000)))

    def counts(self, source: str | None = None) -> dict[str, int]:
        """Messages delivered, lost, late and discarded, from all sources or one (see um_rcv_stats_t in um.h)."""
        name = ffi.NULL if source is None else source.encode()
        return _counts("um_rcv_stats_t", lambda out: lib.um_rcv_stats(self._handle(), name, out))


class WildcardReceiver(_Receiving):
    """A subscriber of all topics whose names match a pattern (PCRE unless `pattern_type` says otherwise)."""

    _delete = "lbm_wildcard_rcv_delete"

    def __init__(
        self, ctx: Context, pattern: str, on_message: OnMessage, on_event: OnMessage | None = None, **options: object
    ) -> None:
        super().__init__(on_message, on_event)
        holder = ffi.new("lbm_wildcard_rcv_t **")
        with _Attributes("lbm_wildcard_rcv_attr", options) as attr:
            check(
                lib.lbm_wildcard_rcv_create(
                    holder, ctx._handle(), pattern.encode(), ffi.NULL, attr, lib.um_py_on_message, self._self, ffi.NULL
                )
            )
        self._rcv = holder[0]
        ctx._children.append(self)

    def counts(self) -> dict[str, int]:
        """Messages delivered, lost, late and discarded on all topics matched so far (see um_rcv_stats_t in um.h)."""
        return _counts("um_rcv_stats_t", lambda out: lib.um_wildcard_rcv_stats(self._handle(), out))


def _receiver_stats(stats: Any) -> dict[str, object]:
    result: dict[str, object] = {"type": stats.type, "source": text(stats.source)}
    if stats.type == lib.LBM_TRANSPORT_STAT_TCP:
        tcp = lib.um_py_rcv_tcp(ffi.addressof(stats))
        result.update(
            bytes=tcp.bytes_rcved,
            messages=tcp.lbm_msgs_rcved,
            no_topic=tcp.lbm_msgs_no_topic_rcved,
            requests=tcp.lbm_reqs_rcved,
        )
    return result


def config(path: str) -> None:
    """Load a configuration file (plain text or XML) into the defaults of what is created afterwards."""
    check(lib.lbm_config(path.encode()))


def version() -> str:
    """Version of the library."""
    return text(lib.um_version())


def _close_all() -> None:
    for ctx in list(_open_contexts):
        try:
            ctx.close()
        except Exception:
            _log.exception("closing a context at exit")


atexit.register(_close_all)
