"""Factuality from judgements: the paper's sigma, Rogan and Gladen's estimate, and EMQ.

SK (Self-Known) is the share of supported claims that are judged correct, SU (Self-Unknown) the
share of unsupported claims that are judged incorrect. All functions work elementwise on arrays.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    It may leave [0, 1]; `clipped` brings it back. Where SK, SU and q come from the same claims it
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


def clipped(prevalence: ArrayLike) -> Floats:
    """Prevalences brought into [0, 1]; nan stays nan."""
    return np.clip(np.asarray(prevalence, dtype=np.float64), 0.0, 1.0)


def emq(given_supported: ArrayLike, given_unsupported: ArrayLike, shares: ArrayLike) -> Floats:
    """Prevalence at which expectation maximisation on class posteriors comes to rest.

    The algorithm alternates between the posterior of each claim under the present prevalence and
    the mean of these posteriors. Its fixed point maximises sum_j f_j log(pi a_j + (1 - pi) b_j),
    which is concave in pi, so that the root of the derivative is found by bisection instead: the
    same number, also where the iteration crawls. With two kinds of judgement it is Rogan and
    Gladen's estimate, clipped. nan where judgements do not depend on truth, or where nothing
    that was seen has a known law. Source: Saerens, Latinne and Decaestecker 2002, Neural
    Computation 14, section 2.

    Args:
        given_supported: a (..., n_kinds), law of the kinds of judgement on supported claims.
        given_unsupported: b (..., n_kinds), law on unsupported claims.
        shares: f (..., n_kinds), share of each kind among the claims to estimate for. Kinds that
            neither law knows are left out.

    Returns:
        float64 (...), the prevalence of supported claims in [0, 1].
    """
    a, b, f = (
        np.asarray(each, dtype=np.float64) for each in (given_supported, given_unsupported, shares)
    )
    a, b, f = np.broadcast_arrays(a, b, f)
    known = (a > 0) | (b > 0)
    weight, slope = np.where(known, f, 0.0), np.where(known, a - b, 0.0)
    informed = ((np.abs(slope) > TOLERANCE) & (weight > 0)).any(axis=-1)
    informed &= ~np.isnan(weight * slope).any(axis=-1)

    def gradient(prevalence: Floats) -> Floats:
        share = prevalence[..., np.newaxis]
        mixture = np.where(known, share * a + (1 - share) * b, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(weight > 0, weight * slope / mixture, 0.0)
        return np.asarray(terms.sum(axis=-1))

    low, high = np.zeros(informed.shape), np.ones(informed.shape)
    # Halving [0, 1] 60 times leaves less than the spacing of doubles near 1.
    for _ in range(60):
        middle = (low + high) / 2
        rising: NDArray[np.bool_] = gradient(middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where(informed, (low + high) / 2, np.nan)
