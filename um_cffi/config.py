"""Configuration files: defaults for all objects made afterwards, in the library's text or XML form.

Text files hold lines `scope option value` with `#` comments; files whose names end in `.xml` follow the XML form.
Defaults are those of the process: load before making contexts. Any thread.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from um_cffi import logs
from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import name_bytes, path_of
from um_cffi.binding.attributes import Attributes, check_option, unknown_option
from um_cffi.binding.deferred import difflib, expat, json, subprocess
from um_cffi.binding.options import OPTIONS
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
    file: str = ""
    """The file."""
    scope: str = ""
    """Of the option; empty where no option is meant."""
    option: str = ""
    """The option that is set; empty where none is meant."""
    value: str = ""
    """The value it is given."""

    def __str__(self) -> str:
        place = ":".join(filter(None, (self.file, str(self.line) if self.line else "")))
        return f"{place}: {self.text}" if place else self.text


def load(path: str | os.PathLike[str], application: str | None = None) -> None:
    """Load the file `path` into the defaults of the process. Any thread.

    `application` chooses the application of an XML file that names several. Wrong lines of a text file are logged and
    skipped; InvalidArgument then names the last one. XML can be loaded once per process: InvalidOperation after that.
    """
    logs.start_unless_disabled()
    file = path_of("config.load()", path)
    name = os.fsencode(file)
    called = ffi.NULL if application is None else name_bytes("config.load()", "application", application)
    if not Path(file).is_file():
        raise InvalidArgument(f"configuration file {file}: there is no such file")
    if name.endswith(b".xml"):
        check(lib.lbm_config_xml_file(name, called))
    elif application is not None:
        raise InvalidArgument(f"application {application}: only XML files have applications")
    else:
        check(lib.lbm_config(name))


def validate(path: str | os.PathLike[str], application: str | None = None) -> list[Problem]:
    """Everything that is wrong in the file `path`, without changing anything; an empty list when all is well.

    All problems are told at once, each with its line, option and value. Every setting is checked against the option
    table and by the library, in a process of its own; then the file is loaded there, for `application` if given. Any
    thread. Nothing is raised for a file that is wrong or missing; InvalidArgument when `path` is no name of a file.
    """
    file = path_of("config.validate()", path)
    if application is not None:
        name_bytes("config.validate()", "application", application)
    if not Path(file).is_file():
        return [Problem(0, "there is no such file", file)]
    program = "import sys; from um_cffi import config; config._report(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", program, file, *([application] if application is not None else [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return [Problem(**each) for each in json.loads(done.stdout)]
    except ValueError:  # the checking process broke
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        return [Problem(0, line, file) for line in lines[-3:]] or [Problem(0, "cannot be checked", file)]


def _report(path: str, application: str | None = None) -> None:
    """In the process made by validate(): print all problems as JSON."""
    settings = _xml_settings if path.endswith(".xml") else _text_settings
    problems = [problem for setting in settings(path) for problem in _check_setting(path, setting)]
    if not problems:
        problems = _load_problems(path, application)
    print(json.dumps([asdict(problem) for problem in problems]))


@dataclass(frozen=True)
class _Setting:
    """One option that a file sets, or a line that cannot be read."""

    line: int
    scope: str
    option: str
    value: str
    text: str = ""
    """What is wrong with the line itself."""


def _text_settings(path: str) -> Iterator[_Setting]:
    for number, line in enumerate(Path(path).read_text(errors="surrogateescape").splitlines(), 1):
        words = line.split("#", 1)[0].split(None, 2)
        if 0 < len(words) < 3:
            yield _Setting(number, words[0], "", "", f"{line.strip()}: must be scope, option and value")
        elif words:
            yield _Setting(number, words[0], words[1], words[2].strip())


def _xml_settings(path: str) -> Iterator[_Setting]:
    """The options that an XML file sets or admits; what else the file holds is the library's matter."""
    found: list[_Setting] = []
    scopes: list[str] = []
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:
        if name == "options":
            scopes.append(attributes.get("type", "").replace("-", "_"))
        elif name == "option" and scopes:
            option, value = attributes.get("name", ""), attributes.get("default-value")
            found.append(_Setting(parser.CurrentLineNumber, scopes[-1], option, value or "", "" if value else "-"))

    def end(name: str) -> None:
        if name == "options" and scopes:
            scopes.pop()

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        parser.Parse(Path(path).read_bytes(), True)
    except expat.ExpatError as error:
        found.append(_Setting(error.lineno, "", "", "", f"not well-formed XML: {expat.ErrorString(error.code)}"))
    yield from found


def _check_setting(path: str, setting: _Setting) -> list[Problem]:
    try:
        if setting.text and setting.text != "-":
            raise InvalidArgument(setting.text)
        if setting.scope in _OTHER_SCOPES:
            return []
        if setting.scope not in OPTIONS:
            near = difflib.get_close_matches(setting.scope, [*OPTIONS, *_OTHER_SCOPES], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidArgument(
                f"scope {setting.scope}: must be one of {', '.join([*OPTIONS, *_OTHER_SCOPES])}{hint}"
            )
        if setting.text == "-":  # an option without a value: only its name counts
            check_option((setting.scope,), setting.option, OPTIONS[setting.scope][setting.option].default)
            return []
        _, written = check_option((setting.scope,), setting.option, setting.value)
        with Attributes(setting.scope, {setting.option: written}):
            return []
    except KeyError:
        return [_problem(path, setting, str(unknown_option((setting.scope,), setting.option)))]
    except UmError as error:
        return [_problem(path, setting, str(error))]


def _problem(path: str, setting: _Setting, text: str) -> Problem:
    return Problem(setting.line, text, path, setting.scope, setting.option, setting.value)


def _load_problems(path: str, application: str | None) -> list[Problem]:
    """What the library says when it loads the whole file: what it logs (XML), and the error."""
    said: list[str] = []
    logs.logger.addHandler(_Collect(said))
    logs.logger.propagate = False
    logs.enable()
    try:
        load(path, application)
    except UmError as error:
        logs.flush()
        return [Problem(0, text, path) for text in dict.fromkeys([*said, str(error)])]
    logs.flush()
    return [Problem(0, text, path) for text in dict.fromkeys(said) if "ignoring" in text]


class _Collect(logging.Handler):
    """Keeps the lines of warnings and errors."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
