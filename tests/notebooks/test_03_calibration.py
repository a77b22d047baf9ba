"""Notebook 3 gives the scores that the tests of learned priors hold, and no advantage by chance."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("03_calibration", tmp_path)
    scores = pd.read_csv(folder / "scores.csv").set_index("priors")
    # As tests/calibration/learned_potentials/test_graph_folds.py, to the four digits given there.
    assert scores.brier["default"] == pytest.approx(0.0967, abs=5e-5)
    assert scores.brier["prior"] == pytest.approx(0.0959, abs=5e-5)
    assert scores.log_loss["default"] == pytest.approx(0.3037, abs=5e-5)
    assert scores.log_loss["prior"] == pytest.approx(0.3023, abs=5e-5)
    # CORP: the Brier score is miscalibration - discrimination + uncertainty, to rounding.
    terms = scores.miscalibration - scores.discrimination + scores.uncertainty
    assert terms.to_numpy() == pytest.approx(scores.brier.to_numpy(), abs=1e-12)
    # Uncertainty is that of 472 true claims of 631.
    assert scores.uncertainty["default"] == pytest.approx(472 * 159 / 631**2, abs=1e-12)
    for name in ("brier", "log_loss", "calibration_slope"):
        assert (scores[f"{name}_lower"] < scores[name]).all()
        assert (scores[name] < scores[f"{name}_upper"]).all()

    # What the notebook says: no difference can be told from chance.
    differences = pd.read_csv(folder / "differences.csv")
    assert (differences.lower < 0).all()
    assert (differences.upper > 0).all()
    gains = differences[differences.score == "Brier score"].set_index("priors").difference
    for name in ("prior", "prior, stances"):
        assert gains[name] == pytest.approx(scores.brier[name] - scores.brier["default"], abs=1e-12)

    gaps = pd.read_csv(folder / "gaps.csv").set_index("posterior")
    assert gaps.claims.sum() == 631
    assert gaps["mean"]["0.5"] == pytest.approx(0.5, abs=1e-12)
    # Claims with one partial support of 0.7 are true more often, and told apart from chance.
    assert gaps.lower["to 0.75"] > 0

    weak = pd.read_csv(folder / "biographies.csv").set_index("rival")
    gains = weak.learned - weak.brier
    assert weak.difference.to_numpy() == pytest.approx(gains.to_numpy(), abs=1e-12)
    # On stars a prior and a temperature are Platt scaling of the default
    # (docs/appendix/derivations.md).
    assert abs(weak.difference["platt"]) < 1e-3 < abs(weak.difference["default"])
