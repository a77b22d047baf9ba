"""Convergence criterion of estimates from draws, common to all samplers.

The spread of draws gives no information on a mode that no draw reached. The criterion therefore
uses a witness: draws from weighted mini-buckets, whose weights f / q are between 0 and the certain
upper bound U. Hence q(x) >= f(x) / U for every assignment x: the proposal is defensive (Hesterberg
1995; Owen & Zhou 2000), every state can be drawn, and the mass missed by n draws is bounded:

- The mean of the weights, which is Z on average, has bounds L and H that hold with a stated
  probability on every graph (`bounds_of_mean`). The stated standard error of log Z is the smallest
  for which two standard errors reach L and H, but not below the spread of the sampler's own draws.
- Each draw is in a given set of states with a share r of Z with probability at least r Z / U, so
  that n draws miss the set with probability at most (1 - r Z / U)^n. With probability 1 - d, a set
  that they missed has a mass of at most M = U (1 - d^(1 / n)), about U log(1 / d) / n; M / (Z + M)
  is the *unseen share*. It can move a marginal by the same amount, and two of the stated standard
  errors reach that far.

A sampler has converged if its own diagnostics say so, log Z lies between the certain bounds and
near what the witness allows, its marginals agree with those of the witness, the error of log Z is
at most 0.25 and the unseen share at most 0.1.

The criterion assumes that draws of the witness are independent and that the bound U is correct up
to rounding; it assumes nothing about the graph. A sampler other than the witness may miss states
that the witness saw; this shows in log Z or, for a sampler without log Z, only if it moves a
marginal.

Sources: Liu, Fisher & Ihler 2015, "Probabilistic variational bounds for graphical models",
equation 4, for U; Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by
betting", for the bounds of the mean, which are tighter here than those by the empirical variance
(Maurer & Pontil 2009, theorem 4); Hesterberg 1995, "Weighted average importance sampling and
defensive mixture distributions"; Owen & Zhou 2000, "Safe and effective importance sampling".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph

TWO_ERRORS = 0.9545
"""The probability that a normal variable is within two standard errors."""

LARGEST_ERROR = 0.25
"""Maximum standard error of log Z of a converged run: two of them are a factor of 1.65."""

LARGEST_UNSEEN = 0.1
"""Maximum unseen share of a converged run: a marginal is then off by 0.1 at worst."""

_FAR = 3.0
"""Number of standard errors by which an estimate of log Z may lie outside the bounds."""

_APART = 5.0
"""Number of standard errors by which a marginal may differ from the witness's, as the maximum over
thousands."""

_ROUNDING = 1e-9
"""Maximum difference of two marginals that are both exact, and of log Z relative to its size."""

_UPWARD_STAKES = np.concatenate([[0.95], 2.0 ** -np.arange(1.0, 9.0)])
"""The best stake is about sqrt(2 log(1 / d) / (n V)) for n draws of variance V; these range from
rare draws to 100,000 draws of the largest variance."""

_DOWNWARD_STAKES = 4.0 ** np.arange(-4.0, 9.0)
"""These stakes have no limit: the smaller the mean, the larger the best stake."""

_HALVINGS = 60


class StakedDraws(NamedTuple):
    """Independent draws of a number X in [0, 1], as sums for bounds of their mean.

    Attributes:
        n: number of draws.
        log_mean: logarithm of their mean; -inf: all are 0.
        upward, downward: float64, for each stake s the sums of log(1 - s X) and of log(1 + s X).
    """

    n: int
    log_mean: float
    upward: NDArray[np.float64]
    downward: NDArray[np.float64]

    @classmethod
    def of(cls, log_shares: NDArray[np.float64]) -> StakedDraws:
        """Return sums over draws.

        Args:
            log_shares: float64 (n,), logarithms of the draws, at least one.
        """
        shares = np.exp(log_shares)
        top = float(log_shares.max())
        log_mean = -math.inf
        if top > -math.inf:
            log_mean = top + math.log(float(np.exp(log_shares - top).mean()))
        upward = [np.log1p(-stake * shares).sum() for stake in _UPWARD_STAKES]
        downward = [np.log1p(stake * shares).sum() for stake in _DOWNWARD_STAKES]
        return cls(len(shares), log_mean, np.array(upward), np.array(downward))

    def bounds_of_mean(self, confidence: float) -> tuple[float, float]:
        """Return bounds on the logarithm of the mean m of X.

        They hold jointly with the given probability, and for all numbers of draws simultaneously.
        For a stake s below 1 the product of (1 - s X) / (1 - s m) over the draws is a nonnegative
        martingale that begins at 1, and so is its mean over stakes that are chosen beforehand; by
        Ville's inequality, the probability that it ever exceeds 1 / d is at most d. The upper bound
        is the smallest m at which it does. The lower bound uses (1 + s X) / (1 + s m), or Markov's
        inequality, which holds at all times since means are a martingale in reverse.

        Args:
            confidence: the probability.

        Source: Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by
        betting", section 4; Manole & Ramdas 2023, "Martingale methods for sequential estimation
        of convex functionals and divergences", for means in reverse.
        """
        n, log_mean = self.n, self.log_mean
        error = 0.5 * (1.0 - confidence)
        wealth = math.log(len(_UPWARD_STAKES) / error)

        def too_high(log_m: float) -> bool:
            gains = self.upward - n * np.log1p(-_UPWARD_STAKES * math.exp(log_m))
            return bool(np.logaddexp.reduce(gains) >= wealth)

        upper = _boundary(too_high, max(log_mean, math.log(error / n) - 1.0), 0.0)
        if log_mean == -math.inf:
            return -math.inf, upper
        # Each of the two inequalities for the lower bound gets half of the error.
        lower = log_mean + math.log(0.5 * error)
        downward_wealth = math.log(len(_DOWNWARD_STAKES) / (0.5 * error))

        def high_enough(log_m: float) -> bool:
            gains = self.downward - n * np.log1p(_DOWNWARD_STAKES * math.exp(log_m))
            return bool(np.logaddexp.reduce(gains) < downward_wealth)

        return _boundary(high_enough, lower, log_mean), upper


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect for the point where a statement becomes true; `low` if it is already true there."""
    if holds(low):
        return low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, eq=False)
