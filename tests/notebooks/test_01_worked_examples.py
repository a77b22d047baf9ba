"""Notebook 1 gives the fractions that are known, and contributions that follow from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from inference import entries
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("01_worked_examples", tmp_path)
    backends = pd.read_csv(folder / "backends.csv").set_index("backend")
    assert set(backends.index) == set(entries())
    # Exact: 1e-10, some hundred roundings of 1e-16, as in tests/inference/promises.py.
    for name in ("exact", "enumeration", "pgmpy", "pyagrum", "auto", "wmb"):
        assert backends.example_1[name] == pytest.approx(48 / 151, abs=1e-10)
        assert backends.largest_error[name] < 1e-10
        assert backends.examples[name] == 16
    # The example is a forest; its messages are final after two sweeps, pgmax's damped ones later.
    for name in ("lbp", "trw", "lbp_jax", "pgmax", "gibbs"):
        assert backends.example_1[name] == pytest.approx(48 / 151, abs=1e-8)
        assert backends["where"][name] == "factreasoner-release-graph"
        assert 1e-5 < backends.largest_error[name] < 0.02
    # Four chains of 500 draws: a standard error of 0.5 / sqrt(2000) = 0.011, times 4.
    assert backends.example_1["numpyro"] == pytest.approx(48 / 151, abs=0.045)
    assert backends.largest_error["cavi"] > 0.1

    parts = pd.read_csv(folder / "contributions.csv").set_index(["graph", "context"])
    # Without one of its contexts, Example 1 is one contradiction (3/28) or one entailment
    # (400/503); the conflict chain without its third context is Example 1.
    assert parts.without["Example 1", "c1"] == pytest.approx(3 / 28, abs=1e-12)
    assert parts.without["Example 1", "c2"] == pytest.approx(400 / 503, abs=1e-12)
    assert parts.without["conflict chain", "c3"] == pytest.approx(48 / 151, abs=1e-12)
    assert parts.posterior["conflict chain", "c1"] == pytest.approx(11600 / 28183, abs=1e-12)
    assert parts.posterior["release graph", "c11"] == pytest.approx(10597 / 11635, abs=1e-12)
    assert parts.contribution["Example 1", "c1"] == pytest.approx(48 / 151 - 3 / 28, abs=1e-12)
