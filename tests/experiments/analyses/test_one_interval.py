"""A score has one interval: what analyses print is what the package's own tables print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from calibration import compare_methods, report
from calibration.folds import response_folds
from calibration.intervals import IntervalSettings
from calibration.significance import MethodTable, score_difference
from experiments.analyses.interval_values import N_BOOTSTRAP
from experiments.analyses.ours import (
    encoding_choice,
    inference_error,
    learned_strengths,
    prior_transfer,
    real_graphs,
)
from experiments.analyses.posteriors import LabelledAtoms, atom_posteriors, labelled_atoms
from experiments.settings.backend_settings import build_backend
from factormodels.synthetic import labelled_responses
from tests.calibration.coverage_simulation import draw_two

FIRST, SECOND, Y, RESPONSES = draw_two(np.random.default_rng(3), 30, 0.1, "unequal")
METHODS = {"no adaptation": FIRST, "other": SECOND}
ATOMS = LabelledAtoms(Y, RESPONSES, np.ones(Y.size, dtype=np.bool_))
FOLDS = response_folds(RESPONSES, 5)
SETTINGS = IntervalSettings(n_bootstrap=N_BOOTSTRAP, seed=0)


def package_table(
    methods: Mapping[str, Any], atoms: LabelledAtoms, scores: Sequence[str], folds: Any = None
) -> MethodTable:
    """Return what `compare_methods` says of the same claims."""
    return compare_methods(
        methods, atoms.labels, atoms.responses, measures=scores, folds=folds, n_resamples=2,
        intervals=SETTINGS,
    )  # fmt: skip


def ends(row: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """Return a number of a row and the ends of its interval."""
    return row[name], row[f"{name}_lower"], row[f"{name}_upper"]


def same(printed: tuple[float, float, float], *expected: float) -> bool:
    """Say whether three numbers are alike but for the rounding of sums in another order."""
    return printed == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_real_graphs() -> None:
    scores = ("brier", "log_loss", "auroc", "entropy")
    table = package_table(METHODS, ATOMS, scores)
    found = {("FR1", "mixture", name): p for name, p in METHODS.items()}
    for row in real_graphs.case_rows(found, ATOMS, 0):
        for name in scores:
            cell = table.cell(row["backend"], name)
            # Analyses round probabilities to nine digits.
            assert ends(row, name) == pytest.approx(
                (cell.estimate, cell.lower, cell.upper), abs=1e-7
            )
            if row["backend"] == "other":
                assert ends(row, f"{name}_change") == pytest.approx(
                    (cell.difference, cell.difference_lower, cell.difference_upper), abs=1e-7
                )


def test_learned_strengths() -> None:
    scores = ("brier", "log_loss", "auroc")
    task = learned_strengths.CrossFitTask((), (), ATOMS, FOLDS, FIRST, 5, 0)
    table = package_table(METHODS, ATOMS, scores, FOLDS)
    told = report(
        {"y": Y, "p": SECOND, "response": RESPONSES, "fold": FOLDS}, fold="fold",
        scores=[*scores, "calibration_slope"], intervals=SETTINGS,
    ).models[0].scores  # fmt: skip
    for row in learned_strengths.score_rows(METHODS, task):
        for name in scores:
            cell = table.cell(row["method"], name)
            assert same(ends(row, name), cell.estimate, cell.lower, cell.upper)
            if row["method"] == "other":
                assert same(ends(row, name), told[name].value, told[name].lower, told[name].upper)
    slope = told["calibration_slope"]
    assert same(ends(row, "slope"), slope.value, slope.lower, slope.upper)
    (pair,) = learned_strengths.difference_rows(METHODS, task)
    for name in scores:
        cell = table.cell("other", name)
        # The other way round it is the same but for its sign.
        change = -cell.difference, -cell.difference_upper, -cell.difference_lower
        assert same(ends(pair, name), *change)


def test_prior_transfer() -> None:
    table = package_table(METHODS, ATOMS, ["brier", "log_loss"])
    for row in prior_transfer.score_rows(dict(METHODS), ATOMS, 0):
        cell = table.cell(row["method"], "brier")
        assert same(ends(row, "brier"), cell.estimate, cell.lower, cell.upper)
        assert row["log_loss"] == pytest.approx(table.cell(row["method"], "log_loss").estimate)
        if row["method"] == "other":
            assert same(
                ends(row, "difference"),
                *(cell.difference, cell.difference_lower, cell.difference_upper),
            )


def test_inference_error_and_encodings() -> None:
    graphs = labelled_responses(12, n_atoms=4, contexts_per_atom=2, density=0.3, seed=5)
    atoms = labelled_atoms(graphs, "data")
    names = {"exact": "exact", "cavi": "cavi"}
    p = {title: atom_posteriors(graphs, "implication", name) for title, name in names.items()}
    p["conditional"] = atom_posteriors(graphs, "conditional")
    table = package_table(p, atoms, ["brier", "precision_mae"])
    exact, (row,) = inference_error.effects(
        graphs, [("cavi", build_backend("cavi", {}))], "implication", seed=0
    )
    for name, score in (("brier", "brier"), ("mae", "precision_mae")):
        cell, moved = table.cell("exact", score), table.cell("cavi", score)
        assert same(ends(exact, name), cell.estimate, cell.lower, cell.upper)
        assert same(
            ends(row, name), moved.difference, moved.difference_lower, moved.difference_upper
        )
    compared = encoding_choice.comparison(graphs, 0)[1]
    assert compared["encoding"] == "conditional"
    found = score_difference(
        "brier", p["conditional"], p["exact"], atoms.labels, atoms.responses,
        n_bootstrap=N_BOOTSTRAP,
    )  # fmt: skip
    assert same(ends(compared, "difference"), found.difference, found.lower, found.upper)
    assert not math.isnan(found.lower)
