"""Means of weights that span orders of magnitude, with errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.possible_states import state_starts
from inference.posterior import Status

CONFIDENCE = 0.95
"""Default probability with which intervals of log Z hold."""


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Assignments with weights, in independent groups.

    Attributes:
        states: whole numbers (n_groups, n_draws, n_variables).
        weights: float64 (n_groups, n_draws), nonnegative; they add up to 1.
        effective: effective number of independent draws.
        status: converged if groups agree and the effective number is large enough.
    """

    states: NDArray[np.int64]
    weights: NDArray[np.float64]
    effective: float
    status: Status


def jackknife(
    estimate: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    sums: NDArray[np.float64],
    effective: float | NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the jackknife estimate from sums over groups, with its standard error.

    Args:
        estimate: function of the sum over groups, which has the shape of a group's sum.
        sums: float64 (n_groups, ...), the sum of each group, at least 2 groups.
        effective: effective number of draws, n, or those of several estimates: no standard error
            is below 1 / n.
    """
    n = len(sums)
    total = sums.sum(axis=0)
    # Sum the others, since a difference would cancel all digits if one group outweighs them.
    without = np.stack([estimate(np.delete(sums, group, axis=0).sum(axis=0)) for group in range(n)])
    spread = (n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return estimate(total), np.sqrt(spread + np.maximum(effective, 1.0) ** -2.0)


def frequencies(
    draws: WeightedDraws, numbers: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of 0, 1, ..., count - 1 and their standard errors.

    Args:
        numbers: int64 (n_groups, n_draws), the number of each draw.
    """
    sums = np.zeros((len(numbers), count))
    for group, group_numbers in enumerate(numbers):
        sums[group] = np.bincount(group_numbers, draws.weights[group], count)
    return jackknife(lambda total: total / total.sum(), sums, draws.effective)


def log_mean(
    logarithms: NDArray[np.float64], confidence: float
) -> tuple[float, float, tuple[float, float]]:
    """Return the log mean of independent positive numbers, its standard error and an interval.

    The standard error is the larger of two. The jackknife error is large if one number outweighs
    all others. The error for log-normal numbers with sample variance s^2 of the logarithms,
    (s^2 / n + s^4 / (2 (n - 1)))^(1/2), accounts for rare large numbers that the sample may lack.
    The interval uses Student's distribution.

    Args:
        logarithms: float64 (n,), logarithms of the numbers, not all -inf, at least 2.
        confidence: the probability that the interval is meant to hold with.
    """
    from scipy.special import stdtrit

    n = len(logarithms)
    top = logarithms.max()
    shares = np.exp(logarithms - top)
    total = shares.sum()
    estimate = float(top + np.log(total / n))
    # Cancellation would leave no digits of a sum without its dominant term, so sum again.
    order = np.argsort(shares)
    rest = total - shares
    rest[order[-1]] = shares[order[:-1]].sum()
    with np.errstate(divide="ignore"):
        without = np.log(rest / (n - 1))
    if not np.isfinite(without).all():
        return estimate, np.inf, (-np.inf, np.inf)
    square = (n - 1) / n * ((without - without.mean()) ** 2).sum()
    if np.isfinite(logarithms).all():
        variance = logarithms.var(ddof=1)
        square = max(square, variance / n + variance**2 / (2 * (n - 1)))
    error = math.sqrt(square)
    reach = float(stdtrit(n - 1, 0.5 + 0.5 * confidence)) * error
    return estimate, error, (estimate - reach, estimate + reach)


def ratio_errors(
    graph: FactorGraph, shares: NDArray[np.float64], sums: NDArray[np.float64], effective: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return marginals from weighted groups and their standard errors, flat over states.

    Args:
        graph: the factor graph.
        shares: float64 (n_groups,), weights of the groups in any unit, at least 2 groups.
        sums: float64 (n_groups, n_states), sums of each group for each state, in any unit; those of
            a group of weight 0 are ignored.
        effective: effective number of draws, n: a state in no draw is not known to be rarer than 1
            / n, so that no standard error is below that.

    Source: the delta method for a ratio of means.
    """
    if not graph.n_variables:
        return np.zeros(0), np.zeros(0)
    used = shares > 0.0
    weights = shares[used] / shares.sum()
    totals = np.add.reduceat(sums[used], state_starts(graph)[:-1], axis=1)
    group_marginals = sums[used] / np.repeat(totals, graph.cardinalities, axis=1)
    values = weights @ group_marginals
    values /= np.repeat(np.add.reduceat(values, state_starts(graph)[:-1]), graph.cardinalities)
    if used.sum() < 2:
        return values, np.full(len(values), np.inf)
    n = len(shares)
    variances = n / (n - 1) * (weights**2 @ (group_marginals - values) ** 2)
    return values, np.sqrt(variances + effective**-2.0)
