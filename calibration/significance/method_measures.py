"""Measures of a method on labelled claims: every score of the registry, by name.

Those that are ratios of sums over responses say so; they are redrawn and swapped a thousand times
faster than the others, which are taken of a sample of forecasts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.forecasts import (
    Estimate,
    Extremes,
    Forecasts,
    ScoreStatus,
    finite_or_infinite,
    forecasts,
    undefined,
)
from calibration.grouping import Grouping
from calibration.intervals import RatioSums, Scale
from calibration.scores.measures import (
    DECISION_TOLERANCE,
    choose_k,
    entropy_terms,
    f1_of_counts,
    surprisal_terms,
    verdicts,
)
from calibration.scores.ranking import auroc
from calibration.scores.registry import REGISTRY, ScoreDefinition
from calibration.scores.sample_scores import SAMPLE_SCORES, context_of, sample_scores
from calibration.validation import Floats, Integers
from factormodels.errors import InputError
from factormodels.io.long_columns import piecewise


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
    """

    p: Floats
    y: Floats
    grouping: Grouping
    k: Floats
    folds: Integers | None = None

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Whether each claim is judged true, P > 1/2."""
        return verdicts(self.p, DECISION_TOLERANCE) > 0

    @cached_property
    def forecasts(self) -> Forecasts:
        """The claims as scores of samples take them."""
        return forecasts(self.p, self.y, responses=self.grouping.index)


@dataclass(frozen=True)
class Measure:
    """A score of labelled claims.

    Attributes:
        score: what `calibration.scores.registry` says of it.
        ratio: its numerators and denominators per response, one cell, if it is a ratio of sums.
    """

    score: ScoreDefinition
    ratio: Callable[[JudgedClaims], RatioSums] | None = None

    def sums(self, judged: JudgedClaims) -> RatioSums:
        """Its numerators and denominators per response, one cell.

        Raises:
            InputError: if it is not a ratio of sums, or a sum is infinite.
        """
        if self.ratio is None:
            raise InputError(f"{self.name} is not a ratio of sums over responses")
        return self.ratio(judged)

    def value(self, judged: JudgedClaims, extremes: Extremes = Extremes.CLIP) -> Estimate:
        """Its value, and where it has none, why."""
        if self.name not in SAMPLE_SCORES:
            ratio = float(self.sums(judged).estimate()[0])
            # F1 has no value where no claim is true and none judged so.
            return (
                undefined(ScoreStatus.ONE_CLASS) if np.isnan(ratio) else finite_or_infinite(ratio)
            )
        if self.name == "auroc" and judged.folds is not None:
            within = auroc(judged.p, judged.y, folds=judged.folds)
            return Estimate(within) if np.isfinite(within) else undefined(ScoreStatus.ONE_CLASS)
        points = judged.forecasts
        context = context_of(points, [self.name], extremes=extremes)
        return sample_scores(points.sample(), context, [self.name])[self.name]

    @property
    def name(self) -> str:
        """Its name."""
        return self.score.name

    @property
    def title(self) -> str:
        """What a table calls it."""
        return self.score.title

    @property
    def higher_is_better(self) -> bool | None:
        """Which way is better; None where neither is."""
        return self.score.higher_is_better

    @property
    def scale(self) -> Scale:
        """What values it takes."""
        return self.score.scale


def _per_claim(
    values: Callable[[JudgedClaims], NDArray[Any]],
) -> Callable[[JudgedClaims], RatioSums]:
    def sums(judged: JudgedClaims) -> RatioSums:
        totals = judged.grouping.sums(values(judged))
        return _column(totals, piecewise(_floats, judged.grouping.sizes))

    return sums


def _per_response(values: Callable[[JudgedClaims], Floats]) -> Callable[[JudgedClaims], RatioSums]:
    def sums(judged: JudgedClaims) -> RatioSums:
        own = values(judged)
        return _column(own, piecewise(np.ones_like, own))

    return sums


def _floats(numbers: Integers) -> Floats:
    return numbers.astype(np.float64)


def _column(above: Floats, below: Floats) -> RatioSums:
    return RatioSums(above[:, np.newaxis], below[:, np.newaxis])


def _log_loss(judged: JudgedClaims) -> Floats:
    chance = piecewise(lambda p, y: np.where(y == 1, p, 1 - p), judged.p, judged.y)
    if not chance.all():
        place = int(np.argmin(chance))
        raise InputError(
            f"p[{place}] is {judged.p[place]:g} and its label the opposite: the log loss is "
            "infinite and cannot be compared; leave log_loss out, or keep p off 0 and 1"
        )
    return piecewise(lambda chance: -np.log(chance), chance)


def _f1(judged: JudgedClaims) -> RatioSums:
    true, supported = judged.y == 1, judged.supported
    sums = judged.grouping.sums
    return _column(
        piecewise(lambda both: 2 * both, sums(true & supported)),
        piecewise(np.add, sums(true), sums(supported)),
    )


def _absolute_error(judged: JudgedClaims) -> Floats:
    grouping = judged.grouping
    return piecewise(
        lambda supported, true, sizes: np.abs(supported - true) / sizes,
        *(grouping.sums(judged.supported), grouping.sums(judged.y), grouping.sizes),
    )


def _f1_at_k(judged: JudgedClaims) -> Floats:
    supported = judged.grouping.sums(judged.supported)
    return piecewise(f1_of_counts, supported, judged.grouping.sizes, judged.k)


def _counted(judged: JudgedClaims, verdict: int) -> Floats:
    return judged.grouping.sums(verdicts(judged.p, DECISION_TOLERANCE) == verdict)


_SUMS: Mapping[str, Callable[[JudgedClaims], RatioSums]] = {
    "precision": _per_response(lambda judged: judged.grouping.means(judged.supported)),
    "f1_at_k": _per_response(_f1_at_k),
    "precision_mae": _per_response(_absolute_error),
    "f1": _f1,
    "accuracy": _per_claim(lambda judged: judged.supported == (judged.y == 1)),
    "brier": _per_claim(lambda judged: piecewise(lambda p, y: (p - y) ** 2, judged.p, judged.y)),
    "log_loss": _per_claim(_log_loss),
    "entropy": _per_response(lambda judged: judged.grouping.means(entropy_terms(judged.p))),
    "expected_precision": _per_response(lambda judged: judged.grouping.means(judged.p)),
    "mean_surprisal": _per_response(
        lambda judged: judged.grouping.means(surprisal_terms(judged.p))
    ),
    "human_precision": _per_response(lambda judged: judged.grouping.means(judged.y)),
    "supported": _per_response(lambda judged: judged.grouping.sums(judged.supported)),
    "contradicted": _per_response(lambda judged: _counted(judged, -1)),
    "undecided": _per_response(lambda judged: _counted(judged, 0)),
}

MEASURES = MappingProxyType(
    {name: Measure(REGISTRY[name], _SUMS.get(name)) for name in (*_SUMS, *REGISTRY)}
)
"""The measures that a table can hold, by name. All are over labelled claims: Pr and F1@K of
`calibration.summarise`, over all claims, differ where some have no label."""

USUAL_MEASURES = tuple(_SUMS)[:7]
"""Those that a table holds unless it is told which."""


def measures_named(names: Sequence[str]) -> tuple[Measure, ...]:
    """Measures by name.

    Raises:
        InputError: for no name, an unknown one, or one given twice.
    """
    if isinstance(names, str) or not names:
        raise InputError(f"measures is {names!r}; give a list of some of {', '.join(MEASURES)}")
    for name in names:
        if name not in MEASURES:
            raise InputError(f"measure {name!r} is unknown; choose some of {', '.join(MEASURES)}")
    if len(set(names)) < len(names):
        raise InputError(f"measures is {list(names)!r}; give each measure once")
    return tuple(MEASURES[name] for name in names)


def response_k(k: str | float, grouping: Grouping) -> Floats:
    """K of F1@K of every response, as `choose_k` chooses it."""
    return choose_k(k, grouping.sizes)
