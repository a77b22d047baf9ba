"""A score has one interval: questions print what the package's own tables print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from calibration import score
from calibration.estimate import Estimate
from calibration.folds import response_folds
from calibration.intervals import IntervalSettings
from calibration.scoring import ScoreTable
from calibration.significance import score_difference
from experiments.findings.claim_scores import (
    LabeledAtoms,
    difference_rows,
    labeled_atoms,
    score_rows,
)
from experiments.findings.interval_values import N_BOOTSTRAP
from factormodels.synthetic import labeled_responses
from inference import get_backend
from inference.batch import claim_posteriors
from notebooks.questions import does_it_matter, encodings
from notebooks.questions.real_graphs import case_rows
from tests.calibration.coverage_simulation import draw_two

FIRST, SECOND, Y, RESPONSES = draw_two(np.random.default_rng(3), 30, 0.1, "unequal")
METHODS = {"no adaptation": FIRST, "other": SECOND}
ATOMS = LabeledAtoms(Y, RESPONSES, np.ones(Y.size, dtype=np.bool_))
FOLDS = response_folds(RESPONSES, 5)
SETTINGS = IntervalSettings(n_bootstrap=N_BOOTSTRAP, seed=0)


def package_table(
    methods: Mapping[str, Any], atoms: LabeledAtoms, scores: Sequence[str], folds: Any = None
) -> ScoreTable:
    """Return what `score` says of the same claims."""
    return score(
        methods, atoms.labels, atoms.responses, scores=scores, folds=folds, n_resamples=2,
        intervals=SETTINGS,
    )  # fmt: skip


def both(table: ScoreTable, model: str, name: str) -> tuple[Estimate, Any]:
    """Return a score of a model, and its difference to the first; None of the first."""
    scored = next(each for each in table.models if each.name == model)
    return scored.scores[name], scored.differences.get(name)


def ends(row: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """Return a number of a row and the ends of its interval."""
    return row[name], row[f"{name}_lower"], row[f"{name}_upper"]


def same(printed: tuple[float, float, float], *expected: float) -> bool:
    """Say whether three numbers are alike but for the rounding of sums in another order."""
    return printed == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_real_graphs() -> None:
    scores = ("brier", "log_loss", "auroc", "entropy")
    table = package_table(METHODS, ATOMS, scores)
    p_by_view = {("FR1", "mixture", name): p for name, p in METHODS.items()}
    for row in case_rows(p_by_view, ATOMS, 0):
        for name in scores:
            cell, change = both(table, row["backend"], name)
            # Analyses round probabilities to nine digits.
            assert ends(row, name) == pytest.approx((cell.value, cell.lower, cell.upper), abs=1e-7)
            if row["backend"] == "other":
                assert ends(row, f"{name}_change") == pytest.approx(
                    (change.value, change.lower, change.upper), abs=1e-7
                )


def test_learned_potentials() -> None:
    scores = ("brier", "log_loss", "auroc")
    table = package_table(METHODS, ATOMS, scores, FOLDS)
    scored = score(
        SECOND, Y, RESPONSES, folds=FOLDS, scores=[*scores, "calibration_slope"],
        intervals=SETTINGS,
    ).models[0].scores  # fmt: skip
    for row in score_rows(METHODS, ATOMS, FOLDS, 0):
        for name in scores:
            cell, change = both(table, row["method"], name)
            assert same(ends(row, name), cell.value, cell.lower, cell.upper)
            if row["method"] == "other":
                assert same(
                    ends(row, name), scored[name].value, scored[name].lower, scored[name].upper
                )
    slope = scored["calibration_slope"]
    assert same(ends(row, "slope"), slope.value, slope.lower, slope.upper)
    (pair,) = difference_rows(METHODS, ["other"], ATOMS, FOLDS, 0)
    for name in scores:
        cell, change = both(table, "other", name)
        # The other way round it is the same but for its sign.
        turned = -change.value, -change.upper, -change.lower
        assert same(ends(pair, name), *turned)


def test_inference_error_and_encodings() -> None:
    graphs = labeled_responses(12, n_atoms=4, contexts_per_atom=2, density=0.3, seed=5)
    atoms = labeled_atoms(graphs, "data")
    names = {"exact": "exact", "cavi": "cavi"}
    p = {title: claim_posteriors(graphs, "implication", name) for title, name in names.items()}
    p["conditional"] = claim_posteriors(graphs, "conditional")
    table = package_table(p, atoms, ["brier", "precision_mae"])
    exact, (row,) = does_it_matter.effects(
        graphs, [("cavi", get_backend("cavi"))], "implication", seed=0
    )
    for name, measure in (("brier", "brier"), ("mae", "precision_mae")):
        cell, moved = table["exact", measure], table.difference("cavi", measure)
        assert same(ends(exact, name), cell.value, cell.lower, cell.upper)
        assert same(ends(row, name), moved.value, moved.lower, moved.upper)
    _, compared, _ = encodings.comparison(graphs, 0)
    assert compared["encoding"] == "conditional"
    difference = score_difference(
        "brier", p["conditional"], p["exact"], atoms.labels, atoms.responses,
        n_bootstrap=N_BOOTSTRAP,
    )  # fmt: skip
    assert same(ends(compared, "difference"), difference.value, difference.lower, difference.upper)
    assert not math.isnan(difference.lower)
