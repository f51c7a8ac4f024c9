"""What a recorder leaves on disk: the manifest, segments after a crash, retention, consumers."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import loopback, until
from recordings import QUICK, Told, check_numbers, contexts, files, lines, payloads, recording, rows

from um_cffi import InvalidArgument, Source
from um_cffi.recording import Recorder, Recording, commit, committed
from um_cffi.recording import _layout as layout
from um_cffi.recording import _manifest as manifest
from um_cffi.recording import _retention as retention
from um_cffi.recording import _segment as segments
from um_cffi.recording._settings import Settings

pytest.importorskip("pyarrow")


def recorded(folder: Path, messages: int = 300, topics: tuple[str, ...] = ("news",), **settings: Any) -> None:
    """A recording of some messages, finished."""
    with contexts() as (sending, receiving):
        sources = [Source(sending, topic, retain=messages + 1) for topic in topics]
        for number in range(messages):
            for source in sources:
                source.send(b"%d" % number)
        sending.flush()
        with Recorder(receiving, folder, ".*", **{**QUICK, **settings}) as recorder:
            until(lambda: recorder.stats().messages == messages * len(topics))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording")
    recorded(folder, 300, ("news",), segment_seconds=60, flush_seconds=0.01)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.copytree(finished, target)
    return target


def reopen(folder: Path, **settings: Any) -> Told:
    """Record nothing, which puts a recording in order."""
    told = Told()
    with recording(folder, "^nothing$", on_state=told, **settings):
        pass
    return told


def unlist(folder: Path) -> Path:
    """The only segment as a crash behind its last write would have left it; its path."""
    kept = [line for line in (folder / "manifest.jsonl").read_text().splitlines() if '"segment"' not in line]
    (folder / "manifest.jsonl").write_text("\n".join(kept[:2]) + "\n")
    (path,) = files(folder, ".arrow")
    return path


# -- layout --


@pytest.mark.parametrize(
    ("name", "folder"),
    [("plain-1.x_Y", "plain-1.x_Y"), ("a/b", "a~2fb"), ("..", "~2e."), ("", "~"), ("ü", "~c3~bc"), ("~", "~7e")],
)
def test_names_are_escaped_one_to_one(name: str, folder: str) -> None:
    assert layout.escaped(name) == folder


def test_long_names_make_short_folders_that_differ() -> None:
    names = {layout.escaped("x" * 240 + str(number)) for number in range(100)}
    assert len(names) == 100 and max(map(len, names)) <= 180
    assert all("/" not in each and not each.startswith(".") for each in names)


@pytest.mark.parametrize(
    ("source", "session"),
    [
        ("TCP:10.0.0.1:14371:ab12[3]", "ab12.3"),
        ("LBTRM:10.0.0.1:14390:cd34:224.1.1.1:14400[5]", "cd34.5"),
        ("LBT-IPC:ef56:20001[7]", "ef56.7"),
        ("odd", ".0"),
    ],
)
def test_sessions_are_named_by_their_id(source: str, session: str) -> None:
    assert layout.session_of(source, 0) == session and layout.session_of(source, 2) == f"{session}.2"


# -- after a crash --


def test_an_open_segment_is_finished_with_all_whole_batches(copy: Path) -> None:
    path = unlist(copy)
    data = path.read_bytes()
    found = segments.examine(data)
    assert found is not None and found.whole
    opened = path.with_suffix(".open")
    path.unlink()
    opened.write_bytes(data[:-200])
    told = reopen(copy)
    assert "messages up to" in told.texts("recovered")[0] and not opened.exists()
    assert payloads(copy) == [b"%d" % number for number in range(300)]
    check_numbers(copy)


def test_every_truncation_of_an_open_segment_is_survived(copy: Path) -> None:
    """Of a torn file the whole record batches are kept, and nothing else; no length is believed."""
    data = unlist(copy).read_bytes()
    kept = set()
    for length in [*range(0, len(data), 1 + len(data) // 400), len(data) - 1]:
        found = segments.examine(data[:length])
        messages = 0 if found is None else found.tally.messages
        kept.add(messages)
        assert found is None or [b"%d" % number for number in range(messages)] == [
            value for batch in found.batches for value in batch["payload"].to_pylist()
        ]
    assert {0, 300} <= kept


def test_flipped_bytes_of_an_open_segment_are_survived(copy: Path) -> None:
    data = bytearray(unlist(copy).read_bytes())
    draw = np.random.default_rng(3)
    for _ in range(300):
        at = int(draw.integers(len(data)))
        before, data[at] = data[at], int(draw.integers(256))
        segments.examine(bytes(data))
        data[at] = before


def test_a_damaged_segment_is_told_with_its_name(copy: Path) -> None:
    """One that the manifest lists, cut off or with other bytes: rows come, or an error, and nothing crashes."""
    (path,) = files(copy, ".arrow")
    recorded, data = Recording(copy), bytearray(path.read_bytes())
    (segment,) = recorded.segments()
    draw, told = np.random.default_rng(5), 0
    for _ in range(300):
        at, length = int(draw.integers(len(data))), len(data)
        before, data[at] = data[at], int(draw.integers(256))
        path.write_bytes(data if draw.integers(4) else data[: int(draw.integers(length))])
        for read in (recorded.read, lambda each: list(recorded.batches(each))):
            try:
                read(segment)
            except InvalidArgument as error:
                assert f"the segment {segment.path} is damaged" in str(error)
                told += 1
        data[at] = before
    assert told > 100


def test_a_file_without_a_whole_batch_is_put_aside(copy: Path) -> None:
    path = unlist(copy)
    path.unlink()
    torn, empty = path.with_suffix(".open"), path.with_name("00000000000000009999-1-7.open")
    torn.write_bytes(b"ARROW1\0\0nonsense")
    empty.write_bytes(b"")
    assert "put aside" in reopen(copy).texts("recovered")[0]
    assert not torn.exists() and not empty.exists()
    assert [each.name for each in files(copy, ".damaged")] == [torn.name + ".damaged"]


def test_a_file_that_cannot_be_read_is_left_alone(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unlist(copy)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        read = Path.read_bytes

        def broken(self: Path) -> bytes:
            if self == path:
                raise OSError(errno.EIO, "Input/output error", str(self))
            return read(self)

        patch.setattr(Path, "read_bytes", broken)
        assert "left alone: Input/output error" in reopen(copy).texts("recovered")[0]
    assert path.read_bytes() == before
    reopen(copy)
    assert len(payloads(copy)) == 300


def test_open_segments_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Times of files tell nothing: they are set backwards here."""
    recorded(tmp_path, 400, segment_seconds=0.01)
    paths = files(tmp_path, ".arrow")
    (tmp_path / "manifest.jsonl").unlink()
    for at, path in enumerate(paths):
        os.utime(path, (1e9 - at, 1e9 - at))
    reopen(tmp_path)
    listed = [line["first"] for line in lines(tmp_path) if line["op"] == "segment"]
    assert listed == sorted(listed) and len(listed) == len(paths)
    assert payloads(tmp_path) == [b"%d" % number for number in range(400)]


