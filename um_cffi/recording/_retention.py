"""What a recording need not keep: segments that are too old, more than it may hold, or read by every named consumer.

Called by the thread that writes the recording.
"""

from __future__ import annotations

import time
from pathlib import Path

from um_cffi.recording._consumers import Consumers
from um_cffi.recording._manifest import Manifest, Segment, line_of
from um_cffi.recording._settings import Settings


def apply(folder: Path, manifest: Manifest, settings: Settings, consumers: Consumers | None) -> list[Segment]:
    """Drop what is over; the segments. The manifest says so before a file goes. OSError: nothing has been dropped."""
    reasons: dict[str, str] = {}
    segments = manifest.state.segments
    if settings.retain_seconds is not None:
        oldest_ns = time.time_ns() - int(settings.retain_seconds * 1e9)
        reasons.update((path, "age") for path, each in segments.items() if each.last_ns < oldest_ns)
    if consumers is not None:
        consumers.read()
        for path, each in segments.items():
            if path not in reasons and consumers.have_read(each):
                reasons[path] = "consumed"
    if settings.retain_bytes is not None:
        left = [each for path, each in segments.items() if path not in reasons]
        size = sum(each.bytes for each in left)
        for each in left:  # in the order of the manifest: the clock may have gone back
            if size <= settings.retain_bytes:
                break
            reasons[each.path] = "size"
            size -= each.bytes
    gone = [segments[path] for path in reasons]
    if gone:
        manifest.append([line_of("drop", path=path, reason=reason) for path, reason in reasons.items()])
    return gone
