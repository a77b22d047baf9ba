"""Effect of the error of inference: none without an error, and scores by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.findings.claim_scores import labeled_atoms
from factormodels.synthetic import labeled_responses
from inference import get_backend
from inference.batch import claim_posteriors
from notebooks.questions.does_it_matter import effects

pytestmark = pytest.mark.slow


def test_exact_against_exact_moves_nothing() -> None:
    graphs = labeled_responses(6, n_atoms=(3, 6), contexts_per_atom=2, density=0.2, seed=2)
    backends = [
        ("again", get_backend("exact")),
        ("enumerated", get_backend("enumeration")),
        ("cavi", get_backend("cavi")),
    ]
    baseline, rows = effects(graphs, backends, "implication", seed=0)
    assert baseline["n_responses"] == 6
    for row in rows[:2]:
        # Enumeration adds in another order.
        assert row["error"] < 1e-12
        assert row["verdicts"] == 0.0
        assert abs(row["brier"]) < 1e-12
        assert row["mae"] == 0.0
        assert row["tau"] == pytest.approx(1.0)
    assert rows[2]["error"] > 1e-4


def test_changes_of_scores_are_those_by_hand() -> None:
    graphs = labeled_responses(5, n_atoms=4, contexts_per_atom=2, density=0.3, seed=5)
    atoms = labeled_atoms(graphs, "data")
    exact, other = (claim_posteriors(graphs, "implication", name) for name in ("exact", "cavi"))
    _, (row,) = effects(graphs, [("cavi", get_backend("cavi"))], "implication", seed=0)
    brier = ((other - atoms.labels) ** 2 - (exact - atoms.labels) ** 2).mean()
    assert row["brier"] == pytest.approx(brier, abs=1e-14)
    shares = [
        np.array([(p > 0.5)[atoms.responses == name].mean() for name in ("r1", "r2", "r3")])
        for p in (exact, other)
    ]
    people = np.array([atoms.labels[atoms.responses == n].mean() for n in ("r1", "r2", "r3")])
    _, (part,) = effects(graphs[:3], [("cavi", get_backend("cavi"))], "implication", seed=0)
    mae = (np.abs(shares[1] - people) - np.abs(shares[0] - people)).mean()
    assert part["mae"] == pytest.approx(mae, abs=1e-14)
