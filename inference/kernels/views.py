"""Arrays as kernels hand them on to one another (compiled)."""

from __future__ import annotations

from typing import Any

from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic

_borrowed: Any = impl_ret_borrowed


def _same_array(typing_context, array):  # noqa: ARG001 - as Numba calls it
    view = array.copy(readonly=True)

    def generate(context, builder, signature, arguments):
        return _borrowed(context, builder, signature.return_type, arguments[0])

    return view(array), generate


read_only: Any = intrinsic(_same_array)
"""An array as one that cannot be written to.

What a graph holds is that already: so one compiled form of a kernel serves both.
"""
