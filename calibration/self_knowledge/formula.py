"""Factuality from judgements: the paper's sigma, and Rogan and Gladen's estimate.

SK (Self-Known) is the share of supported claims that are judged correct, SU (Self-Unknown) the
share of unsupported claims that are judged incorrect. All functions work elementwise on arrays.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from calibration.validation import Floats

TOLERANCE = 1e-12
"""SK + SU closer to 1 than this counts as 1: a sum of two rounded shares, of size 1."""


class SigmaStatus(StrEnum):
    """What the data say of sigma, the degenerate corners by name."""

    OK = "ok"
    EMPTY = "empty"
    """No claim: every share is 0/0."""
    NO_SUPPORTED = "no_supported"
    """No supported claim: SK is 0/0, and so is sigma."""
    NO_UNSUPPORTED = "no_unsupported"
    """No unsupported claim: SU is 0/0, and so is sigma."""
    PERFECT = "perfect"
    """SK = SU = 1: sigma is 0/0, since every number solves equation 3."""
    UNINFORMATIVE = "uninformative"
    """SK + SU = 1: judgements do not depend on truth; sigma is the share judged correct, and
    Rogan and Gladen's estimate is not defined."""
    ALWAYS_KNOWN = "always_known"
    """SK = 1 > SU: sigma is 1 whatever the factuality, without an interval."""
    ALWAYS_UNKNOWN = "always_unknown"
    """SU = 1 > SK: sigma is 0 whatever the factuality, without an interval."""


def sigma(self_known: ArrayLike, self_unknown: ArrayLike) -> Floats:
    """Sigma = (1 - SU) / (2 - SU - SK), nan where SK = SU = 1 or a share is nan.

    It solves sigma = SK sigma + (1 - SU)(1 - sigma): the stationary law of a chain of two states,
    in which a supported claim stays so with probability SK and an unsupported one with SU. Its
    odds are those of the factuality times FP/FN, the unsupported claims judged correct over the
    supported ones judged incorrect. Source: the Self-Known paper, section 4, equation 3.
    """
    known = np.asarray(self_known, dtype=np.float64)
    wrong_yes, wrong_no = 1 - np.asarray(self_unknown, dtype=np.float64), 1 - known
    total = wrong_yes + wrong_no
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, wrong_yes / total, np.nan)


def sigma_slopes(self_known: ArrayLike, self_unknown: ArrayLike) -> tuple[Floats, Floats]:
    """Derivatives of sigma in SK and in SU."""
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
        self_known: SK (n_cells,), nan where there is no supported claim.
        self_unknown: SU (n_cells,), nan where there is no unsupported claim.
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
    """(q + SU - 1)/(SK + SU - 1), the prevalence that explains the share judged correct.

    It may leave [0, 1]. Where SK, SU and q come from the same claims it
    is their factuality, identically; where q is sigma, so is it. nan where SK + SU = 1. Source:
    Rogan and Gladen 1978, American Journal of Epidemiology 107.

    Args:
        judged_correct: q, the share of claims judged correct.
        self_known: SK, from claims with the same law of judgements given truth.
        self_unknown: SU, likewise.
    """
    unknown = np.asarray(self_unknown, dtype=np.float64)
    information = np.asarray(self_known, dtype=np.float64) + unknown - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        prevalence = (np.asarray(judged_correct, dtype=np.float64) + unknown - 1) / information
    return np.where(np.abs(information) > TOLERANCE, prevalence, np.nan)