class Witness:
    """Bounds and marginals of a graph from draws with bounded weights.

    Attributes:
        lower, upper: bounds on log Z that hold with probability `TWO_ERRORS`, or for certain.
        certain_lower, certain_upper: bounds on log Z that hold for certain.
        unseen: the share of Z that the draws may have missed; 0 for an exact answer, without draws.
        values: float64 (n_states,), marginals, flat over states.
        errors: float64 (n_states,), their standard errors without the unseen share.
    """

    lower: float
    upper: float
    certain_lower: float
    certain_upper: float
    unseen: float
    values: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def exact(cls, log_z: float, values: NDArray[np.float64]) -> Witness:
        """Return a witness with the exact answer."""
        return cls(log_z, log_z, log_z, log_z, 0.0, values, np.zeros(len(values)))

    @classmethod
    def of_draws(
        cls,
        staked: StakedDraws,
        bound: float,
        certain_lower: float,
        values: NDArray[np.float64],
        errors: NDArray[np.float64],
    ) -> Witness:
        """Return a witness from weights that do not exceed the bound.

        Args:
            staked: sums over the weights divided by the bound.
            bound: the logarithm of the certain upper bound.
            certain_lower: the logarithm of a certain lower bound; -inf if none is known.
            values, errors: as in the class.
        """
        low, high = staked.bounds_of_mean(TWO_ERRORS)
        error = 0.5 * (1.0 - TWO_ERRORS)
        log_missed = bound + math.log(-math.expm1(math.log(error) / staked.n))
        log_z = bound + staked.log_mean
        unseen = math.exp(log_missed - float(np.logaddexp(log_z, log_missed)))
        lower = max(bound + low, certain_lower)
        return cls(lower, bound + high, certain_lower, bound, unseen, values, errors)

    def stats(self) -> dict[str, float]:
        """Return the entries of a sampler's `stats` that describe its witness."""
        return {
            "certain_lower": self.certain_lower,
            "certain_upper": self.certain_upper,
            "unseen_share": self.unseen,
        }

    def moved(self, constant: float) -> Witness:
        """Return the witness of a graph whose log Z is larger by a constant."""
        return replace(
            self,
            lower=self.lower + constant,
            upper=self.upper + constant,
            certain_lower=self.certain_lower + constant,
            certain_upper=self.certain_upper + constant,
        )


