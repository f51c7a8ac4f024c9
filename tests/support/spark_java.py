"""How Spark's processes are started in tests: they run for seconds, so what they need for the start counts.

Half of what a Java machine needs is loading classes, some thousand of them from some hundred files. The checks make an
archive of these once for a build tree (`python tests/support/spark_java.py`), from which a machine maps them (Java's
class data sharing): a session starts for 3.5 seconds of a processor instead of 7.9. Two thirds of what a process of
Python needs is compiling PySpark, which Spark has it read from an archive of sources. The same command makes a folder
(SPARK_HOME) with the same Spark, where Python finds PySpark as it was installed, compiled: a process starts for 0.25
seconds of a processor instead of 0.65. Without the two, or with ones that are older than what they were made of,
everything holds as well.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("UM_BUILD_DIR", ROOT / "build")).resolve() / "spark-home"
ARCHIVE = HOME / "classes.jsa"
PARTS_OF_HOME = ("bin", "sbin", "jars")
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


def installed() -> Path | None:
    """The folder of PySpark where that brought Spark with it; it is a home of Spark, too."""
    spark = importlib.util.find_spec("pyspark")
    folder = None if spark is None or spark.origin is None else Path(spark.origin).parent
    return folder if folder is not None and (folder / "jars").is_dir() else None


def made_of() -> list[Path]:
    """Java, the one that Spark takes, and the files of Spark; none where one of the two is missing."""
    folder = os.environ.get("JAVA_HOME")
    java, spark = shutil.which(f"{folder}/bin/java" if folder else "java"), installed()
    if java is None or spark is None:
        return []
    return [Path(java).resolve(), *(spark / "jars").glob("*.jar")]


def current() -> bool:
    """Whether there is an archive that is not older than what it was made of, beside links to the same Spark."""
    spark, parts = installed(), made_of()
    if spark is None or not parts or not ARCHIVE.exists() or (HOME / "jars").resolve() != (spark / "jars").resolve():
        return False
    return ARCHIVE.stat().st_mtime > max(part.stat().st_ctime for part in parts)


def options() -> str:
    """Words for the command line of a Java machine."""
    return f"{LITTLE} -XX:SharedArchiveFile={ARCHIVE}" if current() else LITTLE


def home() -> dict[str, str]:
    """What tells which Spark to start; nothing where PySpark brought none."""
    folder = HOME if current() else installed()
    return {} if folder is None else {"SPARK_HOME": str(folder)}


def make_home(spark: Path) -> None:
    """Links to what is installed. Spark has Python look for a package in an archive; a folder in its place will do."""
    shutil.rmtree(HOME, ignore_errors=True)
    lib = HOME / "python" / "lib"
    lib.mkdir(parents=True)
    for name in PARTS_OF_HOME:
        (HOME / name).symlink_to(spark / name)
    for archive in (spark / "python" / "lib").glob("*.zip"):
        package = spark.parent / re.split("[-.]", archive.name)[0]  # pyspark.zip, py4j-0.10.9.9-src.zip
        if package.is_dir():
            (lib / archive.name).mkdir()
            (lib / archive.name / package.name).symlink_to(package)
        else:
            (lib / archive.name).symlink_to(archive)


def make(spark: Path) -> None:
    """Run a session that uses what the tests use, and keep the classes that it has loaded."""
    from spark_sessions import environment

    make_home(spark)
    fresh = ARCHIVE.with_suffix(".new")
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "loads.py"
        script.write_text(LOADS)
        java = f"{LITTLE} -XX:ArchiveClassesAtExit={fresh}"
        words = [str(HOME / "bin" / "spark-submit"), "--driver-java-options", java, str(script), name]
        env = {**os.environ, **environment(), "SPARK_HOME": str(HOME)}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "support"), env["PYTHONPATH"]])
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0 or not fresh.exists():
        sys.exit(
            f"no archive of Spark's classes was made: exit {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}"
        )
    fresh.replace(ARCHIVE)


if __name__ == "__main__":
    found = installed()
    if found is not None and made_of() and not current():
        make(found)
