"""Studies, manifests and tables of earlier versions, whose keys have British spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import diff, run
from experiments.findings.findings import Findings
from experiments.findings.table import Table, text_columns
from experiments.study.earlier_keys import rename_earlier_keys
from experiments.study.files import read_manifest
from experiments.study.reading import load_study

STUDY = """
study: s
datasets:
  - name: made
    synthetic: {n_responses: 3, n_atoms: 2, contexts_per_atom: 1, unlabelled: 0.2, seed: 1}
    subset: {labelled: true}
backends: [exact]
unlabelled: false
outputs: []
"""


def test_a_study_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY)
    study = load_study(path).study
    path.write_text(STUDY.replace("labelled", "labeled"))
    assert study == load_study(path).study
    assert study.unlabeled == "false"
    (choice,) = study.datasets
    assert choice.subset.labeled
    assert choice.synthetic is not None
    assert choice.synthetic["unlabeled"] == 0.2


def test_a_manifest_of_an_earlier_version_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(STUDY)
    for folder in ("before", "after"):
        run("s.yaml", out=folder)
    path = Path("before/manifest.json")
    earlier = path.read_text().replace("labeled", "labelled")
    assert earlier != path.read_text()
    path.write_text(earlier)
    manifest, after = read_manifest(Path("before")), read_manifest(Path("after"))
    assert manifest["config"] == after["config"]
    assert manifest["data"] == after["data"]
    assert not len(diff("before", "after").tables.get("settings", ()))


def test_both_spellings_at_once_stay_and_names_of_datasets_too() -> None:
    plain = {"labelled": {"labelled": 3}, "inner": [{"unlabelled": 1, "unlabeled": 2}]}
    rename_earlier_keys(plain)
    assert plain == {"labelled": {"labeled": 3}, "inner": [{"unlabelled": 1, "unlabeled": 2}]}


def test_tables_of_an_earlier_version_are_compared(tmp_path: Path) -> None:
    for folder, n in (("before", 3), ("after", 4)):
        tables = {"scores": Table([{"model": "m", "n_labeled": n}], text_columns("model"))}
        Findings("t.csv", (), tables, command="score").save(tmp_path / folder)
    for path in (tmp_path / "before").iterdir():
        path.write_text(path.read_text().replace("n_labeled", "n_labelled"))
    (change,) = diff(tmp_path / "before", tmp_path / "after").tables["changes"].records()
    assert (change["column"], change["before"], change["after"]) == ("n_labeled", 3, 4)
