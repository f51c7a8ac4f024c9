"""Publish and subscribe with libum.

with Context() as ctx, Source(ctx, "Greeting") as source:
    source.wait_receivers()
    source.send(b"Hello!", flush=True)
"""

from __future__ import annotations

import os as _os
from pathlib import Path as _Path

# In a source tree the compiled module lies in the build directory, see _build.py.
_build = _Path(_os.environ.get("UM_BUILD_DIR", _Path(__file__).resolve().parent.parent / "build"))
__path__.append(str(_build.resolve() / "python" / "um_cffi"))

from um_cffi.errors import UMError, UMTimeout, UMWouldBlock  # noqa: E402
from um_cffi.objects import (  # noqa: E402
    Context,
    Message,
    MessageType,
    Receiver,
    Source,
    SourceEvent,
    WildcardReceiver,
    config,
    version,
)

__all__ = [
    "Context",
    "Message",
    "MessageType",
    "Receiver",
    "Source",
    "SourceEvent",
    "UMError",
    "UMTimeout",
    "UMWouldBlock",
    "WildcardReceiver",
    "config",
    "version",
]
