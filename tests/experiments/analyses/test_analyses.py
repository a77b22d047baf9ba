"""Studies that ask for an analysis: checked like every study, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from experiments.analyses.registry import analysis, names
from experiments.study.reading import embedded_studies
from factormodels import datasets
from factormodels.io.yaml import parse_yaml
from tests.experiments.conftest import invoke, study_file

STATISTICS = """
study: sizes
analysis: dataset-statistics
settings:
  datasets:
    - demonstration
    - {name: made, synthetic: {n_responses: 3, n_atoms: [1, 4], contexts_per_atom: 2}}
"""


def test_every_analysis_has_settings_and_a_sentence() -> None:
    for name in names():
        definition = analysis(name)
        assert definition.summary.endswith(".")
        assert definition.settings.model_fields


def test_every_embedded_study_says_what_it_is_for() -> None:
    for name, text in embedded_studies().items():
        assert parse_yaml(text, name)["description"]


def test_an_analysis_writes_tables_figures_and_a_manifest(folder: Path) -> None:
    study_file(folder, STATISTICS)
    invoke("run", "study.yaml")
    out = folder / "results" / "sizes"
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["files"]) == {path.name for path in out.iterdir()} - {"manifest.json"}
    assert manifest["config_sha256"] in (out / "datasets.tex").read_text()
    assert manifest["data"]["made"]["responses"] == 3

    sizes = pd.read_csv(out / "datasets.csv").set_index("dataset")
    graphs = datasets.load("demonstration").graphs
    assert sizes.loc["demonstration", "n_atoms"] == sum(len(g.atoms) for g in graphs)
    assert sizes.loc["demonstration", "n_true"] == sum(
        atom.label is True for g in graphs for atom in g.atoms
    )
    points = pd.read_csv(out / "claims-per-response.csv")
    assert (
        points.groupby("dataset")["n_atoms"].sum()["demonstration"]
        == sizes.loc["demonstration", "n_atoms"]
    )


def test_two_runs_write_the_same_bytes(folder: Path) -> None:
    study_file(folder, STATISTICS)
    contents = []
    for _ in range(2):
        invoke("run", "study.yaml", "--out", "out")
        contents.append({path.name: path.read_bytes() for path in (folder / "out").iterdir()})
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("analysis=dataset-statistic", "did you mean 'dataset-statistics'"),
        ("settings.datset=[demonstration]", "settings.datset: there is no such key; did you mean"),
        ("settings.datasets=[]", "settings.datasets: "),
        ("settings.datasets=[demonstratio]", "settings.datasets[0]: the dataset 'demonstratio'"),
        ("settings.datasets=[{name: x, path: no.jsonl}]", "no.jsonl"),
        ("backends=[exact]", "backends: there is no such key"),
        ("study=a b", "study: 'a b'"),
        ("seed=-1", "seed: -1"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    override: str, message: str, folder: Path
) -> None:
    study_file(folder, STATISTICS)
    assert message in invoke("run", "study.yaml", override, code=2).stderr
    assert not (folder / "results").exists()


def test_options_of_units_are_refused(folder: Path) -> None:
    study_file(folder, STATISTICS)
    result = invoke("run", "study.yaml", "--workers", "2", code=2)
    assert "--workers applies to studies of claims" in result.stderr


def test_a_study_must_be_named() -> None:
    assert "no study is named" in invoke("run", code=2).stderr


def test_embedded_studies_are_listed() -> None:
    result = invoke("list", "studies")
    assert all(name in result.stdout for name in embedded_studies())
