"""A study whose assessor is recorded: verdicts of the data beside posteriors, and nobody asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials import judged
from experiments.study.rows import read_rows
from factormodels import write_many
from factormodels.metadata.learned_from import LearnedFrom
from tests.calibration.learned_potentials.data import of_cities
from tests.experiments.conftest import invoke

STUDY = """
study: s
datasets: [{path: data.jsonl, name: data}]
variants: [FR1]
relation_models: [lexical]
assessors: [recorded]
backends: [exact]
measures: [brier, accuracy]
significance: {pairs: [[recorded, exact]], measures: [accuracy], resamples: 50}
outputs: [csv, markdown]
"""


def record(number: int, results: dict[str, Any]) -> dict[str, Any]:
    texts = [f"The bridge {number} opened in 1890.", f"The bridge {number} is made of wood."]
    return {
        "input": "q",
        "output": " ".join(texts),
        "atoms": [
            {"id": "a0", "text": texts[0], "label": "S", "contexts": ["c0"]},
            {"id": "a1", "text": texts[1], "label": "NS", "contexts": ["c0"]},
        ],
        "contexts": [{"id": "c0", "text": f"The bridge {number} opened in 1890; it is of iron."}],
        "results": results,
    }


@pytest.mark.usefixtures("folder")
def test_recorded_verdicts_are_a_cell_of_a_study() -> None:
    marginals = [
        {"variable": "a0", "probabilities": [0.25, 0.75]},
        {"variable": "a1", "probabilities": [0.5, 0.5]},
    ]
    lines = [record(n, {"marginals": marginals}) for n in range(3)]
    lines[2]["results"]["marginals"] = marginals[:1]
    Path("data.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    Path("study.yaml").write_text(STUDY)
    plan = invoke("run", "study.yaml", "--dry-run").stdout
    assert "lexical: 6 pairs to be asked about" in plan
    assert "recorded: " not in plan
    invoke("run", "study.yaml", "--out", "out", "--workers", "1")
    rows = read_rows(Path("out") / "rows.parquet")
    judged = rows[rows["backend_label"] == "recorded"]
    assert set(judged["status"]) == {"judged"}
    assert judged[judged["atom"] == "a0"]["p"].tolist() == [0.75] * 3
    assert judged[judged["atom"] == "a1"]["p"].isna().tolist() == [False, False, True]
    tests = (Path("out") / "significance.csv").read_text().splitlines()
    assert tests[1].startswith("data,recorded,exact,")
    manifest = json.loads((Path("out") / "manifest.json").read_text())
    facts = manifest["models"]["assessors"]["recorded"]
    assert (facts["asked"], facts["missing"], facts["failed"]) == (6, 1, 0)
    assert "prompts" not in facts
    # Read back from what the run wrote, where every default is written out.
    invoke("report", "out")


@pytest.mark.usefixtures("folder")
def test_a_response_without_verdicts_fails_with_a_reason() -> None:
    lines = [record(0, {"predictions": {"a0": "S", "a1": "NS"}}), record(1, {})]
    Path("data.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    Path("study.yaml").write_text(STUDY)
    result = invoke("run", "study.yaml", "--out", "out", "--workers", "1", code=1)
    rows = read_rows(Path("out") / "rows.parquet")
    judged = rows[rows["backend_label"] == "recorded"]
    assert judged.groupby("response")["status"].first().tolist() == ["judged", "failed"]
    assert "no recorded verdicts can be taken" in " ".join(result.output.split())


@pytest.mark.usefixtures("folder")
def test_verdicts_that_their_own_labels_taught_are_missing() -> None:
    graphs = of_cities(4)
    marks = [LearnedFrom.THIS_RESPONSE, *[LearnedFrom.OTHER_RESPONSES] * 3]
    write_many(judged(graphs, np.linspace(0.1, 0.9, 12), marks), "data.jsonl")
    Path("study.yaml").write_text(STUDY)
    # Something that was asked for is missing, which the code of exit says.
    invoke("run", "study.yaml", "--out", "out", "--workers", "1", code=1)
    rows = read_rows(Path("out") / "rows.parquet")
    recorded = rows[rows["backend_label"] == "recorded"]
    assert recorded.groupby("response")["p"].count().to_dict() == {
        "Aarhus": 0, "Bergen": 3, "Cork": 3, "Delft": 3,
    }  # fmt: skip
    errors = recorded.loc[recorded["response"] == "Aarhus", "error"].unique().tolist()
    assert len(errors) == 1
    assert "its own labels trained these verdicts" in errors[0]
