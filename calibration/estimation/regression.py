"""Regression coefficients from few labels, of truth or a number on columns of all claims.

Source: PPI++ (Angelopoulos, Duchi and Zrnic 2023), sections 3 and 4. The columns x and predictions
f are known for all claims, the labels y for some. Let S(t; b) be the mean over labeled claims of x
(t - m(x b)), with m the identity or the logistic function, and S* the mean over all claims. The
coefficients b solve

    S(y; b) - w (S(f; b) - S*(f; b)) = 0,

with w the weight of the predictions. If m is the identity, the solutions for the three terms are
combined, as in `ppi_ols_pointestimate` of ppi-python. Standard errors are clustered by response.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimation.linear import Linear, Linearized, placed
from calibration.estimation.quantities import given_claims
from calibration.grouping import Grouping, group_by_response
from calibration.validation import Floats, check_lengths, number_array, weight_array
from factormodels.errors import InputError

_STEPS = 50
"""Maximum number of Newton steps; a few suffice if labels are not separated."""

_EXACT = 1e-9
"""Standard errors below this share of the labels' contributions are due to labels that are fitted
exactly."""

_FAR = 30.0
"""Log odds beyond which labels are separated, so that no finite coefficients are optimal."""

Columns = Mapping[str, ArrayLike]
"""Columns of a regression, by name."""


def ols(columns: Columns, p: ArrayLike, y: Any, responses: Any, **given: Any) -> list[Coefficient]:
    """Coefficients of the linear regression of labels on columns, the intercept first.

    Args:
        columns: numbers (n,) of all claims, by name, without an intercept.
        p: predictions (n,) for all claims: probabilities, or any numbers.
        y: labels (n,), True or False, or any numbers; None or nan where unlabeled.
        responses: response ids (n,).
        given: `irrelevant` and `weights`, as in `share`.

    Raises:
        InputError: for bad arrays, or lengths that differ.
    """
    return _coefficients("linear", columns, _numbers(p, y, responses, **given))


def mean(
    p: ArrayLike, y: ArrayLike, responses: Any, *, weights: ArrayLike | None = None
) -> Coefficient:
    """Mean of numbers over all items, a linear regression with only an intercept.

    Args:
        p: predicted numbers (n,), of any size.
        y: labels (n,), the numbers; None or nan where unlabeled.
        responses: response ids (n,).
        weights: number of items that each labeled one represents, (n,), or None for one each.

    Raises:
        InputError: for bad arrays, or lengths that differ.
    """
    (intercept,) = _coefficients("linear", {}, _numbers(p, y, responses, weights=weights))
    return replace(intercept, title="mean")


def logistic(
    columns: Columns, p: ArrayLike, y: Any, responses: Any, **given: Any
) -> list[Coefficient]:
    """Coefficients of the logistic regression of truth on columns, in log odds; as in `ols`."""
    claims = given_claims(p, y, responses, **given)
    outcome = _Outcome(claims.p, claims.y, claims.grouping, claims.weights)
    return _coefficients("logistic", columns, outcome)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Predictions for all claims, and labels of some, (n,) each."""

    predicted: Floats
    observed: Floats
    grouping: Grouping
    weights: Floats


