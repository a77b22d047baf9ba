"""The page of studies with relation models, assessors, learned priors and selections."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.folds import response_folds
from experiments.pages import removals
from experiments.pages.from_run_folder import read_subject
from experiments.study.cells import GraphView, PriorSetting
from experiments.study.rows import read_rows
from experiments.study.units import strengthened
from factormodels.claims import RelationKind
from factormodels.datasets import load
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.io.store.results import STORE
from factormodels.variants import merge_duplicate_contexts, variant
from inference import infer
from tests.experiments.conftest import KEY, invoke
from tests.experiments.pages.reported import listed, read_page, run_study
from tests.experiments.pages.test_report import body_rows
from tests.experiments.study.test_study_assessors import provider
from tests.factormodels.extraction.server import ScriptedServer

pytestmark = [pytest.mark.service, pytest.mark.slow]

STUDY = """
study: everything
datasets: [{name: demonstration, limit: 3}]
variants: [FR1]
relation_models: [recorded, lexical]
priors: [{}, {name: taught, learned: {parameters: [atom_prior, temperature], folds: 2}}]
assessors: [factscore, {assessor: factverify, label: verify}]
selections: [all, core]
backends: [exact, {backend: lbp, only: {priors: [data]}}]
language_model: {model: openai/scripted, api_base: URL}
significance: {pairs: [[{selection: core}, {selection: all}]], resamples: 50}
outputs: [report, csv]
seed: 3
probe: false
"""

VIEWS = [
    "FR1 · implication",
    "FR1 · implication · taught",
    "FR1 · lexical · implication",
    "FR1 · lexical · implication · taught",
]
ALGORITHMS = ["exact", "lbp", "factscore", "verify"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a finished run of `STUDY`."""
    folder = tmp_path_factory.mktemp("everything")
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(provider) as server:
        patch.chdir(folder)
        patch.setenv("OPENAI_API_KEY", KEY)
        yield run_study(folder, STUDY.replace("URL", server.url), "--workers", "1")


@pytest.fixture
def copied(run: Path, folder: Path) -> Path:
    """A copy of that run in the current folder, with its store and without its page."""
    shutil.copytree(run, folder / "run", ignore=shutil.ignore_patterns("report.html"))
    return folder / "run"


def responses_of(run: Path) -> list[dict[str, Any]]:
    """Return the responses that the page of a run lists."""
    responses: list[dict[str, Any]] = listed(run / "report.html")["responses"]
    return responses


def graphs() -> tuple[FactGraph, ...]:
    return load("demonstration").graphs[:3]


def seen(graph: FactGraph, at: int, model: str, prior: str, run: Path) -> FactGraph:
    """Return a view as inference saw it, from the relation model and priors.csv alone."""
    if model == "lexical":
        graph = with_relations(merge_duplicate_contexts(graph), LexicalRelations(), "FR1")
    viewed = variant(graph, "FR1")
    if prior == "data":
        return viewed
    table = pd.read_csv(run / "priors.csv")
    fold = response_folds([graph.id for graph in graphs()], 2, 3)[at]
    table = table[(table.relation_model == model) & (table.fold == fold)]
    values = dict(zip(table.parameter, table.estimate, strict=True))
    p = np.array([relation.probability for relation in viewed.relations])
    sharpened = strengthened(p, values["temperature"]).tolist()
    return replace(
        viewed,
        atoms=tuple(replace(atom, prior=values["atom_prior"]) for atom in viewed.atoms),
        relations=tuple(
            replace(relation, probability=q)
            for relation, q in zip(viewed.relations, sharpened, strict=True)
        ),
    )


def without(graph: FactGraph, contexts: set[str]) -> FactGraph:
    return replace(
        graph,
        contexts=tuple(context for context in graph.contexts if context.id not in contexts),
        relations=tuple(
            relation
            for relation in graph.relations
            if not contexts & {relation.source, relation.target}
        ),
    )


