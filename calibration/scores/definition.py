"""What a score is: its name and meaning, how it is computed, and how its one interval is made.

A score is defined once, in the tuple `FAMILY` of the file that computes it; the registry collects
them. It has one name wherever it is asked for or given.
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
"""The range of what may be any number of at least 0."""


@dataclass(frozen=True)
class SampleSettings:
    """What scores of a sample are computed with.

    Attributes:
        n_bins: number of bins.
        clip: bound on p before its logit is taken.
        extremes: what becomes of p outside [clip, 1 - clip] where a score needs its logit.
    """

    n_bins: int = 10
    clip: float = LOGIT_CLIP
    extremes: Extremes = Extremes.CLIP

    def with_logits(self, sample: Sample) -> Sample:
        """The atoms of a sample that scores of logits are taken of."""
        leave_out = self.extremes is Extremes.LEAVE_OUT
        return without_extremes(sample, self.clip) if leave_out else sample


DEFAULT_SETTINGS = SampleSettings()


@dataclass(frozen=True, eq=False)
class JudgedClaims:
    """The labelled claims of one method.

    Attributes:
        p: float64 (n_claims,), probabilities of being true.
        y: float64 (n_claims,), labels 1 and 0.
        grouping: which response each belongs to.
        k: float64 (n_responses,), the K of F1@K.
        folds: int64 (n_claims,), the fold of each if `p` is cross-fitted, else None: AUROC is
            within folds.
        weights: float64 (n_claims,), how many claims each counts as; None for one each.
    """

    p: Floats
    y: Floats
    grouping: Grouping
    k: Floats
    folds: Integers | None = None
    weights: Floats | None = None

    @cached_property
    def supported(self) -> NDArray[np.bool_]:
        """Whether each claim is judged true, P > 1/2."""
        return verdicts(self.p) > 0

    @cached_property
    def forecasts(self) -> Forecasts:
        """The claims as scores of samples take them."""
        return forecasts(self.p, self.y, self.weights, self.grouping.index)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Sum over each response's claims, (n_responses,), of values, (n_claims,), by weight."""
        if self.weights is not None:
            # An infinite value of a claim that does not count is nothing.
            values = self.weights * np.where(self.weights > 0, values, 0.0)
        return self.grouping.sums(values)

    @property
    def sizes(self) -> Floats:
        """Number of claims of each response, (n_responses,)."""
        if self.weights is not None:
            return self.grouping.sums(self.weights)
        return self.grouping.sizes.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreDefinition:
    """What is known of a score.

    Attributes:
        name: its name.
        title: what a table calls it.
        meaning: what it is, in a line.
        higher_is_better: which way is better; None where neither is.
        needs_labels: whether it compares probabilities with labels.
        scale: what values it takes.
        interval: how its interval is made.
        range: least and largest value that it can have.
        ratio: its numerators and denominators per response, one cell, if it is a ratio of sums.
        of_sample: what computes it of a sample of forecasts, maybe with others of its family.
        deviations: its deviations from what would be perfect, if chance alone raises it.
        of_base_rate: its values at base rates, if it depends on nothing else.
        within_folds: its value if p are cross-fitted, where folds matter.
        of_labels: whether it depends on labels alone: it is the same of all models of the same
            claims.
        of_logits: whether it takes logits of p, which 0 and 1 have none of.
        of_bins: whether it depends on the number of bins.
        usual: its place among the scores that are shown unless it is told which; 0 if it is not.
        column: what the head of a column calls it; its title if empty.
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
        """Its numerators and denominators per response, one cell.

        Raises:
            InputError: if it is not a ratio of sums, or a sum is infinite.
        """
        if self.ratio is None:
            raise InputError(f"{self.name} is not a ratio of sums over responses")
        sums = self.ratio(judged)
        if not np.isfinite(sums.numerator).all():
            raise InputError(
                f"a claim has a probability of 0 for what its label says: {self.name} is infinite "
                f"and cannot be compared; leave {self.name} out, or keep p off 0 and 1"
            )
        return sums

    def value(self, judged: JudgedClaims, settings: SampleSettings = DEFAULT_SETTINGS) -> Estimate:
        """Its value, and where it has none, why."""
        if self.ratio is not None:
            # F1 has no value where no claim is true and none judged so.
            value = float(self.ratio(judged).estimate()[0])
        elif self.within_folds is not None and judged.folds is not None:
            value = self.within_folds(judged)
        else:
            return self.in_sample(judged.forecasts.sample(), settings)
        if np.isnan(value):
            return undefined(self.name, ScoreStatus.ONE_CLASS)
        return finite_or_infinite(self.name, value)

    def was_simulated(self, settings: SampleSettings) -> bool:
        """Whether what its intervals cover was simulated with these settings."""
        return not self.of_bins or settings.n_bins == DEFAULT_SETTINGS.n_bins

    def in_sample(self, sample: Sample, settings: SampleSettings) -> Estimate:
        """Its value in a sample of forecasts.

        Raises:
            InputError: if it is of responses, and not of forecasts.
        """
        if self.of_sample is None:
            raise InputError(f"{self.name} is no score of a sample of forecasts")
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
        InputError: by the sums, if claims have weights: a response's share knows none.
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
    """A ratio of sums over responses, (n_responses,) each."""
    return RatioSums(above[:, np.newaxis], below[:, np.newaxis])
