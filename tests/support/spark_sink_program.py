"""Programs that tests of the sink start and kill: `python spark_sink_program.py WHAT FOLDER CONFIG TOPIC ...`"""

from __future__ import annotations

import os
import random
import sys
import traceback
from pathlib import Path

from spark_clusters import SETTINGS
from spark_sessions import session
from spark_sinks import HANG, rows, schema

FILES, ROWS = 10, 500  # of the stream
BATCHES = FILES // 2


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "20ms",
    "spark.speculation.efficiency.enabled": "false",
}


def failing(folder: Path, config: str, topic: str, count: int, master: str) -> None:
    """A write of so many rows whose tasks fail once, and one of which Spark runs twice; then one by the tasks
    themselves. On a cluster, since there is no speculation within one process."""
    from spark_sink_failing import FailingSource

    path = {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
    spark = session(folder, more={**SETTINGS, **SPECULATION, **path, "spark.master": master})
    spark.dataSource.register(FailingSource)
    frame = spark.range(0, count, 1, 4).selectExpr("concat(spark_partition_id(), '/', id) payload")
    options = {"config": config, "stateLocation": str(folder / "state"), "waitForReceivers": str(HANG)}
    for name, by_tasks in ((topic, "false"), (f"{topic}s", "true")):
        writing = frame.write.format("failing").mode("append").options(**options, topic=name, partitionTopics=by_tasks)
        writing.save()
    spark.stop()


def stream(folder: Path, config: str, topic: str) -> None:
    """A stream of BATCHES batches, from its checkpoint to the end."""
    os.environ["KILL_FOLDER"] = str(folder)
    from spark_sink_failing import KilledSource

    source = folder / "in"
    if not source.exists():
        source.mkdir()
        for number in range(FILES):
            path = source / f"{number:02d}.csv"
            path.write_text("".join(f"{number * ROWS + row:06d}\n" for row in range(ROWS)))
            os.utime(path, (1e9 + number, 1e9 + number))
    spark = session(folder)
    (folder / "pids").write_text(f"{spark.sparkContext._gateway.proc.pid} {os.getpid()}")
    spark.dataSource.register(KilledSource)
    frame = spark.readStream.schema("payload string").option("maxFilesPerTrigger", 2).csv(str(source))
    options = {"config": config, "topic": topic, "waitForReceivers": str(HANG)}
    options["checkpointLocation"] = str(folder / "checkpoint")
    query = frame.writeStream.format("killed").options(**options).trigger(availableNow=True).start()
    assert query.awaitTermination(int(HANG))
    spark.stop()


def commits(folder: Path, config: str, topic: str, kills: int, seed: int) -> None:
    """What Spark does for a stream, without it: stage, commit, note that; in children of which some are killed."""
    import spark_sink_failing

    chance = random.Random(seed)
    points = [f"{point} {at % BATCHES}" for at, point in enumerate(spark_sink_failing.POINTS)]
    points += [f"{chance.choice(spark_sink_failing.POINTS)} {chance.randrange(BATCHES)}" for _ in range(kills)]
    for at, point in enumerate([*points, ""]):
        query = f"query {at}"
        for name in (point, "") if point else ("",):
            if name:
                (folder / "kill").write_text(name)
            child = os.fork()
            if child == 0:
                try:
                    _commits_of_one(folder, config, topic, query)
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status) if name else status == 0, f"{point}: status {status}"
        print("after", point or "no kill", flush=True)


def _commits_of_one(folder: Path, config: str, topic: str, query: str) -> None:
    import pytest
    import spark_sink_failing
    from spark_sinks import as_task

    from um_cffi.spark import _publishing, _sink

    spark_sink_failing.arm(folder)
    options = {"config": config, "topic": topic, "waitForReceivers": str(HANG), "stateLocation": str(folder / "state")}
    for batch in range(BATCHES):
        if (folder / f"{query} {batch}").exists():
            continue
        done = []
        writer = _sink.make_stream_writer(options, schema("payload binary"), False)
        for partition in range(2):
            with pytest.MonkeyPatch.context() as patch:
                as_task(patch, partition, query, batch)
                payloads = [f"{query}: {(batch * 2 + partition) * ROWS + row}".encode() for row in range(ROWS)]
                done.append(writer.write(iter([rows(payloads)])))
        _sink.make_stream_writer(options, schema("payload binary"), False).commit(done, batch)
        (folder / f"{query} {batch}").touch()
    _publishing.discard()


if __name__ == "__main__":
    what, folder_, config_, topic_, *more = sys.argv[1:]
    globals()[what](Path(folder_), config_, topic_, *(int(each) if each.isdigit() else each for each in more))
