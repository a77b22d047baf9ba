"""What Numba does at every compilation and no kernel needs, which is left out.

For each of some thousand calls of LLVM it makes four objects that tell who waits for its lock, and
nobody listens: a twentieth of what compiling took. For each function of NumPy or Python that it
writes itself, such as `np.empty`, it compiles what Python and C would call it by, and only kernels
do: another thirtieth.

Not left out is LLVM's work on each function before that on the module in which they stand: without
it kernels were compiled in a twentieth less, and planned some 5 % slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numba.core.base  # noqa: F401 - it registers what is removed here
from llvmlite.binding import ffi  # type: ignore[import-untyped]
from numba.core.typing.templates import _OverloadFunctionTemplate


@cache
def leave_out() -> None:
    """Have Numba leave that out from now on."""
    # Ours to remove are Numba's own; others may stand beside them.
    for acquired, released in list(ffi.lib._lock._cblist):
        if acquired.__module__ == "numba.core.base":
            ffi.unregister_lock_callback(acquired, released)
    _without_wrappers()


def _without_wrappers() -> None:
    decorator: Callable[[Any], Any] = _OverloadFunctionTemplate._get_jit_decorator

    def get(template: Any) -> Any:
        return partial(decorator(template), no_cfunc_wrapper=True, no_cpython_wrapper=True)

    _OverloadFunctionTemplate._get_jit_decorator = get  # type: ignore[method-assign]
