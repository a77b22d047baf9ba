"""Estimands: smooth functions of ratios of sums over responses, and intervals that respect these.

A share of claims is a sum over responses divided by another. Claims of one response are dependent,
so the sums of a response are what varies independently: the linearised sums (influences) give
standard errors, and redrawn responses give bootstrap replicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.intervals.resampling import response_weights
from calibration.validation import Floats, Integers, open_interval, whole_number
from factormodels.errors import InputError

_ROUNDING = 1e-12
"""Relative: a standard error below this is the rounding of one that is 0."""


class Scale(StrEnum):
    """What values an estimand can take, which decides on what scale its interval is symmetric."""

    PROBABILITY = "probability"
    NUMBER = "number"


class IntervalMethod(StrEnum):
    """How intervals over responses are made."""

    BOOTSTRAP = "bootstrap"
    DELTA = "delta"


@dataclass(frozen=True)
class IntervalSettings:
    """How intervals are made.

    Attributes:
        method: ``bootstrap`` for percentiles of replicates that redraw whole responses, expanded
            for few responses as Hesterberg 2015 (American Statistician 69) has it; ``delta`` for
            the linearised standard error clustered by response, with Student's t and, for
            probabilities, symmetric in the logit. Under 60 responses delta covers better.
        n_bootstrap: number of replicates.
        seed: seed of the bootstrap.
        level: nominal coverage, between 0 and 1.

    Raises:
        InputError: for a setting outside these ranges.
    """

    method: str = IntervalMethod.BOOTSTRAP
    n_bootstrap: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.method not in set(IntervalMethod):
            raise InputError(
                f"interval method is {self.method!r}; choose one of {', '.join(IntervalMethod)}"
            )
        whole_number(self.n_bootstrap, "n_bootstrap", 1)
        whole_number(self.seed, "seed", 0)
        open_interval(self.level, "level", 0, 1)


@dataclass(frozen=True, eq=False)
class RatioSums:
    """Numerators and denominators of a ratio in each cell (a bin of positions, for instance).

    Attributes:
        numerator: float64 (n_responses, n_cells), the sum over each response.
        denominator: float64 (n_responses, n_cells), not negative.
    """

    numerator: Floats
    denominator: Floats

    def estimate(self) -> Floats:
        """Return the ratio of the totals, (n_cells,), nan where the denominator is 0."""
        return _divided(self.numerator.sum(axis=0), self.denominator.sum(axis=0))

    def influence(self) -> Floats:
        """Return the linearised contribution of each response, (n_responses, n_cells)."""
        residual = self.numerator - self.estimate() * self.denominator
        return _divided(residual, self.denominator.sum(axis=0))

    def replicates(self, weights: Floats) -> Floats:
        """Return the ratio in each replicate, (n_replicates, n_cells), of response weights."""
        return _divided(weights @ self.numerator, weights @ self.denominator)

    def touching(self) -> Integers:
        """Return the number of responses with a positive denominator, (n_cells,)."""
        return np.asarray((self.denominator > 0).sum(axis=0))

    def is_still(self) -> NDArray[np.bool_]:
        """Say in which cells redrawing responses cannot move the ratio, (n_cells,)."""
        own = _divided(self.numerator, self.denominator)
        held = self.denominator > 0
        lowest = np.where(held, own, np.inf).min(axis=0)
        highest = np.where(held, own, -np.inf).max(axis=0)
        return np.asarray(lowest >= highest)


class Estimand(Protocol):
    """What intervals need to know of an estimand, in every cell."""

    @property
    def name(self) -> str: ...

    @property
    def scale(self) -> Scale: ...

    def estimate(self) -> Floats:
        """Return the estimate, (n_cells,), nan where it is not defined."""

    def influence(self) -> Floats:
        """Return the linearised contribution of each response, (n_responses, n_cells)."""

    def replicates(self, weights: Floats) -> Floats:
        """Return the estimate in each replicate, (n_replicates, n_cells)."""

    def touching(self) -> Integers:
        """Return the number of responses that the estimate rests on, (n_cells,)."""

    def still_share(self) -> Floats:
        """Return the estimate where it is a share no redraw can move, else nan, (n_cells,)."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of sums, such as the share of supported claims that are judged correct."""

    name: str
    sums: RatioSums
    scale: Scale = Scale.PROBABILITY

    def estimate(self) -> Floats:
        return self.sums.estimate()

    def influence(self) -> Floats:
        return self.sums.influence()

    def replicates(self, weights: Floats) -> Floats:
        return self.sums.replicates(weights)

    def touching(self) -> Integers:
        return self.sums.touching()

    def still_share(self) -> Floats:
        share = self.sums.is_still() & (self.scale is Scale.PROBABILITY)
        return np.where(share, self.estimate(), np.nan)


