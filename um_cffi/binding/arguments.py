"""Checks of what callers pass, before the library sees it: each answer names the call, the value and the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from um_cffi.binding.deferred import is_integer, np
from um_cffi.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt


def shown(value: object) -> str:
    """A value for an error text, of a length that fits a line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def name_bytes(call: str, what: str, value: object) -> bytes:
    """A name (topic, pattern, option) for the library. It must be a str without NUL that UTF-8 can write."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise InvalidArgument(f"{call}: {what} {shown(value)} is bytes: give a str, for example {what}.decode()")
    if not isinstance(value, str):
        raise InvalidArgument(f"{call}: {what} {shown(value)} is of type {type(value).__name__}: give a str")
    if "\0" in value:
        raise InvalidArgument(f"{call}: {what} {shown(value)} contains a NUL character: leave it out")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{call}: {what} {shown(value)} cannot be written in UTF-8: {error.reason}") from None


def value_bytes(what: str, value: str) -> bytes:
    """The text of an option's value for the library; names of files may hold bytes that are not UTF-8."""
    if "\0" in value:
        raise InvalidArgument(f"{what} {shown(value)}: contains a NUL character: leave it out")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} {shown(value)}: cannot be written in UTF-8: {error.reason}") from None


def expect_context(call: str, value: object) -> None:
    """`value` must be an open context; `call` is how the call is written, as in Source(ctx, topic)."""
    from um_cffi.context import Context

    if not isinstance(value, Context):
        raise InvalidArgument(f"{call}: {shown(value)} is not a Context, which is the first argument")


def number(what: str, value: object) -> float:
    """A number of seconds or the like; not NaN."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} {shown(value)}: must be a number, not {type(value).__name__}") from None
    if isinstance(value, (str, bytes)):
        raise InvalidArgument(f"{what} {shown(value)}: must be a number, not {type(value).__name__}")
    return result


def whole(what: str, value: object, least: int = 0) -> int:
    """A whole number that counts something."""
    try:
        result = value.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        text = f"{what} {shown(value)}: must be a whole number, not {type(value).__name__}"
        raise InvalidArgument(text) from None
    if not least <= result < 2**31:
        raise InvalidArgument(f"{what} {shown(value)}: must be {least} or more, below 2147483648")
    return int(result)


def dtype_of(call: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A dtype of numpy from what stands for one."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:
        raise InvalidArgument(f"{call}: dtype {shown(dtype)}: {error}") from None
    return kind


def options_of(call: str, options: object) -> Mapping[str, Any]:
    """Options given as a mapping: names to values."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        text = (
            f"{call}: options {shown(options)} is of type {type(options).__name__}: give a mapping of names to values"
        )
        raise InvalidArgument(text)
    for name in options:
        name_bytes(call, "option", name)
    return options


def path_of(call: str, path: object) -> str:
    """The name of a file."""
    try:
        name = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        text = f"{call}: {shown(path)} is of type {type(path).__name__}: give the name of a file, as str or Path"
        raise InvalidArgument(text) from None
    if "\0" in os.fsdecode(name):
        raise InvalidArgument(f"{call}: the name of the file {shown(name)} contains a NUL character")
    return os.fsdecode(name)


def channel_number(what: str, channel: object) -> int:
    """A number of a channel. InvalidArgument names what is wrong with it, in the object `what`."""
    if (isinstance(channel, int) or is_integer(channel)) and not isinstance(channel, bool) and 0 <= channel < 1 << 32:
        return int(channel)
    raise InvalidArgument(f"{what}: channel {shown(channel)}: must be an int, 0 to 4294967295")


def channel_numbers(what: str, channels: object) -> tuple[int, ...]:
    """Numbers of different channels."""
    if isinstance(channels, (str, bytes)) or not isinstance(channels, Iterable):
        raise InvalidArgument(f"{what}: channels {shown(channels)}: give the numbers, as a list")
    return tuple(dict.fromkeys(channel_number(what, each) for each in channels))
