"""XSPs: further threads of a context that receive transport sessions."""

from __future__ import annotations

import threading
from typing import Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context, name_bytes
from um_cffi.binding.attributes import Attributes
from um_cffi.binding.deadline import Deadline
from um_cffi.binding.lifetime import Part
from um_cffi.context import Context
from um_cffi.errors import InvalidArgument, OutOfMemory, check


class XSP(Part):
    """A further thread of the context `ctx` that receives TCP, LBT-RM and LBT-RU sessions beside the context's own.

    Each session that is joined goes to one of the context's XSPs whose pattern `sources` fits its source string
    (`*`, `?` and `[...]` as in file names, for example "LBTRM:*:224.10.10.*"), in turn; where none fits, to the
    context. All topics of a session are received on its thread, and sessions of LBT-RM on one group and port are
    together. Sessions that are joined already stay where they are, so make XSPs before the receivers. Callbacks come
    where they come without XSPs, but those of receivers with direct=True on the XSP's thread, at the same time as
    others.

    `sequential=True` makes no thread: the application calls process_events() again and again. Close it after the
    receivers whose sessions it has: InvalidOperation until then, and it stays open. Closing the context does it in
    this order. InvalidArgument is what every method raises once it is closed; SystemFailure when no request port is
    free. All methods may be called from any thread.
    """

    _closes_last = True

    def __init__(self, ctx: Context, sources: str = "*", *, sequential: bool = False) -> None:
        expect_context("XSP(ctx, sources)", ctx)
        pattern = name_bytes("XSP(ctx, sources)", "sources", sources)
        super().__init__("XSP")
        self._ctx = ctx
        self._sources = sources
        self._sequential = sequential
        self._processing = threading.Lock()
        self._unblocked = False
        holder = ffi.new("lbm_xsp_t **")
        try:
            chosen = {"operational_mode": "sequential" if sequential else "embedded"}
            with ctx._using():
                with Attributes("xsp", chosen) as attributes:
                    check(lib.lbm_xsp_create(holder, ctx._ctx, ffi.NULL, attributes.pointer))
                self._xsp: Any = holder[0]
                if lib.um_py_mapping_add(ctx._mapping, self._xsp, pattern) != 0:
                    check(lib.lbm_xsp_delete(self._xsp))
                    raise OutOfMemory("no memory for an XSP")
                ctx._adopt(self)
        except BaseException:
            self._closed = True
            raise

    @property
    def context(self) -> Context:
        """The context it was made in."""
        return self._ctx

    @property
    def sources(self) -> str:
        """The pattern of the source strings whose sessions it receives."""
        return self._sources

    def process_events(self, timeout: float | None = 0) -> None:
        """With `sequential=True`: receive what comes for `timeout` seconds. From one thread at a time.

        0 is what is there now, None until unblock(). Signals are handled meanwhile. InvalidArgument on an ordinary one;
        InvalidOperation inside a callback with direct=True of the same context.
        """
        if not self._sequential:
            raise InvalidArgument("process_events() needs an XSP with sequential=True")
        self._check_open()
        deadline = Deadline(timeout)
        while True:
            with self._processing:  # and not the guard: other threads' calls may need this one to run the XSP
                if self._closed:
                    return
                check(lib.lbm_xsp_process_events(self._xsp, deadline.slice()))
            if self._unblocked:
                self._unblocked = False
                return
            if deadline.over():
                return

    def unblock(self) -> None:
        """Make the running process_events(), or else the next, return at once. InvalidArgument on an ordinary XSP."""
        if not self._sequential:
            raise InvalidArgument("unblock() needs an XSP with sequential=True")
        with self._using():
            self._unblocked = True
            check(lib.lbm_xsp_unblock(self._xsp))

    def _delete(self) -> None:
        mapping = self._ctx._mapping
        lib.um_py_mapping_remove(mapping, self._xsp)
        try:
            if self._sequential:
                check(lib.lbm_xsp_unblock(self._xsp))
            with self._processing:
                check(lib.lbm_xsp_delete(self._xsp))
        except BaseException:
            lib.um_py_mapping_add(mapping, self._xsp, self._sources.encode())
            raise

    def _close(self, patience: float | None) -> None:
        self._give_up()
        self._ctx._release(self)
