"""publish(): the records of a context, sent by the library itself at an interval or on demand.

The library samples on a thread of its own and sends by a context of its own; nothing here runs meanwhile. For programs
that are not to be changed there are the options `monitor_*` and the variables LBM_MONITOR_*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import expect_context
from um_cffi.binding.lifetime import Part
from um_cffi.context import Context
from um_cffi.errors import InvalidArgument, OutOfMemory, UmError, text
from um_cffi.stats import read_counts

_FORMATS = {"csv": lib.lbmmon_format_csv_module, "pb": lib.lbmmon_format_pb_module}
_TRANSPORTS = {"lbm": lib.lbmmon_transport_lbm_module, "udp": lib.lbmmon_transport_udp_module}
_EINVAL, _ENOMEM = 4097, 4098  # of lbmmon.h


def _check(result: int) -> None:
    if result != 0:
        number = int(lib.lbmmon_errnum())
        kind: type[UmError] = {_EINVAL: InvalidArgument, _ENOMEM: OutOfMemory}.get(number, UmError)
        raise kind(text(lib.lbmmon_errmsg()), number)


@dataclass(frozen=True)
class PublisherCounts:
    """What a Publisher has sent (um_mon_src_stats_t)."""

    packets: int  #: packets given to the transport
    not_read: int  #: samples left out as the numbers of the object could not be read
    not_written: int  #: records that the format refused
    not_sent: int  #: packets dropped as the transport did not take them in time, or at all
    filtered: int  #: records that a filter of the format keeps back


class Publisher(Part):
    """Sends the records of a context; made by publish(). Closing the context closes it first.

    All methods may be called from any thread. InvalidArgument is what they raise once it is closed.
    """

    def __init__(self, ctx: Context, control: Any) -> None:
        super().__init__("publisher of monitoring records")
        self._ctx = ctx
        self._control = control

    @property
    def context(self) -> Context:
        """The context whose records it sends."""
        return self._ctx

    def sample(self) -> None:
        """Send the records as they are now. UmError if that cannot be begun."""
        with self._using():
            _check(lib.lbmmon_sctl_sample(self._control))

    def counts(self) -> PublisherCounts:
        """What was sent so far."""
        with self._using():
            return read_counts(
                PublisherCounts, "um_mon_src_stats_t", lambda out: lib.um_mon_src_stats(self._control, out)
            )

    def _delete(self) -> None:
        _check(lib.lbmmon_sctl_destroy(self._control))

    def _close(self, patience: float | None) -> None:
        self._give_up()
        self._ctx._release(self)


def publish(
    ctx: Context,
    interval: int = 1,
    *,
    application: str = "",
    format: Literal["csv", "pb"] = "csv",
    transport: Literal["lbm", "udp"] = "lbm",
    format_options: str = "",
    transport_options: str = "",
) -> Publisher:
    """Send the records of `ctx`, and of the transport sessions of its sources and receivers, each `interval` seconds.

    Whole seconds; with 0 only when sample() is called. `application` is the name that the records bear. The options are
    those of the modules, NAME=VALUE;NAME=VALUE: for "lbm" `config=FILE`, `topic=NAME`, options of its context such as
    `context|default_interface=10.0.0.0/8`, for "udp" `address=`, `port=`, `mcgroup=`, `interface=` and `ttl=`. Which
    topics a receiver is interested in is sent where it has the option `monitor_interval`. InvalidArgument for a format,
    transport or option that cannot be; UmError where sending cannot be begun.
    """
    expect_context("publish(ctx)", ctx)
    if isinstance(interval, bool) or not isinstance(interval, int) or not 0 <= interval < 2**31:
        raise InvalidArgument(f"publish(interval={interval!r}): must be a whole number of seconds, 0 or more")
    if format not in _FORMATS or transport not in _TRANSPORTS:
        raise InvalidArgument(f"publish(format={format!r}, transport={transport!r}): must be csv or pb, and lbm or udp")
    words = [ffi.new("char[]", each.encode()) for each in (format_options, transport_options)]
    holder = ffi.new("lbmmon_sctl_t **")
    with ctx._using():
        _check(lib.lbmmon_sctl_create(holder, _FORMATS[format](), words[0], _TRANSPORTS[transport](), words[1]))
        try:
            _check(lib.lbmmon_context_monitor(holder[0], ctx._ctx, application.encode(), interval))
        except BaseException:
            lib.lbmmon_sctl_destroy(holder[0])
            raise
        made = Publisher(ctx, holder[0])
        ctx._adopt(made)
    return made
