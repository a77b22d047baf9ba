"""Estimates from few labels and many predictions, with intervals over responses.

Source: prediction-powered inference, Angelopoulos, Duchi and Zrnic 2023 (PPI++), for ratios and
clusters; the regression estimator of survey sampling (Särndal, Swensson and Wretman 1992, chapter
6) is equivalent. Let S be the ratio by labels of the labeled items, F their predicted ratio, and F*
the predicted ratio of all items. The estimate is S - w (F - F*). The weight w is the least-squares
coefficient of labels on predictions. It costs a degree of freedom and its leverage. It is 0, so
that labels alone are used, if predictions would not narrow the interval. Degrees of freedom depend
on the influences of responses, so that a long response counts more than a short one (`_freedom`).
The variance is at least the variance that the predictions leave open, because ten labels that agree
with predictions do not show that all would.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.estimation.linear import Linear, Linearized
from calibration.grouping import Grouping
from calibration.intervals import (
    MOST_LEVERAGE,
    RARE_KIND,
    Scale,
    delta_interval,
    satterthwaite_freedom,
    student_quantile,
    unseen_share,
    wilson_interval,
)
from calibration.validation import Floats, open_interval
from factormodels.errors import InputError

_ALIKE = 1e-12
"""Residuals below this share of the range count as 0, since all labels are the same."""

_SAME = 1e-14
"""A variance of a difference below this share of the sum of both variances is due to rounding."""

_ROUNDING = 1e-9
"""Degrees of freedom up to this count as 0."""

_WORTH = 0.95
"""For losses and fits, maximum width of the interval relative to labels alone at which predictions
are used.

A weight fitted to few labels narrows the interval by chance, and the narrower of two intervals has
a lower coverage.
"""


@dataclass(frozen=True, eq=False)
class EstimateInterval:
    """A value with its interval.

    Attributes:
        value: the value.
        lower: lower end; nan if there are too few labeled responses, or if labels do not vary and
            the range of values is infinite.
        upper: upper end.
        error: standard error.
        freedom: degrees of freedom of Student's t.
        influences: float64 (n_responses,), contribution of each response of the quantity's grouping
            to the value, for differences; empty for a difference.
        left_out_error: standard error from residuals of left-out responses (jackknife).
    """

    value: float
    lower: float
    upper: float
    error: float
    freedom: float
    influences: Floats
    left_out_error: float

    @property
    def width(self) -> float:
        """Upper minus lower end."""
        return self.upper - self.lower


class Inverted(ABC):
    """A quantity whose interval consists of the values that a test does not reject.

    Attributes:
        title: name of the quantity.
        grouping: the response of every item.
    """

    title: str
    grouping: Grouping

    @property
    @abstractmethod
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled items, bool (n,)."""

    @abstractmethod
    def powered(self, level: float, *, finite: bool, power: float | None) -> PoweredEstimate:
        """Estimate of the quantity; arguments as in `estimate`."""


@dataclass(frozen=True, eq=False)
class PoweredEstimate:
    """An estimate with its interval, and the estimate from labels alone.

    Attributes:
        title: name of the quantity.
        interval: the estimate, with its interval.
        alone: the estimate from labels alone.
        predictions_value: value from predictions alone.
        power: weight of the predictions; 0 if only labels are used.
        n_items: number of items.
        n_labeled: number of labeled items.
        n_responses: number of responses with a labeled item.
        effective: number of responses of equal size with the same information; see
            `effective_responses`.
        grouping: grouping of the quantity.
        lowest: smallest possible value.
        highest: largest possible value.
        level: nominal coverage.
        rare_kind: share of a kind of response; labels that lack such a kind may reduce the coverage
            of the interval.
        saves_labels: whether predictions take the place of labels. In a calibration error they
            only count the claims of bins.
    """

    title: str
    interval: EstimateInterval
    alone: EstimateInterval
    predictions_value: float
    power: float
    n_items: int
    n_labeled: int
    n_responses: int
    effective: float
    grouping: Grouping
    lowest: float
    highest: float
    level: float
    rare_kind: float = RARE_KIND
    saves_labels: bool = True

    @property
    def value(self) -> float:
        """Value of the estimate."""
        return self.interval.value

    @property
    def lower(self) -> float:
        """Lower end of its interval; nan as in `EstimateInterval`."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """Upper end."""
        return self.interval.upper

    @property
    def error(self) -> float:
        """Standard error."""
        return self.interval.error

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t."""
        return self.interval.freedom

    @property
    def unseen_share(self) -> float:
        """Largest share of a kind of response that may be absent from the labeled ones."""
        return unseen_share(self.effective, self.level)

    @property
    def may_lack_kinds(self) -> bool:
        """True if `unseen_share` exceeds `rare_kind`, so that the coverage is uncertain."""
        return self.unseen_share > self.rare_kind

    @property
    def labels_value(self) -> float:
        """Estimate from labels alone."""
        return self.alone.value

    @property
    def labels_lower(self) -> float:
        """Lower end of the interval from labels alone."""
        return self.alone.lower

    @property
    def labels_upper(self) -> float:
        """Upper end."""
        return self.alone.upper

    @property
    def labels_saved(self) -> float:
        """Factor by which labels alone would need more labels for the same interval; nan if
        predictions do not take the place of labels.
        """
        if not (self.saves_labels and self.interval.width > 0):
            return math.nan
        return (self.alone.width / self.interval.width) ** 2


