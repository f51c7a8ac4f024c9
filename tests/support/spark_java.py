"""How the Java machines of the tests are started: they run for seconds, so what they need for the start counts.

Half of that is loading classes, some thousand of them from some hundred files. The checks make an archive of these once
for a build tree (`python tests/support/spark_java.py`), from which a machine maps them (Java's class data sharing): a
session starts for 3.5 seconds of a processor instead of 7.9. Without an archive, or with one that is older than what it
was made of, everything holds as well.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve() / "spark-classes.jsa"
SECONDS = 300.0
LITTLE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

LOADS = """
import sys
from pathlib import Path
from spark_sessions import session
folder = Path(sys.argv[1])
spark = session(folder)
spark.range(100).mapInArrow(lambda batches: batches, "id long").write.parquet(str(folder / "rows"))
assert spark.read.parquet(str(folder / "rows")).groupBy().sum("id").collect()[0][0] == 4950
stream = spark.readStream.schema("id long").parquet(str(folder / "rows")).writeStream.format("parquet")
query = stream.option("checkpointLocation", str(folder / "state")).start(str(folder / "out"))
query.processAllAvailable()
query.stop()
spark.stop()
"""


def made_of() -> list[Path]:
    """Java, the one that Spark takes, and the files of Spark; none where one of the two is missing."""
    home = os.environ.get("JAVA_HOME")
    java, spark = shutil.which(f"{home}/bin/java" if home else "java"), importlib.util.find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        return []
    return [Path(java).resolve(), *(Path(spark.origin).parent / "jars").glob("*.jar")]


def current() -> bool:
    """Whether there is an archive that is not older than what it was made of."""
    parts = made_of()
    return bool(parts) and ARCHIVE.exists() and ARCHIVE.stat().st_mtime > max(part.stat().st_ctime for part in parts)


def options() -> str:
    """Words for the command line of a Java machine."""
    return f"{LITTLE} -XX:SharedArchiveFile={ARCHIVE}" if current() else LITTLE


def make() -> None:
    """Run a session that uses what the tests use, and keep the classes that it has loaded."""
    from spark_sessions import environment

    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    submit = Path(spec.origin).parent / "bin" / "spark-submit"
    fresh = ARCHIVE.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "loads.py"
        script.write_text(LOADS)
        words = [str(submit), "--driver-java-options", f"{LITTLE} -XX:ArchiveClassesAtExit={fresh}", str(script), name]
        env = {**os.environ, **environment()}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "support"), env["PYTHONPATH"]])
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0 or not fresh.exists():
        sys.exit(
            f"no archive of Spark's classes was made: exit {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}"
        )
    fresh.replace(ARCHIVE)


if __name__ == "__main__":
    if made_of() and not current():
        make()
