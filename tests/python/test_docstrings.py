"""Every public name of the package says what it is: types, parameters, units, errors, threads.

The public names are those that `um_cffi` and its modules config, errors, events, logs, pdm, sdm, stats and testing list
in `__all__`, with the public methods and properties of the classes among them. What is asked of a docstring is written
in the tests below.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import um_cffi
from um_cffi import config, errors, events, logs, pdm, sdm, stats, testing

ROOT = Path(__file__).resolve().parents[2]
MODULES: tuple[Any, ...] = (config, errors, events, logs, pdm, sdm, stats, testing)
UNITS = {  # parameters that are quantities, and the words one of which tells the unit
    "lbtrm": ("percent",),
    "lbtru": ("percent",),
    "timeout": ("second",),
    "seconds": ("second",),
    "interval": ("second",),
    "duration": ("second",),
    "queue_bytes": ("byte",),
    "max_messages": ("messages", "records"),
    "count": ("receiving contexts", "number", "messages"),
    "size": ("bytes",),
    "sources": ("sources",),
}
TIMED = re.compile(r"(?:^|_)(ns|us|ms|bytes)$")
EXCEPTIONS = re.compile(
    r"\b("
    + "|".join([*errors.__dict__, "PDMError", "SDMError"])
    + "|KeyboardInterrupt|FileNotFoundError|IndexError|ImportError"
    + r")\b"
)
RAISING = re.compile(r"\b(raise (?!SystemExit)|check\(|raise_last\(|check_option\(|_check_pull\(|_check_open\()")


def public(name: str) -> bool:
    return not name.startswith("_")


def of_package(thing: object) -> bool:
    return str(getattr(thing, "__module__", "")).startswith("um_cffi")


def names() -> Iterator[tuple[str, object]]:
    """Every public name and what it stands for; methods as Class.method. What has the name of something before it has
    that of its module before its own: pdm:Message."""
    seen: dict[int, str] = {}
    for module in (um_cffi, *MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if id(thing) not in seen and (inspect.isclass(thing) or inspect.isfunction(thing)):
                if name in seen.values():
                    name = f"{module.__name__.rpartition('.')[2]}:{name}"
                seen[id(thing)] = name
                yield name, thing
                if inspect.isclass(thing):
                    yield from ((f"{name}.{member}", value) for member, value in members_of(thing))


def members_of(kind: type) -> Iterator[tuple[str, object]]:
    for base in (base for base in kind.__mro__ if of_package(base)):
        for name, value in vars(base).items():
            if public(name) and (isinstance(value, property) or inspect.isfunction(value)):
                yield name, value


NAMES = dict(names())
CLASSES = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}
CALLS: dict[str, Callable[..., Any]] = {name: thing for name, thing in NAMES.items() if inspect.isfunction(thing)}


def words_of(name: str) -> str:
    """The docstring, without line breaks; of a class, that of its __init__ belongs to it."""
    return re.sub(r"\s+", " ", inspect.getdoc(NAMES[name]) or "")


def rules_of(name: str) -> str:
    """The docstring of a call and of the class it belongs to: what the class says holds for its methods."""
    owner = name.partition(".")[0]
    return words_of(name) + " " + (words_of(owner) if owner != name else "")


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    return [each for each in inspect.signature(call).parameters.values() if each.name != "self"]


def callables() -> dict[str, Callable[..., Any]]:
    """Functions and methods, and the classes that users make objects of, by their __init__."""
    makers = {
        name: thing.__init__
        for name, thing in CLASSES.items()
        if not is_dataclass(thing)
        and not issubclass(thing, (enum.Enum, Exception, tuple))
        and name not in ("Timer", "Message", "Batch", "Slot")
    }
    return {**CALLS, **makers}


@pytest.mark.parametrize("name", list(NAMES))
def test_it_has_a_docstring_that_begins_with_a_sentence(name: str) -> None:
    words = words_of(name)
    assert re.match(r"[A-Z`\"(].{8,}?[.:;]", words), f"{name}: {words!r}"
    if not name.partition(".")[2]:
        assert "(" not in words.partition(" ")[0] or "=" not in words[:60], f"{name} has the docstring of a dataclass"


@pytest.mark.parametrize("name", list(callables()))
def test_types_of_parameters_and_result_are_declared(name: str) -> None:
    call = callables()[name]
    for each in parameters(call):
        assert each.annotation is not inspect.Parameter.empty, f"{name}: {each.name} has no type"
    assert inspect.signature(call).return_annotation is not inspect.Signature.empty, f"{name}: the result has no type"


@pytest.mark.parametrize("name", list(callables()))
def test_every_parameter_is_explained(name: str) -> None:
    words = rules_of(name)
    missing = []
    for each in parameters(callables()[name]):
        known = {"keywords": "keywords", "arguments": "arguments"}.get(each.name, each.name)
        if not re.search(rf"\b{known}\b", words):
            missing.append(each.name)
    assert not missing, f"{name} says nothing of {missing}: {words_of(name)}"


@pytest.mark.parametrize("name", list(callables()))
def test_quantities_have_units(name: str) -> None:
    words = rules_of(name)
    for each in parameters(callables()[name]):
        units = UNITS.get(each.name)
        if units:
            assert any(unit in words for unit in units), f"{name}: unit of {each.name}: {words}"


@pytest.mark.parametrize(
    "name", [name for name, call in callables().items() if RAISING.search(inspect.getsource(call))]
)
def test_errors_are_named(name: str) -> None:
    assert EXCEPTIONS.search(rules_of(name)), f"{name} raises, and does not say what: {words_of(name)}"


@pytest.mark.parametrize(
    "name", [name for name in CLASSES if name in callables()] + ["Batch", "Message", "Slot", "Timer"]
)
def test_threads_are_spoken_of(name: str) -> None:
    assert re.search(r"\bthreads?\b", words_of(name)), f"{name}: {words_of(name)}"


def test_modules_with_functions_speak_of_threads() -> None:
    for module in (config, logs, stats, testing):
        assert re.search(r"\bthreads?\b", inspect.getdoc(module) or ""), module.__name__


def documented_fields(kind: type) -> Iterator[tuple[str, str]]:
    """Fields of a dataclass or members of an enumeration, with the text behind (`#: `) or below (a string)."""
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    for at, node in enumerate(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        else:
            continue
        below = body[at + 1] if at + 1 < len(body) else None
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            yield name, str(below.value.value)
        else:
            yield name, lines[node.end_lineno - 1].partition("#: ")[2]


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if is_dataclass(kind)])
def test_fields_of_dataclasses_are_explained(name: str) -> None:
    for field, words in documented_fields(CLASSES[name]):
        assert len(words) > 2, f"{name}.{field}"
        unit = TIMED.search(field)
        if unit:
            spelled = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "bytes": "byte"}[unit.group(1)]
            assert spelled in words or re.search(rf"\b{unit.group(1)}\b", words), f"{name}.{field}: {words}"


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if issubclass(kind, enum.Enum)])
def test_members_of_enumerations_are_explained(name: str) -> None:
    for member, words in documented_fields(CLASSES[name]):
        assert len(words) > 2, f"{name}.{member}"


def test_exceptions_say_which_number_they_stand_for() -> None:
    for name, kind in CLASSES.items():
        if issubclass(kind, errors.UmError) and kind is not errors.UmError:
            own = kind.__module__ == errors.__name__  # the other modules have one for all numbers of their library
            assert re.search(r"^LBM_E\w+: " if own else r"\b(PDM|LBMSDM)_ERR_\*", words_of(name)), name


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "python" / "api.md").read_text()
    whole = {module.__name__ for module in MODULES if f"automodule:: {module.__name__}\n" in text}
    for name, thing in NAMES.items():
        if "." not in name:
            own = name.rpartition(":")[2]
            listed = re.search(rf"auto(?:class|function):: (?:um_cffi\.)?{own}$", text, re.MULTILINE)
            assert listed or thing.__module__ in whole, f"{name} is not in docs/python/api.md"
