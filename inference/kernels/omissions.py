"""What Numba does at every compilation and no kernel needs, which is left out.

For each of some thousand calls of LLVM it makes four objects that tell who waits for its lock, and
nobody listens: a twentieth of what compiling took.

Not left out is LLVM's work on each function before that on the module in which they stand: without
it kernels were compiled in a twentieth less, and planned some 5 % slower.
"""

from __future__ import annotations

from functools import cache

import numba.core.base  # noqa: F401 - it registers what is removed here
from llvmlite.binding import ffi  # type: ignore[import-untyped]


@cache
def leave_out() -> None:
    """Have Numba leave that out from now on."""
    # Ours to remove are Numba's own; others may stand beside them.
    for acquired, released in list(ffi.lib._lock._cblist):
        if acquired.__module__ == "numba.core.base":
            ffi.unregister_lock_callback(acquired, released)
