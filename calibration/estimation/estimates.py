"""Estimates from few labels and many predictions, with intervals over responses.

Source: prediction-powered inference, Angelopoulos, Duchi and Zrnic 2023 (PPI++), for ratios and
clusters; the regression estimator of survey sampling (Särndal, Swensson and Wretman 1992, chapter
6) is the same thing. With S and F the labeled and predicted ratio of the labeled items, and F*
the predicted one of all, the estimate is S - w (F - F*). The weight w is the least-squares
coefficient of labels on predictions. It costs a degree of freedom and its leverage, and is 0,
labels alone, if predictions would not narrow the interval. Degrees of freedom come from the
influences of responses, by which a long response counts for more than one (`_freedom`). The
variance is at least the variance that the predictions themselves leave open: ten labels without a
surprise do not show that there is none.
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
from calibration.intervals import Scale, delta_interval, student_quantile, wilson_interval
from calibration.validation import Floats, open_interval
from factormodels.errors import InputError

_ALIKE = 1e-12
"""Residuals below this share of the range are none: labels that are all the same."""

_SAME = 1e-14
"""A variance of a difference below this share of those of the two is rounding."""

_ROUNDING = 1e-9
"""Degrees of freedom of no more are none."""

_LEVERAGE = 0.9
"""The largest leverage: what one unit alone decides has no residual to enlarge."""


RARE_KIND = 0.05
"""Labels that may lack a kind of response of a larger share leave the coverage of an interval open.

In simulations, `notebooks/questions/skewed_responses.py`, intervals of labels that exclude such a
kind hold as often as their level.
"""

_WORTH = 0.95
"""Of losses and fits, predictions must make the interval so much narrower than labels alone do.

A weight fitted to few labels narrows it by chance, and the narrower of two holds less often.
"""


@dataclass(frozen=True, eq=False)
class EstimateInterval:
    """A value with its interval.

    Attributes:
        value: the value.
        lower: lower end; nan where there are too few labeled responses, or where nothing varies
            in labels and that says nothing of what might.
        upper: upper end.
        error: standard error.
        freedom: degrees of freedom of Student's t.
        influences: float64 (n_responses,), what each response of the quantity's grouping adds to
            the value, for differences; empty of a difference.
        left_out_error: standard error by residuals of responses left out: the jackknife's.
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
        """Upper less lower end."""
        return self.upper - self.lower


class Inverted(ABC):
    """A quantity whose interval consists of the values that a test does not reject.

    Attributes:
        title: what it is called.
        grouping: the response of every item.
    """

    title: str
    grouping: Grouping

    @property
    @abstractmethod
    def labeled(self) -> NDArray[np.bool_]:
        """True for labeled items, bool (n,)."""

    @abstractmethod
    def powered(self, level: float, *, finite: bool, power: float | None) -> PoweredEstimate:
        """The estimate; arguments as those of `estimate`."""


@dataclass(frozen=True, eq=False)
class PoweredEstimate:
    """An estimate with its interval, and what labels alone give.

    Attributes:
        title: what is estimated.
        interval: the estimate, with its interval.
        alone: the estimate from labels alone.
        predictions_value: what the predictions alone say.
        power: weight of the predictions; 0: labels alone.
        n_items: number of items.
        n_labeled: number of labeled ones.
        n_responses: number of responses with a labeled item.
        effective: number of responses of equal size that say as much; see `effective_responses`.
        grouping: the quantity's.
        lowest: the least value there can be.
        highest: the largest.
        level: nominal coverage.
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

    @property
    def value(self) -> float:
        """The estimate."""
        return self.interval.value

    @property
    def lower(self) -> float:
        """Lower end of its interval; nan where there are too few labeled responses."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """Upper end."""
        return self.interval.upper

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.interval.error

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t."""
        return self.interval.freedom

    @property
    def unseen_share(self) -> float:
        """Share of all responses of which the labeled may lack a kind altogether.

        A kind of response with a larger share would be absent from n independent responses with a
        probability below 1 minus the level: 1 - (1 - level)^(1/n), n the effective number of
        responses.
        """
        return -math.expm1(math.log1p(-self.level) / self.effective)

    @property
    def may_lack_kinds(self) -> bool:
        """True if that exceeds `RARE_KIND`, so that the interval may not cover."""
        return self.unseen_share > RARE_KIND

    @property
    def labels_value(self) -> float:
        """The estimate from labels alone."""
        return self.alone.value

    @property
    def labels_lower(self) -> float:
        """Lower end of its interval."""
        return self.alone.lower

    @property
    def labels_upper(self) -> float:
        """Upper end."""
        return self.alone.upper

    @property
    def labels_saved(self) -> float:
        """Factor by which labels alone would need more labels for the same interval."""
        return (
            (self.alone.width / self.interval.width) ** 2 if self.interval.width > 0 else math.nan
        )