def estimate(
    quantity: Linearized | Inverted,
    *,
    level: float = 0.95,
    finite: bool = False,
    power: float | None = None,
) -> PoweredEstimate:
    """Estimate a quantity from its labeled items and the predictions of all items.

    The labeled items must be a random sample of items or of whole responses, or a sample whose
    selection probabilities the weights correct. Predictions may be arbitrary: poor ones only widen
    the interval to the width from labels alone.

    Args:
        quantity: the quantity.
        level: nominal coverage, in (0, 1).
        finite: whether to estimate the value for these responses only. By default, they are a
            sample from a population, whose value is estimated.
        power: weight of the predictions, at least 0; None chooses the best one for the labels.

    Raises:
        InputError: if no item is labeled, or for a level or weight out of range.
    """
    level = open_interval(level, "level", 0, 1)
    if power is not None and not 0 <= power < math.inf:
        raise InputError(f"power is {power!r}; give a number of at least 0")
    labeled = quantity.labeled
    if not labeled.any():
        raise InputError(f"{quantity.title}: no claim is labeled; label some, as --choose says")
    if not isinstance(quantity, Linearized):
        return quantity.powered(level, finite=finite, power=power)
    sums = _linearized(quantity)
    alone = _interval(sums, 0.0, False, level, finite, quantity)
    best = sums.best_power() if power is None else power
    chosen = alone
    if best:
        sums = _linearized(quantity, best)
        # A weight that was learned from the labels costs a degree of freedom.
        chosen = _interval(sums, best, power is None, level, finite, quantity)
    worth = _WORTH if quantity.by_left_out else 1.0
    if power is None and not chosen.width < worth * alone.width:
        best, chosen = 0.0, alone
    return PoweredEstimate(
        title=quantity.title,
        interval=chosen,
        alone=alone,
        predictions_value=sums.items.predicted,
        power=best,
        n_items=labeled.size,
        n_labeled=int(labeled.sum()),
        n_responses=sums.n_responses,
        effective=sums.effective,
        grouping=quantity.grouping,
        lowest=quantity.lowest,
        highest=quantity.highest,
        level=level,
    )


def effective_responses(shares: Floats, sizes: Floats | None) -> float:
    """Number of labeled responses of equal size with the same information, by design (Kish 1965).

    The number does not depend on the labels, because a sample with similar labels may lack
    different ones. If whole responses are labeled, it also does not exceed the expected number for
    as many random responses, so that it does not depend on which long responses were drawn.

    Args:
        shares: float64 (n_responses,), share of each response in the value, summing to 1.
        sizes: size of each response, labeled or not, (n_responses,); None if single claims are
            labeled.
    """
    effective = _equal_responses(shares)
    if sizes is None:
        return effective
    evenness = float(sizes.sum() ** 2 / (sizes.size * (sizes @ sizes)))
    return min(effective, float((shares > 0).sum()) * evenness)


def _equal_responses(shares: Floats) -> float:
    """Return 1/Σ h² of the shares h, (n_responses,), at most the number of nonzero shares.

    The sum of equal shares is rounded, which alone could put the quotient above their number.
    """
    return min(float(1 / (shares @ shares)), float(np.count_nonzero(shares)))


