"""Configuration files: defaults for all objects made afterwards, in the library's text or XML form.

Text files hold lines `scope option value` with `#` comments; files whose names end in `.xml` follow the XML form.
Defaults are those of the process: load before making contexts. Any thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from um_cffi import logs
from um_cffi._attributes import check_option
from um_cffi._native import ffi, lib
from um_cffi._options import OPTIONS
from um_cffi.errors import InvalidArgument, UmError, check

__all__ = ["Problem", "load", "validate"]

_OTHER_SCOPES = ("hfx", "xsp")  # of the library, without an object in Python yet


@dataclass(frozen=True)
class Problem:
    """Something wrong in a configuration file."""

    line: int
    """Counted from 1; 0 when the file as a whole is meant."""
    text: str
    """What is wrong, with the value and what is allowed."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


def load(path: str | os.PathLike[str], application: str | None = None) -> None:
    """Load the file `path` into the defaults of the process. Any thread.

    `application` chooses the application of an XML file that names several. Wrong lines of a text file are logged and
    skipped; InvalidArgument then names the last one. XML can be loaded once per process: InvalidOperation after that.
    """
    logs.start_unless_disabled()
    name = os.fsencode(path)
    if not Path(path).is_file():
        raise InvalidArgument(f"configuration file {os.fspath(path)}: there is no such file")
    if name.endswith(b".xml"):
        check(lib.lbm_config_xml_file(name, ffi.NULL if application is None else application.encode()))
    elif application is not None:
        raise InvalidArgument(f"application {application}: only XML files have applications")
    else:
        check(lib.lbm_config(name))


def validate(path: str | os.PathLike[str], application: str | None = None) -> list[Problem]:
    """Everything that is wrong in the file `path`, without changing anything; an empty list when all is well.

    A text file is checked here against the option table, line by line; an XML file is loaded by the library, for
    `application` if given, in a process of its own. Any thread. Nothing is raised for a file that is wrong or missing.
    """
    if not Path(path).is_file():
        return [Problem(0, f"configuration file {os.fspath(path)}: there is no such file")]
    if os.fspath(path).endswith(".xml"):
        return _validate_xml(path, application)
    problems = []
    for number, line in enumerate(Path(path).read_text(errors="surrogateescape").splitlines(), 1):
        try:
            _check_line(line)
        except UmError as error:
            problems.append(Problem(number, str(error)))
    return problems or _ask_library(path, application)


def _check_line(line: str) -> None:
    words = line.split("#", 1)[0].split(None, 2)
    if not words:
        return
    scope, *rest = words
    if scope in _OTHER_SCOPES:
        return
    if scope not in OPTIONS:
        raise InvalidArgument(f"scope {scope}: must be one of {', '.join([*OPTIONS, *_OTHER_SCOPES])}")
    if len(rest) < 2:
        raise InvalidArgument(f"{line.strip()}: must be scope, option and value")
    name, value = rest
    check_option((scope,), name, value.strip().strip('"'))


def _validate_xml(path: str | os.PathLike[str], application: str | None) -> list[Problem]:
    return _ask_library(path, application)


def _ask_library(path: str | os.PathLike[str], application: str | None) -> list[Problem]:
    program = "import sys; from um_cffi import config; config._report(*sys.argv[1:])"
    arguments = [os.fspath(path)] + ([application] if application is not None else [])
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return []
    lines = [*done.stderr.splitlines(), *done.stdout.splitlines()]  # what the library has logged, then the error
    return [Problem(0, line) for line in lines if line.strip()]


def _report(path: str, application: str | None = None) -> None:
    """In the process made by validate(): load, print what is wrong."""
    logs.disable()
    try:
        load(path, application)
    except UmError as error:
        print(error)
        raise SystemExit(1) from None
