"""Monitoring records in Spark: those of a process that was watched and recorded, as rows and as the report of a day
that tells what the API had counted; and made ones, for what no honest process sends.
"""

from __future__ import annotations

import base64
import runpy
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from monitoring_records import one_of_each
from pairs import HANG, collect, loopback, until

from um_cffi import InvalidArgument, Receiver, Source
from um_cffi.monitoring import (
    TOPIC,
    Attributes,
    ContextRecord,
    EventQueueRecord,
    ReceiverRecord,
    Record,
    decode,
    encode,
    publish,
)
from um_cffi.monitoring._arrow import kind_of
from um_cffi.recording import Recorder, Recording
from um_cffi.spark import pipelines
from um_cffi.spark.pipelines import _run
from um_cffi.spark.pipelines._collected import collected
from um_cffi.stats import LbtrmReceiverStats

ROOT = Path(__file__).resolve().parents[2]
COUNT = 500
NAME = "orders <script>&co"
PLACE = "context|default_interface=127.0.0.1"
DAY_NS = 86_400 * 10**9


def records_in(folder: Path) -> list[Record]:
    payloads = Recording(folder).table()["payload"].to_pylist()
    return [record for payload in payloads for record in decode(payload)]


def counted(folder: Path) -> list[int]:
    """What the receiver's records in the recording say of messages."""
    return [each.values["lbm_msgs_rcved"] for each in records_in(folder) if isinstance(each, ReceiverRecord)]


@pytest.fixture(scope="module", name="watched")
def process_that_is_watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LbtrmReceiverStats]:
    """The recording of a context with a source and a receiver, and what the API said of the receiver at the end."""
    folder = tmp_path_factory.mktemp("monitoring") / "recording"
    with (
        loopback() as watching,
        Recorder(watching, folder, topics=TOPIC, segment_seconds=0.1, flush_seconds=0.01),
        loopback() as ctx,
        Receiver(ctx, "prices") as receiver,
    ):
        source = Source(ctx, "prices", transport="lbtrm")
        receiver.wait_ready(1, HANG)
        publisher = publish(ctx, 0, application=NAME, transport_options=PLACE)

        def told(messages: int) -> bool:
            publisher.sample()
            return messages in counted(folder)

        until(lambda: told(0))
        source.send_many([b"x" * 64] * COUNT, flush=True)
        collect(receiver, COUNT)
        (stats,) = ctx.receiver_stats()
        assert isinstance(stats, LbtrmReceiverStats)
        until(lambda: told(COUNT))
    return folder, stats


