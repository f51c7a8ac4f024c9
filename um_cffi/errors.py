"""Exceptions of the binding: one class for each LBM_E* number, all of them UmError.

Every exception carries `errnum`, the number that lbm_errnum() gave, and the library's text. Where Python has an
exception of the same meaning, the class is one of those too, so that `except TimeoutError` works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from um_cffi.binding._native import ffi, lib

if TYPE_CHECKING:
    from typing_extensions import Never

__all__ = [
    "DaemonConnection",
    "InProgress",
    "InvalidArgument",
    "InvalidOperation",
    "InvalidSelector",
    "NoQueueRegistration",
    "NoStoreRegistration",
    "NotRegistered",
    "NotSupported",
    "OutOfMemory",
    "SystemFailure",
    "TimedOut",
    "UmError",
    "WouldBlock",
]


class UmError(Exception):
    """A call of the library failed. Base of all exceptions of this package."""

    default_errnum = 0

    def __init__(self, message: str, errnum: int | None = None) -> None:
        super().__init__(message)
        self.errnum: int = self.default_errnum if errnum is None else errnum
        """The LBM_E* number of the failure."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.errnum)


class InvalidArgument(UmError, ValueError):
    """LBM_EINVAL: a bad argument, option or value; or an object that is closed or was inherited over fork()."""

    default_errnum = lib.LBM_EINVAL


class WouldBlock(UmError, BlockingIOError):
    """LBM_EWOULDBLOCK: a non-blocking send that would have to wait. The source's WAKEUP event tells when to retry."""

    default_errnum = lib.LBM_EWOULDBLOCK


class OutOfMemory(UmError, MemoryError):
    """LBM_ENOMEM: no memory."""

    default_errnum = lib.LBM_ENOMEM


class InvalidOperation(UmError, RuntimeError):
    """LBM_EOP: not possible in the present state of the object, or on this thread."""

    default_errnum = lib.LBM_EOP


class SystemFailure(UmError, OSError):
    """LBM_EOS: a system call failed; the text has its reason."""

    default_errnum = lib.LBM_EOS


class TimedOut(UmError, TimeoutError):
    """LBM_ETIMEDOUT: the time given for waiting is over."""

    default_errnum = lib.LBM_ETIMEDOUT


class DaemonConnection(UmError, ConnectionError):
    """LBM_EDAEMONCONN: daemon mode, which is obsolete."""

    default_errnum = lib.LBM_EDAEMONCONN


class NotRegistered(UmError):
    """LBM_EUMENOREG: a persistent source that is not registered with its stores yet."""

    default_errnum = lib.LBM_EUMENOREG


class NotSupported(UmError, NotImplementedError):
    """LBM_EOPNOTSUPP: not implemented in this version, or not for this kind of object."""

    default_errnum = lib.LBM_EOPNOTSUPP


class InProgress(UmError):
    """LBM_EINPROGRESS: the same operation is already running."""

    default_errnum = lib.LBM_EINPROGRESS


class NoQueueRegistration(UmError):
    """LBM_ENO_QUEUE_REG: no registration with the queue."""

    default_errnum = lib.LBM_ENO_QUEUE_REG


class NoStoreRegistration(UmError):
    """LBM_ENO_STORE_REG: no registration with a store."""

    default_errnum = lib.LBM_ENO_STORE_REG


class InvalidSelector(UmError, ValueError):
    """LBM_EMSG_SELECTOR: the text of a message selector cannot be parsed."""

    default_errnum = lib.LBM_EMSG_SELECTOR


BY_NUMBER: dict[int, type[UmError]] = {
    kind.default_errnum: kind
    for kind in (
        InvalidArgument,
        WouldBlock,
        OutOfMemory,
        InvalidOperation,
        SystemFailure,
        TimedOut,
        DaemonConnection,
        NotRegistered,
        NotSupported,
        InProgress,
        NoQueueRegistration,
        NoStoreRegistration,
        InvalidSelector,
    )
}


def text(pointer: object) -> str:
    """A C string of the library as str; bytes that are not UTF-8 survive as surrogates."""
    raw = ffi.string(pointer)
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def raise_last() -> Never:
    """Raise the calling thread's last failure."""
    errnum: int = lib.lbm_errnum()
    raise BY_NUMBER.get(errnum, UmError)(text(lib.lbm_errmsg()), errnum)


def check(result: int) -> int:
    """Raise the calling thread's error when `result` is LBM_FAILURE; otherwise return it."""
    if result == lib.LBM_FAILURE:
        raise_last()
    return result
