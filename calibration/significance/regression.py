"""Regression of correctness on position and method, for claims that come in responses.

The rows are claims, once per method; rows of one response are dependent, whatever the method. GEE
gives effects averaged over responses, with a covariance that holds even if the working
correlation is wrong, corrected for few responses; mixed effects give effects within a response,
whose own level is random.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.grouping import Grouping, group_by_response, response_ids
from calibration.intervals import student_quantile
from calibration.significance.mixed_logistic import fit_mixed_logistic
from calibration.significance.paired import measure_array
from calibration.significance.small_sample import cr2_covariance
from calibration.tabular import Tabular
from calibration.validation import Floats, check_lengths, label_array, member_named, open_interval
from factormodels.errors import InputError


class RegressionModel(StrEnum):
    """Which model is fitted; the first two through statsmodels."""

    GEE = "gee"
    """Logistic, exchangeable within responses (Liang and Zeger 1986)."""
    MIXED_LINEAR = "mixed-linear"
    """Linear probability with a random level per response, by restricted maximum likelihood."""
    MIXED_LOGISTIC = "mixed-logistic"
    """Logistic with a random level per response, by maximum likelihood (`mixed_logistic`)."""


class GeeErrors(StrEnum):
    """Which standard errors ``gee`` has; all hold even if the working correlation is wrong."""

    CR2 = "cr2"
    """Corrected for few responses, with Student's t (`small_sample`)."""
    MANCL_DEROUEN = "mancl-derouen"
    """Corrected further than is unbiased (Mancl and DeRouen 2001), with the normal law."""
    ROBUST = "robust"
    """The plain sandwich with the normal law, for 50 responses and more."""


class RegressionStatus(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    BOUNDARY = "boundary"
    """No variance between responses was found; its estimate is 0, the edge of its range."""
    NOT_CONVERGED = "not_converged"
    """The numbers are where the fit stood when it stopped."""


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Tabular):
    """Effects on correctness. Arrays have shape (n_terms,).

    Attributes:
        model: which model.
        terms: "intercept", "position", then "method=NAME" against the reference, then their
            products if there is interaction.
        coefficient: effects: log odds of logistic models, probabilities of the linear one.
        standard_error: their standard errors.
        degrees: degrees of freedom of Student's t; inf where the normal law is taken.
        lower: lower ends of intervals, by that law.
        upper: upper ends.
        p_value: two-sided, by that law.
        reference: the method that the others are compared to.
        correlation: between rows of a response: the working correlation of ``gee``, the
            intraclass correlation of ``mixed-linear``; for ``mixed-logistic`` that of the latent
            scale, s^2/(s^2 + pi^2/3) (Nakagawa and Schielzeth 2010).
        n_rows: number of rows.
        n_responses: number of responses.
        level: nominal coverage of the intervals.
        status: how the fit ended.
    """

    model: RegressionModel
    terms: tuple[str, ...]
    coefficient: Floats
    standard_error: Floats
    degrees: Floats
    lower: Floats
    upper: Floats
    p_value: Floats
    reference: Hashable
    correlation: float
    n_rows: int
    n_responses: int
    level: float
    status: RegressionStatus

    def rows(self) -> list[dict[str, Any]]:
        """One row per term."""
        return [
            {
                "term": term,
                "coefficient": float(self.coefficient[row]),
                "standard_error": float(self.standard_error[row]),
                "degrees": float(self.degrees[row]),
                "lower": float(self.lower[row]),
                "upper": float(self.upper[row]),
                "p_value": float(self.p_value[row]),
                "model": str(self.model),
                "status": str(self.status),
            }
            for row, term in enumerate(self.terms)
        ]