@dataclass(frozen=True, eq=False)
class Smooth:
    """A differentiable function of ratios.

    Attributes:
        name: what the estimand is called.
        parts: the ratios.
        value: the function of their values, elementwise; nan where it is not defined.
        slopes: its partial derivatives in each ratio, elementwise.
        scale: what values it can take.
    """

    name: str
    parts: tuple[RatioSums, ...]
    value: Callable[..., Floats]
    slopes: Callable[..., tuple[Floats, ...]]
    scale: Scale = Scale.PROBABILITY

    def estimate(self) -> Floats:
        return self.value(*(part.estimate() for part in self.parts))

    def influence(self) -> Floats:
        slopes = self.slopes(*(part.estimate() for part in self.parts))
        terms = [slope * part.influence() for slope, part in zip(slopes, self.parts, strict=True)]
        return np.asarray(sum(terms[1:], start=terms[0]))

    def replicates(self, weights: Floats) -> Floats:
        return self.value(*(part.replicates(weights) for part in self.parts))

    def touching(self) -> Integers:
        return np.asarray(np.min([part.touching() for part in self.parts], axis=0))

    def still_share(self) -> Floats:
        return np.full(self.parts[0].numerator.shape[1], np.nan)


@dataclass(frozen=True, eq=False)
class Difference:
    """The second estimand less the first, both over the same responses in the same order."""

    first: Estimand
    second: Estimand

    @property
    def name(self) -> str:
        return self.first.name

    @property
    def scale(self) -> Scale:
        return Scale.NUMBER

    def estimate(self) -> Floats:
        return self.second.estimate() - self.first.estimate()

    def influence(self) -> Floats:
        return self.second.influence() - self.first.influence()

    def replicates(self, weights: Floats) -> Floats:
        return self.second.replicates(weights) - self.first.replicates(weights)

    def touching(self) -> Integers:
        return np.minimum(self.first.touching(), self.second.touching())

    def still_share(self) -> Floats:
        return np.full(self.estimate().size, np.nan)


@dataclass(frozen=True, eq=False)
class Estimates:
    """An estimand in every cell, with intervals.

    Attributes:
        name: what was estimated.
        estimate: float64 (n_cells,), nan where it is not defined.
        lower: float64 (n_cells,), lower end of the interval, nan where there is none.
        upper: float64 (n_cells,), its upper end.
        standard_error: float64 (n_cells,), linearised and clustered by response; nan if fewer
            than two responses bear on the estimate.
        n_responses: int64 (n_cells,), number of responses that the estimate rests on.
        n_undefined: int64 (n_cells,), number of bootstrap replicates in which it is not defined;
            0 if there was no bootstrap.
        level: nominal coverage of the intervals.
        method: how they were made.
    """

    name: str
    estimate: Floats
    lower: Floats
    upper: Floats
    standard_error: Floats
    n_responses: Integers
    n_undefined: Integers
    level: float
    method: str


def clustered_standard_error(influence: Floats, touching: Integers) -> Floats:
    """Return sqrt(R/(R-1) sum psi^2), (n_cells,), over R responses; nan where R < 2.

    Args:
        influence: (n_responses, n_cells), linearised contributions that sum to 0.
        touching: (n_cells,), the number R of responses that bear on each cell.
    """
    count = touching.astype(np.float64)
    factor = np.where(count > 1, count / np.maximum(count - 1, 1), np.nan)
    return np.asarray(np.sqrt(factor * (influence**2).sum(axis=0)))


