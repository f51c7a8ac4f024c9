"""`um record` and `um replay`. Each runs in a host of its own."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from hosts import Host, Process
from interpreter import ENV, needs_plain_library, python
from pairs import SOAK, until

SMALL = [f"resolver_{each}_receiver_socket_buffer=131072" for each in ("multicast", "unicast")]
KEPT = ("-o", "source.late_join=1", "-o", "source.retransmit_retention_size_threshold=100000000")

Row = dict[str, Any]


def um(host: Host, command: str, *arguments: object) -> Process:
    option = "-O" if command == "record" else "-o"
    library = ("-i", "127.0.0.1", option, SMALL[0], option, SMALL[1])
    words = python("-m", "um_cffi", command, *(str(each) for each in arguments), *library)
    return host.start_command(*words, env=ENV)


def rows(folder: Path) -> list[Row]:
    from um_cffi.recording import Recording

    found: list[Row] = Recording(folder).table().to_pylist()
    return found


def recorded(
    host: Host, folder: Path, *messages: str, number: int = signal.SIGTERM, more: tuple[object, ...] = ()
) -> Process:
    """Record some messages on two topics, and end it with a signal as soon as they are there."""
    recorder = um(host, "record", "^news", "-o", folder, "--progress", 0.05, "--flush", 0.01, *more)
    recorder.expect(f"^recording \\^news into {folder}$")
    for topic in ("news/a", "news/b"):
        um(host, "pub", topic, *messages, "-t", 120, *KEPT).finish()
    recorder.expect(rf"^{2 * len(messages)} messages")
    recorder.signal(number)
    return recorder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_everything_is_visible_after_a_signal(host: Host, tmp_path: Path, number: int) -> None:
    output = recorded(host, tmp_path / "r", "one", "two", "three", number=number).finish()
    assert "recorded 6 messages" in output and "2 segments" in output
    found = rows(tmp_path / "r")
    assert [(row["topic"], row["payload"]) for row in found] == [
        (topic, text) for topic in ("news/a", "news/b") for text in (b"one", b"two", b"three")
    ]
    ops = [json.loads(line)["op"] for line in (tmp_path / "r" / "manifest.jsonl").read_text().splitlines()]
    assert ops == ["recording", "begin", "segment", "segment", "end"]


def test_a_recording_is_published_again(host: Host, tmp_path: Path) -> None:
    recorded(host, tmp_path / "r", "one", "two", "three").finish()
    receiver = um(host, "sub", "--json", "-p", "^news", "-n", 6)
    output = um(host, "replay", tmp_path / "r", "-s", 0, "-t", 120, *KEPT).finish()
    assert "sent 6 messages of 2 topics" in output
    got = [json.loads(line) for line in receiver.finish().splitlines()]
    for topic in ("news/a", "news/b"):
        assert [each["data"] for each in got if each["topic"] == topic] == ["one", "two", "three"]


def test_what_is_recorded_becomes_parquet_as_well(host: Host, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    extra = ("--parquet", tmp_path / "p", "--segment-seconds", 0.02)
    output = recorded(host, tmp_path / "r", "one", "two", "three", more=extra).finish()
    made = sorted((tmp_path / "p").rglob("*.parquet"))
    assert f"wrote {len(made)} files of Parquet" in output
    found = [row for path in made for row in parquet.ParquetFile(path).read().to_pylist()]
    assert sorted(map(str, found)) == sorted(map(str, rows(tmp_path / "r"))) and len(found) == 6


def wait_for_segments(folder: Path, count: int) -> None:
    until(lambda: len(list(folder.rglob("*.arrow"))) >= count)


def test_everything_is_visible_after_a_signal_in_the_middle_of_a_rotation(host: Host, tmp_path: Path) -> None:
    """Segments of a hundredth of a second: at any time one is being finished."""
    for turn in range(20 if SOAK else 3):
        folder = tmp_path / str(turn)
        recorder = um(host, "record", "^news", "-o", folder, "--segment-seconds", 0.01, "--flush", 0.001)
        recorder.expect("^recording")
        publisher = um(host, "pub", "news", "x", "-n", 1_000_000, "-r", 5000, "-t", 120, *KEPT)
        wait_for_segments(folder, turn + 1)
        recorder.signal(signal.SIGTERM)
        output = recorder.finish()
        publisher.signal(signal.SIGTERM)
        publisher.wait()
        found = rows(folder)
        assert f"recorded {len(found)} messages" in output and not list(folder.rglob("*.open"))
        assert [row["sequence"] for row in found] == list(range(len(found))) and found


def test_one_topic_is_published_again_at_its_pace(host: Host, tmp_path: Path) -> None:
    recorded(host, tmp_path / "r", "one", "two").finish()
    receiver = um(host, "sub", "-p", "^news", "-n", 2)
    um(host, "replay", tmp_path / "r", "--topic", "news/b", "-s", 100, "-t", 120, *KEPT).finish()
    assert receiver.finish() == "one\ntwo\n"


def test_a_recording_becomes_parquet(host: Host, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    recorded(host, tmp_path / "r", "one", "two").finish()
    for written in (2, 0):
        output = um(host, "replay", tmp_path / "r", "--parquet", tmp_path / "p").finish()
        assert f"wrote {written} files" in output
    made = sorted((tmp_path / "p").rglob("*.parquet"))
    assert len(made) == 2
    table = parquet.ParquetFile(made[0]).read()
    assert table["payload"].to_pylist() == [b"one", b"two"] and table["sequence"].to_pylist() == [0, 1]


@needs_plain_library
@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        ("record", ["-o", "DIR"], "neither patterns nor topics"),
        ("record", ["x", "-o", "/proc/nowhere"], "/proc/nowhere"),
        ("record", ["x", "-o", "DIR", "--queue", "1"], "queue_bytes 1: must be"),
        ("replay", ["DIR"], "is not a recording"),
        ("replay", ["DIR", "--parquet", "DIR"], "is not a recording"),
    ],
)
def test_what_cannot_be_done_is_said(host: Host, tmp_path: Path, command: str, arguments: list[str], text: str) -> None:
    process = um(host, command, *(each.replace("DIR", str(tmp_path)) for each in arguments))
    assert process.wait() == 1 and text in process.output and "Traceback" not in process.output


def test_a_recorder_on_top_of_another_is_refused(host: Host, tmp_path: Path) -> None:
    first = um(host, "record", "x", "-o", tmp_path)
    first.expect("^recording x into")
    second = um(host, "record", "x", "-o", tmp_path)
    assert second.wait() == 1 and "being recorded into by another process" in second.output
    first.signal(signal.SIGINT)
    first.finish()
