"""Two places where an interrupt would break Numba itself, patched when the first kernel is used.

Both are private parts of Numba. Where a release has renamed one, it is not mended: every answer is
the same, and only an interrupt within the few microseconds concerned ends as in Numba.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import repeat
from types import SimpleNamespace
from typing import Any


@cache
def guard_interrupts() -> None:
    """Patch both places, once per process."""
    for mend in (_unpickle_without_python_code, _write_nothing_at_null):
        with suppress(ImportError, AttributeError):
            mend()


def _unpickle_without_python_code() -> None:
    """Let nothing raise an interrupt while a kernel's result becomes Python objects.

    For each array in it Numba's C code has a class and a data type unpickled, and calls a function
    of Python for that. An interrupt that came while the kernel ran is raised where Python code runs
    next, so there; Numba looks for no exception amid a result, and makes a `SystemError` of it,
    loses it, or ends the process by a null pointer. Here the function is one that runs in C alone.
    Numba looks it up when the first result of the process is made.
    """
    from numba.core import serialize

    if not callable(serialize._numba_unpickle):
        return
    # Called with an address, a pickle and its digest: `loads` of the second, whatever the first.
    call = ctypes.PYFUNCTYPE(ctypes.py_object)(("PyObject_CallOneArg", ctypes.pythonapi))
    loads: defaultdict[int, Any] = defaultdict(repeat(ctypes.py_object(serialize.loads)).__next__)
    call.argtypes = [SimpleNamespace(from_param=loads.__getitem__), ctypes.py_object]  # type: ignore[list-item]
    # Kept, as there: Numba needs what it unpickled to stay alive.
    serialize._numba_unpickle = cache(call)


def _write_nothing_at_null() -> None:
    """Let a kernel that an interrupt left without its machine code be read again, and not end all.

    LLVM calls Python for the code that was read from disk. Where a handler of signals raises there,
    it gets none, and goes on; Numba then writes to where the kernel would be, which is nowhere.
    """
    from numba.core.codegen import JITCPUCodegen

    set_env: Callable[..., None] = JITCPUCodegen.set_env

    def set_where_there_is_code(codegen: Any, name: str, environment: Any) -> None:
        engine = getattr(codegen, "_engine", None)
        if engine is not None and not engine.get_global_value_address(name):
            raise OSError("an interrupt came while machine code was read from disk")
        set_env(codegen, name, environment)

    JITCPUCodegen.set_env = set_where_there_is_code  # type: ignore[method-assign]
