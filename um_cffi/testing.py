"""Trouble on purpose, for tests of applications. Callable on any thread; meant for the whole process."""

from __future__ import annotations

from um_cffi.binding._native import lib
from um_cffi.binding.arguments import whole
from um_cffi.errors import InvalidArgument

__all__ = ["set_loss_rate"]

_SETTERS = {
    "lbtrm": lib.lbm_set_lbtrm_loss_rate,
    "lbtru": lib.lbm_set_lbtru_loss_rate,
    "lbtrm_source": lib.lbm_set_lbtrm_src_loss_rate,
    "lbtru_source": lib.lbm_set_lbtru_src_loss_rate,
}


def set_loss_rate(
    lbtrm: int | None = None,
    lbtru: int | None = None,
    lbtrm_source: int | None = None,
    lbtru_source: int | None = None,
) -> None:
    """Lose so many percent of the datagrams of a transport, at random, from now on; 0 ends it, None changes nothing.

    `lbtrm` and `lbtru` are lost by the receivers of this process, `lbtrm_source` and `lbtru_source` by its sources.
    They are counted (udp_injected of Context.counts()), and repaired as any loss is. InvalidArgument outside of 0..100.
    """
    rates = {"lbtrm": lbtrm, "lbtru": lbtru, "lbtrm_source": lbtrm_source, "lbtru_source": lbtru_source}
    for name, rate in rates.items():
        if rate is not None and not 0 <= whole(f"loss rate of {name}", rate) <= 100:
            raise InvalidArgument(f"loss rate of {name} {rate}: must be 0..100 percent")
    for name, rate in rates.items():
        if rate is not None:
            _SETTERS[name](rate)
