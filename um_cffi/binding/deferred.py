"""Modules that only some programs need: imported when one of their names is first used.

Every start of a program that does not await saves the time of reading asyncio; one that awaits has read it. numpy takes
longer to read than all of this package; who passes arrays has read it, and who takes batches reads it with the first
call, before that waits. The dataclasses of um_cffi.stats take a quarter of what the rest of the package does, and what
finds the nearest name or checks a file is for mistakes. Any thread.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio as asyncio
    import difflib as difflib
    import json as json
    import subprocess as subprocess
    from xml.parsers import expat as expat

    import numpy as np
    from typing_extensions import TypeGuard

    from um_cffi import stats as stats
else:

    class _Module:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            found = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, found)  # found at once from now on
            return found

    asyncio = _Module("asyncio")
    difflib = _Module("difflib")
    expat = _Module("xml.parsers.expat")
    json = _Module("json")
    np = _Module("numpy")
    stats = _Module("um_cffi.stats")
    subprocess = _Module("subprocess")

__all__ = [
    "asyncio",
    "difflib",
    "expat",
    "is_array",
    "is_integer",
    "json",
    "loaded",
    "np",
    "running_loop",
    "stats",
    "subprocess",
]


def loaded(module: str) -> bool:
    """Whether a program has read the module, without which there are no values of its types."""
    return module in sys.modules


def is_array(value: object) -> TypeGuard[np.ndarray[Any, Any]]:
    return loaded("numpy") and isinstance(value, np.ndarray)


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Of Python or of numpy. A bool is one."""
    return isinstance(value, int) or (loaded("numpy") and isinstance(value, np.integer))


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; None where there is none, as in a program without asyncio."""
    if not loaded("asyncio"):
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