class Page(HTMLParser):
    """The tables of a page by the heading above them, and whatever it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.fetched: list[str] = []
        self.tags: set[str] = set()
        self._heading = ""
        self._cell: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag in ("td", "th", "h1", "h2"):
            self._cell = []
        elif tag == "tr":
            self.tables.setdefault(self._heading, []).append([])

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self._cell is not None and tag in ("td", "th"):
            self.tables[self._heading][-1].append("".join(self._cell))
        elif self._cell is not None and tag in ("h1", "h2"):
            self._heading = "".join(self._cell)
        if tag in ("td", "th", "h1", "h2"):
            self._cell = None

    def rows(self, heading: str) -> list[dict[str, str]]:
        head, *lines = self.tables[heading]
        return [dict(zip(head, line)) for line in lines]


def test_records_of_a_watched_process_become_rows(spark: Any, watched: tuple[Path, Any]) -> None:
    rows = pipelines.monitored(pipelines.statistics(spark, watched[0])).orderBy("received_ns", "sequence").collect()
    expected = records_in(watched[0])
    assert len(rows) == len(expected) and {row["kind"] for row in rows} >= {"context", "source", "receiver"}
    for row, record in zip(rows, expected):
        about = record.attributes
        assert (row["application"], row["process_id"], row["context"]) == (
            NAME,
            about.process_id,
            about.context_instance,
        )
        values = getattr(record, "values", {}).items()
        told = {name: value for name, value in values if value < 2**64 - 1 or not name.endswith("_min")}
        assert (row["numbers"] or {}) == told


def test_the_report_of_the_day_says_what_the_api_counted(
    spark: Any, watched: tuple[Path, LbtrmReceiverStats], tmp_path: Path
) -> None:
    recording, stats = watched
    shown = list(_run.run(spark, "monitoring", _run.Wanted(str(recording), report=str(tmp_path), window="1 second")))
    title, _, made = shown[0]
    # A day ends in a few seconds of all; then there are two reports, and the second one has the end.
    assert title == "reports" and [file for _, file in made] == [str(each) for each in sorted(tmp_path.iterdir())]
    page = Page(Path(made[-1][1]).read_text())
    assert not page.tags & {"script", "link", "iframe", "object", "base"}
    (received,) = page.rows("Transport sessions as receivers see them")
    assert received["application"] == NAME and received["transport"] == "lbtrm" and received["name"] == stats.source
    assert received["messages so far"] == str(stats.lbm_msgs_rcved) == str(COUNT)
    if len(made) == 1:  # the first record was taken before the first message
        assert received["messages"] == str(COUNT) and received["lost"] == str(stats.lost)
    assert page.fetched and all(each.startswith("data:image/svg+xml;base64,") for each in page.fetched)
    for each in page.fetched:
        picture = base64.b64decode(each.partition(",")[2])
        assert b"<svg" in picture and b"<script" not in picture and b"<image" not in picture
    facts = dict(page.tables[f"Monitoring report of {made[-1][0]}"])
    assert facts["processes"] == "1" and facts["malformed packets"] == "0"
    tables = {title: rows for title, _, rows in shown[1:]}
    assert set(tables) == {"processes", "receivers", "sources", "contexts", "event queues"}


def test_the_example_writes_the_report_of_a_day(
    spark: Any, watched: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = pipelines.days(pipelines.monitored(pipelines.statistics(spark, watched[0])))[-1]
    monkeypatch.setattr(sys, "argv", ["monitoring.py", str(watched[0]), day, str(tmp_path / "report.html")])
    runpy.run_path(str(ROOT / "examples" / "spark" / "monitoring.py"))
    page = Page((tmp_path / "report.html").read_text())
    assert page.rows("Transport sessions as receivers see them")[0]["messages so far"] == str(COUNT)


# -- made records --


def messages(spark: Any, sent: list[tuple[int, Record | bytes]]) -> Any:
    """What the data source would give of packets that came at some times, in nanoseconds."""
    rows = [
        (packet if isinstance(packet, bytes) else encode(packet, "pb"), at, "TCP:10.0.0.9:1:1[1]", number)
        for number, (at, packet) in enumerate(sent)
    ]
    return spark.createDataFrame(rows, "payload binary, timestamp_ns long, source string, sequence long")


def receiver(lost: int, process: int = 7, **more: int) -> ReceiverRecord:
    who = Attributes("10.0.0.7", 1_700_000_000, "orders", 3, process, False, "00000000000000aa", 0)
    return ReceiverRecord(who, "lbtrm", "LBTRM:10.0.0.1:1:a:239.0.0.1:1", {"lost": lost, "lbm_msgs_rcved": 10, **more})


@pytest.fixture(scope="module", name="made")
def made_records(spark: Any) -> Iterator[Any]:
    """Two days: a counter that is reset, a process that is silent, numbers of 64 bits, and what is no packet."""
    second = 10**9
    sent: list[tuple[int, Record | bytes]] = [
        (DAY_NS - 3 * second, receiver(5)),
        (DAY_NS - 2 * second, receiver(9)),
        (DAY_NS + second, receiver(12)),
        (DAY_NS + 2 * second, receiver(4)),  # it was reset
        (DAY_NS + 2 * second, receiver(6)),  # at the same time, behind it
        (DAY_NS + 60 * second, receiver(6)),
        (DAY_NS + second, receiver(2**64 - 1, process=2**64 - 1, nak_stm_min=2**64 - 1)),
        (DAY_NS + 2 * second, receiver(2**64 - 1, process=2**64 - 1)),
        (DAY_NS + 5 * second, b"nothing of ours"),
        (DAY_NS + 5 * second, b""),
    ]
    frame = pipelines.monitored(messages(spark, sent)).cache()
    yield frame
    frame.unpersist()


def test_what_is_counted_between_records(made: Any) -> None:
    rows = pipelines.increases(made).where("process_id = 7").orderBy("received_ns", "sequence").collect()
    assert [None if row["counted"] is None else row["counted"]["lost"] for row in rows] == [None, 4, 3, 4, 2, 0]
    assert [row["seconds"] for row in rows] == [None, 1.0, 3.0, 1.0, 0.0, 58.0]


def test_numbers_of_strangers_are_held_within_bounds(made: Any) -> None:
    (row, _) = made.where("process_id != 7 and kind = 'receiver'").orderBy("sequence").collect()
    assert row["process_id"] == row["numbers"]["lost"] == 2**63 - 1
    assert "nak_stm_min" not in row["numbers"], "nothing was measured"
    refused = {row["name"]: row["origin"] for row in made.where("kind = 'malformed'").collect()}
    assert set(refused) <= {"short", "signature"} and set(refused.values()) == {"TCP:10.0.0.9:1:1[1]"}


def test_a_day_has_what_was_counted_on_it(made: Any) -> None:
    assert pipelines.days(made) == ["1970-01-01", "1970-01-02"]
    counted = pipelines.increases(made)
    report = pipelines.report_of("1970-01-02", made, counted, "r", window="10 seconds")
    assert report.facts == {"records": 6, "processes": 2, "malformed packets": 2}
    tables = {table.title: [dict(zip(table.columns, row)) for row in table.rows] for table in report.tables}
    lost = {row["process_id"]: row["lost"] for row in tables["Transport sessions as receivers see them"]}
    assert lost == {7: 9, 2**63 - 1: 0}
    (silent,) = [row for row in tables["Processes"] if row["process_id"] == 7]
    assert (silent["records"], silent["silent"]) == (4, 58.0) and silent["last"].second == 0
    assert sum(row["packets"] for row in tables["Malformed packets"]) == 2
    assert [row["lost"] for row in report.timeline] == [9, 0] and report.window_seconds == 10.0
    assert {type(row["begin"]) for row in report.timeline} == {datetime}
    with pytest.raises(InvalidArgument, match="no monitoring records of 1970-01-03"):
        pipelines.report_of("1970-01-03", made, counted, "r")


def test_times_are_those_of_utc_wherever_the_driver_is(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = spark.sql("select timestamp_micros(1000000) as at, cast(null as timestamp) as never, 5 as number")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        (row,) = collected(table)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (row["at"], row["never"], row["number"]) == (datetime(1970, 1, 1, 0, 0, 1), None, 5)


def test_every_kind_of_record_becomes_a_row_and_a_table(spark: Any) -> None:
    each = one_of_each()
    rows = pipelines.monitored(messages(spark, list(enumerate(each)))).cache()
    assert sorted(row["kind"] for row in rows.collect()) == sorted(map(kind_of, each))
    counted = pipelines.increases(rows)
    for record in each:
        if isinstance(record, (ContextRecord, EventQueueRecord)):
            kind = "context" if isinstance(record, ContextRecord) else "event_queue"
            (row,) = pipelines.objects(counted, kind).collect()
            assert row["process_id"] == record.attributes.process_id and row["records"] == 1
    rows.unpersist()


def test_a_page_names_what_it_leaves_out_and_holds_text_as_text() -> None:
    table = pipelines.Table("<b>", "a & b", ("name", "lost"), [("<img src=http://x/>", 1), (None, 12345)], 17)
    report = pipelines.Report("2026-01-01", "<i>", {"records": 5}, 1.0, (), [table])
    page = Page(pipelines.html_of(report))
    assert page.tables["<b>"] == [["name", "lost"], ["<img src=http://x/>", "1"], ["", "12,345"]]
    assert page.fetched == [] and "The first 2 of 17." in pipelines.html_of(report)


@pytest.mark.parametrize("day", ["yesterday", "2026-02-30", "20260101x"])
def test_what_is_no_day_is_refused(tmp_path: Path, day: str) -> None:
    with pytest.raises(InvalidArgument, match="must be YYYY-MM-DD"):
        _run.check("monitoring", _run.Wanted("file:///nowhere", day=day))
