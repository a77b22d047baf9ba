"""Tests and measures of a study in scores of every kind, against the functions they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibration import auroc, score
from calibration.folds import response_folds
from calibration.intervals import IntervalSettings
from experiments.study.config import Study
from experiments.study.reading import load_study
from experiments.study.report.frame import cross_fitted_folds, read_judgments
from experiments.study.report.scores import REPLICATES, study_scores, study_tests
from experiments.study.report.tables import cells_table, chosen, significance_table
from experiments.study.rows import SCHEMA, RowsFile, write_rows
from tests.experiments.conftest import study_file
from tests.experiments.study.report.test_summary import row

pytestmark = pytest.mark.slow

STUDY = """
study: s
datasets: [demonstration]
backends: [exact, lbp]
measures: [brier, auroc, calibration_slope]
significance:
  pairs: [[lbp, exact]]
  measures: [brier, auroc, ece, log_loss]
  resamples: 200
"""

N_RESPONSES, SIZE = 12, 6


def claims(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two methods' probabilities, labels and numbers of responses."""
    generator = np.random.default_rng(seed)
    truth = generator.random(N_RESPONSES * SIZE)
    noise = generator.normal(0, [[0.05], [0.3]], (2, truth.size))
    exact, lbp = np.clip(truth + noise, 0.01, 0.99)
    return exact, lbp, generator.random(truth.size) < truth, np.repeat(range(N_RESPONSES), SIZE)


Made = Callable[..., tuple[Study, RowsFile]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(text: str, methods: dict[str, Any], y: Any, **changes: Any) -> tuple[Study, RowsFile]:
        tables = [
            pa.Table.from_pylist(
                [
                    row(
                        dataset="demonstration", response=f"r{number // SIZE}",
                        atom=f"a{number % SIZE}", label=bool(y[number]), backend=name,
                        backend_label=name, p=float(value), **changes,
                    )
                    for number, value in enumerate(p)
                ],
                SCHEMA,
            )
            for name, p in methods.items()
        ]  # fmt: skip
        write_rows(iter(tables), tmp_path / "rows.parquet", {})
        study = load_study(str(study_file(tmp_path, text))).study
        return study, RowsFile(tmp_path / "rows.parquet")

    return make


def test_every_score_is_tested_as_models_are(made: Made) -> None:
    exact, lbp, y, responses = claims()
    lbp[0] = 1.0 - y[0]
    study, rows = made(STUDY, {"exact": exact, "lbp": lbp}, y)
    tests = study_tests(study, rows).set_index("measure")
    table = score(
        {"exact": exact, "lbp": lbp}, y, responses, scores=study.significance.measures,
        n_resamples=200, intervals=IntervalSettings(n_bootstrap=REPLICATES),
    )  # fmt: skip
    for name in ("brier", "auroc", "ece"):
        expected, test = table.difference("lbp", name), tests.loc[name]
        np.testing.assert_equal(test["coverage"], expected.coverage)
        assert test["difference"] == pytest.approx(expected.value, abs=1e-12)
        assert test["p_value"] == expected.p_value
        assert (test["lower"], test["upper"]) == pytest.approx(expected.interval, abs=1e-12)
        assert (test["status"], test["reason"]) == ("ok", "")
    # Corrected over the three tests that there are; the infinite log loss says why it is none.
    assert tests.loc["log_loss", "status"] == "infinite"
    assert "probability of 0" in str(tests.loc["log_loss", "reason"])
    assert math.isnan(tests["p_value"]["log_loss"])
    assert tests["corrected"].notna().sum() == 3


def test_measures_of_every_kind_are_columns_with_intervals(made: Made) -> None:
    exact, _, y, responses = claims(1)
    constant = np.full(y.size, 0.5)
    study, rows = made(STUDY, {"exact": exact, "lbp": constant}, y)
    cells = study_scores(study, rows).cells.set_index("backend_label")
    scored = score(exact, y, responses, scores=["auroc", "calibration_slope"])
    of_exact = cells.loc["exact"]
    for name, each in scored.models[0].scores.items():
        assert of_exact[name] == pytest.approx(each.value, abs=1e-12)
        assert of_exact[f"{name}_lower"] == pytest.approx(each.lower, abs=1e-9)
        assert of_exact[f"{name}_status"] == "ok"
    assert cells.loc["lbp", "calibration_slope_status"] == "constant_forecast"
    assert math.isnan(cells["calibration_slope"]["lbp"])
    columns = chosen(study.measures)
    assert [column.title for column in columns] == ["Brier", "AUROC", "Slope"]
    table = cells_table(cells.reset_index(), "t", study.measures)
    assert {"auroc_lower", "calibration_slope_upper"} <= {
        end for column in table.columns for end in (column.lower, column.upper)
    }


def test_auroc_of_learned_priors_is_within_their_folds(made: Made) -> None:
    exact, lbp, y, responses = claims(2)
    text = STUDY + "priors: [{name: taught, learned: {folds: 4}}]\nseed: 3\n"
    study, rows = made(text, {"exact": exact, "lbp": lbp}, y, prior="taught")
    fold = response_folds([f"r{number}" for number in range(N_RESPONSES)], 4, 3)
    cell = next(iter(rows.cells()))
    folds = cross_fitted_folds(study, read_judgments(rows, cell))
    assert folds is not None
    assert list(folds.values()) == fold.tolist()
    of_claims = fold[responses]
    expected = {name: auroc(p, y, folds=of_claims) for name, p in (("exact", exact), ("lbp", lbp))}
    assert expected["exact"] != auroc(exact, y)
    cells = study_scores(study, rows).cells.set_index("backend_label")
    tests = study_tests(study, rows).set_index("measure")
    for name, value in expected.items():
        assert cells.loc[name, "auroc"] == pytest.approx(value, abs=1e-12)
        assert cells.loc[name, "auroc_status"] == "within_folds"
    assert tests.loc["auroc", "difference"] == pytest.approx(
        expected["lbp"] - expected["exact"], abs=1e-12
    )
    sentence = "AUROC of learned priors compares claims of the same fold"
    assert sentence in cells_table(cells.reset_index(), "t", study.measures).note
    assert sentence in significance_table(tests.reset_index(), study).note
