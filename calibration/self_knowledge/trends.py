"""Trends by relative position: logistic regressions whose clusters are the responses."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.estimate import ScoreStatus
from calibration.intervals import student_quantile
from calibration.scores.logistic import fit_logistic
from calibration.self_knowledge.claims import (
    SUPPORTED,
    UNSUPPORTED,
    Claims,
    Neither,
    as_claims,
)
from calibration.significance.corrections import adjust
from calibration.significance.student import student_p_values
from calibration.tabular import Frame
from calibration.validation import Floats, Integers
from factormodels.io.claim_records import ClaimRecord, Setting, setting_named


class TrendStatus(StrEnum):
    """State of a trend: defined, or the reason why not."""

    OK = "ok"
    FEW = "few"
    """Fewer than three responses, or responses that each determine the fit."""
    CONSTANT = "constant"
    """Claims of one kind, or at one position."""
    SEPARATED = "separated"
    """A position that separates the two kinds: the likelihood has no maximum."""


class _Fit(NamedTuple):
    slope: float
    error: float
    status: TrendStatus


def position_trends(
    records: Claims | Iterable[ClaimRecord],
    setting: str = Setting.NONE_OF_THE_ABOVE,
    *,
    neither: str = Neither.INCORRECT,
    level: float = 0.95,
) -> Frame:
    """Trends of factuality, of judgments, of SK and of SU over a response.

    A trend is the slope of a logistic regression on the relative position i/n of the sentence of a
    claim, a generalized estimating equation of statsmodels with independent claims as its working
    model (Liang and Zeger 1986). Its standard error is valid for any dependence between claims of a
    response, and is corrected for few responses (Mancl and DeRouen 2001). Intervals and p-values
    are Student's with two degrees of freedom fewer than responses.

    Columns: quantity, ``factuality`` (claims labeled S among S and NS), ``judged_correct``,
    ``self_known`` (judged correct among S) and ``self_unknown`` (judged incorrect among NS);
    slope, the log odds at the end of a response minus those at its start, with lower, upper and
    standard_error; p_value; corrected, by Holm over the quantities; n_claims; n_responses; status.

    Args:
        records: the claims.
        setting: setting in which the model was asked. Only claims labeled S or NS that have a
            judgment count.
        neither: treatment of the judgment "neither", as in `self_knowledge`.
        level: nominal coverage of the intervals.

    Raises:
        InputError: for no records, or unknown settings.
    """
    claims = as_claims(records)
    correct, present = claims.judged_correct(setting_named(setting), neither)
    supported, unsupported = claims.label == SUPPORTED, claims.label == UNSUPPORTED
    counted = present & (supported | unsupported)
    position = claims.sentence_index / claims.sentence_total
    outcomes = {
        "factuality": (supported.astype(np.float64), counted),
        "judged_correct": (correct, counted),
        "self_known": (correct, counted & supported),
        "self_unknown": (1 - correct, counted & unsupported),
    }
    fits = [
        _fitted(position[claims.sentence[among]], outcome[among], claims.grouping.index[among])
        for outcome, among in outcomes.values()
    ]
    slope, error = np.array([fit.slope for fit in fits]), np.array([fit.error for fit in fits])
    n_responses = np.array(
        [len(np.unique(claims.grouping.index[among])) for _, among in outcomes.values()]
    )
    degrees = np.where(n_responses > 2, n_responses - 2.0, np.nan)
    reach = student_quantile(level, degrees) * error
    p_value = student_p_values(slope, error, degrees)
    return Frame(
        quantity=tuple(outcomes),
        slope=slope,
        lower=slope - reach,
        upper=slope + reach,
        standard_error=error,
        p_value=p_value,
        corrected=adjust(p_value),
        n_claims=np.array([int(among.sum()) for _, among in outcomes.values()]),
        n_responses=n_responses,
        status=[str(fit.status) for fit in fits],
    )


def _fitted(position: Floats, outcome: Floats, response: Integers) -> _Fit:
    """Slope of the log odds of an outcome, with its clustered standard error."""
    if len(np.unique(response)) < 3:
        return _Fit(np.nan, np.nan, TrendStatus.FEW)
    if len(np.unique(outcome)) < 2 or len(np.unique(position)) < 2:
        return _Fit(np.nan, np.nan, TrendStatus.CONSTANT)
    columns = np.stack([np.ones_like(position), position])
    start = fit_logistic(columns, np.ones_like(position), outcome)
    if start.status is not ScoreStatus.OK:
        return _Fit(np.nan, np.nan, TrendStatus.SEPARATED)
    error = _clustered_error(columns.T, outcome, response, start.coefficients)
    status = TrendStatus.OK if np.isfinite(error) else TrendStatus.FEW
    return _Fit(float(start.coefficients[1]), error, status)


def _clustered_error(
    design: NDArray[np.float64], outcome: Floats, response: Integers, start: Floats
) -> float:
    """Standard error of the last coefficient; nan if a response determines the fit."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    model = GEE(outcome, design, groups=response, family=Binomial())
    try:
        # Independent claims have the coefficients of `fit_logistic`, so that one step is enough.
        fit = model.fit(start_params=start, cov_type="bias_reduced")
    except np.linalg.LinAlgError:
        return float("nan")
    return float(fit.bse[-1])
