"""`um pipeline`: run a pipeline of Spark over a recording."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from um_cffi.commands import _common
from um_cffi.commands.record import interrupted
from um_cffi.errors import InvalidArgument

NAMES = ("ohlcv", "quality", "latency", "monitoring")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pipeline",
        help="run a pipeline of Spark over a recording",
        description="ohlcv: ticks to bars of open, high, low, close, volume and VWAP, streamed as the recording grows "
        "or of all that there is. quality: gaps, losses, duplicates, late and out-of-order messages of each session, "
        "and the losses of each source over time. latency: percentiles of each hop. "
        "monitoring: a report in HTML of each day that processes were monitored. More: docs/python/pipelines.md.",
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help="one of " + ", ".join(NAMES))
    parser.add_argument("folder", metavar="DIR", help="folder of the recording")
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="this one; may be repeated")
    parser.add_argument("--output", metavar="DIR", help="write what comes out as Parquet")
    parser.add_argument("--plot", metavar="FILE", help="quality, latency: a picture (PNG); latency: latency.png")
    parser.add_argument("--rows", type=_common.positive, default=20, metavar="N", help="of a table that are shown (20)")
    parser.add_argument(
        "--window",
        metavar="DURATION",
        help="such as '10 seconds' (ohlcv: 1 minute, monitoring: 10 minutes, else 1 second)",
    )
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", metavar="URL", help="local[4], spark://HOST:PORT, yarn, sc://HOST (local[*])")
    spark.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    ticks = parser.add_argument_group("ohlcv")
    ticks.add_argument("--definition", metavar="FILE", help="fields of a tick: Definition.to_bytes() of um_cffi.pdm")
    ticks.add_argument("--time", default="timestamp", metavar="FIELD", help="of a tick (timestamp: when it came)")
    ticks.add_argument("--price", default="price", metavar="FIELD", help="of a tick (price)")
    ticks.add_argument("--size", default="size", metavar="FIELD", help="of a tick (size)")
    ticks.add_argument("--by", action="append", metavar="FIELD", help="what has bars of its own (topic)")
    ticks.add_argument(
        "--watermark", default="30 seconds", metavar="DURATION", help="how late a tick may be (30 seconds)"
    )
    ticks.add_argument("--stream", action="store_true", help="follow the recording; bars are written as they close")
    ticks.add_argument("--until-now", action="store_true", help="with --stream: end when all that there is is done")
    ticks.add_argument("--checkpoint", metavar="DIR", help="of --stream (OUTPUT.checkpoint)")
    feed = parser.add_argument_group("quality")
    feed.add_argument("--late", type=_common.seconds, default=1.0, metavar="S", help="late is what is so old (1)")
    watched = parser.add_argument_group("monitoring")
    watched.add_argument("--day", metavar="YYYY-MM-DD", help="this one, of UTC (each that there are records of)")
    watched.add_argument("--report", default=".", metavar="DIR", help="where monitoring-YYYY-MM-DD.html goes (here)")
    parser.set_defaults(run=run)


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """The settings of Spark that `--conf` gives. InvalidArgument for one without a value."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidArgument(f"--conf {word}: must be NAME=VALUE")
        found[name] = value
    return found


def shown(value: Any) -> str:
    """A value for a table of text."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e-3 else f"{value:,.3f}".rstrip("0").rstrip(".")
    return str(value)


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline and print its tables."""
    settings = settings_of(arguments.conf)
    try:
        from um_cffi.spark.pipelines import _run, session
    except ImportError as error:
        raise InvalidArgument(str(error)) from None
    wanted = _run.Wanted(
        arguments.folder,
        topics=arguments.topic,
        definition=arguments.definition,
        output=arguments.output,
        plot=arguments.plot,
        window=arguments.window,
        watermark=arguments.watermark,
        time=arguments.time,
        price=arguments.price,
        size=arguments.size,
        by=arguments.by or ("topic",),
        late=arguments.late,
        stream=arguments.stream,
        until_now=arguments.until_now,
        checkpoint=arguments.checkpoint,
        rows=arguments.rows,
        day=arguments.day,
        report=arguments.report,
    )
    _run.check(arguments.name, wanted)
    quiet = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "true" if sys.stderr.isatty() else "false"}
    spark = session(f"um pipeline {arguments.name}", arguments.master, {**quiet, **settings})
    try:
        with interrupted() as wanted.over:
            for title, columns, rows in _run.run(spark, arguments.name, wanted):
                numbers = [at for at in range(len(columns)) if any(isinstance(row[at], (int, float)) for row in rows)]
                table = _common.plain_table(columns, [[shown(value) for value in row] for row in rows], numbers)
                print(f"{title}\n{table}\n", flush=True)
    except ImportError as error:
        raise InvalidArgument(str(error)) from None
    finally:
        spark.stop()
    picture = arguments.plot or ("latency.png" if arguments.name == "latency" else None)
    if picture is not None and arguments.name in ("quality", "latency"):
        print(f"picture: {picture}", file=sys.stderr)
    return 0