def test_posteriors_and_judgments_are_those_of_the_rows(run: Path) -> None:
    rows = read_rows(run / "rows.parquet")
    data = listed(run / "report.html")
    assert data["views"] == VIEWS
    judges = data["answers"]
    assert {judge["title"].rpartition(" · ")[2] for judge in judges} == set(ALGORITHMS)
    assert [judge["title"] for judge in judges if judge["view"] is None] == ["factscore", "verify"]
    n_missing = 0
    for entry, graph in zip(data["responses"], graphs(), strict=True):
        of_response = rows[rows.response == graph.id]
        for claim, atom in zip(entry["claims"], graph.atom_ids, strict=True):
            of_atom = of_response[of_response.atom == atom]
            assert claim["id"] == atom
            assert claim["kept"] == of_atom.selections.iloc[0].split()
            for judge, p in zip(judges, claim["p"], strict=True):
                view, _, algorithm = judge["title"].rpartition(" · ")
                of_backend = of_atom[of_atom.backend_label == algorithm]
                if view:
                    model = "lexical" if "lexical" in view else "recorded"
                    prior = "taught" if "taught" in view else "data"
                    of_backend = of_backend[
                        (of_backend.relation_model == model) & (of_backend.prior == prior)
                    ]
                if of_backend.p.isna().all():
                    assert p is None
                    n_missing += 1
                else:
                    assert p == pytest.approx(float(of_backend.p.iloc[0]), abs=1e-9)
    assert n_missing


def test_removals_are_those_of_the_relations_and_priors_of_the_view(run: Path) -> None:
    compared = 0
    for at, (entry, graph) in enumerate(zip(responses_of(run), graphs(), strict=True)):
        shown: dict[tuple[int, str, str], tuple[float, float, bool, float]] = {}
        for claim in entry["claims"]:
            for item in claim.get("evidence", ()):
                for view, effect in enumerate(item["effects"]):
                    if effect is not None:
                        key = (view, claim["id"], entry["passages"][item["passage"]]["id"])
                        against = item["relation"] == "contradiction"
                        assert key not in shown
                        shown[key] = (*effect, against, item["probability"])
        expected = 0
        for view, (model, prior) in enumerate(
            (model, prior) for model in ("recorded", "lexical") for prior in ("data", "taught")
        ):
            plain = seen(graph, at, model, "data", run)
            believed = seen(graph, at, model, prior, run)
            whole = infer(believed.to_factor_graph("implication"), "exact").marginals
            for relation in plain.relations:
                if relation.kind is RelationKind.NEUTRAL:
                    continue
                copy, atom = relation.source, relation.target
                if copy not in plain.context_ids:
                    copy, atom = atom, copy
                less = without(believed, {copy}).to_factor_graph("implication")
                rest = infer(less, "exact").marginals[atom][1]
                value = shown[view, atom, copy.removesuffix(f"@{atom}")]
                assert value[0] == pytest.approx(rest, abs=1e-6)
                assert value[1] == pytest.approx(whole[atom][1] - rest, abs=1e-6)
                assert value[2] == (relation.kind is RelationKind.CONTRADICTION)
                assert value[3] == pytest.approx(relation.probability, abs=1e-6)
                expected += 1
        assert len(shown) == expected
        compared += expected
        views = {view for view, *_ in shown}
        assert views == {0, 1, 2, 3}
        pairs = [{key[1:] for key in shown if key[0] == view} for view in (0, 2)]
        assert pairs[0] != pairs[1], "the two relation models must not find the same"
    assert compared > 20


def test_learned_parameters_are_reported(run: Path) -> None:
    table = pd.read_csv(run / "priors.csv")
    folds = response_folds([graph.id for graph in graphs()], 2, 3)
    for at, entry in enumerate(responses_of(run)):
        expected = []
        for model in ("recorded", "lexical"):
            of_fold = table[(table.relation_model == model) & (table.fold == folds[at])]
            values = ", ".join(
                f"{name} {value:.3f}"
                for name, value in zip(of_fold.parameter, of_fold.estimate, strict=True)
            )
            expected.append(f"taught, learned from all but fold {folds[at]}: {values}")
        assert [note for note in entry["notes"] if "learned" in note] == expected


def test_the_page_has_selections_models_and_true_counts(run: Path) -> None:
    index = read_page(run / "report.html")
    summary = pd.read_csv(run / "summary.csv")
    table = index.only("details", id="cells").only("table")
    titles = [head.text for head in table.only("thead").all("th")]
    assert titles[:6] == ["variant", "relations", "encoding", "priors", "backend", "selection"]
    rows = body_rows(table)
    assert [row[5].text for row in rows] == list(summary.selection) == ["all", "core"] * 8
    assert [cell.text for cell in rows[-1][:4]] == ["--", "--", "--", "--"]
    tiles = {
        tile.only("dt").text: tile.only("dd").text
        for tile in index.only("dl", class_="tiles").children
    }
    assert (tiles["cells"], tiles["units"], tiles["failed"]) == ("8", "24", "0")
    manifest = json.loads((run / "manifest.json").read_text())
    asked = {row[0].text: [cell.text for cell in row[1:]]
             for row in body_rows(index.only("table", id="models"))}  # fmt: skip
    facts = manifest["models"]["assessors"]["verify"]
    counts = ("responses", "asked", "missing", "dropped", "failed", "answers", "prompt_tokens",
              "completion_tokens")  # fmt: skip
    assert asked["verify"] == [
        "assessor", "openai/scripted", *(f"{facts[name]:,}" for name in counts),
        "--", f"{facts['unpriced']:,}",
    ]  # fmt: skip
    assert facts["unpriced"] == facts["answers"], "what no price is known of costs no 0"
    assert asked["lexical"][:2] == ["relation model", "--"]
    assert listed(run / "report.html")["selections"] == ["all", "core"]


