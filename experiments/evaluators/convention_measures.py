"""Measures under conventions: dependence of measures on conventions, and conversion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibration.scores.registry import REGISTRY
from factormodels.conventions import Conventions

if TYPE_CHECKING:
    from calibration.estimate import Difference, Estimate
    from calibration.scoring import ScoredModel, ScoreTable

LOGARITHMIC = ("entropy", "mean_surprisal")
"""Measures with logarithms, which scores compute to base 10."""

_BASES = {"10": 10.0, "e": math.e, "2": 2.0}


def measure_names(
    measures: Iterable[str], *, irrelevant: bool = True, unlabeled: bool = True
) -> tuple[str, ...]:
    """Names of the conventions that some measures depend on.

    Args:
        measures: names of the measures.
        irrelevant: True if claims may be irrelevant.
        unlabeled: True if claims may lack a label.
    """
    shown = set(measures)
    depends = {
        "k": not shown.isdisjoint(("f1_at_k", "recall_at_k")),
        "f1": not shown.isdisjoint(("f1", "f1_by_response")),
        "logarithm": not shown.isdisjoint(LOGARITHMIC),
        "irrelevant_claims": irrelevant and bool(shown),
        "unlabeled": unlabeled
        and any(name in REGISTRY and REGISTRY[name].needs_labels for name in shown),
    }
    return tuple(name for name, does in depends.items() if does)


def scores_under(names: Sequence[str], conventions: Conventions) -> tuple[str, ...]:
    """Names of scores, with F1 replaced by the F1 of the conventions."""
    by_response = conventions.f1 == "by-response"
    chosen = ("f1_by_response" if name == "f1" and by_response else name for name in names)
    return tuple(dict.fromkeys(chosen))


def logarithm_factor(measure: str, conventions: Conventions) -> float:
    """Factor from logarithms to base 10 to the base of the conventions."""
    return 1.0 / math.log10(_BASES[conventions.logarithm]) if measure in LOGARITHMIC else 1.0


def scored_under(scored: ScoreTable, conventions: Conventions) -> ScoreTable:
    """Scores and differences between models, with logarithms to the base of the conventions."""

    def scaled(each: Estimate | Difference, factor: float) -> Any:
        values = {
            name: factor * getattr(each, name)
            for name in ("value", "lower", "upper", "standard_error", "first", "second")
            if hasattr(each, name)
        }
        return replace(each, **values)

    def of_model(model: ScoredModel) -> ScoredModel:
        scores, differences = (
            {name: scaled(each, logarithm_factor(name, conventions)) for name, each in of.items()}
            for of in (model.scores, model.differences)
        )
        return replace(model, scores=scores, differences=differences)

    if conventions.logarithm == "10":
        return scored
    return replace(scored, models=tuple(map(of_model, scored.models)))


def in_logarithms(row: dict[str, Any], conventions: Conventions) -> dict[str, Any]:
    """A row of measures, with logarithms and their intervals converted to another base."""
    if conventions.logarithm == "10":
        return row
    changed = {
        name: row[name] * logarithm_factor(measure, conventions)
        for measure in LOGARITHMIC
        for name in (measure, f"{measure}_lower", f"{measure}_upper")
        if name in row
    }
    return row | changed
