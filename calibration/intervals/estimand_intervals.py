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
"""Names of the interval methods of estimands, which are functions of sums over responses."""

SUM_METHODS = tuple(IntervalMethod(name) for name in get_args(SumMethod))
"""The methods with these names."""

_ROUNDING = 1e-12
"""Largest standard error, relative to the estimate, that is due to rounding of 0."""


@dataclass(frozen=True)
class IntervalSettings:
    """Settings of intervals.

    Attributes:
        method: ``bootstrap`` for percentiles of replicates that redraw whole responses, expanded
            for few responses as in Hesterberg 2015 (American Statistician 69); ``delta`` for the
            linearized standard error clustered by response, with Student's t and, for
            probabilities, symmetric in the logit. With fewer than 60 responses, ``delta`` has
            better coverage.
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
        name: name of the estimand.
        estimate: float64 (n_cells,), the estimate; nan if it is not defined.
        lower: float64 (n_cells,), lower end of the interval; nan without one.
        upper: float64 (n_cells,), upper end.
        standard_error: float64 (n_cells,), linearized and clustered by response; nan if fewer than
            two responses contribute to the estimate.
        n_responses: int64 (n_cells,), number of responses that contribute to the estimate.
        n_undefined: int64 (n_cells,), number of bootstrap replicates in which it is not defined;
            0 if there was no bootstrap.
        level: nominal coverage of the intervals.
        method: method of the intervals.
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
    """Estimates with intervals; replicates draw the same responses for all estimands.

    An interval is nan if the estimate is not defined, if fewer than two responses contribute to it,
    or if a function of shares is at the end of its range. If every response has the same share, so
    that redrawing cannot change it, the interval is Wilson's, with each response as one
    observation, as in `reliability_bins`. All other intervals are within the range of redrawn
    responses.

    Args:
        estimands: the estimands, over the same responses in the same order.
        settings: settings of the intervals.
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
    """Percentile intervals of a statistic over redrawn responses (Efron 1979), (k,) for each end.

    Args:
        statistic: function from response weights to values.
        n_responses: number of responses.
        settings: replicates, seed and level.
    """
    draws = response_weights(n_responses, settings.n_bootstrap, settings.seed)
    return percentile_interval(replicates(statistic, draws), settings.level)


def mean_interval(
    values: ArrayLike, level: float = 0.95, scale: Scale = Scale.UNIT
) -> tuple[float, float, float]:
    """Mean over responses of a number per response, such as F1@K', with its ``delta`` interval.

    Args:
        values: the number of each response, (n_responses,); nan if missing.
        level: nominal coverage.
        scale: range of the number.

    Returns:
        Mean, lower end and upper end; nan if not defined.
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
    # Without variation the interval would be a point, a certainty that the data do not support.
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