def estimate(
    quantity: Linearized | Inverted,
    *,
    level: float = 0.95,
    finite: bool = False,
    power: float | None = None,
) -> PoweredEstimate:
    """PoweredEstimate of a quantity from its labeled items and the predictions of all.

    The labeled items must be a random sample of items or of whole responses, or a sample whose
    selection probabilities the weights correct. Predictions may be arbitrary: poor ones only widen
    the interval to the width from labels alone.

    Args:
        quantity: what is estimated.
        level: nominal coverage, in (0, 1).
        finite: whether it is about these responses alone; by default it is about responses like
            these, of which these are a sample.
        power: weight of the predictions, at least 0; None: the one that suits the labels best.

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
        # A weight that was learned from the labels costs one more of them.
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
    """Number of labeled responses of equal size that say as much, by design (Kish 1965).

    Labels have no part in it: a sample in which nothing stands out may lack what does. Nor has
    chance in which long responses were drawn, where whole ones are labeled: it is no more than
    the number of as many responses of all in the mean.

    Args:
        shares: float64 (n_responses,), the part of the value that each response decides, summing
            to 1.
        sizes: size of each response, labeled or not, (n_responses,); None where single claims are
            labeled.
    """
    effective = float(1 / (shares @ shares))
    if sizes is None:
        return effective
    evenness = float(sizes.sum() ** 2 / (sizes.size * (sizes @ sizes)))
    return min(effective, float((shares > 0).sum()) * evenness)


def effective_of(quantity: Linearized) -> float:
    """Number of labeled responses of equal size that say as much of a quantity."""
    return _linearized(quantity).effective


def best_power(quantity: Linearized) -> float:
    """The weight of the predictions that suits the labels best."""
    return _linearized(quantity).best_power()


def intervals_of(
    quantity: Linearized, level: float, *, finite: bool
) -> Callable[[float, bool], EstimateInterval]:
    """The interval of a quantity by the weight of the predictions, and whether it was learned.

    Degrees of freedom are by design alone: of a share near 0 or 1 most residuals are 0, whatever
    its labels are.

    Args:
        quantity: the quantity, to which all adds linearly.
        level: nominal coverage.
        finite: whether it is about these responses alone.
    """
    sums = _linearized(quantity)

    def interval(power: float, fitted: bool) -> EstimateInterval:
        return _interval(sums, power, fitted, level, finite, quantity, by_residuals=False)

    return interval


def difference(first: PoweredEstimate, second: PoweredEstimate) -> PoweredEstimate:
    """An estimate less another, of models whose responses have some ids in common, or none.

    Contributions of the same response to both are paired, for labels alone and for the estimates.
    Labels alone are used if their interval is narrower, as when two judges err on the same claims.
    Degrees of freedom are the fewer of the two if responses are shared, otherwise Welch's.

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
    # A difference of two shares is no less than -1: what lies beyond is no value of it.
    ends = first.lowest - second.highest, first.highest - second.lowest
    # Judges that say the same of all claims, not only of labeled ones.
    same = first.predictions_value == second.predictions_value
    interval, alone = (
        _less(*two, shared, first.level, ends, same)
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
    )


