"""F1@K', which compares a response with the human count of its claims, and agreement of counts.

Source: Wan et al., "FaStfact: Faster, Stronger Long-Form Factuality Evaluations in LLMs",
section 4.4 and tables 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.scores.measures import f1_of_counts
from calibration.validation import Floats, is_number
from factormodels.errors import InputError

LARGEST_GAMMA = 1e3
"""For a larger gamma, recall at any integer distance from K' is 0 in floating point."""


@dataclass(frozen=True)
class ClaimCounts:
    """Numbers of claims of n responses by verdict, float64 arrays (n,).

    Attributes:
        supported: S, number of supported claims.
        unsupported: N, number of claims that are refuted or lack evidence.
        irrelevant: I, number of irrelevant claims, which are in neither S nor N.
    """

    supported: Floats
    unsupported: Floats
    irrelevant: Floats

    def __init__(
        self, supported: ArrayLike, unsupported: ArrayLike, irrelevant: ArrayLike = 0
    ) -> None:
        s = _counts(supported, "supported")
        arrays = {"supported": s, "unsupported": _counts(unsupported, "unsupported")}
        arrays["irrelevant"] = np.broadcast_to(_counts(irrelevant, "irrelevant"), s.shape)
        if s.shape != arrays["unsupported"].shape:
            raise InputError(
                f"supported counts {len(s)} responses and unsupported "
                f"{len(arrays['unsupported'])}; give one number of each per response"
            )
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @property
    def verifiable(self) -> Floats:
        """S + N of each response, which is K' for human counts."""
        return self.supported + self.unsupported


@dataclass(frozen=True)
class CountAlignment:
    """Mean differences of counts and scores from human ones, over responses.

    Attributes:
        k: mean over responses of |difference of K'|.
        f1: mean over responses of |difference of F1@K'|.
        f1_of_means: |difference of the two mean F1@K'|, printed as |delta F1@K'| in FaStfact's
            tables, for example 0.012 for means of 0.780 and 0.792.
        supported, unsupported, irrelevant: mean over responses of |difference of the number|.
        mean_f1: mean F1@K' of the counts.
        human_mean_f1: mean F1@K' of the human counts.
    """

    k: float
    f1: float
    f1_of_means: float
    supported: float
    unsupported: float
    irrelevant: float
    mean_f1: float
    human_mean_f1: float


def recall_at_k_prime(supported: ArrayLike, k_prime: ArrayLike, gamma: float) -> Floats:
    """Recall R_K' = 2 / (1 + exp(gamma |S - K'|)), which is 1 at S = K' and smaller elsewhere.

    Source: FaStfact, equation 5.

    Args:
        supported: S of each response.
        k_prime: human number of claims of each response.
        gamma: rate at which recall decreases per claim, above 0.

    Raises:
        InputError: for negative counts or a gamma that is not above 0.
    """
    s, k = _counts(supported, "supported"), _counts(k_prime, "k_prime")
    distance = _gamma(gamma) * np.abs(s - k)
    # 2 / (1 + e^d) in a form that does not overflow.
    recall: Floats = 2.0 * np.exp(-distance) / (1.0 + np.exp(-distance))
    return recall


def f1_at_k_prime(
    supported: ArrayLike, unsupported: ArrayLike, k_prime: ArrayLike, gamma: float
) -> Floats:
    """F1@K' of each response, the harmonic mean of S / (S + N) and R_K'; 0 if S = 0.

    Source: FaStfact, equation 6. At S = 0, R_K' is above 0, but precision is 0 or undefined.

    Raises:
        InputError: for negative counts or a gamma that is not above 0.
    """
    s, n = _counts(supported, "supported"), _counts(unsupported, "unsupported")
    recall = recall_at_k_prime(s, k_prime, gamma)
    total = s + n
    precision = s / np.where(total > 0, total, 1.0)
    both = precision + recall
    f1: Floats = np.where(s > 0, 2.0 * precision * recall / np.where(both > 0, both, 1.0), 0.0)
    return f1


def gamma_like_f1_at_k(
    supported: ArrayLike, unsupported: ArrayLike, k_prime: ArrayLike, k: float | ArrayLike
) -> float:
    """Gamma at which the mean F1@K' equals the mean F1@K, "a similar magnitude as SAFE".

    The mean F1@K' decreases in gamma, so that there is at most one solution.

    Args:
        supported: S of each response.
        unsupported: N of each response.
        k_prime: K' of each response.
        k: K of F1@K, a number for all responses or one per response.

    Raises:
        InputError: for bad counts, a K that is not above 0, or if there is no such gamma.
    """
    from scipy.optimize import brentq

    s, n = _counts(supported, "supported"), _counts(unsupported, "unsupported")
    threshold = np.broadcast_to(np.asarray(k, dtype=np.float64), s.shape)
    if not (threshold > 0).all():
        raise InputError(f"k is {k!r}; give numbers above 0")
    total = np.where(s + n > 0, s + n, 1.0)
    wanted = float(f1_of_counts(s, total, threshold).mean())

    def excess(gamma: float) -> float:
        return float(f1_at_k_prime(s, n, k_prime, gamma).mean()) - wanted

    least = 1e-9
    if not excess(least) > 0 > excess(LARGEST_GAMMA):
        raise InputError(
            f"no gamma gives a mean F1@K' of {wanted:.4f}, the mean F1@K; it can be from "
            f"{excess(LARGEST_GAMMA) + wanted:.4f} to {excess(least) + wanted:.4f}: choose gamma"
        )
    return float(brentq(excess, least, LARGEST_GAMMA, xtol=1e-12))


def count_alignment(counts: ClaimCounts, human: ClaimCounts, gamma: float) -> CountAlignment:
    """Differences of counts and scores from human ones (FaStfact, table 2).

    Both are scored against the human K' = S' + N'. F1@K' of the human counts is therefore below 1
    if people find unsupported claims.

    Args:
        counts: counts of the method.
        human: human counts for the same responses.
        gamma: gamma of F1@K'.

    Raises:
        InputError: for different numbers of responses or none, or a bad gamma.
    """
    if counts.supported.shape != human.supported.shape or not counts.supported.size:
        raise InputError(
            f"there are counts of {len(counts.supported)} responses by the method and of "
            f"{len(human.supported)} by people; give the same responses, at least one"
        )
    f1 = f1_at_k_prime(counts.supported, counts.unsupported, human.verifiable, gamma)
    human_f1 = f1_at_k_prime(human.supported, human.unsupported, human.verifiable, gamma)
    return CountAlignment(
        k=_distance(counts.verifiable, human.verifiable),
        f1=_distance(f1, human_f1),
        f1_of_means=abs(float(f1.mean()) - float(human_f1.mean())),
        supported=_distance(counts.supported, human.supported),
        unsupported=_distance(counts.unsupported, human.unsupported),
        irrelevant=_distance(counts.irrelevant, human.irrelevant),
        mean_f1=float(f1.mean()),
        human_mean_f1=float(human_f1.mean()),
    )


def _distance(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).mean())


def _counts(values: ArrayLike, name: str) -> Floats:
    counts = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError(f"{name} is {values!r}; give a number of claims, from 0, per response")
    return counts


def _gamma(gamma: Any) -> float:
    if not is_number(gamma) or not 0 < gamma < math.inf:
        raise InputError(f"gamma is {gamma!r}; give a number above 0")
    return float(gamma)
