"""Measures of a method as ratios of sums over responses, which can be redrawn and swapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping
from calibration.intervals import RatioSums, Scale
from calibration.scores.measures import DECISION_TOLERANCE, choose_k, f1_of_counts, verdicts
from calibration.validation import Floats
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class Judged:
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
    """A measure of a table.

    Attributes:
        name: its name, as in `calibration.Summary`.
        title: what a table calls it.
        higher_is_better: which way is better.
        scale: what values it takes.
        sums: its numerators and denominators per response, one cell.
    """

    name: str
    title: str
    higher_is_better: bool
    scale: Scale
    sums: Callable[[Judged], RatioSums]


def _per_claim(values: Callable[[Judged], Floats]) -> Callable[[Judged], RatioSums]:
    def sums(judged: Judged) -> RatioSums:
        totals = judged.grouping.sums(values(judged))
        return _column(totals, judged.grouping.sizes.astype(np.float64))

    return sums


def _per_response(values: Callable[[Judged], Floats]) -> Callable[[Judged], RatioSums]:
    def sums(judged: Judged) -> RatioSums:
        own = values(judged)
        return _column(own, np.ones_like(own))

    return sums


def _column(above: Floats, below: Floats) -> RatioSums:
    return RatioSums(above[:, np.newaxis], below[:, np.newaxis])


def _log_loss(judged: Judged) -> Floats:
    chance = np.where(judged.y == 1, judged.p, 1 - judged.p)
    if not chance.all():
        place = int(np.argmin(chance))
        raise InputError(
            f"p[{place}] is {judged.p[place]:g} and its label the opposite: the log loss is "
            "infinite and cannot be compared; leave log_loss out, or keep p off 0 and 1"
        )
    return -np.log(chance)


def _f1(judged: Judged) -> RatioSums:
    true, supported = judged.y == 1, judged.supported
    twice = 2 * judged.grouping.sums(true & supported)
    return _column(twice, judged.grouping.sums(true) + judged.grouping.sums(supported))


def _absolute_error(judged: Judged) -> Floats:
    grouping = judged.grouping
    counts = grouping.sums(judged.supported) - grouping.sums(judged.y)
    return np.abs(counts) / grouping.sizes


def _f1_at_k(judged: Judged) -> Floats:
    supported = judged.grouping.sums(judged.supported)
    return f1_of_counts(supported, judged.grouping.sizes, judged.k)


_ALL = (
    Measure("precision", "Pr", True, Scale.PROBABILITY,
            _per_response(lambda judged: judged.grouping.means(judged.supported))),
    Measure("f1_at_k", "F1@K", True, Scale.PROBABILITY, _per_response(_f1_at_k)),
    Measure("precision_mae", "MAE", False, Scale.PROBABILITY, _per_response(_absolute_error)),
    Measure("f1", "F1", True, Scale.PROBABILITY, _f1),
    Measure("accuracy", "Accuracy", True, Scale.PROBABILITY,
            _per_claim(lambda judged: (judged.supported == (judged.y == 1)).astype(np.float64))),
    Measure("brier", "Brier", False, Scale.PROBABILITY,
            _per_claim(lambda judged: (judged.p - judged.y) ** 2)),
    Measure("log_loss", "Log loss", False, Scale.NUMBER, _per_claim(_log_loss)),
)  # fmt: skip

MEASURES = MappingProxyType({measure.name: measure for measure in _ALL})
"""The measures that a table can hold, by name. All are over labelled claims: Pr and F1@K of
`calibration.summarise`, over all claims, differ where some have no label."""


def measures_named(names: Sequence[str]) -> tuple[Measure, ...]:
    """Return measures by name.

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
    """Return the K of F1@K of every response, as `choose_k` chooses it."""
    return choose_k(k, grouping.sizes)
