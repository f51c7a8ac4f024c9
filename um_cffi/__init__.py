"""Publish and subscribe with libum.

with Context() as ctx, Source(ctx, "Greeting") as source:
    source.wait_receivers()
    source.send(b"Hello!", flush=True)
"""

from __future__ import annotations

import os as _os
from pathlib import Path as _Path

from um_cffi._guard import check_interpreter as _check_interpreter

_check_interpreter()

_root = _Path(__file__).resolve().parent.parent
if (_root / "CMakeLists.txt").exists():  # a source tree: the compiled module lies in the build directory, see _build.py
    __path__.append(str(_Path(_os.environ.get("UM_BUILD_DIR", _root / "build")).resolve() / "python" / "um_cffi"))

from um_cffi import config, logs, testing  # noqa: E402
from um_cffi._base import after_fork as _after_fork  # noqa: E402
from um_cffi._native import lib as _lib  # noqa: E402
from um_cffi._paths import get_include, get_library, get_pkgconfig_dir, get_program  # noqa: E402
from um_cffi.batch import RECORD, Batch, Message, Slot, forget_memory  # noqa: E402
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
from um_cffi.receiver import Receiver, WildcardReceiver  # noqa: E402
from um_cffi.source import Source  # noqa: E402
from um_cffi.stats import object_counts  # noqa: E402

_after_fork(forget_memory)


def version() -> str:
    """Version of the library, "major.minor.patch"."""
    return _text(_lib.um_version())


__all__ = [
    "RECORD",
    "Batch",
    "Context",
    "DaemonConnection",
    "EventQueue",
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
    "Receiver",
    "ReceiverEvent",
    "Slot",
    "Source",
    "SourceEvent",
    "SourceEventType",
    "SystemFailure",
    "TimedOut",
    "Timer",
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