def test_a_file_that_holds_what_another_has_is_put_aside(copy: Path) -> None:
    (path,) = files(copy, ".arrow")
    twin = path.with_name("00000000000000000000-9-9.open")
    shutil.copy(path, twin)
    assert "put aside" in reopen(copy).texts("recovered")[0]
    check_numbers(copy)
    assert len(payloads(copy)) == 300


def test_a_segment_that_was_dropped_does_not_come_back(copy: Path) -> None:
    """A crash between the line and the removal."""
    (path,) = files(copy, ".arrow")
    with (copy / "manifest.jsonl").open("a") as file:
        file.write(f'{{"op": "drop", "path": "{path.relative_to(copy)}", "reason": "age"}}\n')
    reopen(copy)
    assert not path.exists() and rows(copy) == []


def test_a_finished_segment_and_its_open_one_are_the_same(copy: Path) -> None:
    """A crash between the two steps of recovery."""
    path = unlist(copy)
    shutil.copy(path, path.with_suffix(".open"))
    reopen(copy)
    assert files(copy, ".open") == [] and len(payloads(copy)) == 300
    check_numbers(copy)


# -- the manifest --


@pytest.fixture
def book(tmp_path: Path) -> Iterator[manifest.Manifest]:
    made = manifest.Manifest(tmp_path, True)
    yield made
    made.close()


