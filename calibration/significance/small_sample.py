"""Covariance of regression coefficients from few responses: CR2 of Bell and McCaffrey.

The plain sandwich takes residuals for errors, though a fit has drawn them towards 0, most where few
responses decide a coefficient: its standard errors are too small, and the normal law is too short.
CR2 rescales the residuals of each response so that the covariance is unbiased where the working
model holds, and takes Student's t with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.grouping import Grouping
from calibration.validation import Floats

_NEGLIGIBLE = 1e-10
"""Relative: an eigenvalue below this is one of 0, along which a fit leaves no residual."""


@dataclass(frozen=True, eq=False)
class SmallSampleCovariance:
    """Covariance of coefficients, and how far it can be trusted.

    Attributes:
        covariance: float64 (k, k).
        degrees: float64 (k,), Satterthwaite's degrees of freedom of each coefficient's variance.
    """

    covariance: Floats
    degrees: Floats


def cr2_covariance(
    design: Floats, residual: Floats, variance: Floats, correlation: float, grouping: Grouping
) -> SmallSampleCovariance:
    """CR2 covariance and degrees of freedom of a fit by generalised estimating equations.

    Bell and McCaffrey 2002 (Survey Methodology 28) for least squares, McCaffrey, Bell and Botts
    2001 for estimating equations; as Pustejovsky and Tipton 2018 (Journal of Business and Economic
    Statistics 36), equations 6 and 11, have it for any working covariance.

    Args:
        design: float64 (n, k), derivative of each row's mean in each coefficient.
        residual: float64 (n,), outcome less mean.
        variance: float64 (n,), working variance of each row, up to a common factor.
        correlation: working correlation of two rows of a response, below 1.
        grouping: which response each row belongs to.
    """
    n_responses, n_terms = len(grouping.responses), design.shape[1]
    order = np.argsort(grouping.index, kind="stable")
    blocks = np.split(order, np.cumsum(grouping.sizes)[:-1])
    workings = [_working(variance[rows], correlation) for rows in blocks]
    weighted = [
        np.linalg.solve(working, design[rows])
        for rows, working in zip(blocks, workings, strict=True)
    ]
    information = sum(
        (design[rows].T @ weights for rows, weights in zip(blocks, weighted, strict=True)),
        start=np.zeros((n_terms, n_terms)),
    )
    bread: Floats = np.asarray(np.linalg.inv(information), dtype=np.float64)
    scores = np.empty((n_responses, n_terms))
    # Of every response and coefficient: its share of the variance, and how it leans on the fit.
    spread, leaning = np.empty((n_responses, n_terms)), np.empty((n_responses, n_terms, n_terms))
    for number, (rows, working, weights) in enumerate(zip(blocks, workings, weighted, strict=True)):
        own = design[rows]
        adjusted = _adjustment(working, working - own @ bread @ own.T).T @ weights @ bread
        scores[number] = adjusted.T @ residual[rows]
        spread[number] = np.einsum("nk,nm,mk->k", adjusted, working, adjusted)
        leaning[number] = adjusted.T @ own
    degrees = np.array([_satterthwaite(spread[:, k], leaning[:, k], bread) for k in range(n_terms)])
    return SmallSampleCovariance(scores.T @ scores, degrees)


def _working(variance: Floats, correlation: float) -> Floats:
    """Working covariance of the rows of one response, exchangeable."""
    root = np.sqrt(variance)
    matrix = correlation * np.outer(root, root)
    np.fill_diagonal(matrix, variance)
    return matrix


def _adjustment(working: Floats, of_residuals: Floats) -> Floats:
    """Matrix A with A C A' = V, for the working covariance V and that of the residuals, C."""
    upper = np.linalg.cholesky(working).T
    values, vectors = np.linalg.eigh(upper @ of_residuals @ upper.T)
    kept = values > _NEGLIGIBLE * values.max()
    root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    return np.asarray(upper.T @ root @ upper)


def _satterthwaite(spread: Floats, leaning: Floats, bread: Floats) -> float:
    """Twice the squared mean of a sum of squares over its variance, if errors are normal.

    The covariance of the responses' scores is diag(spread) - leaning bread leaning'.
    """
    shared = leaning @ bread @ leaning.T
    covariance = np.diag(spread) - shared
    return float(np.trace(covariance) ** 2 / (covariance**2).sum())
