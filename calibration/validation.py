"""Checks of the arrays and settings that scores are computed from."""

from __future__ import annotations

import math
import numbers
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factormodels.arrays import Booleans as Booleans
from factormodels.arrays import Floats as Floats
from factormodels.arrays import Integers as Integers
from factormodels.errors import InputError

Member = TypeVar("Member", bound=StrEnum)

_LABEL_OF: dict[Any, float] = {True: 1.0, False: 0.0, None: math.nan}
_LABELS_WANTED = "give True or False (1 or 0), and None or nan for an unlabeled atom"


def probability_array(p: ArrayLike, name: str = "p") -> Floats:
    """Probabilities as a float64 array of shape (n,).

    Args:
        p: probabilities in [0, 1], one per atom.
        name: name of the argument in errors.

    Raises:
        InputError: if `p` is empty, not one-dimensional, not numeric, has a nan, or leaves [0, 1].
    """
    array = _numbers(p, name, "probabilities")
    # A nan fails this comparison too.
    inside = (array >= 0) & (array <= 1)
    if not inside.all():
        position = int(np.argmin(inside))
        value = float(array[position])
        if math.isnan(value):
            raise InputError(
                f"{name}[{position}] is missing (nan or None); "
                "leave out atoms that have no probability"
            )
        raise InputError(
            f"{name}[{position}] is {value!r}, outside [0, 1]; "
            "give probabilities, not percentages or logits"
        )
    return array


def label_array(y: Any, name: str = "y") -> Floats:
    """Labels as a float64 array of shape (n,): 1 true, 0 false, nan unlabeled.

    Args:
        y: labels True or False (or 1, 0), and None or nan for an unlabeled atom.
        name: name of the argument in errors.

    Raises:
        InputError: if `y` is empty, not one-dimensional, or contains another value.
    """
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(np.float64), np.nan)
    if hasattr(y, "dtype"):
        array = np.asarray(y)
        _check_shape(array, name, "labels")
        if array.dtype.kind in "biuf":
            labels = _as_float64(array)
            allowed = (labels == 0) | (labels == 1) | np.isnan(labels)
            if not allowed.all():
                position = int(np.argmin(allowed))
                raise _not_a_label(name, position, array[position].item())
            return labels
        items = array.tolist()
    else:
        items = _items(y, name, "labels")
    labels = np.empty(len(items))
    for position, item in enumerate(items):
        labels[position] = _label(item, name, position)
    return labels


def number_array(values: ArrayLike, name: str, *, missing: bool = False) -> Floats:
    """Numbers as a float64 array of shape (n,).

    Args:
        values: the numbers, one per atom.
        name: name of the argument in errors.
        missing: whether values may be missing, as None or nan.

    Raises:
        InputError: if `values` is empty, not one-dimensional or not numeric, or contains an
            infinity, or a missing value without `missing`.
    """
    array = _numbers(values, name, "numbers")
    usable = np.isfinite(array) | (np.isnan(array) & missing)
    if not usable.all():
        position = int(np.argmin(usable))
        raise InputError(f"{name}[{position}] is {float(array[position])!r}; give finite numbers")
    return array


def weight_array(weights: ArrayLike | None, n_atoms: int) -> Floats:
    """Weights as a float64 array of shape (n_atoms,); ones if None.

    A weight is the number of atoms that an atom represents: weight 2 counts as two equal atoms.

    Args:
        weights: numbers of at least 0, one per atom, or None.
        n_atoms: number of atoms.

    Raises:
        InputError: if `weights` is not one-dimensional, not numeric, or not of length `n_atoms`,
            contains a nan, an infinity or a negative number, or sums to at most 1 over several
            atoms.
    """
    if weights is None:
        return np.ones(n_atoms)
    array = _numbers(weights, "weights", "weights")
    check_lengths(p=n_atoms, weights=array.size)
    usable = (array >= 0) & (array < np.inf)
    if not usable.all():
        position = int(np.argmin(usable))
        raise InputError(
            f"weights[{position}] is {float(array[position])!r}; give finite weights of at least 0"
        )
    total = float(array.sum())
    if total <= 0:
        raise InputError("weights are all zero; give at least one atom a weight above 0")
    if n_atoms > 1 and total <= 1 + 1e-9:
        raise InputError(
            f"weights sum to {total:g} over {n_atoms} atoms; a weight is the number of atoms that "
            "an atom counts as, so multiply shares by the number of atoms"
        )
    return array


