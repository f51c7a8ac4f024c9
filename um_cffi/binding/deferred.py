"""The standard modules that only some programs need: imported when one of their names is first used.

Every start of a program that does not await saves the time of reading asyncio; one that awaits has read it. Any thread.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio as asyncio
else:

    class _Module:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            found = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, found)  # found at once from now on
            return found

    asyncio = _Module("asyncio")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; None where there is none, as in a program without asyncio."""
    if "asyncio" not in sys.modules:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
