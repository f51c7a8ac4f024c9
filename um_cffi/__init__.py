"""Publish and subscribe with libum.

with Context() as ctx, Source(ctx, "Greeting") as source:
    source.wait_receivers()
    source.send(b"Hello!", flush=True)
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from um_cffi.binding.guard import check_interpreter as _check_interpreter

_check_interpreter()

from um_cffi.binding._native import lib as _lib  # noqa: E402

if _lib.um_py_add_fast() != 0:
    raise MemoryError("the module um_cffi.binding._fast cannot be made")

from um_cffi import config, logs, testing  # noqa: E402
from um_cffi.arrow import ArrowReader  # noqa: E402
from um_cffi.batch import Batch, Message, Slot, forget_memory  # noqa: E402
from um_cffi.batch import record_dtype as _record_dtype  # noqa: E402
from um_cffi.binding.deferred import stats as _stats  # noqa: E402
from um_cffi.binding.lifetime import after_fork as _after_fork  # noqa: E402
from um_cffi.binding.paths import get_include, get_library, get_pkgconfig_dir, get_program  # noqa: E402
from um_cffi.context import Context  # noqa: E402
from um_cffi.dispatch import EventQueue, Timer  # noqa: E402
from um_cffi.errors import (  # noqa: E402
    DaemonConnection,
    InProgress,
    InvalidArgument,
    InvalidOperation,
    InvalidSelector,
    NoQueueRegistration,
    NoStoreRegistration,
    NotRegistered,
    NotSupported,
    OutOfMemory,
    SystemFailure,
    TimedOut,
    UmError,
    WouldBlock,
)
from um_cffi.errors import text as _text  # noqa: E402
from um_cffi.events import (  # noqa: E402
    MessageFlags,
    MessageType,
    ReceiverEvent,
    SourceEvent,
    SourceEventType,
    Transport,
)
from um_cffi.hfx import HFX  # noqa: E402
from um_cffi.hot_failover import HFReceiver, HFSource  # noqa: E402
from um_cffi.immediate import ImmediateReceiver  # noqa: E402
from um_cffi.properties import Properties, PropertyType  # noqa: E402
from um_cffi.receiver import Receiver, WildcardReceiver  # noqa: E402
from um_cffi.requests import Request, Response  # noqa: E402
from um_cffi.responder import RequestMessage, Responder  # noqa: E402
from um_cffi.slots import SlotSource  # noqa: E402
from um_cffi.source import Source  # noqa: E402
from um_cffi.xsp import XSP  # noqa: E402

_after_fork(forget_memory)


if _TYPE_CHECKING:
    from um_cffi.stats import TopicSource, object_counts

    RECORD = _record_dtype()
    """Columns of Batch.records: the layout of um_record_t."""
else:
    _LATER = ("RECORD", "TopicSource", "object_counts", "stats")

    def __getattr__(name: str) -> object:
        """What not every program needs is made when it is first used: RECORD, with numpy, and statistics."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "stats":
            return _import_module("um_cffi.stats")
        return globals().setdefault(name, _record_dtype() if name == "RECORD" else getattr(_stats, name))

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


def version() -> str:
    """Version of the library, "major.minor.patch"."""
    return _text(_lib.um_version())


__all__ = [
    "HFX",
    "RECORD",
    "XSP",
    "ArrowReader",
    "Batch",
    "Context",
    "DaemonConnection",
    "EventQueue",
    "HFReceiver",
    "HFSource",
    "ImmediateReceiver",
    "InProgress",
    "InvalidArgument",
    "InvalidOperation",
    "InvalidSelector",
    "Message",
    "MessageFlags",
    "MessageType",
    "NoQueueRegistration",
    "NoStoreRegistration",
    "NotRegistered",
    "NotSupported",
    "OutOfMemory",
    "Properties",
    "PropertyType",
    "Receiver",
    "ReceiverEvent",
    "Request",
    "RequestMessage",
    "Responder",
    "Response",
    "Slot",
    "SlotSource",
    "Source",
    "SourceEvent",
    "SourceEventType",
    "SystemFailure",
    "TimedOut",
    "Timer",
    "TopicSource",
    "Transport",
    "UmError",
    "WildcardReceiver",
    "WouldBlock",
    "config",
    "get_include",
    "get_library",
    "get_pkgconfig_dir",
    "get_program",
    "logs",
    "object_counts",
    "testing",
    "version",
]
