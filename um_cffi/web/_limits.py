"""How many requests an address may make, and what was refused: counters that the page shows of itself.

Used on the thread of the server. Time is given, so tests need no clock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass

ADDRESSES = 1024  # remembered; the one that asked longest ago is forgotten first


@dataclass
class ServerCounts:
    """What came to the server of the page since it began."""

    connections: int = 0  #: taken
    connections_refused: int = 0  #: too many at a time, in all or of one address
    connections_quiet: int = 0  #: closed: no whole request came
    connections_stalled: int = 0  #: closed: what was sent was not taken
    requests: int = 0  #: with headers that could be read
    requests_malformed: int = 0  #: that were no HTTP
    requests_limited: int = 0  #: more than the address may make
    refused_method: int = 0  #: other than GET and HEAD
    refused_host: int = 0  #: with a Host header that is not ours
    refused_token: int = 0  #: without the token
    not_found: int = 0  #: of paths and objects that are not there
    streams: int = 0  #: begun
    streams_refused: int = 0  #: too many at a time
    busy: int = 0  #: answered with 503, as too many questions waited

    def told(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


class Buckets:
    """For each address, how many requests it may make now. One bucket for each, and few addresses."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by address: requests left, at which time

    def take(self, address: str, now: float) -> bool:
        """Whether the address may make a request now, which then counts."""
        left, at = self._left.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        allowed = left >= 1
        self._left[address] = (left - 1 if allowed else left, now)
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        return allowed

    def __len__(self) -> int:
        return len(self._left)
