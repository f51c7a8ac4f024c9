"""The sink when the driver is killed: each row once, in order, at a receiver of hot failover. UM_SOAK: more kills."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pairs import SOAK, same
from spark_sink_failing import POINTS
from spark_sink_program import BATCHES, FILES, ROWS
from spark_sinks import configured, hearing, run_program, staged_files

from um_cffi.spark._numbers import NumberBook


@pytest.mark.parametrize("point", POINTS if SOAK else POINTS[1:2])
def test_a_driver_that_is_killed_goes_on_with_the_same_numbers(tmp_path: Path, point: str) -> None:
    config = configured(tmp_path)
    (tmp_path / "kill").write_text(f"{point} 2")
    with hearing(config, "killed") as heard:
        run_program("stream", tmp_path, config, "killed", status=-signal.SIGKILL)
        assert (tmp_path / "killed").exists()
        run_program("stream", tmp_path, config, "killed")
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
        run_program("commits", tmp_path, config, "commits", kills, int(os.environ.get("UM_SEED", "1")))
        queries = len(POINTS) + kills + 1
        got = heard.wait(queries * FILES * ROWS)
    assert BATCHES * 2 == FILES
    wanted = [b"query %d: %d" % (query, row) for query in range(queries) for row in range(FILES * ROWS)]
    assert same([number for _, number, _ in got], range(len(wanted)))
    assert same([payload for _, _, payload in got], wanted)
    assert not staged_files(tmp_path / "state")
