"""Uncertainty of a response's measures from the joint posterior of its atoms.

The measures of `calibration.scores.measures` count atoms with P > 1/2 and treat the verdicts as
certain. Here the number S of true atoms is random. Its distribution is exact, estimated from
posterior samples, or Poisson-binomial for independent atoms. Precision, F1@K and F1@K' have moments
and intervals under this distribution.

from inference.tasks import count_distribution, pairwise_joints
summarize_count(count_distribution(graph, atoms).probabilities, k=10).expected_f1_at_k
precision_moments(pairwise_joints(graph, atoms)[:, :, 1, 1]).variance
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.claims.counts import f1_at_k_prime
from calibration.scores.measures import f1_of_counts, given_k
from calibration.validation import Floats, open_interval, probability_array
from factormodels.errors import InputError

NORMALIZATION = 1e-6
"""Largest accepted difference of a distribution's sum from 1; backends in double precision are a
thousand times closer."""

FRECHET = 1e-6
"""Largest accepted violation of the bounds of a pairwise probability, due to a backend's error."""


@dataclass(frozen=True)
class PrecisionMoments:
    """Mean and variance of Pr = S/n, the share of true atoms.

    Attributes:
        mean: E[Pr], the mean of the marginals.
        variance: Var[Pr] under the joint posterior.
        independent_variance: the variance if atoms were independent, sum p (1 - p) / n^2.
        n_atoms: number n of atoms.
    """

    mean: float
    variance: float
    independent_variance: float
    n_atoms: int


@dataclass(frozen=True, eq=False)
class CountSummary:
    """Summary of the distribution of the number of true atoms of a response.

    Attributes:
        n_atoms: number n of atoms.
        mean: E[S].
        variance: Var[S].
        expected_precision: E[Pr] = E[S]/n.
        precision_variance: Var[Pr] = Var[S]/n^2.
        precision_lower: lower end of the central interval of Pr.
        precision_upper: upper end.
        level: minimum probability that Pr is within the interval; S is an integer.
        expected_f1_at_k: E[F1@K], nan if no K was given.
        expected_f1_at_k_prime: E[F1@K'], nan if no K' was given.
    """

    n_atoms: int
    mean: float
    variance: float
    expected_precision: float
    precision_variance: float
    precision_lower: float
    precision_upper: float
    level: float
    expected_f1_at_k: float
    expected_f1_at_k_prime: float


def precision_moments(pairs: ArrayLike) -> PrecisionMoments:
    """E[Pr] and Var[Pr] from the pairwise joints of the posterior.

    Var[Pr] = sum_ij (P(a_i, a_j) - P(a_i) P(a_j)) / n^2, in which the diagonal gives p (1 - p).

    Args:
        pairs: (n_atoms, n_atoms), entry (i, j) the probability that atoms i and j are both true;
            on the diagonal the marginals.

    Raises:
        InputError: if `pairs` is not square, not symmetric, not all in [0, 1], or an entry is
            not possible given its marginals.
    """
    joint = _pairs(pairs)
    p = np.diagonal(joint)
    covariance = joint - np.outer(p, p)
    n_atoms = p.size
    return PrecisionMoments(
        mean=float(p.mean()),
        # Rounding can make the sum slightly negative if every atom is certain.
        variance=max(0.0, float(covariance.sum()) / n_atoms**2),
        independent_variance=float((p * (1 - p)).sum()) / n_atoms**2,
        n_atoms=n_atoms,
    )


def summarize_count(
    distribution: ArrayLike,
    *,
    k: float | None = None,
    k_prime: float | None = None,
    gamma: float | None = None,
    level: float = 0.95,
) -> CountSummary:
    """Moments, a central interval of Pr, and expected F1 of a response.

    Args:
        distribution: P(S = s) for s = 0, ..., n, shape (n + 1,), from a backend, from samples, or
            from ``scipy.stats.poisson_binom`` for independent atoms.
        k: the K of F1@K (FactReasoner, appendix B, equation 7), or None.
        k_prime: the K' of F1@K' (FaStfact, section 4.4.2, equations 5 and 6), or None.
        gamma: the gamma of F1@K', required with `k_prime`.
        level: probability of the central interval of Pr.

    Raises:
        InputError: for a bad distribution, or settings outside their ranges.
    """
    weights, level = distribution_array(distribution), open_interval(level, "level", 0, 1)
    if (k_prime is None) != (gamma is None):
        raise InputError("give k_prime and gamma together, or neither")
    n_atoms = weights.size - 1
    count = np.arange(n_atoms + 1)
    mean = float(weights @ count)
    variance = float(weights @ (count - mean) ** 2)
    lower, upper = _central(weights, level)
    at_k = at_k_prime = math.nan
    if k is not None:
        at_k = float(weights @ f1_of_counts(count, n_atoms, given_k(k)))
    if k_prime is not None and gamma is not None:
        at_k_prime = float(weights @ f1_at_k_prime(count, n_atoms - count, k_prime, gamma))
    return CountSummary(
        n_atoms=n_atoms,
        mean=mean,
        variance=variance,
        expected_precision=mean / n_atoms,
        precision_variance=variance / n_atoms**2,
        precision_lower=lower / n_atoms,
        precision_upper=upper / n_atoms,
        level=level,
        expected_f1_at_k=at_k,
        expected_f1_at_k_prime=at_k_prime,
    )


def distribution_array(distribution: ArrayLike) -> Floats:
    """Check and normalize a distribution over s = 0, ..., n, float64 (n + 1,).

    Raises:
        InputError: if there is no atom, an entry is not in [0, 1], or the sum is not 1.
    """
    weights = probability_array(distribution, "distribution")
    if weights.size < 2:
        raise InputError("distribution has one entry; give P(S = s) for s = 0, ..., n, n >= 1")
    total = float(weights.sum())
    if abs(total - 1) > NORMALIZATION:
        raise InputError(f"distribution sums to {total!r}; give probabilities that sum to 1")
    return weights / total


def _central(weights: Floats, level: float) -> tuple[int, int]:
    """Smallest and largest s whose tail probability exceeds (1 - level)/2."""
    # A tail that equals the bound up to rounding does not exceed it.
    tail = (1 - level) / 2 * (1 + 1e-12)
    return (
        int(np.argmax(np.cumsum(weights) > tail)),
        int(weights.size - 1 - np.argmax(np.cumsum(weights[::-1]) > tail)),
    )


def _pairs(pairs: ArrayLike) -> Floats:
    joint = np.asarray(pairs, dtype=np.float64)
    if joint.ndim != 2 or joint.shape[0] != joint.shape[1] or joint.size == 0:
        raise InputError(
            f"pairs has shape {joint.shape}; give a square table, a row and a column per atom"
        )
    _check_all(joint, (joint >= 0) & (joint <= 1), "is not in [0, 1]; give probabilities")
    close = np.isclose(joint, joint.T, rtol=0, atol=FRECHET)
    _check_all(joint, close, "differs from its mirror; P(a and b) is P(b and a)")
    p = np.diagonal(joint)
    least = np.maximum(0.0, p[:, np.newaxis] + p - 1)
    most = np.minimum(p[:, np.newaxis], p)
    possible = (joint >= least - FRECHET) & (joint <= most + FRECHET)
    _check_all(
        joint,
        possible,
        "is not possible with its marginals, which belong on the diagonal; give P(a and b)",
    )
    return joint


def _check_all(joint: Floats, allowed: Any, fault: str) -> None:
    if not allowed.all():
        row, column = (int(index) for index in np.argwhere(~allowed)[0])
        raise InputError(f"pairs[{row}, {column}] is {float(joint[row, column])!r}, which {fault}")