class JudgedLogZ(NamedTuple):
    """The stated standard error of log Z, and a doubt."""

    error: float
    doubt: str
    """Why the run has not converged, as a clause; empty if it has."""


class JudgedMarginals(NamedTuple):
    """The stated standard errors of marginals, float64 (n_states,), and a doubt."""

    errors: NDArray[np.float64]
    doubt: str


def judge_log_z(log_z: float, spread: float, witness: Witness) -> JudgedLogZ:
    """Return the standard error of an estimate of log Z, and a doubt about it, if any.

    Args:
        log_z: the estimate.
        spread: the standard error by the sampler's own draws.
        witness: the witness that the estimate is compared with.
    """
    error = max(spread, 0.5 * (witness.upper - log_z), 0.5 * (log_z - witness.lower))
    # Certain bounds are correct up to rounding.
    reach = _FAR * spread + _ROUNDING * max(1.0, abs(log_z))
    doubt = ""
    for side, bound in (("below", witness.lower - log_z), ("above", log_z - witness.upper)):
        if bound > reach:
            doubt = (
                f"the estimate of log Z, {log_z:.4g}, lies {bound:.3g} {side} what mini-buckets "
                f"and their draws allow, {witness.lower:.6g} to {witness.upper:.6g}"
            )
    if not doubt and not error <= LARGEST_ERROR:
        doubt = (
            f"log Z may be anywhere from {witness.lower:.6g} to {witness.upper:.6g}: the standard "
            f"error of {error:.3g} is more than {LARGEST_ERROR}"
        )
    return JudgedLogZ(error, doubt or _unseen(witness))


def judge_marginals(
    graph: FactorGraph,
    values: NDArray[np.float64],
    errors: NDArray[np.float64],
    witness: Witness,
) -> JudgedMarginals:
    """Return the standard errors of marginals, and a doubt about them, if any.

    Args:
        graph: the graph that was sampled.
        values: float64 (n_states,), the marginals.
        errors: float64 (n_states,), their standard errors by the sampler's own draws.
        witness: the witness that they are compared with.
    """
    apart = np.abs(values - witness.values)
    half = 0.5 * witness.unseen
    with np.errstate(invalid="ignore", divide="ignore"):
        scales = np.sqrt(errors**2 + witness.errors**2 + half**2)
        ratios = np.where(apart > _ROUNDING, apart / scales, 0.0)
    doubt = ""
    if len(ratios) and float(np.nanmax(ratios)) > _APART:
        state = int(np.nanargmax(ratios))
        starts = np.cumsum(graph.cardinalities) - graph.cardinalities
        variable = int(np.searchsorted(starts, state, side="right")) - 1
        doubt = (
            f"P({graph.names[variable]}={state - starts[variable]}) is {values[state]:.4g} by this "
            f"run and {witness.values[state]:.4g} by draws from mini-buckets, "
            f"{ratios[state]:.3g} standard errors apart"
        )
    # Two standard errors reach the witness's value, as far as it is known.
    widened = np.maximum(errors, 0.5 * (apart - 2.0 * witness.errors))
    return JudgedMarginals(np.hypot(widened, half), doubt or _unseen(witness))


def too_few(what: str, effective: float, least: float) -> str:
    """Return the doubt that the effective number of draws is below the required one."""
    return f"the {what} count for {effective:.3g} independent ones, and {least:g} are asked for"


def why(doubt: str) -> dict[str, str]:
    """Return the entry of `stats` with the reason why a run has not converged; empty if it has."""
    return {"why_not_converged": doubt} if doubt else {}


def _unseen(witness: Witness) -> str:
    if witness.unseen <= LARGEST_UNSEEN:
        return ""
    return (
        f"the upper bound on log Z, {witness.certain_upper:.6g}, leaves room for a share of "
        f"{witness.unseen:.3g} of Z that no draw reached, more than {LARGEST_UNSEEN}"
    )
