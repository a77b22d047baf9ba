"""Corrections of p-values for multiple comparisons."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from calibration.validation import Floats, member_named
from factormodels.errors import InputError


class Correction(StrEnum):
    """Correction of p-values, by the error rate that it controls."""

    HOLM = "holm"
    """The probability of any false rejection (Holm 1979)."""
    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    """The expected share of false rejections among rejections (Benjamini and Hochberg 1995)."""


STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Upper bounds of corrected p-values, with their stars."""


def adjust(p_values: ArrayLike, method: str = Correction.HOLM) -> Floats:
    """Correct p-values for multiple comparisons.

    The results equal those of `multipletests` of statsmodels to the last bit. Its import takes
    0.8 s of processor time, and every `score` of two models corrects p-values.

    Args:
        p_values: p-values (n,); nan for undefined tests, which stay nan and are not counted.
        method: ``holm`` or ``benjamini-hochberg``.

    Raises:
        InputError: for a p-value outside [0, 1] or an unknown method.
    """
    chosen = member_named(Correction, method, "correction")
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"p_values has shape {values.shape}; give a flat sequence")
    done = ~np.isnan(values)
    outside = done & ~((values >= 0) & (values <= 1))
    if outside.any():
        position = int(np.argmax(outside))
        raise InputError(
            f"p_values[{position}] is {float(values[position])!r}, outside [0, 1]; give p-values"
        )
    corrected = np.full(values.shape, np.nan)
    corrected[done] = (_holm if chosen is Correction.HOLM else _benjamini_hochberg)(values[done])
    return corrected


def _holm(values: Floats) -> Floats:
    """Multiply each p-value by the number of p-values at least as large, and step down."""
    order = np.argsort(values)
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return np.minimum(corrected, 1.0)


def _benjamini_hochberg(values: Floats) -> Floats:
    """Divide each p-value by the share of p-values at most as large, and step up."""
    order = np.argsort(values)
    share = np.arange(1, len(values) + 1) / float(max(1, len(values)))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum.accumulate((values[order] / share)[::-1])[::-1]
    return np.minimum(corrected, 1.0)


def least_corrected(least: float, n_tests: int, method: str = Correction.HOLM) -> float:
    """Smallest corrected p-value that tests with a smallest p-value of `least` can have.

    Args:
        least: smallest p-value that the resamples of a test allow.
        n_tests: number of tests that are corrected together.
        method: ``holm`` or ``benjamini-hochberg``.

    Raises:
        InputError: for an unknown method.
    """
    chosen = member_named(Correction, method, "correction")
    # Under Benjamini and Hochberg, n_tests equal p-values are unchanged.
    return min(1.0, least * (n_tests if chosen is Correction.HOLM else 1))


def stars_legend(least: float) -> str:
    """Meaning of the stars that corrected p-values of `least` and more can have; "" for none."""
    shown = [f"{mark} p < {bound:g}" for bound, mark in reversed(STARS) if least < bound]
    return ", ".join(shown)


def unattainable_stars(least: float) -> str:
    """Stars that corrected p-values of `least` and more cannot have, the shortest first."""
    return " and ".join(mark for bound, mark in reversed(STARS) if least >= bound)


def stars(corrected: float) -> str:
    """Stars for a corrected p-value: *** below 0.001, ** below 0.01, * below 0.05."""
    return next((mark for bound, mark in STARS if corrected < bound), "")
