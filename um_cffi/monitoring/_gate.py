"""How many records are let in: so many a second from each host, and so many in all; the rest is counted.

Time is given to it. Used by a Monitor, on whatever thread that is read on.
"""

from __future__ import annotations

from dataclasses import dataclass

ORIGINS = 1024  # hosts with a limit of their own; further ones share one


@dataclass(frozen=True)
class Rates:
    """Records a second that a Monitor takes; bursts may be of two seconds' worth."""

    each: int = 20_000  #: from one host
    total: int = 40_000  #: from all together


class _Bucket:
    __slots__ = ("at", "left")

    def __init__(self, left: float, at: float) -> None:
        self.left, self.at = left, at

    def take(self, wanted: int, rate: int, now: float) -> int:
        self.left = min(2.0 * rate, self.left + rate * max(0.0, now - self.at))
        self.at = now
        taken = min(wanted, int(self.left))
        self.left -= taken
        return taken


class Gate:
    """Token buckets, one for each host and one for all."""

    def __init__(self, rates: Rates, now: float) -> None:
        self._rates = rates
        self._total = _Bucket(2.0 * rates.total, now)
        self._hosts: dict[str, _Bucket] = {}
        self.refused = 0  #: records, so far

    def take(self, host: str, wanted: int, now: float) -> int:
        """How many of `wanted` records from a host may be taken."""
        bucket = self._hosts.get(host)
        if bucket is None:
            if len(self._hosts) >= ORIGINS:
                self._forget(now)
            if len(self._hosts) >= ORIGINS:
                host = ""
            bucket = self._hosts.get(host) or self._hosts.setdefault(host, _Bucket(2.0 * self._rates.each, now))
        mine = bucket.take(wanted, self._rates.each, now)
        taken = self._total.take(mine, self._rates.total, now)
        bucket.left += mine - taken
        self.refused += wanted - taken
        return taken

    def _forget(self, now: float) -> None:
        """Drop the buckets that are full again: they say nothing."""
        for host in [host for host, bucket in self._hosts.items() if now - bucket.at >= 2.0]:
            del self._hosts[host]