def effective_of(quantity: Linearized) -> float:
    """`effective_responses` of the labels of a quantity."""
    return _linearized(quantity).effective


def best_power(quantity: Linearized) -> float:
    """Best weight of the predictions for the labels."""
    return _linearized(quantity).best_power()


def intervals_of(
    quantity: Linearized, level: float, *, finite: bool
) -> Callable[[float, bool], EstimateInterval]:
    """Function from the weight of the predictions, and whether it was fitted, to an interval.

    Degrees of freedom are by design alone, because most residuals of a share near 0 or 1 are 0 for
    any labels.

    Args:
        quantity: the quantity.
        level: nominal coverage.
        finite: as in `estimate`.
    """
    sums = _linearized(quantity)

    def interval(power: float, fitted: bool) -> EstimateInterval:
        return _interval(sums, power, fitted, level, finite, quantity, by_residuals=False)

    return interval


def difference(first: PoweredEstimate, second: PoweredEstimate) -> PoweredEstimate:
    """Difference of two estimates, for models whose responses may have ids in common.

    Contributions of the same response to both are paired, for labels alone and for the estimates.
    Labels alone are used if their interval is narrower, as when two judges err on the same claims.
    Degrees of freedom are the smaller of the two if responses are shared, otherwise Welch's.

    Raises:
        InputError: if their levels differ.
    """
    if first.level != second.level:
        raise InputError("the two estimates have different levels; give both the same")
    number_of = {name: number for number, name in enumerate(second.grouping.responses)}
    shared = np.array(
        [(number, number_of[name]) for number, name in enumerate(first.grouping.responses)
         if name in number_of],
        dtype=np.int64,
    ).reshape(-1, 2)  # fmt: skip
    # A difference of two shares is between -1 and 1.
    ends = first.lowest - second.highest, first.highest - second.lowest
    # Judges with the same predictions for all claims, not only for labeled ones.
    same = first.predictions_value == second.predictions_value
    interval, alone = (
        _difference_interval(*two, shared, first.level, ends, same)
        for two in ((first.interval, second.interval), (first.alone, second.alone))
    )
    return PoweredEstimate(
        title=f"difference of {first.title}",
        interval=alone if alone.width <= interval.width else interval,
        alone=alone,
        predictions_value=first.predictions_value - second.predictions_value,
        power=math.nan,
        n_items=first.n_items + second.n_items,
        n_labeled=first.n_labeled + second.n_labeled,
        n_responses=first.n_responses + second.n_responses,
        effective=min(first.effective, second.effective),
        grouping=first.grouping,
        lowest=ends[0],
        highest=ends[1],
        level=first.level,
        rare_kind=min(first.rare_kind, second.rare_kind),
    )


def _difference_interval(
    first: EstimateInterval,
    second: EstimateInterval,
    shared: NDArray[np.int64],
    level: float,
    ends: tuple[float, float],
    same: bool,
) -> EstimateInterval:
    """Difference of two intervals, whose common responses are the rows of `shared`.

    If `same` is false, unlabeled claims may differ even if labeled claims do not.

    Standard errors are the jackknife's, because a difference has no scale such as the logit of a
    share: with ten or twenty labels, intervals with the other standard errors contained the
    difference in 92.5% of draws.
    """
    first_error, second_error = first.left_out_error, second.left_out_error
    norm = float(np.linalg.norm(first.influences) * np.linalg.norm(second.influences))
    together = float(first.influences[shared[:, 0]] @ second.influences[shared[:, 1]])
    correlation = together / norm if norm > 0 else 0.0
    variance = max(
        first_error**2 + second_error**2 - 2 * correlation * first_error * second_error, 0.0
    )
    freedom = min(first.freedom, second.freedom)
    if freedom > 0 and not shared.size and variance > 0:
        freedom = variance**2 / (first_error**4 / first.freedom + second_error**4 / second.freedom)
    value, reach = first.value - second.value, math.nan
    if freedom > 0:
        reach = float(student_quantile(level, np.asarray(freedom))) * math.sqrt(variance)
        if max(first_error, second_error) <= _ALIKE:
            # Neither varies: use the widths that account for labels being the same by chance.
            reach = math.hypot(first.width, second.width) / 2
        elif not same and variance <= _SAME * (first_error**2 + second_error**2):
            reach = _reach_without_variation(freedom + 1, level, ends)
    lower, upper = (
        min(max(end, ends[0]), ends[1]) if math.isfinite(end) else end
        for end in (value - reach, value + reach)
    )
    error = math.sqrt(variance)
    return EstimateInterval(value, lower, upper, error, freedom, np.empty(0), error)


