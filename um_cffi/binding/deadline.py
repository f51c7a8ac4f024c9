"""When a wait is over, in slices after which the waiting thread looks at signals."""

from __future__ import annotations

import time

from um_cffi.binding.lifetime import SLICE_MS, milliseconds


class Deadline:
    """When a wait is over: None as the timeout is never."""

    __slots__ = ("_end",)

    def __init__(self, timeout: float | None) -> None:
        wait = milliseconds(timeout)
        self._end = None if timeout is None else time.monotonic() + wait / 1000

    def slice(self) -> int:
        """How many milliseconds to wait now before the next look at signals."""
        if self._end is None:
            return SLICE_MS
        return min(SLICE_MS, max(0, round((self._end - time.monotonic()) * 1000)))

    def seconds(self) -> float | None:
        """What is left."""
        return None if self._end is None else self._end - time.monotonic()

    def over(self) -> bool:
        """Whether the time has passed."""
        return self._end is not None and time.monotonic() >= self._end
