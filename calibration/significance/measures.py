"""Measures of a method as ratios of sums over responses, which can be redrawn and swapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping
from calibration.intervals import RatioSums, Scale
from calibration.scores.measures import DECISION_TOLERANCE, choose_k, f1_of_counts, verdicts
from calibration.scores.registry import REGISTRY, ScoreDefinition
from calibration.validation import Floats
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class JudgedClaims:
    """The labelled claims of one method.

    Attributes:
        p: float64 (n_claims,), probabilities of being true.
        y: float64 (n_claims,), labels 1 and 0.
        grouping: which response each belongs to.
        k: float64 (n_responses,), the K of F1@K.
    """

    p: Floats
    y: Floats
    grouping: Grouping
    k: Floats

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Whether each claim is judged true, P > 1/2."""
        return verdicts(self.p, DECISION_TOLERANCE) > 0


@dataclass(frozen=True)
class Measure:
    """A score that is a ratio of sums over responses.

    Attributes:
        score: what `calibration.scores.registry` says of it.
        sums: its numerators and denominators per response, one cell.
    """

    score: ScoreDefinition
    sums: Callable[[JudgedClaims], RatioSums]

    @property
    def name(self) -> str:
        """Its name."""
        return self.score.name

    @property
    def title(self) -> str:
        """What a table calls it."""
        return self.score.title

    @property
    def higher_is_better(self) -> bool:
        """Which way is better."""
        return bool(self.score.higher_is_better)

    @property
    def scale(self) -> Scale:
        """What values it takes."""
        return self.score.scale


def _per_claim(values: Callable[[JudgedClaims], Floats]) -> Callable[[JudgedClaims], RatioSums]:
    def sums(judged: JudgedClaims) -> RatioSums:
        totals = judged.grouping.sums(values(judged))
        return _column(totals, judged.grouping.sizes.astype(np.float64))

    return sums


def _per_response(values: Callable[[JudgedClaims], Floats]) -> Callable[[JudgedClaims], RatioSums]:
    def sums(judged: JudgedClaims) -> RatioSums:
        own = values(judged)
        return _column(own, np.ones_like(own))

    return sums


def _column(above: Floats, below: Floats) -> RatioSums:
    return RatioSums(above[:, np.newaxis], below[:, np.newaxis])


def _log_loss(judged: JudgedClaims) -> Floats:
    chance = np.where(judged.y == 1, judged.p, 1 - judged.p)
    if not chance.all():
        place = int(np.argmin(chance))
        raise InputError(
            f"p[{place}] is {judged.p[place]:g} and its label the opposite: the log loss is "
            "infinite and cannot be compared; leave log_loss out, or keep p off 0 and 1"
        )
    return -np.log(chance)


def _f1(judged: JudgedClaims) -> RatioSums:
    true, supported = judged.y == 1, judged.supported
    twice = 2 * judged.grouping.sums(true & supported)
    return _column(twice, judged.grouping.sums(true) + judged.grouping.sums(supported))


def _absolute_error(judged: JudgedClaims) -> Floats:
    grouping = judged.grouping
    counts = grouping.sums(judged.supported) - grouping.sums(judged.y)
    return np.abs(counts) / grouping.sizes


def _f1_at_k(judged: JudgedClaims) -> Floats:
    supported = judged.grouping.sums(judged.supported)
    return f1_of_counts(supported, judged.grouping.sizes, judged.k)


_SUMS: Mapping[str, Callable[[JudgedClaims], RatioSums]] = {
    "precision": _per_response(lambda judged: judged.grouping.means(judged.supported)),
    "f1_at_k": _per_response(_f1_at_k),
    "precision_mae": _per_response(_absolute_error),
    "f1": _f1,
    "accuracy": _per_claim(lambda judged: (judged.supported == (judged.y == 1)).astype(np.float64)),
    "brier": _per_claim(lambda judged: (judged.p - judged.y) ** 2),
    "log_loss": _per_claim(_log_loss),
}

MEASURES = MappingProxyType({name: Measure(REGISTRY[name], sums) for name, sums in _SUMS.items()})
"""The measures that a table can hold, by name. All are over labelled claims: Pr and F1@K of
`calibration.summarise`, over all claims, differ where some have no label."""


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
