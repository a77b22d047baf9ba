"""Checks of arrays of probabilities of several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.nouns import counted

SUM_TOLERANCE = 5e-3
"""Tolerance of a row's sum around 1; files may round probabilities to two digits."""


def label_probabilities(p: ArrayLike, name: str = "p") -> Floats:
    """Probabilities of k labels in n answers, float64 (n, k), each row summing to one.

    Args:
        p: the probabilities, (n, k), k at least 2.
        name: name of the argument in errors.

    Raises:
        InputError: if `p` is empty, has another shape, leaves [0, 1], or has a row that does not
            sum to one.
    """
    try:
        array = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of numbers; give a row for each answer") from None
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 2:
        raise InputError(
            f"{name} has the shape {array.shape}; give a row for each answer and a column for each "
            "of two or more labels"
        )
    inside = (array >= 0) & (array <= 1)
    if not inside.all():
        row, column = divmod(int(np.argmin(inside)), array.shape[1])
        raise InputError(
            f"{name}[{row}, {column}] is {float(array[row, column])!r}; give probabilities from 0 "
            "to 1"
        )
    sums = array.sum(axis=1)
    if (missed := np.abs(sums - 1) > SUM_TOLERANCE).any():
        first = int(np.argmax(missed))
        raise InputError(
            f"{name}[{first}] sums to {float(sums[first]):g}; its labels must sum to 1"
        )
    probabilities: Floats = array / sums[:, np.newaxis]
    return probabilities


def label_columns(y: Any, n: int, k: int, name: str = "y") -> Integers:
    """Columns of the true labels, int64 (n,).

    Args:
        y: the column of the true label of each answer, (n,), from 0.
        n: number of answers.
        k: number of labels.
        name: name of the argument in errors.

    Raises:
        InputError: if `y` does not have n entries, or an entry is not a column index.
    """
    array = np.asarray(y)
    if array.shape != (n,):
        raise InputError(
            f"{name} has the shape {array.shape} for {counted(n, 'answer')}; give one label each"
        )
    if array.dtype.kind not in "iu" or (array < 0).any() or (array >= k).any():
        raise InputError(f"{name} is not of whole numbers from 0 to {k - 1}; give columns of `p`")
    columns: Integers = array.astype(np.int64)
    return columns
