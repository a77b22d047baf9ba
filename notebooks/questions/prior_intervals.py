"""Learned priors of sources: do their intervals cover the priors that drew the labels?

`fit --columns source` gives a prior to each source of passages, with an interval over responses.

Question: in which share of drawn data sets does the interval of 95% hold the prior that drew the
labels, in ten laws of labels?
Data: simulated. A passage of a reliable source (prior .95) or a weak one (.3) entails or
contradicts each claim with probability .95, and labels are drawn from the model. The laws differ in
what claims of a response have in common, and in the sizes of responses.
Rival: intervals from the same estimates with the usual clustered error (Liang and Zeger 1986) and
as many degrees of freedom as the sizes of responses allow; and intervals that take claims for
independent.

    python notebooks/questions/prior_intervals.py --out docs/results/prior-intervals

A claim with one passage has a likelihood in closed form, from which estimates and intervals are
computed here. A test compares them with those of `fit_potentials`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from calibration.intervals import (
    MOST_LEVERAGE,
    RARE_KIND,
    effective_number,
    satterthwaite_freedom,
    student_quantile,
    unseen_share,
)
from calibration.validation import Floats, Integers
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.progress import tell
from factormodels.claims import CONTEXT_PRIOR

PRIORS = {"reliable": 0.95, "weak": 0.3}
"""Reliability of the two sources."""

P = 0.95
"""Probability that every relation states."""

SPREAD = 10.0
"""Standard deviation of the normal prior on log odds, as `fit --columns source` has it."""

MOST_ODDS = 12.0
"""Largest log odds of a learned prior; an estimate there has no interval."""

FEWEST = 100
"""Smallest number of intervals without a warning whose coverage is shown."""

_SIZE = 3
"""Claims per source of a response of usual size."""

_POPULATION = 200_000
"""Responses from which the prior is computed that all labels would teach."""


@dataclass(frozen=True)
class World:
    """A law of labels.

    Attributes:
        shared: whether all claims of a response and source depend on one passage.
        spread: standard deviation of the logarithm of the number of claims per source; 0: three.
        by_size: how far log odds of reliability fall with the logarithm of the number of claims.
        invented: share of responses all of whose passages are unreliable.
        absent: share of responses without claims of the source.
        agreement: probability that a reliable passage agrees with a label; relations state `P`.
    """

    shared: bool = True
    spread: float = 0.0
    by_size: float = 0.0
    invented: float = 0.0
    absent: float = 0.0
    agreement: float = P


WORLDS: Mapping[str, World] = {
    "independent claims": World(shared=False),
    "one passage per source": World(),
    "over-sharp relations": World(agreement=0.9),
    "source in half of responses": World(absent=0.5),
    "one in ten invented": World(invented=0.1),
    "unequal, independent claims": World(shared=False, spread=1.2),
    "unequal": World(spread=1.2),
    "very unequal": World(spread=1.6),
    "unequal, long ones worse": World(spread=1.2, by_size=0.5),
    "unequal, one in ten invented": World(spread=1.2, invented=0.1),
}


def prior_intervals(
    *,
    worlds: tuple[str, ...] = tuple(WORLDS),
    responses: tuple[int, ...] = (20, 40, 80, 160),
    draws: int = 1000,
    seed: int = 0,
) -> Artifacts:
    """Return the coverage and width of the intervals of learned priors.

    Args:
        worlds: names of laws of labels.
        responses: numbers of labeled responses.
        draws: sets of data for each.
        seed: seed of the draws.
    """
    rows = []
    for name in worlds:
        tell(name)
        for n_responses in responses:
            for source in PRIORS:
                rows.append(coverage_row(name, source, n_responses, draws, seed))
    coverage = Table(
        data_frame(rows),
        columns_as(
            "world | source | responses:0 | prior:2 | mean:3 mean estimate | covered:3 | width:3 | "
            "silent:2 without a warning | silent_covered:3 these cover | usual:3 usual error | "
            "usual_width:3 its width | independent:3 claims taken for independent | open:0"
        ),
        "Intervals of learned priors, nominal coverage 0.95",
        note=f"Of {draws} draws each. Prior: what labels of all claims would teach. Open: draws "
        "whose labels leave the prior open, which have no interval and no part in other columns.",
    )
    return Artifacts({"coverage": coverage, "worst": _worst(rows)})


def _worst(rows: list[dict[str, Any]]) -> Table:
    """Table of the lowest and highest coverage over worlds, by source and number of responses."""
    frame = data_frame(rows)
    grouped = frame.groupby(["source", "responses"], sort=False)
    worst = grouped.agg(
        lowest=("covered", "min"),
        highest=("covered", "max"),
        width=("width", "mean"),
        silent=("silent", "mean"),
        silent_lowest=("silent_covered", "min"),
        silent_highest=("silent_covered", "max"),
        usual=("usual", "min"),
        usual_width=("usual_width", "mean"),
        independent=("independent", "min"),
    ).reset_index()
    return Table(
        worst,
        columns_as(
            "source | responses:0 | lowest:3 covers at least | highest:3 at most | width:3 | "
            "silent:2 without a warning | silent_lowest:3 these cover at least | "
            "silent_highest:3 at most | usual:3 usual error at least | usual_width:3 its width | "
            "independent:3 claims taken for independent at least"
        ),
        "Lowest and highest coverage of intervals of learned priors over ten worlds",
        note="Widths and shares without a warning are means over worlds.",
    )


def coverage_row(
    name: str, source: str, n_responses: int, draws: int, seed: int = 0
) -> dict[str, Any]:
    """Return the coverage of the prior of a source over drawn sets of data."""
    world, truth = WORLDS[name], target(WORLDS[name], source, seed)
    outcomes = []
    for number in range(draws):
        key = [seed, [*WORLDS].index(name), [*PRIORS].index(source), n_responses, number]
        learned = learned_prior(*drawn(world, source, n_responses, np.random.default_rng(key)))
        if learned is not None:
            outcomes.append(_outcome(learned, truth))
    covers, widths, silent = (np.array(each) for each in zip(*outcomes, strict=True))
    return {
        "world": name,
        "source": source,
        "responses": n_responses,
        "prior": truth,
        "mean": covers[:, 0].mean(),
        "covered": covers[:, 1].mean(),
        "width": widths[:, 0].mean(),
        "silent": silent.mean(),
        "silent_covered": covers[silent, 1].mean() if silent.sum() >= FEWEST else math.nan,
        "usual": covers[:, 2].mean(),
        "usual_width": widths[:, 1].mean(),
        "independent": covers[:, 3].mean(),
        "open": draws - len(outcomes),
        "draws": draws,
    }


class LearnedPrior(NamedTuple):
    """A prior on the scale of log odds, with reaches of intervals.

    Attributes:
        odds: log odds of the prior.
        reach: half of the interval of `fit --columns source`.
        usual: half of the interval with the usual clustered error.
        independent: half of the interval that takes claims for independent.
        effective: number of responses of equal size with the same information.
    """

    odds: float
    reach: float
    usual: float
    independent: float
    effective: float

    def ends(self, reach: float) -> tuple[float, float]:
        """Return the ends of an interval of the prior."""
        return _prior(self.odds - reach), _prior(self.odds + reach)


def _outcome(learned: LearnedPrior, truth: float) -> tuple[list[float], list[float], bool]:
    covers, widths = [_prior(learned.odds)], []
    for reach in (learned.reach, learned.usual, learned.independent):
        lower, upper = learned.ends(reach)
        covers.append(lower <= truth <= upper)
        widths.append(upper - lower)
    return covers, widths, unseen_share(learned.effective, 0.95) <= RARE_KIND


def learned_prior(sizes: Integers, agreeing: Integers) -> LearnedPrior | None:
    """Learn the prior of a source by the log loss of claims; None if labels leave it open.

    Args:
        sizes: number of its claims in each response, (n,).
        agreeing: number of those whose label agrees with the passage, (n,).
    """
    pull, start = SPREAD**-2, math.log(CONTEXT_PRIOR / (1 - CONTEXT_PRIOR))
    counts = np.array([agreeing.sum(), (sizes - agreeing).sum()], dtype=np.float64)
    # The gradient of the penalized loss rises through 0 where the loss is smallest.
    low, high = -MOST_ODDS, MOST_ODDS
    for _ in range(60):
        odds = (low + high) / 2
        above = counts @ _derivatives(odds)[0] + pull * (odds - start) > 0
        low, high = (low, odds) if above else (odds, high)
    if abs(odds) > MOST_ODDS - 1e-6:
        return None
    first, second = _derivatives(odds)
    scores = agreeing * first[0] + (sizes - agreeing) * first[1]
    curvatures = agreeing * second[0] + (sizes - agreeing) * second[1]
    curvature = curvatures.sum() + pull
    effective = float(effective_number(np.maximum(curvatures, 0.0)[:, np.newaxis])[0])
    leverages = np.clip(curvatures / curvature, 0.0, MOST_LEVERAGE)
    influences = scores / np.sqrt(1 - leverages) / curvature
    error = math.sqrt(max(influences @ influences, 1 / curvature))
    n = sizes.size
    errors_freedoms = (
        (error, satterthwaite_freedom(influences, effective - 1)),
        (math.sqrt(n / (n - 1)) * np.linalg.norm(scores) / curvature, effective - 1),
        (math.sqrt(_claim_variance(odds) / sizes.sum()), sizes.sum() - 1),
    )
    reaches = [float(error * student_quantile(0.95, freedom)) for error, freedom in errors_freedoms]
    return LearnedPrior(odds, *reaches, effective) if effective > 1 else None


def _prior(odds: float) -> float:
    from scipy.special import expit

    return float(expit(odds))


def _derivatives(odds: float) -> tuple[Floats, Floats]:
    """First and second derivatives by log odds of the loss of a claim that agrees with its passage,
    and of one that does not, each (2,).

    A claim agrees with probability P/u with u = q + (1 - q) 2P for the prior q.
    """
    q = _prior(odds)
    u = 2 * P - (2 * P - 1) * q
    first = -(2 * P - 1) * q * (1 - q)
    second = first * (1 - 2 * q)
    by_u, by_rest = first / u, first / (u - P)
    of_u, of_rest = second / u - by_u**2, second / (u - P) - by_rest**2
    return np.array([by_u, by_u - by_rest]), np.array([of_u, of_u - of_rest])


def _claim_variance(odds: float) -> float:
    """Inverse of the information that a claim has on log odds."""
    first, _ = _derivatives(odds)
    share = P / (2 * P - (2 * P - 1) * _prior(odds))
    return float(1 / (np.array([share, 1 - share]) @ first**2))


def target(world: World, source: str, seed: int = 0) -> float:
    """Return the prior that labels of all claims would teach.

    A source of that prior agrees with as many claims in the mean. If labels have the law of the
    model, it is the source's prior.
    """
    sizes, reliable = _law(world, source, _POPULATION, np.random.default_rng([seed, _POPULATION]))
    agrees = sizes @ (reliable * world.agreement + (1 - reliable) / 2) / sizes.sum()
    return float((2 * P - P / agrees) / (2 * P - 1))


def _law(world: World, source: str, n: int, rng: Generator) -> tuple[Integers, Floats]:
    """Return the claims of a source in each response, and P(its passages are reliable), each (n,).

    Probabilities are given the relations, of which each multiplies the odds of its passage by
    1/(2P) where nothing else is known.
    """
    sizes = np.full(n, _SIZE)
    if world.spread:
        lengths = _SIZE * rng.lognormal(0.0, world.spread, n)
        sizes = np.maximum(1, np.rint(lengths)).astype(np.int64)
    odds = PRIORS[source] / (1 - PRIORS[source]) * (sizes / _SIZE) ** -world.by_size
    reliable = np.where(rng.random(n) < world.invented, 0.0, odds / (odds + 2 * P))
    return np.where(rng.random(n) < world.absent, 0, sizes), reliable


def drawn(world: World, source: str, n: int, rng: Generator) -> tuple[Integers, Integers]:
    """Draw the numbers of claims and of agreeing claims of a source in n responses, each (n,)."""
    sizes, reliable = _law(world, source, n, rng)
    n_reliable = rng.binomial(sizes, reliable)
    if world.shared:
        n_reliable = np.where(rng.random(sizes.size) < reliable, sizes, 0)
    return sizes, rng.binomial(n_reliable, world.agreement) + rng.binomial(sizes - n_reliable, 0.5)


if __name__ == "__main__":
    answer_question(prior_intervals, __file__)
