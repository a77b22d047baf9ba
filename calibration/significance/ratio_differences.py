"""Differences of two ratios of sums over responses, which all three tests compare."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.grouping import group_by_response
from calibration.intervals import RatioSums, clustered_standard_error
from calibration.validation import Floats, check_lengths
from factormodels.errors import InputError

SAME = 1e-12
"""Relative tolerance: permuted sums that differ by less are equal up to the order of addition."""


def claim_sums(first: ArrayLike, second: ArrayLike, responses: Any) -> tuple[RatioSums, RatioSums]:
    """Mean of each method's values as a ratio of sums over responses."""
    of_first, of_second = measure_array(first, "first"), measure_array(second, "second")
    grouping = group_by_response(responses)
    check_lengths(first=of_first.size, second=of_second.size, responses=grouping.index.size)
    sizes = grouping.sizes.astype(np.float64)[:, np.newaxis]
    return (
        RatioSums(grouping.sums(of_first)[:, np.newaxis], sizes),
        RatioSums(grouping.sums(of_second)[:, np.newaxis], sizes),
    )


def measure_array(values: ArrayLike, name: str) -> Floats:
    """Finite numbers as float64 (n,).

    Raises:
        InputError: if `values` is empty, not one-dimensional, or not all finite numbers.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is not all numbers; give a flat sequence of numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}; give a flat sequence of numbers")
    finite = np.isfinite(array)
    if not finite.all():
        position = int(np.argmin(finite))
        raise InputError(
            f"{name}[{position}] is {float(array[position])!r}; give finite numbers, and leave out "
            "of both methods each claim that has no value in one"
        )
    return array


def paired_difference(first: RatioSums, second: RatioSums) -> tuple[float, float, int]:
    """Difference between two ratios, its standard error, and the number of responses it uses."""
    estimate = float((first.estimate() - second.estimate())[0])
    touching = np.minimum(first.touching(), second.touching())
    error = clustered_standard_error(first.influence() - second.influence(), touching)
    return estimate, float(error[0]), int(touching[0])


def magnitude(first: RatioSums, second: RatioSums) -> float:
    """Magnitude of the two ratios, the scale of rounding errors."""
    return float(max(np.abs(first.estimate()[0]), np.abs(second.estimate()[0])))
