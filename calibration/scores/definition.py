"""Definition of a score: its name and meaning, its computation, and its interval method.

Each score is defined once, in the tuple `FAMILY` of the file that computes it. The registry
collects the definitions. A score has the same name in arguments and in results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.estimate import Estimate, ScoreStatus, finite_or_infinite, undefined
from calibration.forecasts import (
    LOGIT_CLIP,
    Extremes,
    Forecasts,
    Sample,
    forecasts,
    without_extremes,
)
from calibration.grouping import Grouping
from calibration.intervals import DeviationScores, IntervalMethod, RatioSums, Scale
from calibration.scores.measures import verdicts
from calibration.validation import Floats, Integers
from factormodels.errors import InputError

POSITIVE = (0.0, np.inf)
"""Range of scores without an upper bound."""


@dataclass(frozen=True)
class SampleSettings:
    """Settings of the scores of a sample.

    Attributes:
        n_bins: number of bins.
        clip: bound on p before its logit is taken.
        extremes: treatment of p outside [clip, 1 - clip] in scores that need its logit.
    """

    n_bins: int = 10
    clip: float = LOGIT_CLIP
    extremes: Extremes = Extremes.CLIP

    def with_logits(self, sample: Sample) -> Sample:
        """Sample of the atoms that scores of logits use."""
        leave_out = self.extremes is Extremes.LEAVE_OUT
        return without_extremes(sample, self.clip) if leave_out else sample


DEFAULT_SETTINGS = SampleSettings()


@dataclass(frozen=True, eq=False)
class JudgedClaims:
    """The labeled claims of one method.

    Attributes:
        p: float64 (n_claims,), probabilities of being true.
        y: float64 (n_claims,), labels 1 and 0.
        grouping: grouping of the claims by response.
        k: float64 (n_responses,), the K of F1@K.
        folds: int64 (n_claims,), fold of each claim if `p` is cross-fitted, else None. With folds,
            AUROC compares claims within folds.
        weights: float64 (n_claims,), weight of each claim; None for 1 each.
    """

    p: Floats
    y: Floats
    grouping: Grouping
    k: Floats
    folds: Integers | None = None
    weights: Floats | None = None

    @cached_property
    def supported(self) -> NDArray[np.bool_]:
        """Mask of the claims judged true (P > 1/2), bool (n_claims,)."""
        return verdicts(self.p) > 0

    @cached_property
    def forecasts(self) -> Forecasts:
        """The claims as `Forecasts`."""
        return forecasts(self.p, self.y, self.weights, self.grouping.index)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Weighted sum of values, (n_claims,), over each response, (n_responses,)."""
        if self.weights is not None:
            # An infinite value of a claim with weight 0 does not count.
            values = self.weights * np.where(self.weights > 0, values, 0.0)
        return self.grouping.sums(values)

    @property
    def sizes(self) -> Floats:
        """Weight of the claims of each response, (n_responses,)."""
        if self.weights is not None:
            return self.grouping.sums(self.weights)
        return self.grouping.sizes.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreDefinition:
    """Definition of a score.

    Attributes:
        name: name of the score.
        title: title in tables.
        meaning: description, in a line.
        higher_is_better: whether higher values are better; None if there is no good direction.
        needs_labels: whether it compares probabilities with labels.
        scale: scale of its values.
        interval: method of its interval.
        range: smallest and largest possible value.
        ratio: function to its numerators and denominators per response, if it is a ratio of sums.
        of_sample: function that computes it for a sample of forecasts, possibly with other scores
            of its family.
        deviations: function to its deviations from a perfect forecast, if chance alone raises it.
        of_base_rate: function to its values at base rates, if it depends on nothing else.
        within_folds: function to its value for cross-fitted p, if folds matter.
        of_labels: whether it depends on labels alone and is equal for all models of the same
            claims.
        of_logits: whether it uses logits of p, which are not finite for 0 and 1.
        of_bins: whether it depends on the number of bins.
        usual: position among the scores that are shown by default; 0 if it is not shown.
        column: heading of its column; empty for its title.
    """

    name: str
    title: str
    meaning: str
    higher_is_better: bool | None
    needs_labels: bool = True
    scale: Scale = Scale.UNIT
    interval: IntervalMethod = IntervalMethod.DELTA
    range: tuple[float, float] = (0.0, 1.0)
    ratio: Callable[[JudgedClaims], RatioSums] | None = None
    of_sample: Callable[[Sample, SampleSettings], Sequence[Estimate]] | None = None
    deviations: Callable[[Forecasts, SampleSettings], DeviationScores | None] | None = None
    of_base_rate: Callable[[Floats], Floats] | None = None
    within_folds: Callable[[JudgedClaims], float] | None = None
    of_labels: bool = False
    of_logits: bool = False
    of_bins: bool = False
    usual: int = 0
    column: str = ""

    def sums(self, judged: JudgedClaims) -> RatioSums:
        """Numerators and denominators per response.

        Raises:
            InputError: if it is not a ratio of sums, or a sum is infinite.
        """
        if self.ratio is None:
            raise InputError(f"{self.name} is not a ratio of sums over responses")
        sums = self.ratio(judged)
        if not np.isfinite(sums.numerator).all():
            raise InputError(
                f"a claim's label has a probability of 0: {self.name} is infinite "
                f"and cannot be compared; leave {self.name} out, or keep p off 0 and 1"
            )
        return sums

    def value(self, judged: JudgedClaims, settings: SampleSettings = DEFAULT_SETTINGS) -> Estimate:
        """Value of the score, with a status that explains a missing value."""
        if self.ratio is not None:
            # F1 is not defined if no claim is true and none is judged true.
            value = float(self.ratio(judged).estimate()[0])
        elif self.within_folds is not None and judged.folds is not None:
            value = self.within_folds(judged)
        else:
            return self.in_sample(judged.forecasts.sample(), settings)
        if np.isnan(value):
            return undefined(self.name, ScoreStatus.ONE_CLASS)
        return finite_or_infinite(self.name, value)

    def was_simulated(self, settings: SampleSettings) -> bool:
        """Return whether the coverage of its intervals was simulated with these settings."""
        return not self.of_bins or settings.n_bins == DEFAULT_SETTINGS.n_bins

    def in_sample(self, sample: Sample, settings: SampleSettings) -> Estimate:
        """Value of the score for a sample of forecasts.

        Raises:
            InputError: if the score is defined by response and not for samples.
        """
        if self.of_sample is None:
            raise InputError(f"{self.name} is not a score of a sample of forecasts")
        return next(each for each in self.of_sample(sample, settings) if each.name == self.name)


def per_claim(
    values: Callable[[JudgedClaims], NDArray[Any]],
) -> Callable[[JudgedClaims], RatioSums]:
    """Sums of a mean over claims."""

    def sums(judged: JudgedClaims) -> RatioSums:
        return one_cell(judged.sums(values(judged)), judged.sizes)

    return sums


def per_response(values: Callable[[JudgedClaims], Floats]) -> Callable[[JudgedClaims], RatioSums]:
    """Sums of a mean over responses.

    Raises:
        InputError: by the returned function, if claims have weights, which such means cannot use.
    """

    def sums(judged: JudgedClaims) -> RatioSums:
        if judged.weights is not None:
            raise InputError(
                "weights are given, and a score is a mean over responses; leave one of them out"
            )
        of_each = values(judged)
        return one_cell(of_each, np.ones_like(of_each))

    return sums


def one_cell(above: Floats, below: Floats) -> RatioSums:
    """Ratio of sums from numerators and denominators per response, (n_responses,) each."""
    return RatioSums(above[:, np.newaxis], below[:, np.newaxis])
