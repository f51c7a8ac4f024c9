"""The sink when tasks fail, come twice, and when the driver is killed: each row once, in order, at a receiver of hot
failover. UM_SOAK: more kills, and Spark's own speculation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pairs import SOAK, same
from spark_sink_failing import POINTS
from spark_sink_program import BATCHES, FILES, ROWS
from spark_sinks import HANG, configured, environment_of_programs, hearing, staged_files

from um_cffi.spark._numbers import NumberBook

COUNT = 200_000
PARTITIONS = 4
PROGRAM = Path(__file__).parents[1] / "support" / "spark_sink_program.py"


def run(what: str, *arguments: object, status: int = 0) -> None:
    command = [sys.executable, "-X", "faulthandler", str(PROGRAM), what, *(str(each) for each in arguments)]
    done = subprocess.run(
        command, env=environment_of_programs(), capture_output=True, text=True, timeout=3 * HANG, check=False
    )
    assert done.returncode == status, (
        f"{what} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}"
    )


def test_200000_rows_of_tasks_that_fail_once_and_come_twice_are_received_once(tmp_path: Path) -> None:
    config = configured(tmp_path)
    with hearing(config, "rows") as plain, hearing(config, "^rowss/", pattern=True) as parts:
        run("failing", tmp_path, config, "rows", COUNT)
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


@pytest.mark.parametrize("point", POINTS if SOAK else POINTS[1:2])
def test_a_driver_that_is_killed_goes_on_with_the_same_numbers(tmp_path: Path, point: str) -> None:
    config = configured(tmp_path)
    (tmp_path / "kill").write_text(f"{point} 2")
    with hearing(config, "killed") as heard:
        run("stream", tmp_path, config, "killed", status=-signal.SIGKILL)
        assert (tmp_path / "killed").exists()
        run("stream", tmp_path, config, "killed")
        got = heard.wait(FILES * ROWS)
        assert same(
            [(number, payload) for _, number, payload in got], [(row, b"%06d" % row) for row in range(FILES * ROWS)]
        )
    assert NumberBook(str(tmp_path / "checkpoint.ultramessaging")).next_number("killed") == FILES * ROWS
    assert not staged_files(tmp_path / "checkpoint.ultramessaging")


def test_k6_commits_killed_at_every_point_are_repeated_with_the_same_numbers(tmp_path: Path) -> None:
    config = configured(tmp_path)
    kills = 20 if SOAK else 0
    with hearing(config, "commits") as heard:
        run("commits", tmp_path, config, "commits", kills, int(os.environ.get("UM_SEED", "1")))
        queries = len(POINTS) + kills + 1
        got = heard.wait(queries * FILES * ROWS)
    assert BATCHES * 2 == FILES
    wanted = [b"query %d: %d" % (query, row) for query in range(queries) for row in range(FILES * ROWS)]
    assert same([number for _, number, _ in got], range(len(wanted)))
    assert same([payload for _, _, payload in got], wanted)
    assert not staged_files(tmp_path / "state")
