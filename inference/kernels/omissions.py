"""What Numba does at every compilation and no kernel needs, which is left out.

- For each of some thousand calls of LLVM it makes four objects that tell who waits for its lock.
- LLVM works over each function by itself before it works over the module in which they stand, by
  the same steps and more: what the first leaves is the same to the second.

Together that was a tenth of what compiling took; what is compiled computes the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite.binding import ffi  # type: ignore[import-untyped]
from numba.core.codegen import CPUCodeLibrary


@cache
def leave_out() -> None:
    """Have Numba leave that out from now on."""
    listeners = ffi.lib._lock._cblist
    # Ours to remove are Numba's own, by which it tells of the lock; others may stand beside them.
    for acquired, released in list(listeners):
        if acquired.__module__ == "numba.core.base":
            ffi.unregister_lock_callback(acquired, released)

    def prepare(library: Any, module: Any) -> None:
        module.data_layout = library._codegen._data_layout

    CPUCodeLibrary._optimize_functions = prepare
