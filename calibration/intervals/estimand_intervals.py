"""Intervals of estimands: ratios of sums and functions of them, many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibration.intervals.estimands import Estimand, RatioSums
from calibration.intervals.methods import (
    IntervalMethod,
    Scale,
    clustered_standard_error,
    delta_interval,
    expanded_percentile_interval,
    percentile_interval,
    wilson_interval,
)
from calibration.intervals.replicates import Ends, Statistic, replicates, response_weights
from calibration.tabular import Tabular
from calibration.validation import Floats, Integers, open_interval, whole_number
from factormodels.errors import InputError

SumMethod = Literal["bootstrap", "delta"]
"""Names of the methods of intervals of estimands, which are functions of sums over responses."""

SUM_METHODS = tuple(IntervalMethod(name) for name in get_args(SumMethod))
"""The methods of these names."""

_ROUNDING = 1e-12
"""Relative: a standard error below this is the rounding of one that is 0."""


@dataclass(frozen=True)
class IntervalSettings:
    """Settings of intervals.

    Attributes:
        method: ``bootstrap`` for percentiles of replicates that redraw whole responses, expanded
            for few responses as Hesterberg 2015 (American Statistician 69) has it; ``delta`` for
            the linearized standard error clustered by response, with Student's t and, for
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
        if self.method not in SUM_METHODS:
            raise InputError(
                f"interval method is {self.method!r}; choose one of {', '.join(SUM_METHODS)}"
            )
        whole_number(self.n_bootstrap, "n_bootstrap", 1)
        whole_number(self.seed, "seed", 0)
        open_interval(self.level, "level", 0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Tabular):
    """An estimand in every cell, with intervals.

    Attributes:
        name: what was estimated.
        estimate: float64 (n_cells,), nan where it is not defined.
        lower: float64 (n_cells,), lower end of the interval, nan where there is none.
        upper: float64 (n_cells,), its upper end.
        standard_error: float64 (n_cells,), linearized and clustered by response; nan if fewer
            than two responses bear on the estimate.
        n_responses: int64 (n_cells,), number of responses that the estimate rests on.
        n_undefined: int64 (n_cells,), number of bootstrap replicates in which it is not defined;
            0 if there was no bootstrap.
        level: nominal coverage of the intervals.
        method: how they were made.
    """

    columns: ClassVar = (
        *("estimate", "lower", "upper", "standard_error"),
        *("n_responses", "n_undefined"),
    )

    name: str
    estimate: Floats
    lower: Floats
    upper: Floats
    standard_error: Floats
    n_responses: Integers
    n_undefined: Integers
    level: float
    method: str


def estimate_all(estimands: Sequence[Estimand], settings: IntervalSettings) -> list[Estimates]:
    """Estimands with their intervals; replicates draw the same responses for all.

    An interval is nan where the estimate is not defined or fewer than two responses bear on it,
    and where a function of shares lies on the edge of its range. A share that no redraw of the
    responses can move (every response has the same) gets Wilson's interval, each response
    counting as one observation, as in `reliability_bins`. No other leaves what redrawn responses
    can reach.

    Args:
        estimands: what to estimate, over the same responses in the same order.
        settings: how intervals are made.
    """
    if settings.method == IntervalMethod.DELTA or not estimands:
        return [_estimated(each, None, settings) for each in estimands]
    n_cells = [each.estimate().size for each in estimands]
    drawn = replicates(
        lambda weights: np.concatenate([each.replicates(weights) for each in estimands], axis=1),
        response_weights(estimands[0].influence().shape[0], settings.n_bootstrap, settings.seed),
    )
    of_each = np.split(drawn, np.cumsum(n_cells)[:-1], axis=1)
    return [
        _estimated(each, draws, settings) for each, draws in zip(estimands, of_each, strict=True)
    ]


def redrawn_interval(statistic: Statistic, n_responses: int, settings: IntervalSettings) -> Ends:
    """Percentile intervals of a statistic of redrawn responses (Efron 1979), (k,) each end.

    Args:
        statistic: the values, of response weights.
        n_responses: number of responses.
        settings: replicates, seed and level.
    """
    draws = response_weights(n_responses, settings.n_bootstrap, settings.seed)
    return percentile_interval(replicates(statistic, draws), settings.level)


def mean_interval(
    values: ArrayLike, level: float = 0.95, scale: Scale = Scale.UNIT
) -> tuple[float, float, float]:
    """Mean over responses of a number of each, such as F1@K', with its interval: by delta.

    Args:
        values: the number of each response, (n_responses,), nan where it has none.
        level: nominal coverage.
        scale: what values it can take.

    Returns:
        Mean, lower end and upper end; nan where they are not defined.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)][:, np.newaxis]
    if not known.size:
        return math.nan, math.nan, math.nan
    mean = RatioSums(known, np.ones_like(known), "mean", scale)
    estimates = estimate_all([mean], IntervalSettings(IntervalMethod.DELTA, level=level))[0]
    return float(estimates.estimate[0]), float(estimates.lower[0]), float(estimates.upper[0])


def _estimated(estimand: Estimand, drawn: Floats | None, settings: IntervalSettings) -> Estimates:
    level = settings.level
    estimate, touching = estimand.estimate(), estimand.touching()
    error = clustered_standard_error(estimand.influence(), touching)
    if drawn is None:
        lower, upper = delta_interval(estimate, error, estimand.effective(), level, estimand.scale)
        lowest, highest = estimand.reach((lower, upper))
        lower, upper = np.maximum(lower, lowest), np.minimum(upper, highest)
        undefined = np.zeros(estimate.size, dtype=np.int64)
    else:
        lower, upper = expanded_percentile_interval(drawn, touching, level)
        undefined = np.isnan(drawn).sum(axis=0)
    # Without spread the interval would be a point, which claims what the data cannot tell.
    void = np.isnan(estimate) | (touching < 2) | (error <= _ROUNDING * np.abs(estimate))
    lower, upper = np.where(void, np.nan, lower), np.where(void, np.nan, upper)
    share = estimand.still_share()
    still = ~np.isnan(share)
    if still.any():
        lower[still], upper[still] = wilson_interval(share[still], touching[still], level)
    return Estimates(
        name=estimand.name,
        estimate=estimate,
        lower=lower,
        upper=upper,
        standard_error=error,
        n_responses=touching,
        n_undefined=undefined,
        level=level,
        method=str(settings.method),
    )
