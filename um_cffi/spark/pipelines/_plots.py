"""matplotlib, drawing into files."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot without a screen; ImportError that says what to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib ({error}): pip install 'um-cffi[spark,plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as found

    return found