def correctness_regression(
    correct: Any,
    position: ArrayLike,
    responses: Any,
    methods: Any = None,
    *,
    model: str = RegressionModel.GEE,
    interaction: bool = False,
    reference: Hashable = None,
    errors: str = GeeErrors.CR2,
    level: float = 0.95,
) -> Regression:
    """Regression of correctness on relative position and method.

    Args:
        correct: whether each row's judgement is right (or its claim supported), (n_rows,), True
            or False.
        position: relative position i/n of the claim's sentence, (n_rows,); a slope is per whole
            response.
        responses: response ids (n_rows,).
        methods: the method of each row (n_rows,), or None if there is one.
        model: ``gee``, ``mixed-linear`` or ``mixed-logistic``.
        interaction: whether each method has its own slope of position.
        reference: the method that others are compared to; None for the first that occurs.
        errors: standard errors of ``gee``: ``cr2``, ``mancl-derouen`` or ``robust``.
        level: nominal coverage of the intervals.

    Raises:
        InputError: for bad arrays, lengths that differ, effects that the rows cannot tell apart,
            fewer than two responses, or unknown settings.
    """
    chosen = member_named(RegressionModel, model, "model")
    level = open_interval(level, "level", 0, 1)
    kind = member_named(GeeErrors, errors, "errors")
    outcome = label_array(correct, "correct")
    if np.isnan(outcome).any():
        place = int(np.argmax(np.isnan(outcome)))
        raise InputError(f"correct[{place}] is missing; leave that row out")
    if np.ptp(outcome) == 0:
        raise InputError(
            f"correct is {bool(outcome[0])} in every row; a regression needs rows of both kinds"
        )
    places = measure_array(position, "position")
    grouping = group_by_response(responses)
    check_lengths(correct=outcome.size, position=places.size, responses=grouping.index.size)
    if len(grouping.responses) < 2:
        raise InputError("responses holds one response; a regression needs two or more")
    terms, design, base = _design(places, methods, interaction, reference)
    check_lengths(correct=outcome.size, methods=design.shape[0])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise InputError(
            f"the rows cannot tell {', '.join(terms)} apart; give positions that vary, and vary "
            "within each method if there is interaction"
        )
    degrees = np.full(len(terms), np.inf)
    if chosen is RegressionModel.GEE:
        coefficient, error, degrees, correlation, status = _fit_gee(outcome, design, grouping, kind)
    else:
        fit = {
            RegressionModel.MIXED_LINEAR: _fit_mixed_linear,
            RegressionModel.MIXED_LOGISTIC: _fit_mixed_logistic,
        }[chosen]
        coefficient, error, correlation, status = fit(outcome, design, grouping)
    from scipy.special import stdtr

    reach = student_quantile(level, degrees) * error
    return Regression(
        model=chosen,
        terms=terms,
        coefficient=coefficient,
        standard_error=error,
        degrees=degrees,
        lower=coefficient - reach,
        upper=coefficient + reach,
        p_value=2 * stdtr(degrees, -np.abs(coefficient / error)),
        reference=base,
        correlation=correlation,
        n_rows=outcome.size,
        n_responses=len(grouping.responses),
        level=level,
        status=status,
    )


Fit = tuple[Floats, Floats, float, RegressionStatus]


def _fit_gee(
    outcome: Floats, design: Floats, grouping: Grouping, errors: GeeErrors
) -> tuple[Floats, Floats, Floats, float, RegressionStatus]:
    """Coefficients, their standard errors and degrees of freedom, correlation, and status."""
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    structure = Exchangeable()
    plain = "bias_reduced" if errors is GeeErrors.MANCL_DEROUEN else "robust"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GEE(outcome, design, grouping.index, family=Binomial(), cov_struct=structure)
        result = model.fit(maxiter=200, cov_type=plain)
    error, degrees = np.asarray(result.bse), np.full(design.shape[1], np.inf)
    correlation = float(structure.dep_params)
    if errors is GeeErrors.CR2:
        mean = np.asarray(result.fittedvalues)
        variance = mean * (1 - mean)
        small = cr2_covariance(
            design * variance[:, np.newaxis], outcome - mean, variance, correlation, grouping
        )
        error, degrees = np.sqrt(np.diag(small.covariance)), small.degrees
    status = RegressionStatus.CONVERGED if result.converged else RegressionStatus.NOT_CONVERGED
    return np.asarray(result.params), error, degrees, correlation, status


