"""Scores of posteriors by view, encoding and backend, and what learned strengths gain in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibration.validation import Floats
from experiments.analyses.interval_values import Value
from experiments.analyses.posteriors import LabelledAtoms, score_change, scores_with_intervals
from experiments.findings.table import named

EXACT, CERTIFIED = "exact", "exact or certified"

LEARNED = ", learned"
"""What follows the name of an encoding where strengths are learned."""

Found = dict[tuple[str, str, str], Floats]
"""Posteriors of labelled atoms by view, encoding and backend."""


def case_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """Scores of every case with intervals, and their differences from the first's, paired."""
    # What differs by rounding alone is tied.
    first = next(iter(found.values())).round(9)
    rows = []
    for (view, encoding, backend), posterior in found.items():
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        p = posterior.round(9)
        for name in ("brier", "log_loss", "auroc", "entropy"):
            row |= scores_with_intervals(p, atoms, (name,), seed)
            row |= named(f"{name}_change", score_change(name, p, first, atoms, seed))
        rows.append(row)
    return rows


def learned_rows(found: Found, atoms: LabelledAtoms, seed: int) -> list[dict[str, Any]]:
    """What strengths learned under an encoding gain: over those stated, others, and over FR1.

    One row for each view with learned strengths, or for each approximation where its posteriors
    are not known. Its Brier score less that of the same view as stated under the same encoding; of
    the same view learned under *implication*; and of FR1 learned under the same encoding: by the
    same approximation where there is one, else by the first.
    """
    first: dict[tuple[str, str], str] = {}
    for view, encoding, backend in found:
        first.setdefault((view, encoding), backend)

    def change(p: Floats, view: str, encoding: str, backend: str) -> Value:
        same = (view, encoding, backend)
        other = same if same in found else (view, encoding, first.get((view, encoding), ""))
        if other not in found:
            return (np.nan,) * 3
        return score_change("brier", p, found[other].round(9), atoms, seed)

    rows = []
    for (view, encoding, backend), posterior in found.items():
        known = first[view, encoding] in (EXACT, CERTIFIED)
        if not encoding.endswith(LEARNED) or (known and backend != first[view, encoding]):
            continue
        p = posterior.round(9)
        row: dict[str, Any] = {"variant": view, "encoding": encoding, "backend": backend}
        row |= scores_with_intervals(p, atoms, ("brier", "auroc"), seed)
        row |= named("stated", change(p, view, encoding.removesuffix(LEARNED), backend))
        row |= named("implication", change(p, view, f"implication{LEARNED}", backend))
        row |= named("stars", change(p, "FR1", encoding, EXACT))
        rows.append(row)
    return rows


MADE: Mapping[str, Callable[[Found, LabelledAtoms, int], list[dict[str, Any]]]] = {
    "cases": case_rows,
    "learned": learned_rows,
}
"""Tables that are made of all posteriors of a dataset."""