def estimate_all(estimands: tuple[Estimand, ...], settings: IntervalSettings) -> list[Estimates]:
    """Return each estimand with its intervals; replicates draw the same responses for all.

    An interval is nan where the estimate is not defined or fewer than two responses bear on it,
    and where a function of shares lies on the edge of its range. A share that no redraw of the
    responses can move (every response has the same) gets Wilson's interval, each response
    counting as one observation, as in `reliability_bins`.
    """
    n_responses = estimands[0].influence().shape[0]
    if settings.method == IntervalMethod.DELTA:
        intervals = [_delta_interval(each, settings.level) for each in estimands]
        undefined = [np.zeros(each.estimate().size, dtype=np.int64) for each in estimands]
    else:
        draws = _replicates(estimands, n_responses, settings)
        undefined = [np.isnan(drawn).sum(axis=0) for drawn in draws]
        intervals = [
            _percentiles(drawn, each.touching(), settings.level)
            for drawn, each in zip(draws, estimands, strict=True)
        ]
    results = []
    for each, (lower, upper), missing in zip(estimands, intervals, undefined, strict=True):
        estimate, touching = each.estimate(), each.touching()
        error = clustered_standard_error(each.influence(), touching)
        # Without spread the interval would be a point, which claims what the data cannot tell.
        void = np.isnan(estimate) | (touching < 2) | (error <= _ROUNDING * np.abs(estimate))
        lower, upper = np.where(void, np.nan, lower), np.where(void, np.nan, upper)
        share = each.still_share()
        still = ~np.isnan(share)
        if still.any():
            lower[still], upper[still] = wilson(share[still], touching[still], settings.level)
        results.append(
            Estimates(
                name=each.name,
                estimate=estimate,
                lower=lower,
                upper=upper,
                standard_error=error,
                n_responses=touching,
                n_undefined=missing,
                level=settings.level,
                method=str(settings.method),
            )
        )
    return results


def wilson(share: Any, trials: Any, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a share of independent trials, elementwise (Wilson 1927)."""
    from statsmodels.stats.proportion import proportion_confint

    successes = np.asarray(share, dtype=np.float64) * np.asarray(trials)
    lower, upper = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
    return np.asarray(lower), np.asarray(upper)


def student_quantile(level: float, degrees: Any) -> Floats:
    """Return the two-sided quantile of Student's t, elementwise; nan without degrees of freedom."""
    from scipy.special import stdtrit

    freedom = np.asarray(degrees, dtype=np.float64)
    return np.asarray(stdtrit(np.where(freedom > 0, freedom, np.nan), (1 + level) / 2))


def _delta_interval(estimand: Estimand, level: float) -> tuple[Floats, Floats]:
    estimate, touching = estimand.estimate(), estimand.touching()
    error = clustered_standard_error(estimand.influence(), touching)
    reach = student_quantile(level, touching - 1) * error
    if estimand.scale is Scale.NUMBER:
        return estimate - reach, estimate + reach
    with np.errstate(divide="ignore", invalid="ignore"):
        logit = np.log(estimate) - np.log1p(-estimate)
        reach = reach / (estimate * (1 - estimate))
        return _expit(logit - reach), _expit(logit + reach)


def _replicates(
    estimands: tuple[Estimand, ...], n_responses: int, settings: IntervalSettings
) -> list[Floats]:
    blocks: list[list[Floats]] = [[] for _ in estimands]
    for weights in response_weights(n_responses, settings.n_bootstrap, settings.seed):
        for drawn, estimand in zip(blocks, estimands, strict=True):
            drawn.append(estimand.replicates(weights))
    return [np.concatenate(drawn) for drawn in blocks]


def _percentiles(drawn: Floats, touching: Integers, level: float) -> tuple[Floats, Floats]:
    from scipy.special import ndtr

    # Percentiles are too narrow by the factor that Student's t and R - 1 mend in a mean of R.
    factor = np.sqrt(touching / np.maximum(touching - 1, 1))
    tails = ndtr(-student_quantile(level, touching - 1) * factor)
    ends = np.full((2, drawn.shape[1]), np.nan)
    for cell in np.flatnonzero((touching > 1) & ~np.isnan(drawn).all(axis=0)):
        column = drawn[~np.isnan(drawn[:, cell]), cell]
        ends[:, cell] = np.quantile(column, [tails[cell], 1 - tails[cell]])
    return ends[0], ends[1]


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def _expit(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))
