"""Items in order of small whole numbers, by counting (compiled).

Source: Knuth, "The art of computer programming", section 5.2, algorithm D.
"""

from __future__ import annotations

import numpy as np

from inference.kernels.compiled import inlined_kernel, inner_kernel


@inner_kernel
def group(keys, n_groups):
    """Return the indices of `keys` by key, equal keys in order; negative keys are left out.

    Args:
        keys: int64, below `n_groups`.

    Returns:
        starts: int64 (n_groups + 1,), where the items of each key begin in `items`, int64.
    """
    starts = np.zeros(n_groups + 1, dtype=np.int64)
    for key in keys:
        if key >= 0:
            starts[key + 1] += 1
    # Counts become starts.
    for group in range(n_groups):
        starts[group + 1] += starts[group]
    # The next free place of each key: equal keys keep their order.
    fill = np.empty(n_groups, dtype=np.int64)
    for group in range(n_groups):
        fill[group] = starts[group]
    items = np.empty(starts[n_groups], dtype=np.int64)
    for item in range(len(keys)):
        if keys[item] >= 0:
            items[fill[keys[item]]] = item
            fill[keys[item]] += 1
    return starts, items


@inner_kernel
def append_unmarked(items, marked, members, count):
    """Mark items, append the newly marked ones to `members`, and return its new length.

    Args:
        items: whole numbers.
        marked: bool, one entry per possible item.
        members: int64, the first `count` are in use.
    """
    for item in items:
        if not marked[item]:
            marked[item] = True
            members[count] = item
            count += 1
    return count


@inlined_kernel
def sort_descending(values):
    """Sort whole numbers, largest first.

    It sorts by insertion, and many numbers in steps (Shell 1959), because NumPy's sort takes long
    to compile.

    Args:
        values: int64 (n,), sorted in place.
    """
    gap = 1
    # Knuth's gaps 1, 4, 13, ...; short lists have the gap 1 alone, which is plain insertion.
    while gap < len(values) // 32:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            item = values[i]
            j = i - gap
            while j >= 0 and values[j] < item:
                values[j + gap] = values[j]
                j -= gap
            values[j + gap] = item
        gap //= 3


@inner_kernel
def by_descending(counts):
    """Return the indices of small whole numbers, largest first, equal ones in order.

    Args:
        counts: int64 (n,), at least 0.

    Returns:
        int64 (n,), indices of `counts`.
    """
    largest = 0
    for count in counts:
        largest = max(largest, count)
    _, ascending = group(largest - counts, largest + 1)
    return ascending
