"""Notebook 9: its study gives known scores, its stars follow from p-values, its page holds both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pypdf import PdfReader
from sklearn.metrics import brier_score_loss
from statsmodels.stats.multitest import multipletests

from factormodels import datasets
from factormodels.variants import fr2
from inference import infer
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that the notebook wrote."""
    return run("09_writing_the_paper", tmp_path_factory.mktemp("results"))


def brier_of(context: float, encoding: str) -> float:
    """Return the Brier score by an outside library's inference and another's score."""
    labels, posteriors = [], []
    for graph in datasets.load("factcheck-bench").graphs:
        if not graph.atoms:
            continue
        seen = fr2(graph).with_priors(contexts=context)
        marginals = infer(seen.to_factor_graph(encoding), "pyagrum").marginals
        for atom in graph.atoms:
            if atom.label is not None:
                labels.append(atom.label)
                posteriors.append(marginals[atom.id][1])
    return float(brier_score_loss(labels, posteriors))


def test_numbers(folder: Path) -> None:
    summary = pd.read_csv(folder / "summary.csv", dtype={"prior": str})
    cells = summary.set_index(["encoding", "prior"])
    # As tests/calibration/learned_potentials/test_graph_folds.py, to the four digits given there.
    assert cells.brier["implication", "0.99"] == pytest.approx(0.0967, abs=5e-5)
    assert cells.log_loss["implication", "0.99"] == pytest.approx(0.3037, abs=5e-5)
    # 1e-9: two exact algorithms.
    assert cells.brier["conditional", "0.7"] == pytest.approx(
        brier_of(0.7, "conditional"), abs=1e-9
    )

    tests = pd.read_csv(folder / "significance.csv", keep_default_na=False)
    assert len(tests) == 14
    corrected = multipletests(tests.p_value.to_numpy(), method="holm")[1]
    assert tests.corrected.to_numpy() == pytest.approx(corrected, abs=1e-12)
    levels = [corrected < level for level in (0.001, 0.01, 0.05)]
    assert list(tests.stars) == list(np.select(levels, ["***", "**", "*"], ""))
    # What the notebook says: every Brier score differs, no accuracy does.
    assert (tests.stars[tests.measure == "brier"] != "").all()
    assert (tests.stars[tests.measure == "accuracy"] == "").all()
    assert list(cells.index[cells.brier_best]) == [("conditional", "0.99")]

    differences = pd.read_csv(folder / "differences.csv").set_index("comparison")
    worse = cells.brier["implication", "0.7"] - cells.brier["implication", "0.99"]
    assert differences.difference["0.7 − 0.99, implication"] == pytest.approx(worse, abs=1e-12)
    assert (differences.lower <= differences.difference).all()
    assert (differences.difference <= differences.upper).all()


def test_the_page_holds_the_numbers_of_the_study(folder: Path) -> None:
    (page,) = PdfReader(folder / "paper.pdf").pages
    text = " ".join(page.extract_text().split())
    summary = pd.read_csv(folder / "summary.csv")
    for name in ("brier", "log_loss", "accuracy"):
        for value, lower, upper in summary[[name, f"{name}_lower", f"{name}_upper"]].to_numpy():
            assert f"{value:.3f} [{lower:.3f}, {upper:.3f}]" in text
    tests = pd.read_csv(folder / "significance.csv", keep_default_na=False)
    for row in tests.itertuples():
        shown = f"{row.difference:.4f}{row.stars}".replace("-", "−")
        assert shown in text
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert f"Study context-prior, SHA-256 of its configuration {manifest['config_sha256']}" in text
    latex = (folder / "paper.tex").read_text(encoding="utf-8")
    for name in ("table.tex", "significance.tex"):
        assert rf"\input{{{name}}}" in latex
        assert manifest["config_sha256"] in (folder / name).read_text(encoding="utf-8")
        # What the page takes in is what the study wrote.
        assert name in manifest["files"]
