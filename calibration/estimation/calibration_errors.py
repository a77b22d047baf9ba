"""Expected calibration error from few labels, with bins of all probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimation.estimates import (
    EstimateInterval,
    Inverted,
    PoweredEstimate,
    effective_responses,
)
from calibration.estimation.quantities import GivenClaims, given_claims
from calibration.forecasts import forecasts
from calibration.grouping import Grouping
from calibration.intervals import (
    RARE_KIND_OF_ERRORS,
    DeviationScores,
    expanded_tail,
    inverted_intervals,
    redraw_noise,
    response_weights,
)
from calibration.scores.binning import equal_width_numbers
from calibration.scores.cells import residual_sums
from calibration.scores.estimates import NO_VARIATION
from calibration.validation import Floats, whole_number

_REPLICATES = 1000


def ece(
    p: ArrayLike, y: Any, responses: Any, *, n_bins: int = 10, taught: bool = False, **given: Any
) -> CalibrationError:
    """Expected calibration error over bins of equal width; other arguments as in `share`.

    The number of claims in each bin is known. The error in a bin is the mean of label minus
    probability over its labeled claims, so that predictions have the weight 1. In a bin without
    labels, the error is unknown, and the upper end of the interval assumes the largest possible
    error.

    Args:
        p, y, responses: as in `share`.
        n_bins: number of bins.
        taught: whether the same labels taught the probabilities, in folds. If they are true too
            often by chance, the level of all judges is too high, and the mean of label minus
            probability does not show it. The upper end then adds to the deviations of all bins the
            largest error of the level that the labels allow.
        given: as in `share`.

    Raises:
        InputError: for bad arrays, different lengths, or a bad number of bins.
    """
    claims = given_claims(p, y, responses, **given)
    return CalibrationError(claims, claims.grouping, whole_number(n_bins, "n_bins", 1), taught)


@dataclass(frozen=True, eq=False)
class CalibrationError(Inverted):
    """An expected calibration error over bins of equal width.

    Attributes:
        claims: the claims.
        grouping: grouping of the claims by response.
        n_bins: number of bins.
        taught: whether the same labels taught the probabilities, as in `ece`.
        title: name of the quantity.
    """

    claims: GivenClaims
    grouping: Grouping
    n_bins: int
    taught: bool = False
    title: str = "ECE"

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled claims, bool (n,)."""
        return self.claims.labeled

    @property
    def open_share(self) -> float:
        """Share of the claims in bins without a labeled claim."""
        bins = equal_width_numbers(self.claims.p, self.n_bins)
        return float((~np.isin(bins, bins[self.labeled])).mean())

    def powered(self, level: float, *, finite: bool, power: float | None) -> PoweredEstimate:
        """Estimate for responses like these, even if `finite`; `power` 0 uses labels alone."""
        del finite
        known = self.labeled
        alone, interval = self._intervals(level)
        sizes, n_known = self.grouping.sizes.astype(np.float64), self.grouping.sums(known)
        weights = self.grouping.sums(np.where(known, self.claims.weights, 0.0))
        whole = bool((n_known[n_known > 0] == sizes[n_known > 0]).all())
        best = 1.0 if power is None else power
        if not best:
            interval = alone
        return PoweredEstimate(
            title=self.title,
            interval=interval,
            alone=alone,
            # By the probabilities themselves, they are calibrated.
            predictions_value=0.0,
            power=best,
            n_items=known.size,
            n_labeled=int(known.sum()),
            n_responses=int((n_known > 0).sum()),
            effective=effective_responses(weights / weights.sum(), sizes if whole else None),
            grouping=self.grouping,
            lowest=0.0,
            highest=1.0,
            level=level,
            rare_kind=RARE_KIND_OF_ERRORS,
            saves_labels=False,
        )

    def _intervals(self, level: float) -> Iterator[EstimateInterval]:
        """Yield the interval with the bins of labeled claims, and the interval with the bins of all
        claims.
        """
        claims, known = self.claims, self.labeled
        bins = equal_width_numbers(claims.p, self.n_bins)
        p, y, weights = claims.p[known], claims.y[known], claims.weights[known]
        points = forecasts(p, y, weights, self.grouping.index[known])
        present, cell = np.unique(bins[known], return_inverse=True)
        sums = residual_sums(
            *(points, np.searchsorted(present, equal_width_numbers(points.p, self.n_bins))),
            *(present.size, points.p),
        ).toarray()
        weight = points.response_sums(points.weights)
        of_labeled = np.bincount(cell, weights=weights) / weights.sum()
        of_all = np.bincount(bins, minlength=self.n_bins)[present] / bins.size
        open_bins = np.setdiff1d(np.unique(bins), present)
        worst = sum(
            float(in_bin.mean() * max(claims.p[in_bin].mean(), 1 - claims.p[in_bin].mean()))
            for in_bin in (bins == number for number in open_bins)
        )
        for factor in (np.ones_like(of_all), of_all / of_labeled):
            scaled = sums * factor
            deviation = scaled.sum(axis=0) / weight.sum()
            scores = DeviationScores(deviation, deviation, scaled, weight, _error, _error)
            value = float(_error(deviation))
            if points.n_responses < 2:
                yield EstimateInterval(value, np.nan, np.nan, np.nan, 0.0, np.empty(0), np.nan)
                continue
            draws = [*response_weights(points.n_responses, _REPLICATES, seed=0)]
            lower, upper, error = inverted_intervals(scores, draws, level)
            if self.taught:
                upper = max(upper, _end_with_level(scores, draws, of_labeled * factor, level))
            if error <= NO_VARIATION * value:
                # All responses have the same error, which shows nothing about other responses.
                lower = upper = error = np.nan
            # Not Python's max, whose result for nan and 0 depends on their order.
            ends = float(np.maximum(lower, 0.0)), float(np.minimum(upper + worst, 1.0))
            yield EstimateInterval(value, *ends, error, scores.effective - 1, np.empty(0), error)


def _error(deviation: Floats) -> Floats:
    return np.asarray(np.abs(deviation).sum(axis=-1))


def _end_with_level(
    scores: DeviationScores, draws: Iterable[Floats], shares: Floats, level: float
) -> float:
    """Upper end of an error whose deviations have an unseen error of the level in common.

    Args:
        scores: the error, of the deviations in bins.
        draws: numbers of draws of each response, as in `inverted_intervals`.
        shares: share of the claims in each bin, (n_bins,).
        level: nominal coverage.
    """
    unseen = redraw_noise(scores, draws).sum(axis=1)
    tail = float(expanded_tail(np.asarray(scores.effective), level))
    errors = scores.population(scores.deviation + np.outer(unseen, shares))
    return float(np.quantile(errors, 1 - tail))
