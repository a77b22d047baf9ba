"""Encodings: they agree without relations, and the one that drew the labels is best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.findings.claim_scores import labeled_atoms, scores_with_intervals
from factormodels.synthetic import Constant, Uniform, labeled_responses
from inference.batch import claim_posteriors
from notebooks.questions import encodings
from notebooks.questions.encodings import with_drawn_labels

pytestmark = pytest.mark.slow


def test_without_relations_all_encodings_agree() -> None:
    graphs = labeled_responses(4, n_atoms=3, contexts_per_atom=0, seed=0)
    rows = list(encodings.comparison(graphs, seed=0))
    assert [row["encoding"] for row in rows] == list(encodings.ENCODINGS)
    for row in rows:
        assert row["distance"] == row["difference"] == 0.0
        assert not row["best"]


def test_the_encoding_that_drew_the_labels_is_best() -> None:
    graphs = labeled_responses(
        100, n_atoms=8, contexts_per_atom=2, density=0.4, context_prior=Uniform(0.5, 0.9), seed=4
    )
    for encoding in encodings.ENCODINGS:
        drawn = with_drawn_labels(graphs, encoding, seed=4)
        rows = {row["encoding"]: row for row in encodings.comparison(drawn, seed=0)}
        assert min(rows, key=lambda name: rows[name]["brier"]) == encoding
        assert not any(row["best"] for name, row in rows.items() if name != encoding)
        for name, row in rows.items():
            change = row["brier"] - rows["implication"]["brier"]
            assert row["difference"] == pytest.approx(change, abs=1e-12), name


def test_a_claim_that_is_nearly_certain_and_wrong_costs_its_whole_log_loss() -> None:
    graphs = labeled_responses(6, n_atoms=3, contexts_per_atom=8, density=0.0, seed=1)
    sure = np.concatenate([claim_posteriors([each], "implication") for each in graphs]).max()
    assert 1.0 - 1e-6 < sure < 1.0
    flipped = [
        replace(each, atoms=tuple(replace(atom, label=not atom.label) for atom in each.atoms))
        for each in graphs
    ]
    y = np.array([atom.label for each in flipped for atom in each.atoms])
    for row in encodings.comparison(flipped, seed=0):
        p = claim_posteriors(flipped, row["encoding"])
        losses = -np.log(np.where(y, p, 1.0 - p))
        assert row["log_loss"] == pytest.approx(losses.mean(), rel=1e-6), row["encoding"]


@pytest.mark.parametrize("encoding", encodings.ENCODINGS)
def test_drawn_labels_are_calibrated_under_their_encoding(encoding: str) -> None:
    graphs = labeled_responses(
        150, n_atoms=6, contexts_per_atom=2, density=0.2, context_prior=Uniform(0.5, 0.9), seed=4
    )
    drawn = with_drawn_labels(graphs, encoding, seed=4)
    atoms = labeled_atoms(drawn, "drawn")
    p = claim_posteriors(drawn, encoding)
    scores = scores_with_intervals(p, atoms, ("calibration_slope",), seed=0)
    assert scores["slope_lower"] < 1.0 < scores["slope_upper"]
    # The sum of label minus posterior over its standard deviation, responses being independent:
    # 4 standard deviations, for a fixed seed.
    sums = atoms.grouping.sums(atoms.labels - p)
    assert abs(sums.sum()) < 4.0 * np.sqrt((sums**2).sum())


def test_implication_lets_contexts_with_many_relations_fall() -> None:
    graphs = labeled_responses(
        30, n_atoms=8, contexts_per_atom=2, density=0.4, context_prior=Constant(0.8), seed=1
    )
    rows = {row["encoding"]: row for row in encodings.comparison(graphs, seed=0)}
    # A false context gives p to both states of its target, twice the mass of a true one's row.
    assert rows["implication"]["contexts"] < 0.8 - 0.1
    assert rows["conditional"]["contexts"] == pytest.approx(0.8, abs=0.1)