def _less(
    first: EstimateInterval,
    second: EstimateInterval,
    shared: NDArray[np.int64],
    level: float,
    ends: tuple[float, float],
    same: bool,
) -> EstimateInterval:
    """Difference of two intervals, whose common responses are the rows of `shared`.

    Where `same` is false, and labeled claims do not differ, others may.

    Errors are those of responses left out, which no scale makes up for here, as the logit does for
    a share: with ten or twenty labels the others held differences in 92.5 % of draws.
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
            # Nothing varies in either: as far as both could be alike by chance.
            reach = math.hypot(first.width, second.width) / 2
        elif not same and variance <= _SAME * (first_error**2 + second_error**2):
            reach = _reach_of_none(freedom + 1, level, ends)
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
        items: the quantity, and what each item adds to it.
        labels: float64 (n_responses,), what each response's labels add to the value of the labels.
        predictions: contribution of its labeled items' predictions to the predicted quantity of
            these items.
        everywhere: contribution of its predictions to the predicted quantity of all items.
        touched: bool (n_responses,), whether a response has a labeled item.
        shares: float64 (n_responses,), the part of the labels' value that its labels decide.
        units: contributions of labels and of predictions by sampled unit, the unit's part of the
            value, and the share of unsampled units that it represents: four arrays (n_units,).
        effective: number of labeled responses of equal size that say as much.
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
        """The weight of least squares, of labels on predictions of the same responses."""
        spread = float(self.predictions @ self.predictions)
        if spread <= 0:
            return 0.0
        best = max(float(self.labels @ self.predictions) / spread, 0.0)
        return min(best, self.items.most_power)


def _linearized(quantity: Linearized, power: float = 0.0) -> _Linearized:
    grouping, labeled = quantity.grouping, quantity.labeled
    items = quantity.linear(power)
    touched = grouping.sums(labeled) > 0
    # Where only whole responses are labeled, responses are what was drawn.
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
        stands = grouping.means(quantity.weights)[kept]
        labels, predictions, shares = (grouping.sums(each)[kept] for each in parts)
        n_units = len(grouping.responses)
    else:
        stands = quantity.weights[labeled]
        labels, predictions, shares = (each[labeled] for each in parts)
        n_units = labeled.size
    # Weights sum to the number of units; those of a plain random sample may be of any size.
    stands = stands * (n_units / stands.sum())
    return labels, predictions, shares, 1 - 1 / np.maximum(stands, 1.0)


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
    # About these responses alone, what the predictions of all add is no chance.
    beyond = 0.0 if finite else power * sums.everywhere
    influences, left_out = (each + beyond for each in _freed(residuals, sums.shares, fit))
    squares = [float(each @ each) for each in (influences, left_out)]
    if finite:
        labels, predictions, shares, unseen = sums.units
        freed = _freed(labels - power * predictions, shares, predictions if fitted else None)
        squares = [float(unseen @ each**2) for each in freed]
        least *= float(unseen.mean())
    error, left_out_error = (math.sqrt(max(variance, least)) for variance in squares)
    if quantity.by_left_out:
        error = left_out_error
    # Where everything is labeled and asked about, there is no chance.
    alike = error <= sums.items.rounding and not (finite and bool(quantity.labeled.all()))
    lower, upper = _ends(value, error, freedom, sums.n_responses, level, quantity, alike)
    if math.isnan(lower):
        error = left_out_error = math.nan
    return EstimateInterval(value, lower, upper, error, freedom, influences, left_out_error)


def _freedom(shares: Floats, residuals: Floats | None, fitted: bool) -> float:
    """Degrees of freedom of the variance of an estimate; 0 or less where there are none.

    They are the fewer of two numbers. By design: 1/Σ h², h the part of the value that each response
    decides (Kish 1965), less one, and less one for a fitted weight. By residuals r: 3 (Σ r²)²/Σ r⁴
    - 2, Satterthwaite's 2 (E v)²/Var v of the variance v = Σ r², where Var v is 2/3 of the expected
    Σ r⁴ for normal r and E v² exceeds (E v)² by as much (Pan and Wall 2002). A few responses that
    hold most of the variance leave hardly more than one.

    Args:
        shares: float64 (n_responses,), the part of the value that each response decides.
        residuals: what each adds to the estimate, (n_responses,); None: they do not count.
        fitted: whether the weight of predictions was fitted.
    """
    by_design = float(1 / (shares @ shares)) - 1.0 - fitted
    if residuals is None:
        return by_design
    squares = np.square(residuals)
    fourth = float(squares @ squares)
    if not fourth > 0.0:
        return by_design
    return min(by_design, max(3.0 * float(squares.sum()) ** 2 / fourth - 2.0, 1.0))


def _freed(residuals: Floats, shares: Floats, predictions: Floats | None) -> tuple[Floats, Floats]:
    """Residuals before an estimate and a weight are fitted to them, and those of left-out units.

    A unit that is a large part of the estimate draws it near, so that its residual is too small:
    it is divided by the root of 1 less its leverage, which has the right variance where all are
    alike. Where a weight was fitted too, its part in the fit is leverage, and the residual is
    divided by 1 less that: what it would be if the unit were left out (Bell and McCaffrey 2002,
    their corrections CR2 and CR3, of which the second is the jackknife).
    """
    if predictions is None or not predictions.any():
        kept = 1 - np.minimum(shares, _LEVERAGE)
        return residuals / np.sqrt(kept), residuals / kept
    leverage = shares + predictions**2 / (predictions @ predictions)
    left_out: Floats = residuals / (1 - np.minimum(leverage, _LEVERAGE))
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
    """Ends of an interval: symmetric in the logit between 0 and 1, as those of other scores.

    Args:
        value, error, freedom: what the interval is of.
        n_responses: how many responses there are labels of.
        level: nominal coverage.
        quantity: what is estimated.
        alike: whether nothing varies, though it might.
    """
    low, high = quantity.lowest, quantity.highest
    if (low, high) != (0.0, 1.0):
        reach = float(student_quantile(level, np.asarray(freedom))) * error
        if alike:
            reach = _reach_of_none(n_responses, level, (low, high))
        return max(value - reach, low), min(value + reach, high)
    if error <= _ALIKE or not 0.0 < value < 1.0:
        # Nothing varies: as far as so many responses could be alike by chance.
        ends = wilson_interval(np.asarray([value]), np.asarray([float(n_responses)]), level)
    else:
        ends = delta_interval(
            *(np.asarray([value]), np.asarray([error]), np.asarray([freedom + 1])),
            *(level, Scale.UNIT),
        )
    return float(ends[0][0]), float(ends[1][0])


def _reach_of_none(n_responses: float, level: float, ends: tuple[float, float]) -> float:
    """Possible error of a value if no response differs, as far as chance allows for their number.

    It is nan of what has no ends, of which a response that differs may change as much as it likes.
    """
    half = (ends[1] - ends[0]) / 2
    if not math.isfinite(half):
        return math.nan
    _, upper = wilson_interval(np.zeros(1), np.asarray([float(n_responses)]), level)
    return half * float(upper[0])
