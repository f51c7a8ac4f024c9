"""Recordings: what is published on topics, in files of Arrow data that Spark, pandas and others read.

Recorder writes one, Recording reads one, replay() publishes one again, commit() tells the recorder what a reader does
not need any more. docs/python/recording.md describes the files. Needs pyarrow: pip install 'um-cffi[record]'.
"""

from __future__ import annotations

from um_cffi.recording._manifest import Segment
from um_cffi.recording._parquet import to_parquet
from um_cffi.recording._recorder import Recorder, RecorderStats
from um_cffi.recording._recording import Recording, commit, committed
from um_cffi.recording._replay import Replayed, replay

__all__ = [
    "Recorder",
    "RecorderStats",
    "Recording",
    "Replayed",
    "Segment",
    "commit",
    "committed",
    "replay",
    "to_parquet",
]
