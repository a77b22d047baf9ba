"""Arrays as kernels hand them on to one another (compiled)."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _read_only(typing_context, array):  # noqa: ARG001 - as Numba calls it
    view = array.copy(readonly=True)

    def generate(context, builder, signature, arguments):
        # The view is one more reference to the array.
        context.nrt.incref(builder, signature.return_type, arguments[0])
        return arguments[0]

    return view(array), generate


read_only: Any = intrinsic(_read_only)
"""An array as one that cannot be written to.

What a graph holds is that already: so one compiled form of a kernel serves both.
"""


def _lent(typing_context, lent):  # noqa: ARG001 - as Numba calls it
    def generate(context, builder, signature, arguments):
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return lent(lent), generate


def _without_owner(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for index, part in enumerate(parts):
            lent = _without_owner(context, builder, part, builder.extract_value(value, index))
            value = builder.insert_value(value, lent, index)
    return value


lent: Any = intrinsic(_lent)
"""An array, or a tuple of arrays, whose references are not counted.

A kernel counts one more reference to each array that it is given, once a call, and to each that it
takes out of a tuple, in each round of a loop. These are atomic operations, which take longer than
the rest of a small kernel. The caller holds the arrays until the kernel returns, so that it need
not count what it is given as an argument. It must not lend anything else, for what nobody holds is
freed, and for the same reason must not return what is lent, nor a part of that. An `inlined_kernel`
has no arguments of its own, and must not lend.
"""