def _numbers(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    irrelevant: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> _Outcome:
    predicted, observed = number_array(p, "p"), number_array(y, "y", missing=True)
    grouping = group_by_response(responses)
    n = predicted.size
    dropped = np.zeros(n, dtype=np.bool_) if irrelevant is None else np.asarray(irrelevant, bool)
    check_lengths(p=n, y=observed.size, responses=grouping.index.size, irrelevant=dropped.size)
    counts = np.ones(n) if weights is None else weight_array(weights, n)
    return _Outcome(predicted, np.where(dropped, np.nan, observed), grouping, counts)


def _coefficients(kind: str, columns: Columns, outcome: _Outcome) -> list[Coefficient]:
    n = outcome.predicted.size
    values = {name: number_array(column, name) for name, column in columns.items()}
    check_lengths(p=n, **{name: each.size for name, each in values.items()})
    design = np.column_stack([np.ones(n), *values.values()])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise InputError(
            f"columns {', '.join(values)}: one is the same for every claim, or a sum of others; "
            "leave it out"
        )
    regression = Regression(kind, design, outcome.predicted, outcome.observed, outcome.weights)
    return [
        Coefficient(f"{kind}: {name}", outcome.grouping, outcome.weights, regression, number)
        for number, name in enumerate(("intercept", *values))
    ]


@dataclass(frozen=True, eq=False)
class Regression:
    """A regression in which some claims have labels.

    Attributes:
        kind: ``linear`` or ``logistic``.
        design: float64 (n, d), ones, and the columns of all claims.
        predicted: float64 (n,), predictions for all claims.
        observed: float64 (n,), labels; nan where unlabeled.
        weights: float64 (n,), number of claims that each labeled one represents.
    """

    kind: str
    design: Floats
    predicted: Floats
    observed: Floats
    weights: Floats

    @cached_property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled claims, bool (n,)."""
        return ~np.isnan(self.observed)

    @cached_property
    def some(self) -> _Part:
        """Rows of the labeled claims.

        Raises:
            InputError: if they are too few.
        """
        weights = self.weights[self.labeled]
        part = _Part(self.design[self.labeled], weights / weights.sum())
        if np.linalg.matrix_rank(part.design) < part.design.shape[1]:
            raise InputError(
                f"{self.kind} regression: labeled claims do not tell the columns apart; label "
                "more, as --choose says"
            )
        return part

    @cached_property
    def every(self) -> _Part:
        """Rows of all claims."""
        n = self.labeled.size
        return _Part(self.design, np.full(n, 1 / n))

    @cached_property
    def outcomes(self) -> tuple[tuple[_Part, Floats], ...]:
        """Labels, predictions for the same claims, and predictions for all, with their rows."""
        known = self.labeled
        return (
            (self.some, self.observed[known]),
            (self.some, self.predicted[known]),
            (self.every, self.predicted),
        )

    @cached_property
    def fits(self) -> list[Floats]:
        """Coefficients of each of `outcomes`, (d,)."""
        return [self._solved([(1.0, *each)]) for each in self.outcomes]

    def solution(self, power: float) -> Floats:
        """Coefficients that solve the equation for a weight of the predictions, (d,)."""
        if not power:
            return self.fits[0]
        return self._solved(
            [(by, *each) for by, each in zip((1.0, -power, power), self.outcomes, strict=True)]
        )

    def residuals(self, part: _Part, outcomes: Floats, coefficients: Floats) -> Floats:
        """Outcome of each claim minus its mean under the coefficients, times its weight."""
        return part.weights * (outcomes - self._mean(part, coefficients))

    def hessian(self, part: _Part, coefficients: Floats) -> Floats:
        """Decrease of the gradient as coefficients increase, (d, d)."""
        slope = np.ones_like(part.weights)
        if self.kind == "logistic":
            mean = self._mean(part, coefficients)
            slope = mean * (1 - mean)
        hessian: Floats = (part.design * (part.weights * slope)[:, np.newaxis]).T @ part.design
        return hessian

    def _mean(self, part: _Part, coefficients: Floats) -> Floats:
        linear: Floats = part.design @ coefficients
        if self.kind == "linear":
            return linear
        return np.asarray(1 / (1 + np.exp(-np.clip(linear, -700, 700))))

    def _solved(self, parts: list[tuple[float, _Part, Floats]]) -> Floats:
        """Coefficients at which the gradients of the parts, times their factors, sum to 0."""
        solution = np.zeros(self.design.shape[1])
        for _ in range(_STEPS):
            gradient, hessian = np.zeros_like(solution), np.zeros((solution.size, solution.size))
            for factor, part, outcomes in parts:
                gradient += factor * (part.design.T @ self.residuals(part, outcomes, solution))
                hessian += factor * self.hessian(part, solution)
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
            solution = solution + step
            if self.kind == "linear" or np.abs(step).max() <= 1e-12 * (1 + np.abs(solution).max()):
                return solution
            if np.abs(self.design @ solution).max() > _FAR:
                break
        raise InputError(
            f"{self.kind} regression: the columns tell labeled claims that are true from those "
            "that are false, so no coefficients fit best; label more, or take fewer columns"
        )


@dataclass(frozen=True, eq=False)
class Coefficient(Linearized):
    """Coefficient of a regression.

    Attributes:
        title: name of the quantity.
        grouping: the response of every claim.
        weights: float64 (n,), as in `Linearized`.
        regression: the regression.
        index: index of the coefficient.
    """

    title: str
    grouping: Grouping
    weights: Floats
    regression: Regression
    index: int
    lowest: float = -np.inf
    highest: float = np.inf
    by_left_out: bool = True

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled claims, bool (n,)."""
        return self.regression.labeled

    def linear(self, power: float) -> Linear:
        """Contribution of each claim at the coefficients that solve the equations at this weight.

        Raises:
            InputError: if there are too few labels, or columns separate true from false claims.
        """
        model, known = self.regression, self.labeled
        solved, at = math.nan, model.fits
        slopes = [model.some, model.some, model.every]
        if model.kind == "logistic":
            # All three are linearized at one solution, where slopes of all claims are steadier.
            solution = model.solution(power)
            solved, at = float(solution[self.index]), [solution] * 3
            slopes = [model.every if power else model.some] * 3
        added, pulls = [], []
        for (part, outcomes), coefficients, slope in zip(model.outcomes, at, slopes, strict=True):
            pull = part.design @ np.linalg.inv(model.hessian(slope, coefficients))[self.index]
            each = pull * model.residuals(part, outcomes, coefficients)
            pulls.append(pull)
            # At the common solution, the contributions of a single term need not sum to 0.
            added.append(each - part.weights * each.sum())
        observed, sampled, predicted = (float(fit[self.index]) for fit in model.fits)
        shares = model.some.weights * pulls[0] ** 2
        size = float(np.abs(model.some.weights * pulls[0]) @ np.abs(model.observed[known]))
        return Linear(
            observed=observed,
            sampled=sampled,
            predicted=predicted,
            labels=placed(known, added[0]),
            predictions=placed(known, added[1]),
            everywhere=added[2],
            shares=placed(known, shares / shares.sum()),
            solved=solved,
            most_power=1.0,
            rounding=_EXACT * size,
        )


@dataclass(frozen=True, eq=False)
class _Part:
    """Some claims: their columns, (n, d), and weights that sum to 1, (n,)."""

    design: Floats
    weights: Floats
