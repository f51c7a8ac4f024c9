"""The pipelines, each against what pandas computes of the same rows, to the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import market_ticks
import numpy as np
import pandas as pd
import pytest

from um_cffi import InvalidArgument, MessageFlags
from um_cffi.spark import pipelines
from um_cffi.spark.pipelines._rows import SCHEMA

STREAM = ["topic", "source", "session"]
NAMES = [part.split()[0] for part in SCHEMA.replace("(20, 0)", "").split(", ")]
LATE_NS = 20_000_000


def feed(count: int = 3000) -> pd.DataFrame:
    """Rows as recorded() gives them: three sessions, with losses, drops, large messages, recovery, and hot failover."""
    draw = np.random.default_rng(5)
    made: list[dict[str, Any]] = []
    for at, (topic, source, session) in enumerate([("a", "s1", "1"), ("a", "s2", "1"), ("b", "s1", "1.1")]):
        sequence = 100 * at
        for number in range(count // 3):
            sent = 1_700_000_000_000_000_000 + number * 1_000_000 + int(draw.integers(0, 3_000_000))
            came = sent + int(draw.integers(50_000, 40_000_000 if draw.integers(20) == 0 else 90_000))
            kind = str(draw.choice(["message", "loss", "dropped", "reset"], p=[0.965, 0.02, 0.01, 0.005]))
            message = kind == "message"
            covers = 1 if kind in ("message", "reset") else int(draw.integers(1, 9))
            row = {"kind": kind, "topic": topic, "source": source, "session": session, "sequence": sequence}
            row |= {"count": covers, "flags": int(MessageFlags.RETRANSMIT) if draw.integers(30) == 0 else 0}
            row |= {"hf_number": number if message and topic == "a" and draw.integers(2) else None}
            row |= {"timestamp_ns": came, "source_ns": sent if message and topic == "a" else None}
            row |= {"kernel_ns": came if message and at else None, "library_ns": came if message and not at else None}
            made.append(row)
            sequence += covers + (int(draw.integers(1, 4)) if draw.integers(50) == 0 else 0)
    return pd.DataFrame(made, columns=NAMES).sample(frac=1, random_state=1)


def spark_rows(spark: Any, rows: pd.DataFrame) -> Any:
    """As a DataFrame of Spark, in pieces, in no order."""
    from decimal import Decimal

    plain = rows.astype(object).where(rows.notna(), None)
    values = [list(row) for row in plain.itertuples(index=False)]
    whole = [name in ("sequence", "count", "flags") or name.endswith("_ns") for name in NAMES]
    for row in values:
        for at, value in enumerate(row):
            if value is not None and whole[at]:
                row[at] = int(value)
            elif value is not None and NAMES[at] == "hf_number":
                row[at] = Decimal(int(value))
    return spark.createDataFrame(values, SCHEMA).cache()


def feed_rows() -> pd.DataFrame:
    """feed(), with integers of 64 bits where pandas would make floating-point numbers of them."""
    rows = feed()
    for name in ("source_ns", "kernel_ns", "library_ns", "hf_number"):
        rows[name] = rows[name].astype("Int64")
    return rows


@pytest.fixture(scope="module", name="rows")
def rows_of_feed() -> pd.DataFrame:
    return feed_rows()


@pytest.fixture(scope="module", name="table")
def table_of_feed(spark: Any, rows: pd.DataFrame) -> Any:
    return spark_rows(spark, rows)


def session_of(mine: pd.DataFrame, topic: pd.DataFrame) -> dict[str, Any]:
    """What one session should be said to be, by the definitions, row after row."""
    said: dict[str, Any] = dict.fromkeys(("messages", "gaps", "lost", "dropped", "absent", "duplicates"), 0)
    reached, before = int(mine["sequence"].min()), False
    for row in mine.sort_values("sequence").itertuples():
        message = row.kind == "message"
        said["messages"] += message
        missing = row.kind in ("loss", "dropped")
        said["gaps"] += missing and not before
        said["lost"] += 0 if row.kind != "loss" else row.count_
        said["dropped"] += 0 if row.kind != "dropped" else row.count_
        said["absent"] += max(row.sequence - reached, 0)
        said["duplicates"] += message and row.sequence < reached
        reached, before = max(reached, row.sequence + row.count_), missing
    messages = mine[mine["kind"] == "message"]
    arrived = messages.sort_values(["timestamp_ns", "sequence"])
    said["first"], said["last"] = int(mine["sequence"].min()), reached - 1
    said["out_of_order"] = int((arrived["sequence"] < arrived["sequence"].cummax()).sum())
    said["recovered"] = int((messages["flags"] != 0).sum())
    of_topic = topic[topic["kind"] == "message"].sort_values(["timestamp_ns", *STREAM, "sequence"])
    newest = of_topic["source_ns"].cummax().shift()
    late = of_topic[(of_topic["source_ns"] < newest - LATE_NS).fillna(False)]
    said["late"] = int(late.index.isin(mine.index).sum()) if mine["source_ns"].notna().any() else None
    copies = of_topic[of_topic["hf_number"].notna() & of_topic.duplicated("hf_number")]
    said["copies"] = int(copies.index.isin(mine.index).sum())
    return said


def test_quality_is_what_pandas_says(table: Any, rows: pd.DataFrame) -> None:
    found = {tuple(row[name] for name in STREAM): row.asDict() for row in pipelines.sessions(table, 0.02).collect()}
    named = rows.rename(columns={"count": "count_"})
    wanted = {
        key: session_of(mine, named[named["topic"] == key[0]]) | dict(zip(STREAM, key))
        for key, mine in named.groupby(STREAM)
    }
    assert found == wanted
    said = list(wanted.values())
    for name in ("gaps", "lost", "dropped", "absent", "recovered", "out_of_order", "copies"):
        assert sum(each[name] for each in said) > 0, f"the feed has no {name}"
    assert [each["late"] is None for each in said] == [False, False, True] and said[0]["late"] > 0


def test_a_number_that_is_there_twice_is_a_duplicate(spark: Any) -> None:
    row = ("message", "t", "s", "1", 7, 1, 0, None, 5, None, None, 5)
    (found,) = pipelines.sessions(spark.createDataFrame([row, row, row], SCHEMA)).collect()
    assert (found["messages"], found["duplicates"], found["out_of_order"]) == (3, 2, 0)


def test_losses_over_time_are_what_pandas_says(table: Any, rows: pd.DataFrame, tmp_path: Path) -> None:
    timed = rows.assign(begin=rows["timestamp_ns"] // 10**8 * 10**8)
    wanted = {}
    for (begin, topic, source), mine in timed.groupby(["begin", "topic", "source"]):
        counts = {kind: int(each["count"].sum()) for kind, each in mine.groupby("kind")}
        messages, lost, dropped = (counts.get(kind, 0) for kind in ("message", "loss", "dropped"))
        share = (lost + dropped) / (lost + dropped + messages)
        wanted[(pd.Timestamp(begin).to_pydatetime(), topic, source)] = (messages, lost, dropped, share)
    collected = pipelines.loss_timeline(table, "100 milliseconds").collect()
    assert {tuple(row[:3]): tuple(row[3:]) for row in collected} == wanted
    pipelines.draw_losses(collected, tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_latency_is_what_pandas_says(table: Any, rows: pd.DataFrame, tmp_path: Path) -> None:
    measured = pipelines.latencies(table).cache()
    wanted, over_time = {}, {}
    for hop, (begin, to) in pipelines.HOPS.items():
        both = rows[rows[begin].notna() & rows[to].notna()]
        each = (both[to] - both[begin]).astype("int64").to_numpy()
        points = np.percentile(each, [50, 90, 99, 99.9, 99.99], method="inverted_cdf")
        wanted[hop] = (len(each), each.min(), each.mean(), *points, each.max())
        for second, mine in both.assign(ns=each).groupby(both["timestamp_ns"] // 10**9):
            parts = np.percentile(mine["ns"], [50, 99], method="inverted_cdf")
            over_time[(pd.Timestamp(second * 10**9).to_pydatetime(), hop)] = (len(mine), *parts, mine["ns"].max())
    assert {row[0]: tuple(row[1:]) for row in pipelines.percentiles(measured, ("hop",)).collect()} == wanted
    timeline = pipelines.latency_timeline(measured).collect()
    assert {tuple(row[:2]): tuple(row[2:]) for row in timeline} == over_time
    pipelines.draw_latency(measured, timeline, tmp_path / "latency.png")
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")


def ticks_table(spark: Any, count: int) -> tuple[Any, Any]:
    made = market_ticks.ticks(count)
    plain = market_ticks.frame(made)
    values = [tuple(row) for row in plain.itertuples(index=False)]
    return made, spark.createDataFrame(values, list(plain.columns))


def test_bars_are_what_pandas_says(spark: Any) -> None:
    made, table = ticks_table(spark, 3000)
    found = [row.asDict() for row in pipelines.bars(table, "250 milliseconds", time="time").collect()]
    assert market_ticks.rows_of(found) == market_ticks.bars(made, 250_000_000)


def test_ticks_without_volume_have_no_vwap(spark: Any) -> None:
    columns = "time long, price double, size long, topic string, source string, session string, sequence long"
    rows = [(10**9, 5.0, 0, "t", "s", "1", 0), (10**9, 4.0, 0, "t", "s", "1", 1), (10**9, None, 7, "t", "s", "1", 2)]
    (bar,) = pipelines.bars(spark.createDataFrame(rows, columns), time="time").collect()
    assert (bar["open"], bar["close"], bar["volume"], bar["vwap"], bar["ticks"]) == (5.0, 4.0, 0, None, 2)


def test_wrong_columns_are_told(spark: Any) -> None:
    _, table = ticks_table(spark, 3)
    with pytest.raises(InvalidArgument, match="no column prize: there are time, price"):
        pipelines.bars(table, price="prize")
    with pytest.raises(InvalidArgument, match="column price is double: must be a timestamp"):
        pipelines.bars(table, time="price")