def check_lengths(**lengths: int) -> None:
    """Check that arguments, passed as name=length, have one value per atom.

    Raises:
        InputError: if two lengths differ.
    """
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"lengths differ: {sizes}; give one value per atom in each")


_MOST = 100_000_000
"""Largest number of bins, resamples or similar; a larger one is assumed to be a typing error."""


def whole_number(value: Any, name: str, least: int) -> int:
    """`value` as an int of at least `least`.

    Raises:
        InputError: if it is not a whole number, or too small.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}")
    whole = int(value)
    if whole > _MOST:
        raise InputError(f"{name} is {value!r}; give a whole number of at most {_MOST:,}")
    return whole


def open_interval(value: Any, name: str, low: float, high: float) -> float:
    """`value` as a float strictly between two bounds.

    Raises:
        InputError: if it is not a number, or not between them.
    """
    if not is_number(value) or not low < value < high:
        raise InputError(f"{name} is {value!r}; give a number between {low} and {high}")
    return float(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold; False for booleans."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, nan, or the NA of pandas."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    # `math.isnan` fails on integers that a float cannot hold.
    return isinstance(value, numbers.Real) and bool(value != value)


def _numbers(values: ArrayLike, name: str, what: str) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} is ragged; give a flat sequence of {what}") from None
    _check_shape(array, name, what)
    if array.dtype.kind == "O":
        items = [math.nan if is_missing(item) else item for item in array.tolist()]
        for position, item in enumerate(items):
            if not isinstance(item, numbers.Number) or isinstance(item, complex):
                raise InputError(f"{name}[{position}] is {item!r}, not a number; give {what}")
        return np.array(items, dtype=np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name}[0] is {array[0].item()!r}, not a real number; give {what} as numbers"
        )
    return _as_float64(array)


def _as_float64(array: NDArray[Any]) -> Floats:
    """The numbers as float64, copied if the array is writable and could change later."""
    return array.astype(np.float64, copy=array.flags.writeable)


def _check_shape(array: NDArray[Any], name: str, what: str) -> None:
    if array.ndim != 1:
        raise InputError(
            f"{name} has shape {array.shape}; give a flat sequence of {what}, one per atom"
        )
    if array.size == 0:
        raise InputError(f"{name} is empty; give {what} of at least one atom")


def _items(values: Any, name: str, what: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise InputError(f"{name} is the text {values!r}; give a sequence of {what}")
    try:
        items = list(values)
    except TypeError:
        raise InputError(f"{name} is {values!r}; give a sequence of {what}") from None
    if not items:
        raise InputError(f"{name} is empty; give {what} of at least one atom")
    return items


def _label(item: Any, name: str, position: int) -> float:
    try:
        label = _LABEL_OF.get(item)
    except TypeError:
        raise _not_a_label(name, position, item) from None
    if label is not None:
        return label
    if is_missing(item):
        return math.nan
    raise _not_a_label(name, position, item)


def _not_a_label(name: str, position: int, value: Any) -> InputError:
    hint = ""
    if is_number(value) and 0 < value < 1:
        hint = " (probabilities come first, labels second)"
    return InputError(
        f"{name}[{position}] is {value!r}, which is not a label; {_LABELS_WANTED}{hint}"
    )


def member_named(kind: type[Member], value: str, argument: str) -> Member:
    """Member of an enumeration of strings with a given value.

    Args:
        kind: the enumeration.
        value: the value.
        argument: name of the argument in errors.

    Raises:
        InputError: if no member has that value.
    """
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind)
        raise InputError(f"{argument} is {value!r}; choose one of {names}") from None
