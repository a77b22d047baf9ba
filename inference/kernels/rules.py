"""Numba's typing and lowering of the functions of `inference.kernels.views`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from numba import types
from numba.extending import lower_builtin, type_callable

from inference.kernels.views import lent, population_count, read_only

cgutils: Any = None
# Numba's manual uses this module in an example, and does not list it.
with suppress(ImportError):
    from numba.core import cgutils


@type_callable(read_only)
def _type_read_only(context):  # noqa: ARG001 - as Numba calls it
    return lambda array: array.copy(readonly=True)


@lower_builtin(read_only, types.Array)
def _compile_read_only(context, builder, signature, arguments):
    # The view is one more reference to the array.
    context.nrt.incref(builder, signature.return_type, arguments[0])
    return arguments[0]


@type_callable(lent)
def _type_lent(context):  # noqa: ARG001
    return lambda lent: lent


@lower_builtin(lent, types.Any)
def _compile_lent(context, builder, signature, arguments):
    kind, value = signature.return_type, arguments[0]
    try:
        return _without_owner(context, builder, kind, value)
    except AttributeError:
        # A Numba in which these names are others counts the references, which takes longer.
        context.nrt.incref(builder, kind, value)
        return value


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


@type_callable(population_count)
def _type_population_count(context):  # noqa: ARG001
    return lambda word: types.int64  # noqa: ARG005 - every word has so many


@lower_builtin(population_count, types.uint64)
def _compile_population_count(context, builder, signature, arguments):  # noqa: ARG001
    return builder.ctpop(arguments[0])