@dataclass(frozen=True, eq=False)
class _Linearized:
    """First-order contributions of each response, and of each sampled unit, to a quantity.

    Attributes:
        items: the quantity, with the contribution of each item.
        labels: float64 (n_responses,), contribution of each response's labels to the value from
            labels.
        predictions: contribution of the predictions of its labeled items to the predicted value of
            these items.
        everywhere: contribution of its predictions to the predicted value of all items.
        touched: bool (n_responses,), whether a response has a labeled item.
        shares: float64 (n_responses,), share of its labels in the value from labels.
        units: four arrays (n_units,) by sampled unit: contributions of labels and of predictions,
            its share in the value, and the share of unsampled units among the units that it
            represents.
        effective: as returned by `effective_responses`.
    """

    items: Linear
    labels: Floats
    predictions: Floats
    everywhere: Floats
    touched: NDArray[np.bool_]
    shares: Floats
    units: tuple[Floats, Floats, Floats, Floats]
    effective: float

    @property
    def n_responses(self) -> int:
        return int(self.touched.sum())

    def best_power(self) -> float:
        """Least-squares coefficient of labels on predictions of the same responses."""
        spread = float(self.predictions @ self.predictions)
        if spread <= 0:
            return 0.0
        best = max(float(self.labels @ self.predictions) / spread, 0.0)
        return min(best, self.items.most_power)


def _linearized(quantity: Linearized, power: float = 0.0) -> _Linearized:
    grouping, labeled = quantity.grouping, quantity.labeled
    items = quantity.linear(power)
    touched = grouping.sums(labeled) > 0
    # If all labeled responses are fully labeled, responses are the sampled units.
    whole = bool((grouping.sums(labeled)[touched] == grouping.sizes[touched]).all())
    shares = grouping.sums(items.shares)
    return _Linearized(
        items=items,
        labels=grouping.sums(items.labels),
        predictions=grouping.sums(items.predictions),
        everywhere=grouping.sums(items.everywhere),
        touched=touched,
        shares=shares,
        units=_units(quantity, items, whole),
        effective=effective_responses(shares, grouping.sums(quantity.sizes) if whole else None),
    )


