"""The lock under which Numba compiles, one thread at a time."""

from __future__ import annotations

import sys


def is_compiling() -> bool:
    """Return whether this thread compiles, so that others wait for Numba's lock.

    A function that somebody else has Numba compile may call kernels. What they need is then loaded
    in this thread: another one would wait for ever.

    Returns:
        False as well if this Numba has other names for its lock.
    """
    lock = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    is_locked = getattr(lock, "is_locked", None)
    return is_locked is not None and bool(is_locked())
