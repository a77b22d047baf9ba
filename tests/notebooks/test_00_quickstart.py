"""Notebook 0: its scores are those of an outside library on the posteriors of an outside one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss

from factormodels import datasets
from factormodels.variants import fr1
from inference import infer
from tests.notebooks.execution import run

pytestmark = pytest.mark.notebook


def test_numbers(tmp_path: Path) -> None:
    folder = run("00_quickstart", tmp_path)
    frame = pd.read_csv(folder / "study.csv").set_index(["variant", "backend"])
    labels, p = [], []
    for graph in datasets.load("demonstration").graphs:
        marginals = infer(fr1(graph).to_factor_graph("implication"), "pyagrum").marginals
        labels += [atom.label for atom in graph.atoms]
        p += [marginals[atom.id][1] for atom in graph.atoms]
    # 1e-9: two exact algorithms; belief propagation is exact on the forests of FR1.
    for backend in ("exact", "lbp"):
        score = frame.loc[("FR1", backend), "brier"]
        assert score == pytest.approx(brier_score_loss(labels, p), abs=1e-9)
    bins = pd.read_csv(folder / "figure.csv")
    assert bins.mean_predicted.is_monotonic_increasing
    assert bins.observed.between(0, 1).all()
