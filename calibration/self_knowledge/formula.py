"""Estimates of factuality from judgments: the paper's sigma, and the Rogan-Gladen estimate.

SK (Self-Known) is the share of supported claims judged correct, and SU (Self-Unknown) the share of
unsupported claims judged incorrect. All functions are elementwise.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from calibration.validation import Floats

TOLERANCE = 1e-12
"""SK + SU counts as 1 if it is closer to 1 than this, which allows for rounding."""


class SigmaStatus(StrEnum):
    """Status of sigma, with a name for every degenerate case."""

    OK = "ok"
    EMPTY = "empty"
    """There is no claim, and every share is 0/0."""
    NO_SUPPORTED = "no_supported"
    """There is no supported claim; SK and sigma are 0/0."""
    NO_UNSUPPORTED = "no_unsupported"
    """There is no unsupported claim; SU and sigma are 0/0."""
    PERFECT = "perfect"
    """SK = SU = 1: sigma is 0/0, because every number solves equation 3."""
    UNINFORMATIVE = "uninformative"
    """SK + SU = 1: judgments do not depend on truth; sigma is the share judged correct, and
    Rogan and Gladen's estimate is not defined."""
    ALWAYS_KNOWN = "always_known"
    """SK = 1 > SU: sigma is 1 for any factuality, without an interval."""
    ALWAYS_UNKNOWN = "always_unknown"
    """SU = 1 > SK: sigma is 0 for any factuality, without an interval."""


def sigma(self_known: ArrayLike, self_unknown: ArrayLike) -> Floats:
    """Sigma = (1 - SU) / (2 - SU - SK), nan where SK = SU = 1 or a share is nan.

    Sigma solves sigma = SK sigma + (1 - SU)(1 - sigma). It is the stationary distribution of a
    two-state chain in which a supported claim stays supported with probability SK, and an
    unsupported claim stays unsupported with probability SU. Its odds are the odds of factuality
    times FP/FN, where FP is the number of unsupported claims judged correct and FN the number of
    supported claims judged incorrect. Source: the Self-Known paper, section 4, equation 3.
    """
    known = np.asarray(self_known, dtype=np.float64)
    wrong_yes, wrong_no = 1 - np.asarray(self_unknown, dtype=np.float64), 1 - known
    total = wrong_yes + wrong_no
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, wrong_yes / total, np.nan)


def sigma_slopes(self_known: ArrayLike, self_unknown: ArrayLike) -> tuple[Floats, Floats]:
    """Derivatives of sigma with respect to SK and SU."""
    wrong_yes = 1 - np.asarray(self_unknown, dtype=np.float64)
    wrong_no = 1 - np.asarray(self_known, dtype=np.float64)
    total = wrong_yes + wrong_no
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(total > 0, total**2, np.nan)
        return wrong_yes / square, -wrong_no / square


def sigma_status(
    self_known: ArrayLike, self_unknown: ArrayLike, n_supported: ArrayLike, n_unsupported: ArrayLike
) -> tuple[SigmaStatus, ...]:
    """Status of sigma in each cell.

    Args:
        self_known: SK (n_cells,), nan if there is no supported claim.
        self_unknown: SU (n_cells,), nan if there is no unsupported claim.
        n_supported: number of supported claims (n_cells,).
        n_unsupported: number of unsupported claims (n_cells,).
    """
    cells = np.broadcast_arrays(self_known, self_unknown, n_supported, n_unsupported)
    return tuple(
        _status(*(float(value) for value in cell))
        for cell in zip(*(array.ravel() for array in cells), strict=True)
    )


def _status(known: float, unknown: float, n_supported: float, n_unsupported: float) -> SigmaStatus:
    if not n_supported and not n_unsupported:
        return SigmaStatus.EMPTY
    if not n_supported:
        return SigmaStatus.NO_SUPPORTED
    if not n_unsupported:
        return SigmaStatus.NO_UNSUPPORTED
    if known == unknown == 1:
        return SigmaStatus.PERFECT
    if abs(known + unknown - 1) <= TOLERANCE:
        return SigmaStatus.UNINFORMATIVE
    if known == 1:
        return SigmaStatus.ALWAYS_KNOWN
    if unknown == 1:
        return SigmaStatus.ALWAYS_UNKNOWN
    return SigmaStatus.OK


def rogan_gladen(
    judged_correct: ArrayLike, self_known: ArrayLike, self_unknown: ArrayLike
) -> Floats:
    """Rogan-Gladen estimate (q + SU - 1)/(SK + SU - 1) of the share of supported claims.

    The estimate may be outside [0, 1], and is nan if SK + SU = 1. If SK, SU and q come from the
    same claims, it equals their factuality; if q is sigma, it equals sigma. Source: Rogan and
    Gladen 1978, American Journal of Epidemiology 107.

    Args:
        judged_correct: q, the share of claims judged correct.
        self_known: SK, from claims with the same distribution of judgments given truth.
        self_unknown: SU, from the same claims as SK.
    """
    unknown = np.asarray(self_unknown, dtype=np.float64)
    information = np.asarray(self_known, dtype=np.float64) + unknown - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        prevalence = (np.asarray(judged_correct, dtype=np.float64) + unknown - 1) / information
    return np.where(np.abs(information) > TOLERANCE, prevalence, np.nan)
