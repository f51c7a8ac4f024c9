"""Hot failover over several contexts, as on separate networks: one receiver of what all of them bring."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from um_cffi._channels import OnMessage
from um_cffi._receiving import OnEvent, OnFull
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context, shown
from um_cffi.binding.attributes import Attributes
from um_cffi.binding.deferred import stats
from um_cffi.binding.lifetime import check_outside, milliseconds
from um_cffi.context import Context
from um_cffi.errors import InvalidArgument, check
from um_cffi.receiver import QUEUE_BYTES, Receiver

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from um_cffi.binding.option_types import ReceiverOptions
    from um_cffi.dispatch import EventQueue
    from um_cffi.stats import HotFailoverCounts, ReceiverCounts, ReceiverStats

_READY_CHECK_MS = 5  # between looks at the receivers of all contexts


class HFX(Receiver):
    """A receiver of hot failover over several `contexts`: what the sources of `topic` send, each number once.

    As HFReceiver, whose sources may be heard by any of the contexts: give one for each network or interface, and
    nothing is lost or comes late when one of them fails. Messages are merged by their numbers; they come in the order
    of these, or with `ordered` False as they arrive. With `duplicates` all copies come, those behind the first one
    marked by MessageFlags.HF_DUPLICATE. A number that no context has brought is told as lost `max_delay` seconds after
    it was missed, looked at every `loss_check_interval` seconds, or with 0 when something else comes.

    Options are those of the scope receiver, of the receivers in all contexts; `hf_duplicate_delivery` and
    `ordered_delivery` are without effect. `counts()` and `stats()` are of all contexts together, copies included;
    `context` is the one of them that was made first. Closing one of the contexts closes it. Everything else is as with
    Receiver: `on_message`, `on_event`, `queue`, `events`, `on_full`, `queue_bytes` (bytes that may wait for Python),
    `options` or keywords, the ways to take messages, threads and errors; there are no `direct` callbacks and there is
    no `replay`.
    InvalidArgument for a context that is given twice.
    """

    def __init__(
        self,
        contexts: Iterable[Context],
        topic: str,
        on_message: OnMessage | None = None,
        on_event: OnEvent | None = None,
        queue: EventQueue | None = None,
        *,
        ordered: bool = True,
        duplicates: bool = False,
        max_delay: float = 10.0,
        loss_check_interval: float = 0.01,
        queue_bytes: int = QUEUE_BYTES,
        events: bool = True,
        on_full: OnFull = "pause",
        options: Mapping[str, object] | None = None,
        **keywords: Unpack[ReceiverOptions],
    ) -> None:
        self._contexts = _checked(contexts)
        self._hfx: Any = None
        self._members: list[Any] = []
        self._hfx_options = {
            "ordered_delivery": "1" if ordered else "-1",
            "duplicate_delivery": "1" if duplicates else "0",
            "delivery_control_max_delay": str(milliseconds(max_delay, "max_delay")),
            "delivery_control_loss_check_interval": str(milliseconds(loss_check_interval, "loss_check_interval")),
        }
        super().__init__(
            self._contexts[0],
            topic,
            on_message,
            on_event,
            queue,
            queue_bytes=queue_bytes,
            events=events,
            on_full=on_full,
            options=options,
            **keywords,
        )

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The contexts it receives in, in the order in which they were made."""
        return self._contexts

    def _create_receiver(self, ctx: Context, callback: Any, collector: Any) -> Any:
        self._hfx = self._create_hfx(callback)
        try:
            for each in self._contexts:
                with each._using():
                    self._add_member(each, collector)
        except BaseException:
            self._delete_receiver()
            for each in self._contexts[1:]:
                each._release(self)
            raise
        return lib.lbm_rcv_from_hfx_rcv(self._members[0])

    def _create_hfx(self, callback: Any) -> Any:
        holder, attributes = ffi.new("lbm_hfx_t **"), ffi.new("lbm_hfx_attr_t **")
        check(lib.lbm_hfx_attr_create(attributes))
        try:
            for name, value in self._hfx_options.items():
                check(lib.lbm_hfx_attr_str_setopt(attributes[0], name.encode(), value.encode()))
            check(lib.lbm_hfx_create(holder, attributes[0], self._topic.encode(), callback, ffi.NULL))
        finally:
            lib.lbm_hfx_attr_delete(attributes[0])
        return holder[0]

    def _add_member(self, ctx: Context, collector: Any) -> None:
        holder = ffi.new("lbm_hfx_rcv_t **")
        with Attributes("receiver", self._chosen) as attributes:
            check(lib.lbm_hfx_rcv_create(holder, self._hfx, ctx._ctx, attributes.pointer, collector))
        self._members.append(holder[0])
        if ctx is not self._contexts[0]:
            ctx._adopt(self)

    def _delete_receiver(self) -> int:
        while self._members:
            if lib.lbm_hfx_rcv_delete(self._members[-1]) != 0:
                return -1
            self._members.pop()
        if self._hfx is not None and lib.lbm_hfx_delete(self._hfx) != 0:
            return -1
        self._hfx = None
        return 0

    def _check_closing(self, patience: float | None) -> None:
        for each in self._contexts:
            check_outside(self._name, each._ctx)

    def _close(self, patience: float | None) -> None:
        super()._close(patience)
        for each in self._contexts[1:]:
            each._release(self)

    # -- of all contexts --

    def _receivers(self) -> list[Any]:
        """The guard is held."""
        return [lib.lbm_rcv_from_hfx_rcv(each) for each in self._members]

    def _ready_sources(self) -> int:
        return sum(check(lib.um_rcv_ready(each)) for each in self._receivers())

    def _wait_ready_sources(self, sources: int, wait_ms: int) -> int:
        if self._ready_sources() >= sources:
            return 0
        # More than there are of one context: the end of the wait says that its time is over.
        return int(lib.um_rcv_wait_ready(self._rcv, 2**31 - 1, min(wait_ms, _READY_CHECK_MS)))

    def _facts(self) -> str:
        return f"{len(self._contexts)} contexts"

    def setopt(self, name: str, value: object) -> None:
        """Set the option `name`, one that may change while receivers exist, to `value` in all contexts.

        InvalidArgument for others.
        """
        first = self._rcv
        with self._using(), contextlib.ExitStack() as again:
            again.callback(setattr, self, "_rcv", first)
            for each in self._receivers():
                self._rcv = each
                super().setopt(name, value)

    def counts(self, source: str | None = None) -> ReceiverCounts:
        """What became of the messages for the receivers of all contexts together, copies included.

        InvalidArgument for a `source`: those of one are counted by its context.
        """
        if source is not None:
            raise InvalidArgument(f"counts() of the {self._name}: source {shown(source)}: must be None")
        with self._using():
            each = [_counts_of(rcv) for rcv in self._receivers()]
        names = [field.name for field in dataclasses.fields(stats.ReceiverCounts)]
        total = stats.ReceiverCounts(**{name: sum(getattr(counts, name) for counts in each) for name in names})
        return self._with_dropped(total, ffi.NULL)

    def merge_counts(self) -> HotFailoverCounts:
        """What has become of the numbers that all contexts brought: delivered, come again, held, given up, refused."""
        with self._using():
            return stats.read_counts(
                stats.HotFailoverCounts, "um_hf_stats_t", lambda out: lib.um_hfx_stats(self._hfx, out)
            )

    def stats(self) -> list[ReceiverStats]:
        """One entry for each transport session that brings messages to this receiver, context after context."""
        with self._using():
            return [entry for rcv in self._receivers() for entry in _sessions_of(rcv)]


def _counts_of(rcv: Any) -> ReceiverCounts:
    return stats.read_counts(stats.ReceiverCounts, "um_rcv_stats_t", lambda out: lib.um_rcv_stats(rcv, ffi.NULL, out))


def _sessions_of(rcv: Any) -> list[ReceiverStats]:
    return stats.read_sessions(
        "lbm_rcv_transport_stats_t",
        stats.receiver_stats,
        lambda count, array: lib.lbm_rcv_retrieve_all_transport_stats(rcv, count, array),
    )


def _checked(contexts: Iterable[Context]) -> tuple[Context, ...]:
    try:
        given = tuple(contexts)
    except TypeError:
        raise InvalidArgument(
            f"HFX(contexts, topic): contexts {shown(contexts)}: must be contexts, in a list"
        ) from None
    if not given:
        raise InvalidArgument("HFX(contexts, topic): contexts: must be one or more")
    for each in given:
        expect_context("HFX(contexts, topic)", each)
    if len(set(map(id, given))) < len(given):
        raise InvalidArgument("HFX(contexts, topic): contexts: each must be given once")
    return tuple(sorted(given, key=lambda each: each._number))  # in which their guards are taken, whoever makes it
