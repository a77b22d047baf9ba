"""Weighted logistic regression with few columns, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.estimate import ScoreStatus
from calibration.forecasts import dot
from calibration.validation import Floats

ROWS_AT_ONCE = 1 << 15
"""Number of rows per block; temporary arrays of a block fit in a processor's cache."""

_MOST_ITERATIONS = 60
_CONVERGED = 1e-6


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Maximum likelihood estimate of a logistic regression.

    Attributes:
        coefficients: float64 (k,), one per column.
        status: ``ok``, or ``separated`` if the likelihood has no maximum.
    """

    coefficients: Floats
    status: ScoreStatus


def fit_logistic(
    columns: Floats,
    weight: Floats,
    true: Floats,
    *,
    offset: Floats | None = None,
    start: Floats | None = None,
) -> LogisticFit:
    """Fit a logistic regression by maximum likelihood.

    Newton's method is damped as proposed by Sun and Tran-Dinh (2019) for generalized
    self-concordant functions. It converges from every start if there is a maximum. The size of a
    step is the largest change of a linear predictor; after a step below 1e-6 the remaining error is
    of the order of its square.

    The coefficients equal those of `GLM` of statsmodels to 1e-15. `GLM` takes 2 to 5 times as long
    (docs/results/house.md), and an interval fits thousands of redrawn samples.

    Args:
        columns: the columns of the design matrix, (k, m).
        weight: weight of each row, (m,).
        true: weight of the true labels in each row, (m,), not necessarily an integer.
        offset: number added to each linear predictor, (m,), or None.
        start: initial coefficients, (k,), or None for zeros.
    """
    coefficients = np.zeros(columns.shape[0]) if start is None else start
    for _ in range(_MOST_ITERATIONS):
        gradient, hessian = _derivatives(columns, weight, true, offset, coefficients)
        try:
            step = np.linalg.solve(hessian, gradient).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return LogisticFit(coefficients, ScoreStatus.SEPARATED)
        largest = _largest_move(columns, step)
        if not np.isfinite(largest):
            return LogisticFit(coefficients, ScoreStatus.SEPARATED)
        if largest > 0.1:
            step = step * float(np.log1p(largest) / largest)
        coefficients = coefficients + step
        if largest < _CONVERGED:
            return LogisticFit(coefficients, ScoreStatus.OK)
    return LogisticFit(coefficients, ScoreStatus.SEPARATED)


def _derivatives(
    columns: Floats, weight: Floats, true: Floats, offset: Floats | None, coefficients: Floats
) -> tuple[Floats, Floats]:
    """Gradient (k,) and negative Hessian (k, k) of the log likelihood."""
    n_columns, n_rows = columns.shape
    gradient = np.zeros(n_columns)
    hessian = np.zeros((n_columns, n_columns))
    # Blocks stay in the cache: for a million rows, memory access costs more than arithmetic.
    for begin in range(0, n_rows, ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        part = columns[:, rows]
        linear = combined(coefficients, part)
        if offset is not None:
            linear += offset[rows]
        predicted = sigmoid(linear)
        information = weight[rows] * predicted
        residual = true[rows] - information
        information *= 1 - predicted
        gradient += [dot(values, residual) for values in part]
        hessian += np.einsum("ir,jr->ij", part * information, part)
    return gradient, hessian


def _largest_move(columns: Floats, step: Floats) -> float:
    largest = 0.0
    for begin in range(0, columns.shape[1], ROWS_AT_ONCE):
        move = combined(step, columns[:, begin : begin + ROWS_AT_ONCE])
        largest = np.maximum(largest, np.abs(move).max())
    return float(largest)


def combined(coefficients: Floats, columns: Floats) -> Floats:
    """Linear combination (m,) of columns (k, m), computed in the calling thread."""
    linear = np.zeros(columns.shape[1])
    for coefficient, values in zip(coefficients.tolist(), columns, strict=True):
        linear += coefficient * values
    return linear


def sigmoid(linear: Floats) -> Floats:
    """1 / (1 + exp(-x)) elementwise."""
    with np.errstate(over="ignore"):
        # exp overflows to inf for x below -709, where the quotient is correctly 0.
        exponential = np.exp(-linear)
    exponential += 1
    return np.reciprocal(exponential, out=exponential)
