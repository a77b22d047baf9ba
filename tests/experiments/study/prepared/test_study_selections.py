"""Selections of a study: which atoms count, without a posterior that depends on it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.significance import paired_permutation
from experiments.evaluators.core_choices import CoreChoices
from experiments.evaluators.response import measured
from experiments.study.prepared import selections
from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import StudyDesign, design, run_study
from factormodels import Atom, FactGraph, Relation, RelationKind, write_many
from factormodels.datasets import load
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.selection import Selection, select, subclaims_of
from factormodels.selection.pipeline import selection_stage
from tests.experiments.conftest import invoke, study_file
from tests.experiments.study.test_runner import assert_same_files

pytestmark = pytest.mark.slow

CORE, INFORMATIVE = "core", "informative"

STUDY = """
study: s
datasets: [demonstration]
variants: [FR1, FR2]
backends: [exact, lbp]
selections: [all, core, {selection: core, name: informative, weights: informativeness, rule: both}]
significance:
  pairs: [[{selection: core}, {selection: all}], [{variant: FR2}, {variant: FR1}]]
  measures: [brier, precision]
outputs: [csv, latex]
"""


def planned(folder: Path, text: str = STUDY) -> StudyDesign:
    return design(load_study(str(study_file(folder, text))))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `STUDY`."""
    folder = tmp_path_factory.mktemp("selections")
    run_study(planned(folder), folder / "out", workers=1)
    return folder / "out"


def of_library(title: str) -> dict[str, Selection]:
    """Return the selections of the demonstration as the library makes them, by response."""
    choices = {
        CORE: CoreChoices(LexicalRelations(), "uniform"),
        INFORMATIVE: CoreChoices(LexicalRelations(), "informativeness", "both"),
    }[title]
    graphs = load("demonstration").graphs
    return {graph.id: select(subclaims_of(graph), choices.core(graph)) for graph in graphs}


def cell(run: Path, variant: str = "FR1", backend: str = "exact") -> pd.DataFrame:
    rows = read_rows(run / "rows.parquet")
    return rows[(rows.variant == variant) & (rows.backend == backend)]


@pytest.mark.parametrize("title", [CORE, INFORMATIVE])
def test_the_atoms_are_those_of_the_library(run: Path, title: str) -> None:
    expected = of_library(title)
    rows = cell(run)
    assert set(rows.selections) <= {
        f"all{a}{b}" for a in ("", " core") for b in ("", " informative")
    }
    for response, of_response in rows.groupby("response"):
        kept = {atom for atom, names in zip(of_response.atom, of_response.selections, strict=True)
                if title in names.split()}  # fmt: skip
        assert kept == {claim.id for claim in expected[str(response)].chosen}
    table = pd.read_csv(run / "selections.csv")
    table = table[table.selection == title].set_index("response")
    for response, selected_atoms in expected.items():
        row = table.loc[response]
        assert (row.n_atoms, row.n_kept) == (len(selected_atoms.claims), len(selected_atoms.chosen))
        assert (row.status, row.weight, row.gap) == ("optimal", selected_atoms.solution.weight, 0.0)
        assert row.missing == selected_atoms.missing


def test_the_summary_counts_the_claims_that_the_library_keeps(run: Path) -> None:
    kept = of_library(CORE).values()
    summary = pd.read_csv(run / "summary.csv")
    chosen = summary[(summary.variant == "FR2") & (summary.backend_label == "exact")]
    counts = chosen.set_index("selection").n_atoms
    assert counts["all"] == sum(len(each.claims) for each in kept)
    assert counts["core"] == sum(len(each.chosen) for each in kept) < counts["all"]


@pytest.mark.parametrize("title", ["all", CORE, INFORMATIVE])
@pytest.mark.parametrize("backend", ["exact", "lbp"])
def test_the_measures_are_over_the_atoms_that_are_kept(run: Path, title: str, backend: str) -> None:
    rows = cell(run, "FR2", backend)
    kept = rows[[title in names.split() for names in rows.selections]]
    p = kept.p.to_numpy(dtype=float)
    y = [None if pd.isna(label) else bool(label) for label in kept.label]
    expected = measured(p, y, kept.response.tolist(), k="median")
    summary = pd.read_csv(run / "summary.csv")
    (row,) = summary[
        (summary.variant == "FR2")
        & (summary.backend_label == backend)
        & (summary.selection == title)
    ].to_dict("records")
    assert row["n_atoms"] == expected["n_atoms"] == len(kept)
    for name in ("precision", "f1_at_k", "precision_mae", "brier", "log_loss", "accuracy", "k"):
        # One sum of the same numbers in the same order.
        assert row[name] == pytest.approx(expected[name], rel=1e-14)