def _fit_mixed_linear(outcome: Floats, design: Floats, grouping: Grouping) -> Fit:
    from statsmodels.regression.linear_model import OLS
    from statsmodels.regression.mixed_linear_model import MixedLM

    plain = OLS(outcome, design).fit()
    if not _varies_between(np.asarray(plain.resid), design, grouping):
        # Without variance between responses, restricted maximum likelihood is least squares.
        return np.asarray(plain.params), np.asarray(plain.bse), 0.0, RegressionStatus.BOUNDARY
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A gradient method may stop at a variance of 0, where statsmodels reports an infinite
        # likelihood; Powell's method, without gradients, does not leave the interior so.
        for method in ("bfgs", "powell"):
            fit = MixedLM(outcome, design, groups=grouping.index).fit(reml=True, method=[method])
            between, within = float(np.asarray(fit.cov_re)[0, 0]), float(fit.scale)
            if np.isfinite(fit.llf):
                fits.append((float(fit.llf), between / (between + within), fit))
    if not fits:
        status = RegressionStatus.NOT_CONVERGED
        return np.asarray(plain.params), np.asarray(plain.bse), float("nan"), status
    _, correlation, best = max(fits, key=lambda each: each[0])
    covariance = np.asarray(best.cov_params())[: design.shape[1], : design.shape[1]]
    status = RegressionStatus.CONVERGED if best.converged else RegressionStatus.NOT_CONVERGED
    return np.asarray(best.fe_params), np.sqrt(np.diag(covariance)), correlation, status


def _varies_between(residual: Floats, design: Floats, grouping: Grouping) -> bool:
    """Say whether the restricted likelihood rises with the variance between responses from 0."""
    sums = np.stack([grouping.sums(column) for column in design.T], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    expected = residual.size - float(np.trace(inverse @ sums.T @ sums))
    scale = float(residual @ residual) / (residual.size - design.shape[1])
    return bool((grouping.sums(residual) ** 2).sum() > scale * expected)


def _fit_mixed_logistic(outcome: Floats, design: Floats, grouping: Grouping) -> Fit:
    from statsmodels.discrete.discrete_model import Logit

    fit = fit_mixed_logistic(outcome, design, grouping)
    if fit.spread < 1e-3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = Logit(outcome, design).fit(disp=False)
        return np.asarray(plain.params), np.asarray(plain.bse), 0.0, RegressionStatus.BOUNDARY
    variance = fit.spread**2
    return (
        fit.coefficient,
        np.sqrt(np.diag(fit.covariance)),
        variance / (variance + np.pi**2 / 3),
        RegressionStatus.CONVERGED if fit.converged else RegressionStatus.NOT_CONVERGED,
    )


def _design(
    position: Floats, methods: Any, interaction: bool, reference: Hashable
) -> tuple[tuple[str, ...], Floats, Hashable]:
    terms, columns = ["intercept", "position"], [np.ones(position.size), position]
    if methods is None:
        return tuple(terms), np.stack(columns, axis=1), None
    given: Sequence[Hashable] = response_ids(methods)
    names = list(dict.fromkeys(given))
    if len(given) != position.size:
        check_lengths(position=position.size, methods=len(given))
    base = names[0] if reference is None else reference
    if base not in names:
        raise InputError(f"reference is {base!r}, which no row has; choose one of {names}")
    others = [name for name in names if name != base]
    chosen = [np.array([each == name for each in given], dtype=np.float64) for name in others]
    terms += [f"method={name}" for name in others]
    columns += chosen
    if interaction:
        terms += [f"position:method={name}" for name in others]
        columns += [indicator * position for indicator in chosen]
    return tuple(terms), np.stack(columns, axis=1), base
