"""Notebook 10: scores by another library, and positions counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss

from factormodels import datasets
from factormodels.variants import fr1
from inference import infer
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("10_real_biographies", tmp_path)
    graphs = datasets.load("factscore").graphs[:40]
    labels, posteriors, weights, first_fifth = [], [], [], []
    for graph in graphs:
        # FR1 is a forest, on which an outside library's belief propagation is exact too.
        marginals = infer(fr1(graph).to_factor_graph("implication"), "pyagrum").marginals
        sizes: dict[Any, int] = {}
        for atom in graph.atoms:
            if atom.label is not None:
                sizes[atom.sentence] = sizes.get(atom.sentence, 0) + 1
        for atom in graph.atoms:
            if atom.label is None or atom.sentence is None:
                continue
            labels.append(atom.label)
            posteriors.append(marginals[atom.id][1])
            weights.append(1 / sizes[atom.sentence])
            first_fifth.append(atom.sentence * 5 <= graph.metadata["sentences"])
    scores = pd.read_csv(folder / "scores.csv").set_index("method")
    assert (scores.n_atoms == len(labels)).all()
    # 1e-9: two exact algorithms.
    expected = brier_score_loss(labels, posteriors)
    assert scores.brier["default"] == pytest.approx(expected, abs=1e-9)
    # Recalibration by one increasing curve in each fold leaves the ranks within folds.
    assert scores.auroc["Platt"] == pytest.approx(scores.auroc["default"], abs=1e-3)
    assert scores.brier["six classes"] < scores.brier["Platt"] < scores.brier["default"]
    positions = pd.read_csv(folder / "positions.csv").set_index("of")
    here = np.array(first_fifth)
    share = np.average(np.array(labels)[here], weights=np.array(weights)[here])
    assert positions["0-20%"]["true"] == pytest.approx(share, abs=1e-12)
    differences = pd.read_csv(folder / "differences.csv").set_index(["method", "other"])
    gain = scores.brier["default"] - scores.brier["six classes"]
    assert differences.brier["default", "six classes"] == pytest.approx(gain, abs=1e-12)
