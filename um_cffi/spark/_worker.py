"""What a process of Python that Spark keeps for many tasks is spared.

Called by planners and by executors, which have one thread; in an application's own process it does nothing.
"""

from __future__ import annotations

import gc
import sys

_DAEMON = "pyspark.daemon"
_spared = False


def spare_collections() -> None:
    """Once in a process that Spark's daemon has forked: the garbage collector no longer walks what was imported.

    Spark runs it behind each task, and walking modules that never go takes tens of milliseconds of a core which the
    next tasks could use.
    """
    global _spared
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if not _spared and getattr(main, "name", None) == _DAEMON:
        _spared = True
        gc.freeze()