def _units(
    quantity: Linearized, items: Linear, whole: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    grouping, labeled = quantity.grouping, quantity.labeled
    parts = items.labels, items.predictions, items.shares
    if whole:
        kept = grouping.sums(labeled) > 0
        represented = grouping.means(quantity.weights)[kept]
        labels, predictions, shares = (grouping.sums(each)[kept] for each in parts)
        n_units = len(grouping.responses)
    else:
        represented = quantity.weights[labeled]
        labels, predictions, shares = (each[labeled] for each in parts)
        n_units = labeled.size
    # Normalize weights to sum to the number of units; equal weights may have any size.
    represented = represented * (n_units / represented.sum())
    return labels, predictions, shares, 1 - 1 / np.maximum(represented, 1.0)


def _interval(
    sums: _Linearized,
    power: float,
    fitted: bool,
    level: float,
    finite: bool,
    quantity: Linearized,
    *,
    by_residuals: bool = True,
) -> EstimateInterval:
    value = sums.items.value(power)
    value = min(max(value, quantity.lowest), quantity.highest)
    residuals = sums.labels - power * sums.predictions
    freedom = _freedom(sums.shares, residuals if by_residuals else None, fitted)
    if freedom <= _ROUNDING:
        return EstimateInterval(value, math.nan, math.nan, math.nan, 0.0, residuals, math.nan)
    fit = sums.predictions if fitted else None
    least = sums.items.open_variance if power else 0.0
    more = sums.items.training_variance
    # For these responses only, the predictions of all items do not vary.
    beyond = 0.0 if finite else power * sums.everywhere
    influences, left_out = (
        each + beyond for each in _corrected_residuals(residuals, sums.shares, fit)
    )
    squares = [float(each @ each) for each in (influences, left_out)]
    if finite:
        labels, predictions, shares, unseen = sums.units
        freed = _corrected_residuals(
            labels - power * predictions, shares, predictions if fitted else None
        )
        squares = [float(unseen @ each**2) for each in freed]
        least *= float(unseen.mean())
        more *= float(unseen.mean())
    error, left_out_error = (math.sqrt(max(variance, least) + more) for variance in squares)
    if quantity.by_left_out:
        error = left_out_error
    # If all items of interest are labeled, nothing varies.
    alike = error <= sums.items.rounding and not (finite and bool(quantity.labeled.all()))
    lower, upper = _ends(value, error, freedom, sums.n_responses, level, quantity, alike)
    if math.isnan(lower):
        error = left_out_error = math.nan
    return EstimateInterval(value, lower, upper, error, freedom, influences, left_out_error)


def _freedom(shares: Floats, residuals: Floats | None, fitted: bool) -> float:
    """Degrees of freedom of the variance of an estimate; 0 or less if there are none.

    They are the smaller of two numbers. By design, the number is 1/Σ h², with h the share of each
    response in the value (Kish 1965), minus one, and minus one for a fitted weight. The other is
    `satterthwaite_freedom` of the residuals.

    Args:
        shares: float64 (n_responses,), share of each response in the value.
        residuals: contribution of each response to the estimate, (n_responses,); None uses only the
            design.
        fitted: whether the weight of predictions was fitted.
    """
    by_design = _equal_responses(shares) - 1.0 - fitted
    return by_design if residuals is None else satterthwaite_freedom(residuals, by_design)


def _corrected_residuals(
    residuals: Floats, shares: Floats, predictions: Floats | None
) -> tuple[Floats, Floats]:
    """Residuals corrected for the fit of the estimate and its weight, and residuals of left-out
    units.

    A unit with a large share pulls the estimate toward itself, so that its residual is too small.
    The first correction divides it by the square root of 1 minus its leverage, which gives the
    right variance for equal units (CR2 of Bell and McCaffrey 2002). The second divides by 1 minus
    the leverage, which gives the residual if the unit is left out (their CR3, the jackknife). If a
    weight was fitted too, its part in the fit is added to the leverage, and the second correction
    is used for both.
    """
    if predictions is None or not predictions.any():
        kept = 1 - np.minimum(shares, MOST_LEVERAGE)
        return residuals / np.sqrt(kept), residuals / kept
    leverage = shares + predictions**2 / (predictions @ predictions)
    left_out: Floats = residuals / (1 - np.minimum(leverage, MOST_LEVERAGE))
    return left_out, left_out


def _ends(
    value: float,
    error: float,
    freedom: float,
    n_responses: int,
    level: float,
    quantity: Linearized,
    alike: bool,
) -> tuple[float, float]:
    """Ends of an interval, symmetric in the logit for values in [0, 1].

    Args:
        value, error, freedom: the value, its standard error and degrees of freedom.
        n_responses: number of responses with labels.
        level: nominal coverage.
        quantity: the quantity.
        alike: whether labels do not vary, although unlabeled items may.
    """
    low, high = quantity.lowest, quantity.highest
    if (low, high) != (0.0, 1.0):
        reach = float(student_quantile(level, np.asarray(freedom))) * error
        if alike:
            reach = _reach_without_variation(n_responses, level, (low, high))
        return max(value - reach, low), min(value + reach, high)
    if error <= _ALIKE or not 0.0 < value < 1.0:
        # Nothing varies: allow for as many responses that are equal by chance.
        ends = wilson_interval(np.asarray([value]), np.asarray([float(n_responses)]), level)
    else:
        ends = delta_interval(
            *(np.asarray([value]), np.asarray([error]), np.asarray([freedom + 1])),
            *(level, Scale.UNIT),
        )
    return float(ends[0][0]), float(ends[1][0])


def _reach_without_variation(n_responses: float, level: float, ends: tuple[float, float]) -> float:
    """Possible error of a value if no response differs, by Wilson's bound for their number.

    It is nan if the range of values is infinite, so that a different response may have any effect.
    """
    half = (ends[1] - ends[0]) / 2
    if not math.isfinite(half):
        return math.nan
    _, upper = wilson_interval(np.zeros(1), np.asarray([float(n_responses)]), level)
    return half * float(upper[0])
