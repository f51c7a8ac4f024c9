"""Recorder: what is published is in the recording, once, with everything that came with it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pairs import HANG, SLOW, loopback, numbered, until
from recordings import QUICK, Told, check_numbers, contexts, lines, payloads, recording, rows

from um_cffi import HFSource, InvalidArgument, InvalidOperation, MessageFlags, Source
from um_cffi.recording import Recorder, Recording
from um_cffi.testing import set_loss_rate

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def no_loss_afterwards() -> Iterator[None]:
    yield
    set_loss_rate(0, 0, 0, 0)


@pytest.mark.parametrize("transport", ["tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx"])
def test_what_is_published_is_recorded_on_every_transport(tmp_path: Path, transport: Any) -> None:
    with contexts() as (sending, receiving):
        source = Source(sending, "news", transport=transport, retain=None if transport == "lbtsmx" else 1000)
        with Recorder(receiving, tmp_path, "^news$", **QUICK) as recorder:
            recorder.receiver.wait_ready(1, HANG)
            if transport != "lbtrm":
                source.wait_receivers(1, HANG)
            for number in range(300):
                source.send(b"%d" % number)
            source.flush()
            until(lambda: recorder.stats().messages == 300)
        assert recorder.stats().state == "closed"
    assert payloads(tmp_path) == [b"%d" % number for number in range(300)]
    assert [row["sequence"] for row in rows(tmp_path)] == list(range(300))
    check_numbers(tmp_path)


def test_many_topics_are_kept_apart(tmp_path: Path) -> None:
    with contexts() as (sending, receiving):
        sources = [Source(sending, f"a/{name} ü", retain=1000) for name in range(20)]
        with Recorder(receiving, tmp_path, "^a/", topics="other", **QUICK) as recorder:
            other = Source(sending, "other", retain=1000)
            Source(sending, "not other", retain=1000).send(b"unwanted", flush=True)
            for number in range(50):
                for at, source in enumerate(sources):
                    source.send(b"%d %d" % (at, number))
            other.send(b"", flush=True)
            sending.flush()
            until(lambda: recorder.stats().messages == 20 * 50 + 1)
    for at in range(20):
        assert payloads(tmp_path, f"a/{at} ü") == [b"%d %d" % (at, number) for number in range(50)]
    assert payloads(tmp_path, "other") == [b""] and payloads(tmp_path, "not other") == []
    check_numbers(tmp_path)


def test_rows_have_what_came_with_a_message(tmp_path: Path) -> None:
    with contexts() as (sending, receiving):
        recorder = Recorder(receiving, tmp_path, ".*", source_timestamp="sent", **QUICK)
        with recorder:
            plain, hot = Source(sending, "plain", retain=100), HFSource(sending, "hot", bits=64, retain=100)
            plain.send(b"bare")
            plain.send(b"with", properties={"sent": 1_700_000_000_123_456_789, "yes": True, "text": "ö", "half": 0.5})
            plain.send(b"again", properties={"sent": "no number"})
            hot.send(b"numbered", number=2**64 - 1)
            hot.send(b"optional", number=7, optional=True, properties={"a": "b"}, channel=2**32 - 1)
            hot.send(b"past the merge", channel=0)
            plain.send(b"c", channel=5)
            plain.send(b"d", channel=6, properties={"a": 1})
            sending.flush()
            until(lambda: recorder.stats().messages == 8)
    bare, full, again, *others = rows(tmp_path, "plain")
    assert (bare["kind"], bare["count"], bare["properties"], bare["hf_number"]) == ("message", 1, None, None)
    assert (bare["source"][:4], bare["channel"]) == ("TCP:", None)
    assert bare["timestamp"].value > 1_600_000_000_000_000_000 and bare["source_timestamp"] is None
    assert dict(full["properties"]) == {"sent": "1700000000123456789", "yes": "true", "text": "ö", "half": "0.5"}
    assert full["source_timestamp"].value == 1_700_000_000_123_456_789
    assert full["flags"] & MessageFlags.PROPERTIES and again["source_timestamp"] is None
    assert [(row["payload"], row["channel"]) for row in others] == [(b"c", 5), (b"d", 6)]
    first, second, third = rows(tmp_path, "hot")
    assert [row["channel"] for row in (first, second, third)] == [None, 2**32 - 1, 0]
    assert dict(others[1]["properties"]) == {"a": "1"} and others[1]["flags"] & MessageFlags.CHANNEL
    assert (first["hf_number"], second["hf_number"], third["hf_number"]) == (2**64 - 1, 7, None)
    assert [row["sequence"] for row in (first, second, third)] == [0, 1, 2]
    assert second["flags"] & MessageFlags.HF_OPTIONAL and dict(second["properties"]) == {"a": "b"}


def test_resets_of_hot_failover_are_rows_of_their_own(tmp_path: Path) -> None:
    with contexts() as (sending, receiving), Recorder(receiving, tmp_path, ".*", **QUICK) as recorder:
        hot = HFSource(sending, "hot", bits=64, retain=100)
        hot.send(b"before", number=2**40)
        hot.send_rcv_reset(3)
        hot.send(b"", number=3, flush=True)
        until(lambda: recorder.stats().messages == 2)
    found = [(row["kind"], row["sequence"], row["count"], row["hf_number"], row["payload"]) for row in rows(tmp_path)]
    assert found == [
        ("message", 0, 1, 2**40, b"before"),
        ("reset", 1, 1, 3, None),
        ("message", 2, 1, 3, b""),
    ]
    (segment,) = Recording(tmp_path).segments()
    assert (segment.rows, segment.messages, segment.lost, segment.next) == (3, 2, 0, 3)


def test_a_batch_of_any_shape_keeps_its_payloads(tmp_path: Path) -> None:
    """Short, empty and large payloads, with and without properties, of several topics in turns."""
    with contexts() as (sending, receiving), Recorder(receiving, tmp_path, ".*", **QUICK) as recorder:
        sources = [Source(sending, name, retain="64 MB") for name in "abc"]
        wanted: dict[str, list[bytes]] = {name: [] for name in "abc"}
        draw = np.random.default_rng(7)
        for number in range(600):
            at = int(draw.integers(3))
            payload = bytes(draw.integers(0, 256, int(draw.choice([0, 1, 12, 13, 500, 3000])), np.uint8))
            if number % 97 == 0:
                payload *= 40
            sources[at].send(payload, properties={"n": number} if draw.integers(4) == 0 else None)
            wanted["abc"[at]].append(payload)
        sending.flush()
        until(lambda: recorder.stats().messages == 600)
        recorder.close()
        for name, expected in wanted.items():
            assert payloads(tmp_path, name) == expected
        check_numbers(tmp_path)


def test_losses_are_rows_of_their_own(tmp_path: Path) -> None:
    """What the network loses for good: the source has room for a few messages only, and cannot repair the others."""
    with (
        contexts() as (sending, _),
        recording(tmp_path, options={"transport_lbtrm_nak_generation_interval": 500}) as it,
    ):
        source = Source(sending, "lossy", transport="lbtrm", transport_lbtrm_transmission_window_limit=4000)
        it.receiver.wait_ready(1, HANG)
        source.send(b"%06d" % 0, flush=True)
        until(lambda: it.stats().messages == 1)
        set_loss_rate(lbtrm=100)
        for number in range(1, 100):
            source.send(b"%06d" % number + bytes(500), flush=True)
        until(lambda: it.receiver.context.counts().udp_injected >= 99)
        set_loss_rate(lbtrm=0)
        sent = 100
        while it.stats().lost == 0:
            source.send(b"%06d" % sent, flush=True)
            sent += 1
            time.sleep(0.01)
    found = rows(tmp_path, "lossy")
    losses = [row for row in found if row["kind"] == "loss"]
    assert losses and all(row["payload"] is None and row["count"] >= 1 for row in losses)
    messages = {row["sequence"]: row["payload"] for row in found if row["kind"] == "message"}
    for row in losses:
        assert not any(number in messages for number in range(row["sequence"], row["sequence"] + row["count"]))
    assert all(payload[:6] == b"%06d" % number for number, payload in messages.items())
    check_numbers(tmp_path)


def test_a_recording_is_continued_where_it_ended(tmp_path: Path) -> None:
    """Only what is missing is asked for, and nothing is there twice."""
    with contexts() as (sending, _):
        source = Source(sending, "news", retain=10_000)
        sent = 0
        for _ in range(3):
            for _ in range(200):
                source.send(b"%d" % sent)
                sent += 1
            source.flush()
            with recording(tmp_path) as recorder:
                until(lambda: recorder.stats().messages == 200)
                stats = recorder.stats()
            assert (stats.repeated, stats.unfilled, stats.lost) == (0, 0, 0)
    assert payloads(tmp_path) == [b"%d" % number for number in range(sent)]
    check_numbers(tmp_path)
    assert [line["op"] for line in lines(tmp_path) if line["op"] in ("begin", "end")] == ["begin", "end"] * 3


def test_what_could_not_be_filled_is_a_loss_and_told(tmp_path: Path) -> None:
    told = Told()
    with contexts() as (sending, _):
        source = Source(sending, "news", retain=50)
        for number in range(100):
            source.send(b"%d" % number)
        source.flush()
        with recording(tmp_path) as recorder:
            until(lambda: recorder.stats().messages == 50)
        for number in range(100, 300):
            source.send(b"%d" % number)
        source.flush()
        with recording(tmp_path, on_state=told) as recorder:
            until(lambda: recorder.stats().messages == 50)
        assert (recorder.stats().unfilled, recorder.stats().lost) == (150, 150)
    assert "150 messages of news" in told.texts("unfilled")[0]
    found = [(row["kind"], row["sequence"], row["count"]) for row in rows(tmp_path)]
    assert found[50] == ("loss", 100, 150) and [each[1] for each in found[51:]] == list(range(250, 300))


def test_numbers_that_begin_again_are_another_session(tmp_path: Path) -> None:
    """Two sources one after the other with the same source string, which a fixed session ID can bring about."""
    from um_cffi.recording._rows import Part
    from um_cffi.recording._streams import Stream

    def part(*numbers: int, flags: int = 0) -> Part:
        import pyarrow as pa

        count = len(numbers)
        wide, flag = np.array(numbers, np.uint32), np.full(count, flags, np.int32)
        return Part(wide, None, None, flag, np.zeros(count, np.int64), pa.array([b""] * count, pa.binary()))

    stream = Stream("t", "TCP:1.2.3.4:5:abc[7]")
    assert stream.take(part(2**32 - 2, 2**32 - 1, 0, 1), 0.0) is None
    assert stream.next == 2**32 + 2 and stream.session == "abc.7"
    assert stream.take(part(0, 1, 2, flags=int(MessageFlags.RETRANSMIT)), 0.0) is None
    assert (stream.repeated, stream.next) == (2, 2**32 + 3)
    rest = stream.take(part(3, 4, 0, 1), 0.0)
    assert rest is not None and rest.numbers.tolist() == [0, 1] and stream.next == 2**32 + 5
    stream.renew()
    assert stream.take(rest, 0.0) is None and (stream.next, stream.session) == (2, "abc.7.1")


def test_what_another_source_of_the_same_name_keeps_is_recorded(tmp_path: Path) -> None:
    """It says when it is joined how far it is, which is less than was recorded of the one before it: what it keeps is
    new, from the first retransmitted message on. Its name is what the first one had because the manifest is made so."""
    with contexts() as (sending, _), Source(sending, "news", retain=1000) as source:
        source.send(b"0", flush=True)
        with recording(tmp_path) as recorder:
            until(lambda: recorder.stats().messages == 1)
        (segment,) = Recording(tmp_path).segments()
        with (tmp_path / "manifest.jsonl").open("a") as file:
            names = {"topic": "news", "source": segment.source, "session": segment.session}
            file.write(json.dumps({"op": "position", **names, "next": 5000}) + "\n")
        for number in range(1, 100):
            source.send(b"%d" % number, flush=True)
        expected = [b"%d" % number for number in range(100)]
        for _ in range(2):  # the second recorder continues what the first one has begun
            expected.append(b"live")
            with recording(tmp_path) as recorder:
                source.send(b"live", flush=True)
                until(lambda: sum(row["session"] == f"{segment.session}.1" for row in rows(tmp_path)) >= len(expected))
                assert (recorder.stats().repeated, recorder.stats().unfilled) == (0, 0)
            again = [row["payload"] for row in rows(tmp_path) if row["session"] == f"{segment.session}.1"]
            assert again == expected
    check_numbers(tmp_path)


def test_one_process_at_a_time_records_into_a_folder(tmp_path: Path) -> None:
    refused = pytest.raises(InvalidOperation, match="being recorded into by another")
    with recording(tmp_path), refused, recording(tmp_path):
        pass
    with recording(tmp_path):
        pass


def test_a_recorder_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    with loopback() as ctx:
        with pytest.raises(InvalidArgument):
            Recorder(ctx, tmp_path, "(", **QUICK)  # no pattern
        assert [line["op"] for line in lines(tmp_path)] == ["recording", "begin", "end"]
        with Recorder(ctx, tmp_path, "(a)", **QUICK):
            pass


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"compression": "gzip"}, "'lz4' or 'zstd' or 'none'"),
        ({"sync": "always"}, "'never' or 'segment' or 'batch'"),
        ({"segment_bytes": 1}, "segment_bytes 1: must be a number from 1,024"),
        ({"segment_seconds": True}, "segment_seconds True"),
        ({"queue_bytes": 0}, "queue_bytes 0"),
        ({"retain_bytes": -1}, "retain_bytes -1"),
        ({"options": {"ordered_delivery": 0}}, "ordered_delivery is always 1"),
        ({"patterns": []}, "neither patterns nor topics"),
        ({"patterns": [""]}, "must be a text that is not empty"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, settings: dict[str, Any], text: str) -> None:
    with loopback() as ctx, pytest.raises(InvalidArgument, match=text):
        Recorder(ctx, tmp_path / "made", **{"patterns": ".*", **settings})
    assert not (tmp_path / "made").exists()


def test_closing_in_on_state_is_refused(tmp_path: Path) -> None:
    refused = threading.Event()

    def on_state(kind: str, text: str) -> None:
        if kind == "consumer":
            with pytest.raises(InvalidOperation, match="set an event"):
                holder[0].close()
            refused.set()

    holder: list[Recorder] = []
    with loopback() as ctx:
        holder.append(Recorder(ctx, tmp_path, ".*", consumers=["x"], on_state=on_state, **QUICK))
        (tmp_path / "consumers").mkdir()
        (tmp_path / "consumers" / "x.json").write_text("{")
        assert refused.wait(HANG)
        holder[0].close()
        holder[0].close()


def test_a_mistake_in_the_program_ends_recording_and_is_raised(tmp_path: Path) -> None:
    told = Told()
    with loopback() as ctx:
        recorder = Recorder(ctx, tmp_path, ".*", on_state=told, **QUICK)
        ctx.close()
        assert recorder.wait(60 * SLOW)
        assert "failed" in told.of("failed")
        with pytest.raises(InvalidArgument):
            recorder.close()
        recorder.close()


def test_a_large_stream_is_recorded_whole(tmp_path: Path) -> None:
    count = 200_000
    with contexts() as (sending, _), recording(tmp_path, segment_seconds=0.3) as recorder:
        source = Source(sending, "many")
        source.wait_receivers(1, HANG)
        source.send_many(numbered(count))
        source.flush()
        until(lambda: recorder.stats().messages == count)
    table = Recording(tmp_path).table("many")
    assert np.array_equal(table["sequence"].to_numpy(), np.arange(count))
    data = b"".join(table["payload"].to_pylist())
    assert np.array_equal(np.frombuffer(data, "<u8").reshape(-1, 8)[:, 0], np.arange(count))
