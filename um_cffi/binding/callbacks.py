"""Checks of what applications give to be called back: refused where it is given, not where it is called first."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from um_cffi.errors import InvalidArgument


def is_coroutine(call: Callable[..., object] | None) -> bool:
    """Whether calling it gives a coroutine, which has to be awaited."""
    return call is not None and (
        inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(vars(type(call)).get("__call__"))
    )


def check_callback(
    owner: str, name: str, call: object, arguments: tuple[object, ...] = (None,), *, coroutine: bool = False
) -> None:
    """InvalidArgument when `call`, given as `name` to the object `owner`, cannot be called with such arguments.

    Coroutine functions are refused unless `coroutine`.
    """
    if not callable(call):
        raise InvalidArgument(f"{owner}: {name} is {call!r}, which cannot be called: give a function")
    if inspect.isasyncgenfunction(call) or inspect.isgeneratorfunction(call):
        raise InvalidArgument(
            f"{owner}: {name} {_called(call)} is a generator function, which does nothing when it is called: "
            "give a function without yield"
        )
    if not coroutine and is_coroutine(call):
        raise InvalidArgument(
            f"{owner}: {name} {_called(call)} is a coroutine function, which nobody would await here: "
            "give a plain function"
        )
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError as error:
        count = len(arguments)
        raise InvalidArgument(
            f"{owner}: {name} {_called(call)} cannot be called with {count} argument{'s' if count != 1 else ''}, as it "
            f"will be ({error}): change what it takes"
        ) from None
    except ValueError:
        pass  # functions of C that do not tell


def _called(call: object) -> str:
    return f"{getattr(call, '__qualname__', None) or repr(call)}()"
