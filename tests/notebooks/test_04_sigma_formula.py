"""Notebook 4: the formula by hand, models of known sigma, and the kept real judgments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("04_sigma_formula", tmp_path)
    # As tests/calibration/self_knowledge/test_formula.py: q = 0.41, and 0.3 comes back from it.
    worked: Any = pd.read_csv(folder / "worked.csv").set_index("quantity").value
    assert worked["judged_correct"] == pytest.approx(0.41, abs=1e-15)
    assert worked["rogan_gladen"] == pytest.approx(0.3, abs=1e-15)
    assert worked["sigma"] == pytest.approx(2 / 3, abs=1e-15)

    prediction: Any = pd.read_csv(folder / "prediction.csv").set_index("model")
    # An identity, in floating point.
    assert (prediction.identity_error < 1e-12).all()
    known = {
        "errors balance": 0.3 / 0.4,
        "too trusting": 0.6 / 0.7,
        "too strict": 0.1 / 0.6,
        "hardly informed": 0.5 / 0.9,
    }
    for name, sigma in known.items():
        # Means of 15 samples, each off by about 0.04: four standard errors.
        assert prediction.sigma[name] == pytest.approx(sigma, abs=0.04)
        assert prediction.factuality[name] == pytest.approx(472 / 631, abs=1e-12)
        assert prediction.gap[name] == pytest.approx(prediction.in_sample[name], abs=0.015)
    # What the notebook says: labels of the half predict as well as sigma at its best, else better.
    errors = prediction.rmse_sigma - prediction.rmse_factuality
    unbalanced = ["too trusting", "too strict", "hardly informed"]
    assert abs(errors["errors balance"]) < 0.01
    assert (errors[unbalanced] > 0.05).all()
    assert (prediction.rejected[unbalanced] > 0.9).all()
    assert prediction.rejected["errors balance"] < 0.3

    # Real judgments: as docs/results/sigma-on-labels, whose study splits more often.
    kept = Path(__file__).resolve().parents[2] / "docs" / "results" / "sigma-on-labels"
    subjects = {"SelfCheckGPT votes": "SelfCheckGPT"}
    keys = ["subject", "position"]
    made: Any = pd.read_csv(folder / "real.csv").replace({"subject": subjects}).set_index(keys)
    wanted: Any = pd.read_csv(kept / "in-sample.csv").set_index(keys)
    assert len(made) == 6
    for column in ("self_known", "self_unknown", "sigma", "factuality", "clustered"):
        # The same counts and formulas, to what CSV keeps.
        assert made[column].to_numpy() == pytest.approx(
            wanted.loc[made.index, column].to_numpy(), abs=1e-9
        )
    assert (made.reading == "rejected").all()
    ahead: Any = pd.read_csv(folder / "real-prediction.csv")
    assert (ahead.sigma_minus_factuality_lower > 0).all()
    # As docs/appendix/findings.md prints for papers/self-known-positions.
    fifths: Any = pd.read_csv(folder / "biographies.csv").set_index("position").factuality
    assert [round(fifths[name], 3) for name in ("0-20%", "80-100%")] == [0.788, 0.465]
