"""A cluster of Spark for tests: a master and two workers of one core each, on loopback.

The workers are on different hosts as far as Spark knows (127.0.0.1 and 127.0.0.2), since it starts the speculative copy
of a task on another host alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pairs import HANG
from spark_java import options
from spark_sessions import LOCAL, environment

HOSTS = (LOCAL, "127.0.0.2")
JAVA = options()
SETTINGS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.host": LOCAL,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""What an application needs to use all of the cluster, and little of the machine."""


@dataclass
class Cluster:
    """A cluster that runs."""

    url: str
    log: Path
    """Of the master."""

    def launched(self) -> list[str]:
        """A line for each executor that was started."""
        return [line for line in self.log.read_text().splitlines() if "Launching executor" in line]


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOCAL, 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster whose files are in a folder. Ends what it has started."""
    env = {**os.environ, **environment(), "SPARK_DAEMON_MEMORY": "256m"}
    home = Path(env["SPARK_HOME"])
    env["SPARK_DAEMON_JAVA_OPTS"] = JAVA
    url = f"spark://{LOCAL}:{free_port()}"
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, host: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", host]
        with log.open("wb") as out:
            running.append(
                subprocess.Popen([*command, "--webui-port", "0", *words], env=env, stdout=out, stderr=out, cwd=folder)
            )
        return log

    try:
        log = start("master", "master.Master", LOCAL, "--port", url.rpartition(":")[2])
        for number, host in enumerate(HOSTS):
            work = str(folder / f"work{number}")
            start(f"worker{number}", "worker.Worker", host, "--cores", "1", "--memory", "512m", "--work-dir", work, url)
        yield Cluster(url, log)
    finally:
        for process in reversed(running):  # workers end their executors
            process.terminate()
            try:
                process.wait(HANG)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
