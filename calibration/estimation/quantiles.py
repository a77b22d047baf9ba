"""Quantiles from few labels, of numbers or of the shares of true claims of responses.

Source: PPI++ (Angelopoulos, Duchi and Zrnic 2023). The share of items with a value of at most t is
estimated like any other share. The quantile is the t at which this share is q, and its interval
contains the values t for which q is in the interval of the share, as in `ppi_quantile_ci` of
ppi-python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimation.estimates import (
    EstimateInterval,
    Inverted,
    PoweredEstimate,
    best_power,
    effective_of,
    intervals_of,
)
from calibration.estimation.quantities import Quantity, given_claims
from calibration.grouping import Grouping, group_by_response
from calibration.intervals import student_quantile
from calibration.validation import Floats, check_lengths, number_array, open_interval, weight_array

_NEXT_TO = 1e-6

_MOST_VALUES = 400
"""Maximum number of values at which the share is estimated, evenly spread in rank."""


def quantile(
    p: ArrayLike,
    y: ArrayLike,
    responses: Any,
    *,
    q: float = 0.5,
    weights: ArrayLike | None = None,
    exact: bool = False,
) -> Quantile:
    """Value that a share `q` of the numbers does not exceed.

    Args:
        p: predicted numbers (n,), of any size.
        y: labels (n,), the numbers; None or nan where unlabeled.
        responses: response ids (n,).
        q: the share, in (0, 1).
        weights: number of items that each labeled one represents, (n,), or None for one each.
        exact: whether to try every number as the quantile and as an end of its interval; otherwise,
            of more than 400 numbers, only 400 that are evenly spread in rank.

    Raises:
        InputError: for bad arrays, lengths that differ, or a share out of range.
    """
    predicted, observed = number_array(p, "p"), number_array(y, "y", missing=True)
    grouping = group_by_response(responses)
    check_lengths(p=predicted.size, y=observed.size, responses=grouping.index.size)
    counts = np.ones(predicted.size) if weights is None else weight_array(weights, predicted.size)
    q = open_interval(q, "q", 0, 1)
    return Quantile(f"quantile {q:g}", grouping, predicted, observed, counts, q, exact=exact)


def share_quantile(
    p: ArrayLike, y: Any, responses: Any, *, q: float = 0.5, **given: Any
) -> Quantile:
    """Share of true claims that a share `q` of the responses does not exceed.

    Only fully labeled responses count as labeled. Other arguments are as in
    `calibration.estimation.share`.

    Raises:
        InputError: for bad arrays, lengths that differ, or a share out of range.
    """
    claims = given_claims(p, y, responses, **given)
    grouping = claims.grouping
    n = len(grouping.responses)
    known = claims.labeled | claims.irrelevant
    whole = grouping.sums(known) == grouping.sizes
    counted = grouping.sums(~claims.irrelevant)
    has_share = whole & (counted > 0)
    true = grouping.sums(np.nan_to_num(claims.y))
    q = open_interval(q, "q", 0, 1)
    return Quantile(
        title=f"share of a response, quantile {q:g}",
        grouping=Grouping(grouping.responses, np.arange(n), np.ones(n, dtype=np.int64)),
        predicted=grouping.means(claims.p),
        observed=np.where(has_share, true / np.maximum(counted, 1.0), np.nan),
        weights=grouping.means(claims.weights),
        q=q,
        lowest=0.0,
        highest=1.0,
    )


@dataclass(frozen=True, eq=False)
class Quantile(Inverted):
    """A quantile of numbers.

    Attributes:
        title: name of the quantity.
        grouping: the response of every item.
        predicted: float64 (n,), the predicted numbers.
        observed: float64 (n,), numbers from labels; nan without a label.
        weights: float64 (n,), number of items that each labeled one represents.
        q: share of items that do not exceed the quantile.
        lowest: smallest possible value.
        highest: largest possible value.
        exact: whether all values are tried.
    """

    title: str
    grouping: Grouping
    predicted: Floats
    observed: Floats
    weights: Floats
    q: float
    lowest: float = -math.inf
    highest: float = math.inf
    exact: bool = False

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled items, bool (n,)."""
        return ~np.isnan(self.observed)

    def powered(self, level: float, *, finite: bool, power: float | None) -> PoweredEstimate:
        """Estimate, with the same weight of the predictions at all values.

        By default, the weight is the best one for the share at the quantile of the labels.
        """
        known = self.labeled
        values = np.unique(np.concatenate([self.observed[known], self.predicted]))
        if values.size > _MOST_VALUES and not self.exact:
            values = values[np.linspace(0, values.size - 1, _MOST_VALUES).round().astype(int)]
        shares = [intervals_of(self._share_up_to(value), level, finite=finite) for value in values]
        alone = self._inverted(values, [share(0.0, False) for share in shares], level)
        best = power
        if best is None:
            best = min(best_power(self._share_up_to(alone.value)), 1.0)
        interval = alone
        if best:
            interval = self._inverted(
                values, [share(best, power is None) for share in shares], level
            )
            if power is None and not interval.width < alone.width:
                best, interval = 0.0, alone
        return PoweredEstimate(
            title=self.title,
            interval=interval,
            alone=alone,
            predictions_value=float(np.quantile(self.predicted, self.q, method="inverted_cdf")),
            power=best,
            n_items=known.size,
            n_labeled=int(known.sum()),
            n_responses=int((self.grouping.sums(known) > 0).sum()),
            effective=effective_of(self._share_up_to(values[0])),
            grouping=self.grouping,
            lowest=self.lowest,
            highest=self.highest,
            level=level,
        )

    def _share_up_to(self, value: float) -> Quantity:
        """Share of items that do not exceed a value."""
        ones = np.ones_like(self.predicted)
        below = (self.observed <= value).astype(np.float64)
        return Quantity(
            title=self.title,
            grouping=self.grouping,
            observed=np.where(self.labeled, below, np.nan),
            size=ones,
            predicted=(self.predicted <= value).astype(np.float64),
            variance=np.zeros_like(ones),
            predicted_size=ones,
            weights=self.weights,
        )

    def _inverted(
        self, values: Floats, shares: list[EstimateInterval], level: float
    ) -> EstimateInterval:
        """Quantile, given the intervals of the shares of items up to each value, ascending.

        A value t is a quantile if a share of at most q is below t, and at least q is at most t.
        """
        reached = np.array([each.value for each in shares])
        # The shares may not be monotone: take the first value with share q near the closest one.
        index = int(np.argmin(np.abs(reached - self.q)))
        index += int(np.argmax(np.append(reached[index:] >= self.q, True)))
        index = min(index, values.size - 1)
        value, freedom = float(values[index]), shares[index].freedom
        nothing = np.empty(0)
        if not freedom > 0:
            return EstimateInterval(value, math.nan, math.nan, math.nan, 0.0, nothing, math.nan)
        ends = [_ends(each, self.q, level) for each in shares]
        first = next((k for k, (_, upper) in enumerate(ends) if upper >= self.q), index)
        last = max((k for k, (lower, _) in enumerate(ends) if lower <= self.q), default=-1) + 1
        # No value is known below the smallest or above the largest.
        lower = float(values[min(first, index)]) if first else self.lowest
        upper = float(values[max(last, index)]) if last < values.size else self.highest
        error = (upper - lower) / 2 / float(student_quantile(level, np.asarray(freedom)))
        return EstimateInterval(value, lower, upper, error, freedom, nothing, error)


def _ends(share: EstimateInterval, q: float, level: float) -> tuple[float, float]:
    """Ends of the interval of a share, symmetric in the logit, with a slope between its own and
    q's.

    With labels alone, the interval then has the width for a share of q. With its own slope, the
    interval of a share near 0 or 1 would be arbitrarily wide, since the variance that predictions
    leave open is not small.
    """
    if not 0.0 < share.value < 1.0 or not share.error > 0.0:
        return share.lower, share.upper
    # Differences this close to 0 or 1 are due to rounding.
    value = min(max(share.value, _NEXT_TO), 1 - _NEXT_TO)
    quantile = float(student_quantile(level, np.asarray(share.freedom)))
    reach = quantile * share.error / math.sqrt(q * (1 - q) * value * (1 - value))
    # Beyond these bounds, the logistic function rounds to 0 or 1.
    ends = (max(min(_logit(value) + way * reach, 700.0), -700.0) for way in (-1, 1))
    lower, upper = (1 / (1 + math.exp(-end)) for end in ends)
    return lower, upper


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
