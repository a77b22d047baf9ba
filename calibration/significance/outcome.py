"""The result of a test, and what its arguments must be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calibration.forecasts import ScoreStatus
from calibration.validation import member_named


class Alternative(StrEnum):
    """The hypothesis against no difference, about the first less the second."""

    TWO_SIDED = "two-sided"
    GREATER = "greater"
    LESS = "less"


class SignificanceStatus(StrEnum):
    """Whether a test could be done."""

    OK = "ok"
    NO_VARIATION = "no_variation"
    """Every response differs alike, so that nothing measures chance; the p-value is nan, or 1 if
    none differs at all."""
    TOO_FEW = "too_few_responses"
    """Fewer than two responses bear on the difference; the p-value is nan."""


_REASONS = {
    SignificanceStatus.NO_VARIATION: "every response differs alike: nothing measures chance",
    SignificanceStatus.TOO_FEW: "fewer than two responses bear on it",
    ScoreStatus.INFINITE: "it has the logarithm of a probability of 0",
    ScoreStatus.ONE_CLASS: "all labels agree",
    ScoreStatus.CONSTANT_FORECAST: "all probabilities are the same",
    ScoreStatus.SEPARATED: "a threshold on p parts true from false claims, so that no fit is the "
    "most likely",
    ScoreStatus.TOO_FEW_ATOMS: "a bin holds one claim",
    ScoreStatus.CLIPPED: "p of 0 or 1 were moved to take their logit",
}


def reason_of(status: str) -> str:
    """Why a number has this status, in a few words; empty where there is nothing to tell."""
    return next((words for known, words in _REASONS.items() if known == status), "")


@dataclass(frozen=True)
class SignificanceTest:
    """The result of a test of no difference between a first and a second.

    Attributes:
        test: which test.
        estimate: the first less the second.
        lower: lower end of the interval of that difference, nan if the test has none.
        upper: its upper end.
        statistic: the test's statistic, nan where it is not defined.
        degrees: degrees of freedom of its reference law, nan if that has none.
        p_value: probability of a statistic at least as extreme, were there no difference.
        alternative: ``two-sided``, ``greater`` or ``less``.
        level: nominal coverage of the interval.
        n_responses: number of responses, the units that vary independently.
        status: whether the test could be done.
    """

    test: str
    estimate: float
    lower: float
    upper: float
    statistic: float
    degrees: float
    p_value: float
    alternative: str
    level: float
    n_responses: int
    status: SignificanceStatus


def alternative_named(alternative: str) -> Alternative:
    """Alternative of a name.

    Raises:
        InputError: if there is none of that name.
    """
    return member_named(Alternative, alternative, "alternative")


def undecided(
    test: str, estimate: float, alternative: str, level: float, n_responses: int
) -> SignificanceTest:
    """Result where nothing measures chance."""
    nan = float("nan")
    few = n_responses < 2
    return SignificanceTest(
        test=test,
        estimate=estimate,
        lower=nan,
        upper=nan,
        statistic=nan,
        degrees=nan,
        p_value=1.0 if estimate == 0 and not few else nan,
        alternative=alternative,
        level=level,
        n_responses=n_responses,
        status=SignificanceStatus.TOO_FEW if few else SignificanceStatus.NO_VARIATION,
    )
