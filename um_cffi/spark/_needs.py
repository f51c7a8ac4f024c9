"""What Spark itself needs, and plain words where it is missing. Imported on drivers, by planners and by executors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

JAVA_MIN = 17
_REMEDY = "pip install 'um-cffi[spark]'"


def need_pyspark() -> Any:
    """The module pyspark, of 4.0 at least. ImportError says how to get it."""
    try:
        import pyspark
        import pyspark.sql.datasource  # new in 4.0
    except ImportError as error:
        if getattr(error, "name", None) == "pyspark.sql.datasource":
            found = getattr(pyspark, "__version__", "an old one")
            raise ImportError(f"um_cffi.spark needs PySpark 4.0 or later, this is {found}: {_REMEDY}") from error
        raise ImportError(f"um_cffi.spark needs PySpark 4.0 or later: {_REMEDY} ({error})") from error
    return pyspark


def need_arrow() -> Any:
    """The module pyarrow. ImportError says how to get it."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError(f"um_cffi.spark needs pyarrow: {_REMEDY} ({error})") from error
    return pyarrow


def check_java() -> int:
    """The version of the Java runtime that Spark would start: JAVA_HOME's, or that of the PATH. RuntimeError says what
    is missing. To be called before a session is made, which tells of a missing Java in many lines only."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    remedy = f"install a Java runtime of version {JAVA_MIN} or later (Debian: apt-get install default-jre-headless)"
    if shutil.which(program) is None:
        where = f"JAVA_HOME is {home}, and {program} is no program" if home else "there is no `java` in the PATH"
        raise RuntimeError(f"Spark needs Java: {where}; {remedy}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode != 0 or found is None:
        raise RuntimeError(f"Spark needs Java: `{program} -version` failed ({said.returncode}); {remedy}")
    if int(found[1]) < JAVA_MIN:
        raise RuntimeError(f"Spark needs Java {JAVA_MIN}, and {program} is version {found[1]}; {remedy}")
    return int(found[1])
