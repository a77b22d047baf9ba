"""A number that was estimated: with its interval, and where something is missing, why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

ABOVE_INTERVAL = (
    "An interval that lies below its number is of the whole population: chance alone raises the "
    "number in so few responses."
)
"""What a reader must know where scores are above their intervals, as the inversion of tests makes
some (`calibration.intervals.inversion`)."""


class ScoreStatus(StrEnum):
    """Whether a number is defined, and if not, why."""

    OK = "ok"
    CLIPPED = "clipped"
    INFINITE = "infinite"
    ONE_CLASS = "one_class"
    CONSTANT_FORECAST = "constant_forecast"
    SEPARATED = "separated"
    TOO_FEW_ATOMS = "too_few_atoms"
    NO_LABELS = "no_labels"
    NO_VARIATION = "no_variation"
    """Of a difference: every response differs alike, so that nothing measures chance; its p-value
    is nan, or 1 if none differs at all."""
    TOO_FEW = "too_few_responses"
    """Of a difference: fewer than two responses bear on it; its p-value is nan."""


_REASONS = {
    ScoreStatus.CLIPPED: "p of 0 or 1 were moved to take their logit",
    ScoreStatus.INFINITE: "it has the logarithm of a probability of 0",
    ScoreStatus.ONE_CLASS: "all labels agree",
    ScoreStatus.CONSTANT_FORECAST: "all probabilities are the same",
    ScoreStatus.SEPARATED: "a threshold on p parts true from false claims, so that no fit is the "
    "most likely",
    ScoreStatus.TOO_FEW_ATOMS: "a bin holds one claim",
    ScoreStatus.NO_LABELS: "no claim has a label",
    ScoreStatus.NO_VARIATION: "every response differs alike: nothing measures chance",
    ScoreStatus.TOO_FEW: "fewer than two responses bear on it",
}


@dataclass(frozen=True)
class Estimate:
    """A number with its interval over responses; nan where a part of it is not defined.

    Attributes:
        name: what was estimated, such as the name of a score.
        value: the number.
        lower: lower end of its interval.
        upper: upper end.
        standard_error: its standard error, clustered by response.
        status: ``ok``; ``clipped`` if probabilities of 0 or 1 were moved to take their logit; or
            why there is no finite value.
        n: number of responses that it is over.
        coverage: share of simulated data sets of about so many responses whose interval held the
            truth, where that is not its level (`calibration.scores.coverage`); else nan.
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
        """Why something is not as one would have it, in a few words; empty where nothing is."""
        return _REASONS.get(self.status, "")

    @property
    def no_interval(self) -> str:
        """Why there is a value and no interval, in a few words; empty where there is one."""
        if not math.isfinite(self.value) or not math.isnan(self.lower):
            return ""
        if self.n < 2:
            return "fewer than two responses"
        # Not that no redraw moves it: where claims are separated, discrimination is the uncertainty
        # of the labels, which redraws move; but of labels that nothing leaves open there is no law
        # that its interval could come of.
        return "its method finds no chance in these responses"


@dataclass(frozen=True)
class Difference(Estimate):
    """The first of two numbers less the second, with the test that they are the same.

    Attributes:
        first: the first number, if the test knows it.
        second: the second.
        method: the test, or how the interval is made where a score has its own.
        statistic: the test's statistic, nan where it is not defined.
        degrees: degrees of freedom of its reference law, nan if that has none.
        p_value: probability of a statistic at least as extreme, were there no difference; nan
            where nothing was tested.
        n_resamples: how many swaps or replicates the p-value was counted in; 0 of none.
        corrected: the p-value corrected for all comparisons of a table; nan without correction.
        better: whether the difference is in the score's good direction; None of scores without.
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
