"""Arrays made from a caller's values: converted, checked, and read-only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as whole_number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def frozen(array: ArrayLike, dtype: type) -> NDArray[Any]:
    """Return `array` read-only, contiguous and of type `dtype`, copied if others may write to it.

    A read-only array that owns its data is returned without a copy.
    """
    result: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
    if result.base is not None or (result is array and result.flags.writeable):
        result = result.copy()
    result.flags.writeable = False
    return result


def partition(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of consecutive segments of the given (n,) lengths, int64 (n + 1,)."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def whole_scope(scope: Sequence[int], where: str) -> tuple[int, ...]:
    """Return a scope as a tuple of integers.

    Raises:
        InputError: if an entry is not a whole number; `where` names the place.
    """
    try:
        return tuple(map(whole_number, scope))
    except TypeError:
        raise InputError(
            f"{where}: the scope {scope!r} is not a list of whole numbers; "
            "give the index of each variable"
        ) from None


def number_array(values: ArrayLike, where: str) -> NDArray[np.float64]:
    """Return `values` as floating-point numbers, in their shape.

    Raises:
        InputError: if a value is not a number or rows differ in length.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{where}: {values!r} is not an array of numbers; give one number for each state"
        ) from None
    except OverflowError:
        raise InputError(
            f"{where}: one of its numbers is too large for floating point; give smaller ones"
        ) from None


def check_axes(
    table: NDArray[np.float64], scope: tuple[int, ...], cards: NDArray[Any], where: str
) -> None:
    """Check that a table with axes has one axis per variable of its scope, as long as its states.

    Flat tables, and scopes that refer to variables that do not exist, are left to later checks.

    Raises:
        InputError: if the axes differ, such as those of a transposed table.
    """
    if table.ndim < 2 or not all(0 <= variable < len(cards) for variable in scope):
        return
    shape = tuple(int(cards[variable]) for variable in scope)
    if table.shape != shape:
        raise InputError(
            f"{where} has a table of shape {table.shape}; its scope {scope} requires {shape}"
        )


def log_potentials(
    tables: Sequence[NDArray[np.float64]], where: Callable[[int], str]
) -> NDArray[np.float64]:
    """Return the natural logarithms of flat tables of potentials, one table after another.

    Raises:
        InputError: if a potential is negative, infinite or NaN; `where` names the place of a table
            by its number.
    """
    if not tables:
        return np.zeros(0)
    values = np.concatenate(tables)
    bad = ~((values >= 0.0) & (values < np.inf))
    if bad.any():
        at = int(np.argmax(bad))
        starts = partition([table.size for table in tables])
        number = int(np.searchsorted(starts, at, side="right")) - 1
        raise InputError(
            f"{where(number)}: entry {at - starts[number]} of its table is {values[at]}; "
            "a potential is a finite number not below 0"
        )
    with np.errstate(divide="ignore"):
        return np.log(values)
