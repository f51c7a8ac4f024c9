"""Exceptions of the binding."""

from __future__ import annotations

from um_cffi._native import ffi, lib


class UMError(Exception):
    """A call of the library failed. `errnum` is its lbm_errnum(), the text its lbm_errmsg()."""

    def __init__(self, errnum: int, message: str) -> None:
        super().__init__(message)
        self.errnum = errnum


class UMWouldBlock(UMError):
    """A non-blocking send that would have to wait; the source's WAKEUP event tells when to try again."""


class UMTimeout(UMError):
    """A wait ended without what was waited for."""


def text(pointer: object) -> str:
    """A C string of the library as str; bytes that are not UTF-8 survive as surrogates."""
    raw = ffi.string(pointer)
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def check(result: int) -> int:
    """Raise the calling thread's error when `result` is LBM_FAILURE."""
    if result != lib.LBM_FAILURE:
        return result
    errnum: int = lib.lbm_errnum()
    kind = {lib.LBM_EWOULDBLOCK: UMWouldBlock, lib.LBM_ETIMEDOUT: UMTimeout}.get(errnum, UMError)
    raise kind(errnum, text(lib.lbm_errmsg()))