def a_segment(number: int, session: str = "s") -> manifest.Segment:
    return manifest.Segment(
        f"topics/t/{session}/{number}.arrow", "t", "x", session, number, number + 1, 1, 1, 0, 9, 1, 1
    )


def test_a_line_that_was_not_finished_is_cut_off(tmp_path: Path, book: manifest.Manifest) -> None:
    book.append([manifest.segment_line(a_segment(1))])
    book.close()
    whole = (tmp_path / "manifest.jsonl").read_bytes()
    for length in range(len(whole)):
        state, end = manifest.parse(whole[:length])
        assert whole[:end].endswith(b"\n") or end == 0
        assert len(state.segments) == 0
    (tmp_path / "manifest.jsonl").write_bytes(whole + b'{"op": "segment", "pa')
    again = manifest.Manifest(tmp_path, True)
    again.append([manifest.segment_line(a_segment(2))])
    again.close()
    assert sorted(each.first for each in Recording(tmp_path).segments()) == [1, 2]


def test_lines_that_the_disk_refused_are_not_there(
    tmp_path: Path, book: manifest.Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when all of a line was written, and the disk failed behind it."""
    before = (tmp_path / "manifest.jsonl").read_bytes()

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(OSError, match="Input/output"):
            book.append([manifest.segment_line(a_segment(1))])
    assert (tmp_path / "manifest.jsonl").read_bytes() == before and book.state.segments == {}
    book.append([manifest.segment_line(a_segment(2))])
    assert [each.first for each in Recording(tmp_path).segments()] == [2]


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b'{"op": "segment"}',
        b'{"op": "segment", "path": "../../etc/passwd", "topic": "t", "source": "s", "session": "i", "first": 0,'
        b' "next": 1, "rows": 1, "messages": 1, "lost": 0, "bytes": 1, "first_ns": 1, "last_ns": 1}',
        b'{"op": "position", "topic": "t", "next": "x"}',
        b'{"op": "position", "topic": "t", "source": "s", "session": "a.1", "next": 4611686018427387904}',
        b'{"op": "position", "topic": "t", "source": "s", "session": "a.1", "next": -1}',
        b'{"op": "position", "topic": "\\ud800", "source": "s", "session": "a.1", "next": 1}',
        b'{"op": "position", "topic": "\\u0000", "source": "s", "session": "a.1", "next": 1}',
        b'{"op": "drop", "path": "../victim"}',
        b'{"op": "drop", "path": "topics/../../victim"}',
        b'{"op": "drop", "path": "topics/\\u0000"}',
        b'{"op": "drop", "path": "lock"}',
        b'{"op": "drop"}',
        b"[" * 100_000,
        b'{"op": "begin", "run": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_is_left_out_and_told(tmp_path: Path, book: manifest.Manifest, line: bytes) -> None:
    book.append([manifest.segment_line(a_segment(1))])
    book.close()
    victim = tmp_path.parent / "victim"
    victim.touch()
    with (tmp_path / "manifest.jsonl").open("ab") as file:
        file.write(line + b"\n")
    assert len(Recording(tmp_path).segments()) == 1
    assert "1 lines of the manifest cannot be understood" in reopen(tmp_path).texts("recovered")[-1]
    assert victim.exists() and (tmp_path / "lock").exists()


def test_a_manifest_is_written_anew_when_most_of_it_is_over(tmp_path: Path, book: manifest.Manifest) -> None:
    """With one segment for each session as well: positions of old sessions are not kept for ever."""
    book.compact_bytes, book._sync = 10_000, False
    for number in range(6000):
        book.append([manifest.segment_line(a_segment(number, f"s{number}"))])
        if number >= 10:
            old = a_segment(number - 10, f"s{number - 10}").path
            book.append([manifest.line_of("drop", path=old, reason="age")])
            book.removed([old])
    assert book.compact()
    size = (tmp_path / "manifest.jsonl").stat().st_size
    assert len(Recording(tmp_path).segments()) == 10 and not book.compact()
    book.append([manifest.segment_line(a_segment(7000))])
    book.close()
    again = manifest.Manifest(tmp_path, True)
    assert len(again.state.segments) == 11 and 4000 < len(again.state.positions) < 4200
    assert again.state.positions["t", "x", "s5999"] == 6000 and size < 600_000
    again.close()


def test_a_recording_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.jsonl").write_text('{"op": "recording", "version": 2}\n')
    with pytest.raises(InvalidArgument, match="layout version 2"):
        Recording(tmp_path)
    with pytest.raises(InvalidArgument, match="is not a recording"):
        Recording(tmp_path / "nowhere")
    with loopback() as ctx, pytest.raises(InvalidArgument, match="layout version 2"):
        Recorder(ctx, tmp_path, ".*")


# -- retention --


def test_old_segments_are_removed(copy: Path) -> None:
    with recording(copy, "^nothing$", retain_seconds=0) as recorder:
        until(lambda: recorder.stats().removed >= 1)
    assert files(copy, ".arrow") == [] and rows(copy) == []
    assert not list((copy / "topics").rglob("TCP*"))


def test_the_oldest_segments_go_when_there_is_too_much(tmp_path: Path) -> None:
    recorded(tmp_path, 3000, segment_seconds=0.01)
    before = Recording(tmp_path).segments()
    limit = sum(each.bytes for each in before) - before[0].bytes // 2
    with recording(tmp_path, "^nothing$", retain_bytes=limit) as recorder:
        until(lambda: recorder.stats().removed >= 1)
    after = Recording(tmp_path).segments()
    assert sum(each.bytes for each in after) <= limit and after == before[len(before) - len(after) :]


def test_the_order_of_removal_does_not_depend_on_the_clock(tmp_path: Path, book: manifest.Manifest) -> None:
    """It went back between the segments; those go that were finished first."""
    for number in range(6):
        line = manifest.segment_line(a_segment(number))
        book.append([{**line, "first_ns": 1000 - number, "last_ns": 1000 - number, "bytes": 10}])
    retention.apply(tmp_path, book, Settings(retain_bytes=25), None)
    assert sorted(each.first for each in book.state.segments.values()) == [4, 5]


def test_a_session_goes_on_with_its_latest_numbers(tmp_path: Path) -> None:
    """Also where the manifest, written anew, tells of an earlier session of the source behind it."""
    with contexts() as (sending, _), Source(sending, "news", retain=1000) as source:
        source.send(b"0", flush=True)
        with recording(tmp_path) as recorder:
            until(lambda: recorder.stats().messages == 1)
        (segment,) = Recording(tmp_path).segments()
        with (tmp_path / "manifest.jsonl").open("a") as file:
            names = {"op": "position", "topic": "news", "source": segment.source}
            for session, following in ((".1", 1), ("", 900), (".x", 5000), (".\u00b2", 5000), ("." + "9" * 5000, 5000)):
                file.write(json.dumps({**names, "session": segment.session + session, "next": following}) + "\n")
        source.send(b"1", flush=True)
        with recording(tmp_path) as recorder:
            until(lambda: recorder.stats().messages == 1)
    assert [(row["session"], row["sequence"]) for row in rows(tmp_path)] == [
        (segment.session, 0),
        (f"{segment.session}.1", 1),
    ]


def test_age_size_and_consumers_together(tmp_path: Path) -> None:
    """What all have read goes; of the rest what is too much, the first one first, whoever has not read it."""
    recorded(tmp_path, 3000, ("a", "b"), segment_seconds=0.01)
    whole = Recording(tmp_path).segments()
    of_a = [each for each in whole if each.topic == "a"]
    middle = of_a[len(of_a) // 2]
    commit(tmp_path, "x", {"a": {middle.source: {middle.session: middle.next}}, "b": {}})
    commit(tmp_path, "y", Recording(tmp_path).offsets())
    read = {each.path for each in of_a if each.next <= middle.next}
    unread = [each for each in whole if each.path not in read]
    limit = sum(each.bytes for each in unread) - 1
    with recording(tmp_path, "^nothing$", consumers=["x", "y"], retain_bytes=limit, retain_seconds=1e6) as recorder:
        until(lambda: recorder.stats().removed > len(read))
    after = Recording(tmp_path).segments()
    reasons = [line["reason"] for line in lines(tmp_path) if line["op"] == "drop"]
    assert sorted(reasons) == ["consumed"] * len(read) + ["size"] * (len(unread) - len(after))
    assert sum(each.bytes for each in after) <= limit and set(after) < set(unread)
    with recording(tmp_path, "^nothing$", consumers=["x", "y"], retain_seconds=0) as recorder:
        until(lambda: Recording(tmp_path).segments() == [])
        until(lambda: recorder.stats().removed == len(after))  # counted when the manifest says so already


def test_recording_goes_on_behind_what_was_removed(tmp_path: Path) -> None:
    """The manifest remembers where a session was, so that nothing is recorded again."""
    with contexts() as (sending, _):
        source = Source(sending, "news", retain=1000)
        for number in range(100):
            source.send(b"%d" % number)
        source.flush()
        with recording(tmp_path, retain_seconds=0) as recorder:
            until(lambda: recorder.stats().messages == 100)
            until(lambda: sum(line["messages"] for line in lines(tmp_path) if line["op"] == "segment") == 100)
            until(lambda: Recording(tmp_path).segments() == [])
        source.send(b"100", flush=True)
        with recording(tmp_path) as recorder:
            until(lambda: recorder.stats().messages == 1)
    assert payloads(tmp_path) == [b"100"]


def test_k5_what_every_consumer_has_read_is_removed(tmp_path: Path) -> None:
    recorded(tmp_path, 1000, ("a", "b"))
    everything = Recording(tmp_path).offsets()
    commit(tmp_path, "fast", everything)
    with recording(tmp_path, "^nothing$", consumers=["fast", "slow"]) as recorder:
        until(lambda: (tmp_path / "consumers" / "fast.json").exists())
        assert recorder.stats().removed == 0
        commit(tmp_path, "slow", {"a": everything["a"]})
        until(lambda: {each.topic for each in Recording(tmp_path).segments()} == {"b"})
        assert len(payloads(tmp_path, "b")) == 1000
        commit(tmp_path, "slow", everything)
        until(lambda: Recording(tmp_path).segments() == [])
        until(lambda: recorder.stats().removed >= 2)  # counted when the manifest says so already
    assert committed(tmp_path, "slow") == everything and files(tmp_path, ".arrow") == []


def test_a_damaged_consumer_has_read_nothing_and_is_told_once(tmp_path: Path) -> None:
    recorded(tmp_path, 10)
    commit(tmp_path, "good", Recording(tmp_path).offsets())
    (tmp_path / "consumers" / "bad.json").write_text('{"offsets": {"news": 7}}')
    told = Told()
    with recording(tmp_path, "^nothing$", consumers=["good", "bad"], on_state=told, retain_seconds=1e9) as recorder:
        until(lambda: told.of("consumer"))
        commit(tmp_path, "bad", Recording(tmp_path).offsets())
        until(lambda: recorder.stats().removed >= 1)
    assert len([text for text in told.texts("consumer") if "read nothing" in text]) == 1
    assert "can be read again" in told.texts("consumer")[-1]


@pytest.mark.parametrize(
    ("consumer", "offsets"),
    [
        ("../x", {}),
        ("", {}),
        (".x", {}),
        ("x" * 101, {}),
        ("x", []),
        ("x", {"t": 1}),
        ("x", {"t": {"s": 1}}),
        ("x", {"t": {"s": {"i": -1}}}),
        ("x", {"t": {"s": {"i": True}}}),
    ],
)
def test_what_cannot_be_committed_is_refused(finished: Path, consumer: str, offsets: Any) -> None:
    with pytest.raises(InvalidArgument):
        commit(finished, consumer, offsets)


def test_nothing_is_committed_outside_of_a_recording(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is not a recording"):
        commit(tmp_path, "x", {})
    assert list(tmp_path.iterdir()) == []
