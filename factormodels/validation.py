"""Validation of ids and probabilities."""

from __future__ import annotations

import re
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError


def validated_probability(value: object, where: str) -> float:
    """Return `value` as a float in [0, 1].

    Raises:
        InputError: if it is not a number, NaN, or outside [0, 1]; `where` names the place.
    """
    # The common case, which needs no conversion.
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    # With the union, common types avoid the slow check of the abstract class.
    if isinstance(value, bool) or not isinstance(value, float | int | Real):
        raise InputError(
            f"{where}: the probability {value!r} is not a number; give one between 0 and 1"
        )
    number = cast("float", value)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{where}: the probability {number} is not between 0 and 1; correct it")
    return float(number)


def check_probabilities(array: NDArray[np.float64], whose: str, what: str) -> None:
    """Check that probabilities, one per item along the last axis, are in [0, 1].

    Args:
        array: (..., n).
        whose: noun of the items, such as "relation".
        what: name of the probability, such as "prior".

    Raises:
        InputError: if an entry is NaN or outside [0, 1].
    """
    bad = ~((array >= 0.0) & (array <= 1.0))
    if bad.any():
        at = tuple(np.argwhere(bad)[0].tolist())
        raise InputError(
            f"{whose} {at[-1]}: the {what} {float(array[at])!r} is not between 0 and 1; correct it"
        )


def validated_id(value: object, what: str) -> None:
    """Check that `value` is a valid id.

    Raises:
        InputError: if it is empty or not text; `what` names the owner of the id.
    """
    # The common case: an ASCII id is always valid.
    if type(value) is str and value and value.isascii():
        return
    if not isinstance(value, str) or not value:
        raise InputError(f"the id {value!r} of {what} is empty or not text; name it")
    # Ids become names of variables, files and rows, which are written as UTF-8.
    if not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise InputError(f"the id {value!r} of {what} contains half of a character; rename it")
