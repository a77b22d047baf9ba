"""Sizes of the Python values of Arrow arrays, determined before the values are made.

An array may represent far more than its buffers contain: nulls, structs without fields and lists of
them take no bytes, and a dictionary, a run or a view repeats one value any number of times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Extents = NDArray[np.float64]
"""A row for each element of an array: number of values, and bytes of their texts."""


def extents(array: pa.Array, check: Callable[[float], None]) -> Extents:
    """Return the extents of the Python values of an array's elements, float64 (n, 2).

    They are floating-point numbers because nested views multiply beyond 64 bits.

    Args:
        array: a validated array.
        check: called with the number of elements of this array, and of each nested one, before
            values are made; raises if there are too many.
    """
    import pyarrow as pa

    check(float(len(array)))
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return extents(array.storage, check)
    if pa.types.is_dictionary(kind):
        entries = extents(array.dictionary, check)
        places = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        # The last entry represents every null.
        repeated: Extents = np.concatenate([entries, _one_each(1)])[places]
        return repeated
    if pa.types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy().astype(np.int64) - array.offset
        lengths = np.diff(np.clip(ends, 0, len(array)), prepend=0)
        return np.repeat(extents(array.values, check), lengths, axis=0)
    if pa.types.is_struct(kind):
        measured = _one_each(len(array))
        for field in range(kind.num_fields):
            measured += extents(array.field(field), check)
        return measured
    if pa.types.is_union(kind):
        return _union(array, check)
    if _is_list(kind):
        return _lists(array, check)
    measured = _one_each(len(array))
    measured[:, 1] = _text_bytes(array)
    return measured


def _one_each(length: int) -> Extents:
    measured = np.zeros((length, 2))
    measured[:, 0] = 1.0
    return measured


def _union(array: Any, check: Callable[[float], None]) -> Extents:
    # Read from the buffers, since the arrays of pyarrow ignore the offset of a slice.
    buffers, end = array.buffers(), array.offset + len(array)
    codes = np.frombuffer(buffers[1], np.int8)[array.offset : end]
    dense = array.type.mode == "dense"
    measured = np.zeros((len(array), 2))
    for position, code in enumerate(array.type.type_codes):
        chosen = codes == code
        members = extents(array.field(position), check)
        if dense:
            places = np.frombuffer(buffers[2], np.int32)[array.offset : end][chosen]
        else:
            places = np.flatnonzero(chosen)
        measured[chosen] = members[places]
    return measured


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    tests = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
        pa.types.is_map,
    )
    return any(test(kind) for test in tests)


def _lists(array: Any, check: Callable[[float], None]) -> Extents:
    """Return the extents of lists: one value for the list, plus those of its elements."""
    import pyarrow as pa

    kind, n = array.type, len(array)
    if pa.types.is_fixed_size_list(kind):
        starts = (array.offset + np.arange(n, dtype=np.float64)) * kind.list_size
        sizes = np.full(n, float(kind.list_size))
    elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        starts, sizes = (
            part.to_numpy().astype(np.float64) for part in (array.offsets, array.sizes)
        )
    else:
        offsets = array.offsets.to_numpy().astype(np.float64)
        starts, sizes = offsets[:-1], np.diff(offsets)
    if array.null_count:
        sizes = np.where(array.is_valid().to_numpy(zero_copy_only=False), sizes, 0.0)
    check(float(sizes.sum()))
    measured = _one_each(n)
    filled = sizes > 0
    if not filled.any():
        return measured
    first = int(starts[filled].min())
    last = int((starts + sizes)[filled].max())
    begins, ends = ((edge[filled] - first).astype(np.int64) for edge in (starts, starts + sizes))
    # A map has no `values`; its keys and items are arrays of equal length.
    children = (array.keys, array.items) if pa.types.is_map(kind) else (array.values,)
    for child in children:
        elements = extents(child.slice(first, last - first), check)
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(elements, axis=0)])
        measured[filled] += sums[ends] - sums[begins]
    return measured


def _text_bytes(array: Any) -> NDArray[np.float64] | float:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # Each view begins with its length in bytes, for which pyarrow.compute has no function.
        views = np.frombuffer(array.buffers()[1], np.int32)[4 * array.offset :]
        lengths = views[: 4 * len(array) : 4].astype(np.float64)
        if array.null_count:
            lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0.0
        return lengths
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        return float(kind.byte_width)
    if any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    ):
        lengths = pc.binary_length(array).fill_null(0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.float64)
    return 0.0
