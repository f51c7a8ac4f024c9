"""How a recording is made: what may be chosen, and within which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from um_cffi.errors import InvalidArgument
from um_cffi.recording import _layout

SYNCS = ("never", "segment", "batch")


@dataclass(frozen=True)
class Settings:
    """What a Recorder was told."""

    patterns: Sequence[str] = ()
    compression: str = "lz4"
    segment_bytes: int = 64 << 20
    segment_seconds: float = 10.0
    flush_seconds: float = 0.5
    sync: str = "segment"
    queue_bytes: int = 256 << 20
    open_segments: int = 256
    retain_bytes: int | None = None
    retain_seconds: float | None = None
    consumers: Sequence[str] | None = None
    source_timestamp: str | None = None

    def __post_init__(self) -> None:
        _one_of("compression", self.compression, _layout.COMPRESSIONS)
        _one_of("sync", self.sync, SYNCS)
        _between("segment_bytes", self.segment_bytes, 1 << 10, 1 << 30)
        _between("segment_seconds", self.segment_seconds, 0.01, 1e9)
        _between("flush_seconds", self.flush_seconds, 0.001, 1e9)
        _between("queue_bytes", self.queue_bytes, 1 << 10, 1 << 40)
        _between("open_segments", self.open_segments, 1, 1 << 16)
        if self.retain_bytes is not None:
            _between("retain_bytes", self.retain_bytes, 0, 1 << 62)
        if self.retain_seconds is not None:
            _between("retain_seconds", self.retain_seconds, 0, 1e12)


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"Recorder: {name} {value!r}: must be {' or '.join(map(repr, allowed))}")


def _between(name: str, value: float, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InvalidArgument(f"Recorder: {name} {value!r}: must be a number from {low:,} to {high:,}")
