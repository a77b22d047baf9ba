"""Estimated numbers with their intervals, and the reason if a part is missing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

ABOVE_INTERVAL = (
    "An interval below its number is for the whole population: with so few responses, chance alone "
    "raises the number."
)
"""Remark for scores above their intervals, which the inversion of tests can produce
(`calibration.intervals.inversion`)."""


class ScoreStatus(StrEnum):
    """Status of a number: defined, or the reason why it is not."""

    OK = "ok"
    CLIPPED = "clipped"
    INFINITE = "infinite"
    ONE_CLASS = "one_class"
    CONSTANT_FORECAST = "constant_forecast"
    SEPARATED = "separated"
    TOO_FEW_ATOMS = "too_few_atoms"
    NO_LABELS = "no_labels"
    NO_VARIATION = "no_variation"
    """Every response has the same difference, so that chance cannot be measured. The p-value is
    nan, or 1 if all differences are 0."""
    TOO_FEW = "too_few_responses"
    """Fewer than two responses contribute to a difference; its p-value is nan."""


_REASONS = {
    ScoreStatus.CLIPPED: "probabilities of 0 or 1 were moved to take their logit",
    ScoreStatus.INFINITE: "it has the logarithm of a probability of 0",
    ScoreStatus.ONE_CLASS: "all labels agree",
    ScoreStatus.CONSTANT_FORECAST: "all probabilities are the same",
    ScoreStatus.SEPARATED: "a threshold on the probability separates true from false claims, so "
    "that no fit is the most likely",
    ScoreStatus.TOO_FEW_ATOMS: "a bin has only one claim",
    ScoreStatus.NO_LABELS: "no claim has a label",
    ScoreStatus.NO_VARIATION: "every response has the same difference: chance cannot be measured",
    ScoreStatus.TOO_FEW: "fewer than two responses contribute",
}


@dataclass(frozen=True)
class Estimate:
    """A number with its interval over responses; undefined parts are nan.

    Attributes:
        name: name of the estimated quantity, such as a score.
        value: the number.
        lower: lower end of its interval.
        upper: upper end.
        standard_error: its standard error, clustered by response.
        status: ``ok``; ``clipped`` if probabilities of 0 or 1 were moved to take their logit; or
            the reason why there is no finite value.
        n: number of responses.
        coverage: share of simulated data sets with about `n` responses whose interval contained
            the true value, if it differs from the nominal level (`calibration.scores.coverage`);
            otherwise nan.
    """

    name: str
    value: float
    lower: float = math.nan
    upper: float = math.nan
    standard_error: float = math.nan
    status: ScoreStatus = ScoreStatus.OK
    n: int = 0
    coverage: float = math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.lower, self.upper

    @property
    def reason(self) -> str:
        """The reason for a status other than ``ok``, in a few words; empty for ``ok``."""
        return _REASONS.get(self.status, "")

    @property
    def no_interval(self) -> str:
        """The reason why a value has no interval, in a few words; empty if it has one."""
        if not math.isfinite(self.value) or not math.isnan(self.lower):
            return ""
        if self.n < 2:
            return "fewer than two responses"
        # The value may still vary over redraws: with separated claims, discrimination equals the
        # uncertainty of the labels, which does. But separation leaves no distribution from which
        # an interval could be made.
        return "its method finds no variation among these responses"


@dataclass(frozen=True)
class Difference(Estimate):
    """The first of two numbers minus the second, with a test of their equality.

    Attributes:
        first: the first number, if the test computes it.
        second: the second number.
        method: name of the test, or of the score's own interval method.
        statistic: the test's statistic; nan if it is not defined.
        degrees: degrees of freedom of its reference distribution; nan if it has none.
        p_value: probability of a statistic at least as extreme if there is no difference; nan
            without a test.
        n_resamples: number of permutations or bootstrap replicates of the test; 0 if it uses none.
        corrected: the p-value corrected for all comparisons of a table; nan without correction.
        better: whether the difference is in the score's good direction; None if the score has no
            good direction.
    """

    first: float = math.nan
    second: float = math.nan
    method: str = ""
    statistic: float = math.nan
    degrees: float = math.nan
    p_value: float = math.nan
    n_resamples: int = 0
    corrected: float = math.nan
    better: bool | None = None


def undefined(name: str, status: ScoreStatus) -> Estimate:
    """Estimate of a number that is not defined."""
    return Estimate(name, math.nan, status=status)


def finite_or_infinite(name: str, value: float) -> Estimate:
    """Estimate of a number that may be infinite."""
    return Estimate(
        name, value, status=ScoreStatus.OK if math.isfinite(value) else ScoreStatus.INFINITE
    )
