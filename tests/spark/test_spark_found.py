"""Spark finds the data source by itself, and what is missing is told in plain words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_the_format_is_found_without_a_call(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"option recording .*: no recording, .*um record -o"):
        spark.read.format("ultramessaging").option("recording", str(tmp_path)).load()


def test_it_can_be_registered(spark: Any, tmp_path: Path) -> None:
    from um_cffi.spark import UltraMessagingDataSource

    spark.dataSource.register(UltraMessagingDataSource)
    with pytest.raises(Exception, match="option recording"):
        spark.read.format("ultramessaging").load()


def run(program: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_a_missing_pyspark_is_told_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("import sys; sys.modules['pyspark'] = None\nimport um_cffi.spark", **os.environ)
    assert said.startswith("ImportError: um_cffi.spark needs PySpark 4.0 or later: pip install 'um-cffi[spark]'")


def test_a_missing_java_is_told_plainly(tmp_path: Path) -> None:
    program = "from um_cffi.spark import check_java; check_java()"
    said = run(program, **{**os.environ, "JAVA_HOME": str(tmp_path)})
    assert f"Spark needs Java: JAVA_HOME is {tmp_path}" in said and "apt-get install default-jre-headless" in said
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    said = run(program, **{**os.environ, "JAVA_HOME": str(tmp_path)})
    assert "Spark needs Java 17" in said and "is version 8" in said
