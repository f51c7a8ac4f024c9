"""The page of a fleet: `um web`. Needs the extra `um-cffi[web]`.

run
    serve the page until it is interrupted; everything else here is what it is made of.
Settings
    where it listens, what it permits.
"""

from __future__ import annotations

from um_cffi.web._settings import Settings

__all__ = ["Settings"]
