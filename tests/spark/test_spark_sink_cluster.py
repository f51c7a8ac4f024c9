"""The sink on a cluster where tasks fail once, and one is so slow that Spark runs a copy of it: each row once, in order
within a partition, at a receiver of hot failover."""

from __future__ import annotations

from pathlib import Path

from pairs import same
from spark_clusters import Cluster
from spark_sink_failing import SLOW
from spark_sinks import configured, hearing, run_program, staged_files

COUNT = 200_000
PARTITIONS = 4


def marked(folder: Path, topic: str, name: str) -> list[str]:
    """What attempts of tasks have written down."""
    return sorted(path.name for path in (folder / f"marks of {topic}" / name).iterdir())


def test_200000_rows_of_tasks_that_fail_once_and_of_speculation_are_received_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = configured(tmp_path)
    with hearing(config, "rows") as plain, hearing(config, "^rowss/", pattern=True) as parts:
        run_program("failing", tmp_path, config, "rows", COUNT, cluster.url)
        got = plain.wait(COUNT)
        assert same([number for _, number, _ in got], range(COUNT))
        wanted = [b"%d/%d" % (row * PARTITIONS // COUNT, row) for row in range(COUNT)]
        assert same([payload for _, _, payload in got], wanted)
        got = parts.wait(COUNT)
        for partition in range(PARTITIONS):
            mine = [(number, payload) for topic, number, payload in got if topic == f"rowss/{partition}"]
            begin = partition * COUNT // PARTITIONS
            assert same(mine, [(row, wanted[begin + row]) for row in range(COUNT // PARTITIONS)])
    assert not staged_files(tmp_path / "state")
    for topic in ("rows", "rowss"):
        assert marked(tmp_path, topic, "failed") == [str(each) for each in range(PARTITIONS) if each != SLOW]
        assert marked(tmp_path, topic, "began") == marked(tmp_path, topic, "wrote") == ["0", "1"]
