"""A study that names a judge as its priors has its posteriors, whatever the study's labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.learned_potentials import FieldSettings, learn_judge
from experiments.study.rows import read_rows
from factormodels import datasets, write_many
from tests.calibration.learned_potentials.data import of_cities
from tests.experiments.conftest import invoke, study_file

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

STUDY = """
study: s
datasets: [{path: data.jsonl}]
variants: [FR1]
encodings: [implication]
backends: [exact]
priors: [{name: default}, {name: judge, learned: {judge: judge.json}}]
outputs: [csv]
"""


def test_rows_hold_the_posteriors_of_the_judge(folder: Path) -> None:
    graphs = datasets.load("factscore").graphs
    judge = learn_judge(graphs[:15], FieldSettings(penalty=30.0))
    judge.save(folder / "judge.json")
    write_many(graphs[20:26], folder / "data.jsonl")
    invoke("run", study_file(folder, STUDY), "--out", "out")
    rows = read_rows(folder / "out" / "rows.parquet")
    posteriors = rows[rows["prior"] == "judge"]["p"].to_numpy(float)
    expected = judge.probabilities(judge.table(graphs[20:26]))
    np.testing.assert_allclose(posteriors, expected, atol=1e-9)
    given = rows[rows["prior"] == "default"]["p"].to_numpy(float)
    assert np.abs(posteriors - given).max() > 0.05


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ("{judge: none.json}", "none.json: there is no such file"),
        ("{judge: data.jsonl}", "this is not a judge"),
        ("{judge: judge.json, folds: 3}", "judge uses a judge that is already learned"),
    ],
)
def test_invalid_judges_are_one_sentence(folder: Path, learned: str, message: str) -> None:
    write_many(of_cities(2), folder / "data.jsonl")
    study = study_file(folder, STUDY.replace("{judge: judge.json}", learned))
    assert message in invoke("run", study, "--out", "out", code=2).stderr


def test_responses_whose_labels_taught_the_judge_are_refused(folder: Path) -> None:
    learn_judge(of_cities(), FieldSettings(penalty=30.0)).save(folder / "judge.json")
    renamed = [replace(graph, id=f"r{n}") for n, graph in enumerate(of_cities(8))]
    write_many(renamed[4:], folder / "data.jsonl")
    errors = invoke("run", study_file(folder, STUDY), "--out", "out", code=2).stderr
    assert "learned.judge: labels of 2 responses of 'data' (r4, r5) trained the judge" in errors
    assert not (folder / "out").exists()
