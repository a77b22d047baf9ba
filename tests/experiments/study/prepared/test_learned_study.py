"""Priors learned within a study: in cross-fitting, once, and the same wherever units are run."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.learned_potentials.graph_fitting import (
    WHOLE,
    CrossFitting,
    LearnedPotentials,
    cross_fitting,
    fit_potentials,
    labeled_folds,
)
from calibration.learned_potentials.graph_potentials import Potentials
from experiments.parallel_map import processes
from experiments.study.parts import PRIORS
from experiments.study.reading import load_study
from experiments.study.rows import read_rows
from experiments.study.runner import Progress, StudyDesign, design, run_study
from experiments.study.units import strengthened
from factormodels import FactGraph, InputError, write_many
from factormodels.datasets import load
from factormodels.io.store.results import STORE, open_store
from factormodels.synthetic import labeled_responses
from factormodels.variants import variant
from inference import infer
from inference.batch import claim_posteriors
from tests.experiments.conftest import invoke, study_file
from tests.experiments.study.test_runner import assert_same_files

pytestmark = [pytest.mark.kill, pytest.mark.slow]

LEARNED = "{parameters: [atom_prior, temperature], by: kind, folds: 3}"

STUDY = f"""
study: s
datasets: [{{path: data.jsonl}}]
variants: [FR1, FR2]
encodings: [implication, conditional]
priors: [{{name: default}}, {{name: learned, learned: {LEARNED}}}]
seed: 4
outputs: [csv]
"""


ONE_VIEW = STUDY.replace("[FR1, FR2]", "[FR2]").replace(
    "[implication, conditional]", "[implication]"
)
"""A quarter of what `STUDY` learns."""


def responses() -> list[FactGraph]:
    """Nine responses with labels, and three without."""
    graphs = labeled_responses(12, n_atoms=(2, 4), contexts_per_atom=2, density=0.4, seed=3)
    bare = [
        replace(graph, atoms=tuple(replace(atom, label=None) for atom in graph.atoms))
        for graph in graphs
    ]
    return [bare[at] if at % 4 == 1 else graph for at, graph in enumerate(graphs)]


def planned(folder: Path, graphs: list[FactGraph], text: str = STUDY) -> StudyDesign:
    write_many(graphs, folder / "data.jsonl")
    return design(load_study(str(study_file(folder, text))))


def posteriors(folder: Path, **cell: Any) -> pd.Series:
    """Return the posteriors of one cell by response and atom."""
    rows = read_rows(folder / "rows.parquet")
    for name, value in cell.items():
        rows = rows[rows[name] == value]
    return rows.set_index(["response", "atom"])["p"].astype(float)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `STUDY` in one process, without a pause."""
    folder = tmp_path_factory.mktemp("learned")
    run_study(planned(folder, responses()), folder / "out", workers=1)
    return folder / "out"


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of `ONE_VIEW`, not to be changed."""
    folder = tmp_path_factory.mktemp("one-view")
    run_study(planned(folder, responses(), ONE_VIEW), folder / "out", workers=1)
    return folder / "out"


def viewed(name: str) -> list[FactGraph]:
    return [variant(graph, name) for graph in responses()]


@pytest.mark.parametrize(
    ("view", "encoding"),
    [
        ("FR1", "implication"),
        ("FR2", "conditional"),
        # The views and encodings of the two above.
        pytest.param("FR1", "conditional", marks=pytest.mark.nightly),
        pytest.param("FR2", "implication", marks=pytest.mark.nightly),
    ],
)
def test_the_numbers_are_those_of_cross_validation(run: Path, view: str, encoding: str) -> None:
    chosen = Potentials(by="kind", encoding=encoding)
    fits, applied = cross_fitting(viewed(view), chosen, n_folds=3, seed=4).learned()
    cell = {"variant": view, "encoding": encoding}
    learned, default = (
        claim_posteriors(graphs, encoding, "exact") for graphs in (applied, viewed(view))
    )
    places = [(graph.id, atom.id) for graph in applied for atom in graph.atoms]
    # There all responses are one graph, here each is its own: sums in another order.
    for prior, p in (("learned", learned), ("default", default)):
        of_run = posteriors(run, prior=prior, **cell)[places].to_numpy()
        assert of_run == pytest.approx(p, abs=1e-12)
    assert np.abs(learned - default).max() > 0.01
    table = pd.read_csv(run / "priors.csv")
    table = table[(table.variant == view) & (table.encoding == encoding) & table.fold.notna()]
    expected = [
        (fold, row.name, row.estimate, row.standard_error, fit.n_responses, fit.status.value)
        for fold, fit in fits.items()
        for row in fit.table()
        if fold != WHOLE
    ]
    names = ["fold", "parameter", "estimate", "standard_error", "n_responses", "status"]
    learned_rows = list(table[names].itertuples(index=False, name=None))
    assert [(row[:2], row[4:]) for row in learned_rows] == [(row[:2], row[4:]) for row in expected]
    # The very numbers: a CSV file holds each in full.
    assert np.array_equal(
        [r[2:4] for r in learned_rows], [r[2:4] for r in expected], equal_nan=True
    )
    assert set(table.prior) == {"learned"}


def test_responses_without_labels_learn_of_all_others(run: Path) -> None:
    graphs = viewed("FR2")
    learned = fit_potentials(graphs, Potentials(by="kind"))
    of_run = posteriors(run, prior="learned", variant="FR2", encoding="implication")
    bare = [graph for graph in graphs if graph.atoms[0].label is None]
    assert len(bare) == 3
    for graph in bare:
        model = learned.apply(graph).to_factor_graph("implication")
        expected = infer(model, "exact").marginals.of_state(1, graph.atom_ids)
        assert of_run[graph.id].to_numpy() == pytest.approx(expected, abs=1e-12)
    table = pd.read_csv(run / "priors.csv")
    whole = table[table.fold.isna() & (table.variant == "FR2") & (table.encoding == "implication")]
    assert dict(zip(whole.parameter, whole.estimate, strict=True)) == learned.values
    assert set(whole.n_responses) == {9}
    assert whole.converged.all()


def test_kinds_found_only_in_unlabeled_responses_keep_their_temperature(tmp_path: Path) -> None:
    graphs = responses()
    only_entailed = [
        replace(g, relations=tuple(r for r in g.relations if r.kind.value == "entailment"))
        if g.atoms[0].label is not None
        else g
        for g in graphs
    ]
    kinds = {r.kind.value for g in graphs if g.atoms[0].label is None for r in g.relations}
    assert kinds == {"entailment", "contradiction"}
    study = planned(tmp_path, only_entailed, ONE_VIEW.replace("[FR2]", "[given]"))
    run_study(study, tmp_path / "out", workers=1)
    table = pd.read_csv(tmp_path / "out" / "priors.csv").set_index("parameter")
    alone = table.loc[["temperature[contradiction]"]]
    assert (alone.estimate == 1.0).all()
    assert set(alone.parameter_status) == {"untouched"}
    assert alone.fold.isna().all()


def test_no_response_sees_its_own_labels(run: Path, tmp_path: Path) -> None:
    graphs = responses()
    turned = replace(graphs[2], atoms=tuple(replace(a, label=not a.label) for a in graphs[2].atoms))
    graphs[2] = turned
    run_study(planned(tmp_path, graphs, ONE_VIEW), tmp_path / "out", workers=1)
    before, after = (
        posteriors(out, prior="learned", variant="FR2", encoding="implication")
        for out in (run, tmp_path / "out")
    )
    # To the last bit: nothing that its posteriors depend on has changed.
    assert np.array_equal(before[turned.id], after[turned.id])
    others = [graph.id for graph in graphs if graph.id != turned.id]
    moved = {name for name in others if not np.array_equal(before[name], after[name])}
    folds = labeled_folds(viewed("FR2"), 3, seed=4).tolist()
    fold_of = dict(zip((graph.id for graph in graphs), folds, strict=True))
    same_fold = {name for name, fold in fold_of.items() if fold == fold_of[turned.id]}
    assert moved == set(others) - same_fold


def test_strengths_act_on_what_was_learned(tmp_path: Path) -> None:
    text = STUDY.replace("[FR1, FR2]", "[FR2]").replace("seed: 4", "seed: 4\nstrengths: [1, 3]")
    graphs = responses()
    run_study(planned(tmp_path, graphs, text), tmp_path / "out", workers=1)
    chosen = Potentials(by="kind")
    learned = fit_potentials(viewed("FR2"), chosen)
    graph = learned.apply(next(g for g in viewed("FR2") if g.atoms[0].label is None))
    stronger = strengthened(np.array([r.probability for r in graph.relations]), 3.0)
    moved = replace(
        graph,
        relations=tuple(
            replace(r, probability=p)
            for r, p in zip(graph.relations, stronger.tolist(), strict=True)
        ),
    )
    expected = infer(moved.to_factor_graph("implication"), "exact")
    cell = {"prior": "learned", "encoding": "implication"}
    of_run = posteriors(tmp_path / "out", strength=3.0, **cell)[graph.id]
    # The same tables, built one way from graphs and the other from arrays.
    assert of_run.to_numpy() == pytest.approx(
        expected.marginals.of_state(1, graph.atom_ids), abs=1e-12
    )
    # A strength is no new question: there is one set of fits for both.
    assert pd.read_csv(tmp_path / "out" / "priors.csv").encoding.value_counts().nunique() == 1
    plain = posteriors(tmp_path / "out", strength=1.0, **cell)[graph.id]
    assert np.abs(of_run - plain).max() > 1e-3


def test_fixed_parameters_beside_learned_ones(tmp_path: Path) -> None:
    text = STUDY.replace(
        f"name: learned, learned: {LEARNED}",
        "learned: {parameters: [probability], folds: 3}, atom: [0.3]",
    )
    text = text.replace("[FR1, FR2]", "[FR1]").replace(
        "[implication, conditional]", "[implication]"
    )
    study = planned(tmp_path, responses(), text)
    assert [prior.title for prior in study.study.prior_settings] == ["default", "learned atom=0.3"]
    run_study(study, tmp_path / "out", workers=1)
    table = pd.read_csv(tmp_path / "out" / "priors.csv")
    assert set(table.parameter) == {"probability[contradiction]", "probability[entailment]"}
    rows = posteriors(
        tmp_path / "out", prior="learned atom=0.3", variant="FR1", encoding="implication"
    )
    chosen = Potentials(("probability",))
    graphs = [graph.with_priors(atoms=0.3) for graph in viewed("FR1")]
    applied = cross_fitting(graphs, chosen, n_folds=3, seed=4).learned()[1]
    places = [(graph.id, atom.id) for graph in applied for atom in graph.atoms]
    expected = claim_posteriors(applied, backend="exact")
    assert rows[places].to_numpy() == pytest.approx(expected, abs=1e-12)


def assert_same_run(first: Path, other: Path) -> None:
    assert_same_files(first, other)
    assert (first / "priors.csv").read_bytes() == (other / "priors.csv").read_bytes()


@contextmanager
def stopping(_left: int, _kept: int) -> Iterator[Callable[[Progress], None]]:
    """A monitor that interrupts a run after its first task."""

    def report(_: Progress) -> None:
        raise KeyboardInterrupt

    yield report


def test_a_run_that_goes_on_fits_nothing_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = planned(tmp_path, responses()), tmp_path / "out"
    fitted = CrossFitting.without
    count = 0

    def dying(self: CrossFitting, number: int) -> LearnedPotentials:
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return fitted(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(CrossFitting, "without", dying)
        with pytest.raises(KeyboardInterrupt):
            run_study(study, out, workers=1)
    sentences: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run_study(study, out, workers=1, resume=True, monitor=stopping, notice=sentences.append)
    # Of four views the first was done, the second not.
    assert len(sentences) == 3
    monkeypatch.setattr(CrossFitting, "without", None)
    run_study(study, out, workers=1, resume=True)
    assert_same_run(run, out)


def test_fits_that_are_gone_are_refused(run_once: Path, tmp_path: Path) -> None:
    study, out = planned(tmp_path, responses(), ONE_VIEW), tmp_path / "out"
    shutil.copytree(run_once, out)
    with closing(sqlite3.connect(out / STORE)) as connection, connection:
        connection.execute("DELETE FROM kept WHERE kind = 'priors'")
    with pytest.raises(InputError, match=r"sqlite: the priors 'learned' of data .* are missing"):
        run_study(study, out, workers=1, resume=True)
    run_study(study, out, workers=1, overwrite=True)
    with open_store(out / STORE, "") as store:
        for key, fit in list(store.items(PRIORS)):
            store.put(PRIORS, key, {"theta": list(fit.pop("weights").values()), **fit})
    with pytest.raises(InputError, match="or from another version; start over"):
        run_study(study, out, workers=1, resume=True)


def test_other_ways_to_learn_are_another_run(run_once: Path, tmp_path: Path) -> None:
    shutil.copytree(run_once, tmp_path / "out")
    for text in (
        ONE_VIEW.replace("folds: 3", "folds: 4"),
        ONE_VIEW.replace("seed: 4", "seed: 5"),
    ):
        with pytest.raises(InputError, match=r"differs in (priors|seed)"):
            run_study(
                planned(tmp_path, responses(), text), tmp_path / "out", workers=1, resume=True
            )


def test_a_fit_that_fails_costs_its_units_alone_and_can_be_tried_again(
    run_once: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(responses(), folder / "data.jsonl")
    path = study_file(folder, ONE_VIEW)
    fitted = CrossFitting.without

    def failing(self: CrossFitting, number: int) -> LearnedPotentials:
        if number == 1:
            raise MemoryError("no room")
        return fitted(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(CrossFitting, "without", failing)
        result = invoke("run", path, "--out", "out", "--workers", "1", code=1)
    message = "its priors could not be learned: MemoryError: no room"
    assert "3 units failed, the first at" in result.stdout
    assert message in result.stdout
    rows = read_rows(folder / "out" / "rows.parquet")
    failed = rows[rows.status == "failed"]
    assert set(failed.error) == {message}
    assert set(failed.prior) == {"learned"}
    assert failed.response.nunique() == 3
    table = pd.read_csv(folder / "out" / "priors.csv")
    assert table[table.status == "failed"].error.tolist() == ["MemoryError: no room"]
    # To go on is not to try again.
    before = (folder / "out" / "summary.csv").read_bytes()
    invoke("run", path, "--out", "out", "--resume", code=1)
    assert (folder / "out" / "summary.csv").read_bytes() == before
    assert "3 units" in invoke("run", path, "--out", "out", "--retry-failed").stderr
    assert_same_run(run_once, folder / "out")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets: [worked-examples]", "priors[0].learned: no atom of 'worked-examples' has"),
        (
            "datasets: [{name: demonstration, limit: 3}]",
            "priors[0].learned.folds: 5 folds, but 'demonstration' has 3 labeled responses, "
            "which are never split; give at most 3",
        ),
        ("datasets: [{name: demonstration, limit: 1}]", "1 labeled response, which"),
    ],
)
def test_data_that_nothing_can_be_learned_of_are_refused(
    folder: Path, text: str, message: str
) -> None:
    path = study_file(folder, f"study: s\n{text}\npriors: [{{learned: {{}}}}]\n")
    result = invoke("run", path, code=2)
    assert message in " ".join(result.stderr.split())
    assert "study.yaml: priors[0].learned" in result.stderr
    assert [file.name for file in folder.iterdir()] == ["study.yaml"]


def test_priors_that_no_backend_uses_are_not_learned(folder: Path) -> None:
    text = (
        "study: s\ndatasets: [worked-examples, demonstration]\npriors: [{}, {learned: {}}]\n"
        "backends:\n"
        "  - {backend: exact, only: {priors: [data]}}\n"
        "  - {backend: lbp, only: {datasets: [demonstration]}}\n"
    )
    result = invoke("run", study_file(folder, text), "--dry-run")
    shown = [
        line.removeprefix("- ") for line in result.stdout.splitlines() if "learned before" in line
    ]
    assert shown == [
        "learned before the units: priors 'learned' of demonstration (FR2, implication), in 5 folds"
    ]


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        (
            "{by: stance}",
            "study.yaml: priors[0].learned: priors 'learned' of demonstration (FR2, implication): "
            "fact graph",
        ),
        ("{settings: {dampin: 0.5}, backend: lbp}", "learned.settings.dampin: the backend 'lbp'"),
        ("{backend: exact, settings: {memory_limit: x}}", "learned.settings.memory_limit: 'x'"),
    ],
)
def test_impossible_learning_is_one_sentence(folder: Path, learned: str, message: str) -> None:
    text = f"study: s\ndatasets: [demonstration]\npriors: [{{learned: {learned}}}]\n"
    assert message in invoke("run", study_file(folder, text), code=2).stderr.splitlines()[-1]
    assert [file.name for file in folder.iterdir()] == ["study.yaml"]


def test_bad_input_after_the_first_fits_leaves_no_trace(folder: Path) -> None:
    text = (
        "study: s\ndatasets: [{name: factcheck-bench, limit: 9}, demonstration]\noutputs: []\n"
        "priors: [{learned: {by: stance, folds: 2}}]\n"
    )
    result = invoke("run", study_file(folder, text), code=2)
    assert "learning priors 'learned' of demonstration" in result.stderr
    assert "comes from no stance" in result.stderr
    assert [file.name for file in folder.iterdir()] == ["study.yaml"]


def test_stances_go_to_other_processes(tmp_path: Path) -> None:
    text = (
        "study: s\ndatasets: [{name: factcheck-bench, limit: 12}]\noutputs: []\n"
        "priors: [{learned: {parameters: [probability], by: stance, folds: 3, penalty: 2}}]\n"
    )
    path = study_file(tmp_path, text)
    # One of its own is enough for what is sent to be sent.
    study = design(load_study(str(path)))
    with processes(1) as other:
        run_study(study, tmp_path / "out", workers=other)
    run_study(study, tmp_path / "here", workers=1)
    assert_same_run(tmp_path / "here", tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "priors.csv")
    assert {"probability[refute]", "probability[completely-support]"} <= set(table.parameter)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["priors"][0]["learned"]["by"] == "stance"
    assert "priors.csv" in manifest["files"]
    n = len(load("factcheck-bench").graphs[:12])
    assert read_rows(tmp_path / "out" / "rows.parquet").response.nunique() == n
