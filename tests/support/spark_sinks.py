"""What tests of the Spark sink share: a configuration, receivers that note what they get, rows without Spark."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from um_cffi import Context, HFReceiver, MessageType, WildcardReceiver

HANG = 240.0  # seconds; only catches hangs
PORTS = ("transport_tcp_port", "request_tcp_port")


def configured(folder: Path, *more: str) -> str:
    """A configuration file for both sides: loopback, any ports."""
    path = folder / "um.cfg"
    lines = ["context default_interface 127.0.0.1", "context resolver_multicast_interface 127.0.0.1"]
    lines += ["wildcard_receiver resolver_no_source_linger_timeout 3600000"]  # numbers outlast sources
    lines += [f"context {port}_{end} 0" for port in PORTS for end in ("low", "high")]
    path.write_text("\n".join([*lines, *more, ""]))
    return str(path)


class Heard:
    """A receiver of hot failover and what it has got: (topic, number, payload), in the order of arrival."""

    def __init__(self, config: str, topic: str, pattern: bool = False, channels: Iterable[int] = ()) -> None:
        self.context = Context(config)
        if pattern:
            self._receiver: Any = WildcardReceiver(self.context, topic, channels=channels, hf_receiver=1)
        else:
            self._receiver = HFReceiver(self.context, topic, channels=channels)
        self.got: list[tuple[str, int, bytes]] = []
        self.extras: list[tuple[dict[str, Any], int | None]] = []
        """What has come with them: properties and channel."""

    def wait(self, count: int) -> list[tuple[str, int, bytes]]:
        """Until so many messages have come, from the first one on. Fails at a loss."""
        end = time.monotonic() + HANG
        while len(self.got) < count:
            assert time.monotonic() < end, f"{len(self.got)} of {count} messages came"
            self._take(0.5)
        self._take(0.0)  # what came with them
        assert len(self.got) == count, f"{len(self.got)} messages instead of {count}"
        return self.got

    def _take(self, seconds: float) -> None:
        while (batch := self._receiver.recv_batch(max_messages=50_000, timeout=seconds)) is not None:
            for message in batch.messages():
                assert message.type is MessageType.DATA, message
                self.got.append((message.topic, message.hf_number, bytes(message.data)))
                self.extras.append((dict(message.properties), message.channel))
            lost = batch.records["type"]
            for kind in (MessageType.LOSS, MessageType.BURST_LOSS):
                assert not (lost == int(kind)).any(), f"{kind!r} behind {len(self.got)} messages"
            seconds = 0.0

    def numbers(self, topic: str) -> list[int]:
        """Those of one topic, in the order of arrival."""
        return [number for name, number, _ in self.got if name == topic]


@contextlib.contextmanager
def hearing(config: str, topic: str, pattern: bool = False, channels: Iterable[int] = ()) -> Iterator[Heard]:
    """A receiver for a while."""
    heard = Heard(config, topic, pattern, channels)
    try:
        yield heard
    finally:
        heard.context.close()


def as_task(monkeypatch: pytest.MonkeyPatch, partition: int, query: str = "query", batch: int = 0) -> None:
    """This process as one that runs the task of a partition, as far as the sink looks."""
    told = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
    task = SimpleNamespace(partitionId=lambda: partition, getLocalProperty=told.get)
    monkeypatch.setattr(pyspark.TaskContext, "get", classmethod(lambda cls: task))


def rows(payloads: Sequence[bytes], topics: Sequence[str] | None = None) -> Any:
    """A record batch as Spark gives it to writers."""
    import pyarrow as pa

    columns = {"payload": pa.array(payloads, pa.binary())}
    if topics is not None:
        columns["topic"] = pa.array(topics, pa.string())
    return pa.RecordBatch.from_pydict(columns)


def schema(*columns: str) -> Any:
    """Of Spark, as from "payload binary"; without a Java machine, which reads such texts otherwise."""
    from pyspark.sql import types

    kinds = {"binary": types.BinaryType(), "string": types.StringType(), "int": types.IntegerType()}
    kinds["double"] = types.DoubleType()
    kinds["map<string,string>"] = types.MapType(types.StringType(), types.StringType())
    made = types.StructType()
    for name, kind in (column.split(" ") for column in columns):
        made.add(name, kinds[kind])
    return made


def staged_files(state: Path) -> list[Path]:
    """Whatever is left below the folder of staged files."""
    return [path for path in (state / "staging").rglob("*") if path.is_file()]


def environment_of_programs() -> dict[str, str]:
    """For programs of their own: they find this module and the build."""
    from spark_sessions import environment

    told = environment()
    return {**os.environ, **told, "PYTHONPATH": f"{told['PYTHONPATH']}:{Path(__file__).parent}"}


def run_program(what: str, *arguments: object, status: int = 0) -> None:
    """Run a part of spark_sink_program.py, and see how it ends."""
    program = str(Path(__file__).with_name("spark_sink_program.py"))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", program, what, *(str(each) for each in arguments)],
        env=environment_of_programs(),
        capture_output=True,
        text=True,
        timeout=3 * HANG,
        check=False,
    )
    assert done.returncode == status, (
        f"{what} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}"
    )