def test_nothing_is_inferred_for_a_selection(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = STUDY.replace("selections: [all, core,", "selections: [all] #").replace(
        "[[{selection: core}, {selection: all}], ", "["
    )
    path = study_file(tmp_path, plain)
    out = tmp_path / "out"
    invoke("run", path, "--out", out)
    assert "selection" not in pd.read_csv(out / "summary.csv")
    assert not (out / "selections.csv").exists()
    rows = [read_rows(path / "rows.parquet") for path in (run, out)]
    assert set(rows[1].selections) == {"all"}
    assert rows[0].p.equals(rows[1].p)
    # What counts is asked anew, and no unit runs.
    study_file(tmp_path, STUDY)
    assert "s: 0 units, 56 kept" in invoke("run", path, "--out", out, "--resume").stderr
    assert_same_files(run, out)
    assert (out / "selections.csv").read_bytes() == (run / "selections.csv").read_bytes()
    # Neither is anything selected again.
    monkeypatch.setattr(selections, "select", None)
    invoke("run", path, "--out", out, "--resume", "k=3")
    assert (out / "selections.csv").read_bytes() == (run / "selections.csv").read_bytes()


def test_pieces_give_the_same_files(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = planned(tmp_path), tmp_path / "out"
    count = 0

    def dying(*arguments: object) -> Selection:
        nonlocal count
        count += 1
        if count == 20:
            raise KeyboardInterrupt
        return select(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(selections, "select", dying)
        with pytest.raises(KeyboardInterrupt):
            run_study(study, out, workers=1)
    assert count == 20
    run_study(study, out, workers=1, resume=True)
    assert_same_files(run, out)
    assert (out / "selections.csv").read_bytes() == (run / "selections.csv").read_bytes()
    assert len(pd.read_csv(out / "times.csv")) == 4


def test_a_pair_of_selections_is_each_over_its_own_claims(run: Path) -> None:
    tests = pd.read_csv(run / "significance.csv")
    of_core = tests[(tests["first"] == "core") & (tests.elsewhere == "FR1 implication data exact")]
    assert of_core["second"].tolist() == ["all", "all"]
    row = of_core.set_index("measure").loc["precision"]
    rows = cell(run)
    rows = rows[rows.label.notna()]
    means = []
    for title in ("core", "all"):
        kept = rows[[title in names.split() for names in rows.selections]]
        supported = (kept.p.astype(float) > 0.5).astype(float).groupby(kept.response, sort=False)
        means.append(supported.mean())
    assert row.value_first == pytest.approx(means[0].mean(), rel=1e-12)
    assert row.difference == pytest.approx((means[0] - means[1]).mean(), rel=1e-12)
    expected = paired_permutation(means[0], means[1], means[0].index.tolist(), seed=0)
    # One number per response: swapping selections is swapping these.
    assert row.p_value == expected.p_value
    assert row.n_responses == 14
    assert row.lower < row.difference < row.upper


def test_other_pairs_are_tested_in_each_selection(run: Path) -> None:
    tests = pd.read_csv(run / "significance.csv")
    of_variant = tests[(tests["first"] == "FR2") & (tests.measure == "brier")]
    assert of_variant.elsewhere.tolist() == [
        f"implication data {backend} {title}"
        for backend in ("exact", "lbp")
        for title in ("all", "core", "informative")
    ]
    counts = pd.read_csv(run / "summary.csv").groupby("selection").n_labeled.max()
    assert of_variant.n_claims.tolist() == [counts[t] for t in ("all", "core", "informative")] * 2


def test_bold_and_tables_go_by_selection(run: Path) -> None:
    shown = (run / "table.tex").read_text()
    assert "Selection" in shown
    # In every part: all that says which row it is stands there again.
    assert shown.count("informative") == 4 * shown.count(r"\toprule")
    assert "within a selection" in shown


def bare(name: str, n: int, *, text: bool = True) -> FactGraph:
    atoms = (
        Atom(f"a{k}", f"Claim {k} says so." if text else "", label=k % 2 == 0) for k in range(n)
    )
    return FactGraph(name, tuple(atoms))


def test_recorded_relations_and_what_is_missing(tmp_path: Path) -> None:
    graph = bare("g", 3)
    entails = Relation("a0", "a2", RelationKind.ENTAILMENT, 0.9)
    write_many([replace(graph, relations=(entails,)), bare("h", 2)], tmp_path / "own.jsonl")
    judged = [
        {"source": f"a{i}", "target": f"a{j}", "relation": "neutral", "probability": 0.9}
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    judged[0]["relation"] = "entailment"
    (tmp_path / "judged.jsonl").write_text("\n".join(map(json.dumps, judged)), encoding="utf-8")
    text = (
        "study: s\ndatasets: [{path: own.jsonl}]\nvariants: [given]\noutputs: []\nselections:\n"
        "  - {selection: core, relations: recorded}\n"
        "  - {selection: core, name: file, relations: recorded, path: judged.jsonl}\n"
    )
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    table = pd.read_csv(tmp_path / "out" / "selections.csv")
    # Of six pairs one is recorded in g, of two none in h; the file has all.
    assert table.n_kept.tolist() == [2, 2, 2, 1]
    assert table.missing.tolist() == [5, 2, 0, 0]
    rows = read_rows(tmp_path / "out" / "rows.parquet").set_index(["response", "atom"])
    assert rows.selections["h", "a0"] + rows.selections["h", "a1"] in (
        "core filecore",
        "corecore file",
    )
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["selections"][1]["path"] == "judged.jsonl"


@pytest.fixture
def _limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the time be up whenever a program has conflicts."""

    def stopped(claims: object, core: object) -> Selection:
        selected = select(claims, core)  # type: ignore[arg-type]
        if not selected.program.conflicts:
            return selected
        solution = replace(selected.solution, status="limit", bound=selected.solution.weight + 0.5)
        return replace(selected, solution=solution)

    monkeypatch.setattr(selections, "select", stopped)


@pytest.mark.usefixtures("_limited")
def test_failures_and_limits_are_recorded_and_shown(folder: Path) -> None:
    silent, plain = bare("silent", 3, text=False), bare("plain", 1)
    graphs = [silent, plain, *load("demonstration").graphs[:3]]
    write_many(graphs, folder / "own.jsonl")
    text = "study: s\ndatasets: [{path: own.jsonl}]\nselections: [all, core]\nvariants: [given]\n"
    result = invoke("run", study_file(folder, text), "--out", "out")
    table = pd.read_csv(folder / "out" / "selections.csv")
    core = table[table.selection == "core"].set_index("response")
    assert core.status["silent"] == "failed"
    assert "has no text" in core.error["silent"]
    assert core.n_kept["silent"] == 0
    cut = core[core.status == "limit"]
    assert len(cut) == 3
    assert core.status["plain"] == "optimal"
    assert (cut.gap == 0.5).all()
    assert (cut.n_kept > 0).all()
    shown = result.stdout
    assert "core of own: 1 response could not be selected from, the first silent: graph" in shown
    assert "reached the time limit of the selection, the first" in shown
    assert "a better set weighs at most 0.5 more" in shown
    # Every atom has its posterior all the same.
    rows = read_rows(folder / "out" / "rows.parquet")
    assert rows.p.notna().all()
    assert set(rows[rows.response == "silent"].selections) == {"all"}
    assert "not run yet" not in shown


def test_a_response_that_keeps_nothing_has_no_part_in_means(tmp_path: Path) -> None:
    write_many([bare("silent", 3, text=False), bare("loud", 2)], tmp_path / "own.jsonl")
    text = (
        "study: s\ndatasets: [{path: own.jsonl}]\nvariants: [given]\nselections: [core]\n"
        "priors: [{atom: [0.9, 0.2]}]\noutputs: [latex]\n"
    )
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary.selection.tolist() == ["core", "core"]
    assert summary.precision.tolist() == [1.0, 0.0]
    assert (summary.n_atoms <= 2).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("{selection: core, relations: recorded, path: no.jsonl}", "no.jsonl"),
        ("{selection: core, weights: informativeness, domain: peple}", "'peple'"),
        ("{selection: core, domain: x, templates: own.json}", "own.json has no bleached claims"),
    ],
)
def test_impossible_selections_are_reported_before_anything_runs(
    folder: Path, changed: str, message: str
) -> None:
    templates = json.dumps({"bridges": ["{topic} is a bridge."]})
    (folder / "own.json").write_text(templates, encoding="utf-8")
    text = f"study: s\ndatasets: [demonstration]\nselections: [all, {changed}]\n"
    result = invoke("run", study_file(folder, text), "--out", "out", code=2)
    assert "study.yaml: selections[1]: " in result.stderr
    assert message in result.stderr
    assert not (folder / "out").exists()


def test_a_share_of_faithful_atoms_is_that_of_the_pipeline_s_stage(tmp_path: Path) -> None:
    text = (
        "study: s\ndatasets: [demonstration]\noutputs: []\n"
        "selections: [{selection: core, share: 0.9, weights: informativeness}]\n"
    )
    run_study(planned(tmp_path, text), tmp_path / "out", workers=1)
    frame = pd.read_csv(tmp_path / "out" / "selections.csv").set_index("response").n_kept
    choices = CoreChoices(LexicalRelations(), "informativeness")
    fewer = 0
    for graph in load("demonstration").graphs:
        stage = selection_stage(replace(choices.core(graph), share=0.9))
        assert frame[graph.id] == len(stage(graph).atoms)
        fewer += frame[graph.id] < len(select(subclaims_of(graph), choices.core(graph)).chosen)
    assert fewer > 0


def test_other_settings_are_solved_again(tmp_path: Path) -> None:
    text = "study: s\ndatasets: [{name: demonstration, limit: 4}]\noutputs: []\n"
    counts = []
    for number, selection in enumerate(("core", "{selection: core, rule: both}")):
        study = planned(tmp_path, f"{text}selections: [{selection}]\n")
        run_study(study, tmp_path / "out", workers=1, resume=bool(number))
        counts.append(pd.read_csv(tmp_path / "out" / "selections.csv").n_kept.sum())
    assert counts[0] < counts[1]
    assert np.isfinite(counts).all()