def test_it_is_made_again_from_the_folder_to_the_byte(run: Path, copied: Path) -> None:
    summary = read_subject(copied).summary
    written = pd.read_csv(run / "summary.csv")
    # A CSV file holds every number in full.
    assert summary.brier.tolist() == written.brier.tolist()
    assert list(summary.selection) == ["all", "core"] * 8
    invoke("report", copied)
    assert (copied / "report.html").read_bytes() == (run / "report.html").read_bytes()


@pytest.mark.usefixtures("without_plots")
def test_without_the_store_it_says_what_was_not_kept(copied: Path) -> None:
    (copied / STORE).unlink()
    invoke("report", copied)
    entry = responses_of(copied)[0]
    assert entry["unknown"] == [[[2, 3], "the relations that lexical found were not kept"]]
    (note,) = entry["notes"]
    assert note == (
        "in 1 of 4 views what passages change was not computed, because the learned values of "
        "these priors were not kept"
    )
    effects = [item["effects"] for claim in entry["claims"] for item in claim.get("evidence", ())]
    assert effects
    for first, *others in effects:
        assert 0 < first[0] < 1
        assert others == [[None, None], None, None]
    assert entry["relations"][2:] == [None, None]
    assert [graph["views"] for graph in entry["graphs"]] == [[0, 1]]


@pytest.mark.usefixtures("without_plots")
def test_files_that_the_manifest_does_not_list_are_not_shown(copied: Path) -> None:
    """The state after a run that was started over with --overwrite and died."""
    with closing(sqlite3.connect(copied / STORE)) as connection, connection:
        for kind in ("texts", "priors"):
            last = "SELECT max(rowid) FROM kept WHERE kind = ?"
            connection.execute(f"DELETE FROM kept WHERE rowid = ({last})", (kind,))
    invoke("report", copied, "--response", str(graphs()[0].id))
    (entry,) = responses_of(copied)
    # The last record of each is gone: relations of one response, and a fit.
    ((numbers, _),) = entry["unknown"]
    assert numbers == [2, 3]
    assert "in 1 of 4 views" in entry["notes"][0]


@pytest.mark.usefixtures("without_plots")
def test_assessors_alone_have_a_page(copied: Path) -> None:
    only = ("--backend", "factscore,verify", "--response", str(graphs()[0].id))
    invoke("report", copied, *only)
    data = listed(copied / "report.html")
    assert data["views"] == []
    assert [answer["title"] for answer in data["answers"]] == ["factscore", "verify"]
    (entry,) = data["responses"]
    assert all("evidence" not in claim for claim in entry["claims"])
    assert "graphs" not in entry


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("priors=[{name: none, atom: [0.4]}]", "reserved for assessors, which have no priors"),
        ("priors=[{name: data, atom: [0.4]}]", "the name data is reserved for the data's priors"),
        ("priors=[{name: data, learned: {}}]", "the name data is reserved for the data's priors"),
        (
            "relation_models=[{model: lexical, label: none}]",
            "reserved for assessors, which have no relations",
        ),
    ],
)
def test_names_that_pages_would_take_for_another_thing_are_refused(
    override: str, message: str
) -> None:
    assert message in invoke("run", "compare", override, "--dry-run", code=2).stderr


def test_no_relations_is_a_reason_and_never_those_of_the_data() -> None:
    graph = graphs()[0]
    view = GraphView("FR1", "implication", PriorSetting("data", None, None), 1.0, "asked")
    (removal,), seconds = removals.removals_of(
        graph, [view], 9.0, {("asked", "FR1"): "none of 4 relations was found: refused"}
    )
    assert (removal.seen, removal.removals, seconds) == (None, None, 9.0)
    assert removal.reason == "asked found no relations: none of 4 relations was found: refused"
