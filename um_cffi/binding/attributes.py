"""Option checking, and the attribute objects that carry options into the library.

Names, values and bounds are checked against the option table before the library sees them, so that a mistake is
answered with what was meant and what is allowed; the library has the last word.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from um_cffi.binding._native import ffi, lib
from um_cffi.binding.arguments import name_bytes, options_of, shown, value_bytes
from um_cffi.binding.deferred import difflib
from um_cffi.binding.options import OPTIONS, Option
from um_cffi.errors import InvalidArgument, check, text

# Scope of the option table, and the name of its attribute object in the library.
PREFIXES = {
    "context": "lbm_context_attr",
    "source": "lbm_src_topic_attr",
    "receiver": "lbm_rcv_topic_attr",
    "wildcard_receiver": "lbm_wildcard_rcv_attr",
    "event_queue": "lbm_event_queue_attr",
    "xsp": "lbm_xsp_attr",
}
TIMES = ("microseconds", "milliseconds", "seconds")
OPTION_VALUE_MAX = 4096  # bytes of a value read back


def option_text(value: object) -> str:
    """A value as configuration files write it: True is 1, 0.5 is 0.5, paths are their text."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, os.PathLike):
        return os.fsdecode(os.fspath(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"{shown(value)} is bytes: give a str or a number")
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        raise InvalidArgument(f"{shown(value)} is of type {type(value).__name__}: give a str or a number")
    return str(value)


def unknown_option(scopes: tuple[str, ...], name: str) -> InvalidArgument:
    """The error for a name that no option of the scopes has, with what may be meant."""
    known = list(dict.fromkeys(option for scope in scopes for option in OPTIONS[scope]))
    others = [scope for scope, options in OPTIONS.items() if name in options and scope not in scopes]
    where = " or ".join(scopes)
    if others:
        return InvalidArgument(f"{name} is not a {where} option but a {' and '.join(others)} option: set it there")
    near = difflib.get_close_matches(name, known, 3, 0.6)
    foreign = {option: scope for scope, options in OPTIONS.items() for option in options if option not in known}
    nearest = difflib.get_close_matches(name, [*near[:1], *foreign], 1, 0.6)
    if nearest and nearest[0] in foreign:
        near.append(f"the {foreign[nearest[0]]} option {nearest[0]}")
    hint = f": did you mean {' or '.join(near)}?" if near else f"; docs/options.md lists the {where} options"
    return InvalidArgument(f"{where} option {name} does not exist{hint}")


def _allowed(option: Option) -> str:
    low, high = option.minimum, option.maximum
    if low is not None and high is not None:
        words = f"{low}..{high}"
    elif low is not None:
        words = f"at least {low}"
    elif high is not None:
        words = f"at most {high}"
    else:
        words = ""
    if option.values:
        names = ", ".join(option.values)
        words = f"{words}, more exactly {names}" if words else f"one of {names}"
    return f"{words} {option.units}".strip()


def _check_number(scope: str, name: str, option: Option, value: str) -> None:
    try:
        number = int(value, 0)
    except ValueError:
        return  # the library knows units, ranges and special words
    raised = option.units in TIMES and number >= 0  # the library takes the minimum, and warns
    if (option.minimum is not None and number < option.minimum and not raised) or (
        option.maximum is not None and number > option.maximum
    ):
        raise InvalidArgument(f"{scope} option {name} {value}: must be {_allowed(option)} (default {option.default})")


def check_option(scopes: tuple[str, ...], name: str, value: object) -> tuple[str, str]:
    """The scope that has the option, and its value as text; InvalidArgument tells what is wrong."""
    name_bytes(f"option of the scope {' or '.join(scopes)}", "name", name)
    scope = next((scope for scope in scopes if name in OPTIONS[scope]), None)
    if scope is None:
        raise unknown_option(scopes, name)
    option = OPTIONS[scope][name]
    if value is None:
        raise InvalidArgument(f"{scope} option {name} None: leave it out for the default ({option.default or 'unset'})")
    try:
        written = option_text(value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{scope} option {name}: {error} (default {option.default or 'unset'})") from None
    value_bytes(f"{scope} option {name}", written)
    if option.kind == "SWITCH" and written not in ("0", "1"):
        raise InvalidArgument(f"{scope} option {name} {written}: must be True or False (default {option.default})")
    known = {name.lower(): name for name in option.values} if option.kind == "ENUM" else {}
    if option.kind == "ENUM" and not written.lstrip("-").isdigit() and written.lower() not in known:
        near = difflib.get_close_matches(written.lower(), known, 1, 0.5)
        hint = f"; did you mean {known[near[0]]}?" if near else ""
        raise InvalidArgument(
            f"{scope} option {name} {written}: must be {_allowed(option)} (default {option.default}){hint}"
        )
    if option.kind in ("NUMBER", "RATE", "PORT"):
        _check_number(scope, name, option, written)
    return scope, written


def merged(options: Mapping[str, object] | None, keywords: Mapping[str, object]) -> dict[str, object]:
    """Options given as a mapping and as keywords together; keywords win."""
    return {**options_of("options", options), **keywords}


def sorted_out(scopes: tuple[str, ...], options: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Checked options by scope. An option that several of the scopes have belongs to the first."""
    out: dict[str, dict[str, str]] = {scope: {} for scope in scopes}
    for name, value in options.items():
        scope, written = check_option(scopes, name, value)
        out[scope][name] = written
    return out


class Attributes:
    """An attribute object of the library, filled with checked options; deleted at the end of the `with` block."""

    def __init__(self, scope: str, options: Mapping[str, str]) -> None:
        self._scope = scope
        self._prefix = PREFIXES[scope]
        self._options = options
        self._attr: Any = None

    def _call(self, name: str, *arguments: Any) -> None:
        check(getattr(lib, f"{self._prefix}_{name}")(*arguments))

    def __enter__(self) -> Attributes:
        holder = ffi.new(f"{self._prefix}_t **")
        self._call("create", holder)
        self._attr = holder[0]
        try:
            for name, value in self._options.items():
                self._call("str_setopt", self._attr, name.encode(), value_bytes(name, value))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        attr, self._attr = self._attr, None
        self._call("delete", attr)

    @property
    def pointer(self) -> Any:
        """The attribute object, for the creating call."""
        return self._attr

    def get(self, name: str) -> str:
        """The value of an option as text, defaults of configuration files included."""
        return read_option(getattr(lib, f"{self._prefix}_str_getopt"), self._attr, name)


def read_option(getter: Any, handle: Any, name: str) -> str:
    """The text value of an option through one of the library's str_getopt functions."""
    room = ffi.new("char[]", OPTION_VALUE_MAX)
    size = ffi.new("size_t *", OPTION_VALUE_MAX)
    check(getter(handle, name_bytes("getopt()", "name", name), room, size))
    return text(room)
