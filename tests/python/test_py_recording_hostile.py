"""Recorders among names and numbers of strangers: nothing leaves the folder, and nothing grows without bound."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest
from pairs import SOAK, loopback, until
from recordings import QUICK, Told, all_are_accounted_for, check_numbers, contexts, files, payloads, recording, rows

from um_cffi import InvalidArgument, Source
from um_cffi.binding._native import ffi, lib
from um_cffi.recording import Recorder, Recording
from um_cffi.recording._manifest import Manifest
from um_cffi.recording._rows import Arrived, Part
from um_cffi.recording._settings import Settings
from um_cffi.recording._writer import Writer

pa = pytest.importorskip("pyarrow")

NAMES = [
    "../x",
    "..",
    ".",
    "/etc/passwd",
    "a//b/",
    "~",
    "-rf *",
    "ü\u202e/\n",
    "x" * 200,
    "x" * 199 + "y",
    "𝄞" * 50,
    "a\\b",
]


def test_names_that_are_hostile_to_paths_are_topics_like_others(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "r"
    with contexts() as (sending, receiving), Recorder(receiving, folder, ".*", **QUICK) as recorder:
        sources = [Source(sending, name, retain=10) for name in NAMES]
        for name, source in zip(NAMES, sources):
            source.send(name.encode(), flush=True)
        until(lambda: recorder.stats().messages == len(NAMES))
    assert {segment.topic for segment in Recording(folder).segments()} == set(NAMES)
    for name in NAMES:
        assert payloads(folder, name) == [name.encode()]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["r"] and len(list(tmp_path.iterdir())) == 1
    assert {path.parent.parent.parent for path in files(folder, ".arrow")} == {folder / "topics"}
    check_numbers(folder)


def test_many_topics_need_few_descriptors_and_bounded_memory(tmp_path: Path) -> None:
    """Each of them gets a message, twice."""
    count, open_segments = (10_000, 500) if SOAK else (1_000, 50)
    positions = ffi.gc(lib.um_py_positions_create(), lib.um_py_positions_delete)
    book = Manifest(tmp_path, False)
    told = Told()
    settings = Settings(sync="never", segment_seconds=1e6, flush_seconds=0.001, open_segments=open_segments)
    writer = Writer(tmp_path, settings, book, positions, told)
    writer.begin()
    before = len(os.listdir("/proc/self/fd"))
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    time_ns = np.array([1], np.int64)
    for turn in range(2):
        for number in range(count):
            part = Part(np.array([turn], np.uint32), None, None, np.zeros(1, np.int32), time_ns, pa.array([b"x"]))
            writer.take(Arrived(f"t{number}", f"TCP:1.2.3.4:5:ab[{number}]", part, turn == 0, False), 0.0)
            if number % 200 == 0:
                writer.due(1e9 - 1)
                writer.store()
                assert len(writer._open) <= open_segments and len(os.listdir("/proc/self/fd")) == before
    writer.due(1e9 - 1, True)
    writer.store()
    writer.end()
    book.close()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size) << 10
    assert grown < 400 << 20, f"{grown:,} bytes"
    recorded = Recording(tmp_path)
    assert sum(each.messages for each in recorded.segments()) == 2 * count
    assert len({each.topic for each in recorded.segments()}) == count and files(tmp_path, ".open") == []


def test_a_disk_without_inodes_is_like_a_full_one(tmp_path: Path) -> None:
    told = Told()
    folder = tmp_path / "few"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "nr_inodes=20", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no file system of its own can be mounted here: {done.stderr.strip()}")
    try:
        with contexts() as (sending, receiving):
            sources = [Source(sending, f"t{number}", retain=10) for number in range(20)]
            with Recorder(receiving, folder / "r", ".*", on_state=told, **QUICK) as recorder:
                for source in sources:
                    source.send(b"x", flush=True)
                until(lambda: told.of("disk"))
                assert "No space left" in told.texts("disk")[0]
                subprocess.run(["mount", "-o", "remount,nr_inodes=1000", str(folder)], check=True)
                until(lambda: recorder.stats().messages == 20 and recorder.stats().state == "recording")
        assert len(rows(folder / "r")) == 20 and recorder.stats().dropped == 0
        for number in range(20):
            assert payloads(folder / "r", f"t{number}") == [b"x"]
        check_numbers(folder / "r")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# -- where it lies --


def test_a_recording_is_read_by_the_url_of_a_file_system(tmp_path: Path) -> None:
    from pyarrow import fs

    with loopback() as sending, recording(tmp_path / "r") as recorder, Source(sending, "news", retain=100) as source:
        for number in range(50):
            source.send(b"%d" % number, flush=True)
        until(lambda: recorder.stats().messages == 50)
    all_are_accounted_for(tmp_path / "r", 50)
    here = Recording(tmp_path / "r")
    by_url = Recording(f"file://{tmp_path / 'r'}/")
    below = Recording("r", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    for other in (by_url, below):
        assert other.segments() == here.segments() and other.offsets() == here.offsets()
        assert other.table("news").equals(here.table("news"))
        assert sum(len(batch) for each in other.segments() for batch in other.batches(each)) == 50
    gone = here.segments()[0]
    (tmp_path / "r" / gone.path).unlink()
    for each in (here, by_url, below):
        with pytest.raises(FileNotFoundError):
            each.read(gone)


@pytest.mark.parametrize("url", ["file:///nowhere/at/all", "nothing://x/y", "file://", "mock:///x"])
def test_a_url_of_no_recording_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a recording"):
        Recording(url)
