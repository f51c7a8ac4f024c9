"""Refuses interpreters on which the binding would not be safe. Imported first, before anything compiled."""

from __future__ import annotations

import importlib
import sysconfig


def _in_subinterpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):  # 3.13 and later; before
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return bool(module.get_current() != module.get_main())
    return False


def check_interpreter() -> None:
    """ImportError with the reason and the remedy when this interpreter cannot be served."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ImportError(
            "um_cffi does not support free-threaded Python builds yet: its compiled part needs the stable ABI, "
            "which they do not have; use the ordinary build of the same version (python3.13 instead of python3.13t)"
        )
    if _in_subinterpreter():
        raise ImportError(
            "um_cffi does not support subinterpreters: its callbacks belong to the main interpreter; "
            "import it there, or use processes (multiprocessing with the spawn method)"
        )
