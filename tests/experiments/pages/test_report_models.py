"""The report of studies with relation models, assessors, learned priors and selections."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.folds import response_folds
from experiments.pages import removals
from experiments.pages.from_run_folder import read_subject
from experiments.study.config import PriorSetting
from experiments.study.design import GraphView
from experiments.study.rows import read_rows
from experiments.study.units import strengthened
from factormodels.claims import RelationKind
from factormodels.datasets import load
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.io.result_store import STORE
from factormodels.variants import merge_duplicate_contexts, variant
from inference import infer
from tests.experiments.conftest import KEY, invoke
from tests.experiments.pages.reported import Element, read_page, run_study
from tests.experiments.pages.test_report import body_rows, in_turn, number
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
    """A copy of that run in the current folder, with its store and without its report."""
    shutil.copytree(run, folder / "run", ignore=shutil.ignore_patterns("report"))
    return folder / "run"


def page_of(run: Path, place: int) -> Element:
    return read_page(run / "report" / f"response-{place:04}.html")


def graphs() -> tuple[FactGraph, ...]:
    return load("demonstration").graphs[:3]


def words(element: Element) -> str:
    return " ".join(element.text.split())


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def seen(graph: FactGraph, at: int, model: str, prior: str, run: Path) -> FactGraph:
    """Return a view as inference saw it, from the relation model and priors.csv alone."""
    if model == "lexical":
        graph = with_relations(merge_duplicate_contexts(graph), LexicalRelations(), "FR1")
    viewed = variant(graph, "FR1")
    if prior == "data":
        return viewed
    table = pd.read_csv(run / "priors.csv")
    fold = response_folds([one.id for one in graphs()], 2, 3)[at]
    table = table[(table.relation_model == model) & (table.fold == fold)]
    values = dict(zip(table.parameter, table.estimate, strict=True))
    p = np.array([one.probability for one in viewed.relations])
    sharpened = strengthened(p, values["temperature"]).tolist()
    return replace(
        viewed,
        atoms=tuple(replace(one, prior=values["atom_prior"]) for one in viewed.atoms),
        relations=tuple(
            replace(one, probability=q) for one, q in zip(viewed.relations, sharpened, strict=True)
        ),
    )


def without(graph: FactGraph, contexts: set[str]) -> FactGraph:
    return replace(
        graph,
        contexts=tuple(one for one in graph.contexts if one.id not in contexts),
        relations=tuple(one for one in graph.relations if not contexts & {one.source, one.target}),
    )


def test_posteriors_and_judgements_are_those_of_the_rows(run: Path) -> None:
    rows = read_rows(run / "rows.parquet")
    n_missing = 0
    for place, graph in enumerate(graphs(), 1):
        page = page_of(run, place)
        options = page.one("select", data_switches="main").all("option")
        assert [option.text for option in options] == VIEWS
        table = page.one("table", id="atoms")
        heads = [head.text for head in table.one("thead").all("th")]
        assert heads == ["id", "claim", "label", "kept by", *ALGORITHMS, "spread"]
        own = rows[rows.response == graph.id]
        for cells, atom in zip(body_rows(table), graph.atom_ids, strict=True):
            of_atom = own[own.atom == atom]
            assert cells[3].text.split(", ") == of_atom.selections.iloc[0].split()
            p = of_atom.p.dropna().astype(float)
            # Three decimals are shown.
            assert number(cells[-1].text) == pytest.approx(p.max() - p.min(), abs=5.001e-4)
            for algorithm, cell in zip(ALGORITHMS, cells[4:-1], strict=True):
                judged = of_atom[of_atom.backend_label == algorithm]
                for view, text in zip(VIEWS, in_turn(cell), strict=True):
                    told = judged
                    if algorithm in ("exact", "lbp"):
                        model = "lexical" if "lexical" in view else "recorded"
                        prior = "taught" if "taught" in view else "data"
                        told = judged[(judged.relation_model == model) & (judged.prior == prior)]
                    if told.empty:
                        assert (algorithm, text) == ("lbp", "")
                    elif told.p.isna().all():
                        assert text == "–"
                        n_missing += view == VIEWS[0]
                    else:
                        assert number(text) == pytest.approx(float(told.p.iloc[0]), abs=5.001e-4)
        cells_table = body_rows(page.one("section", id="cells").one("table"))
        assert [row[0].text for row in cells_table[-2:]] == ["no graph", "no graph"]
    assert n_missing == rows.p.isna().sum() > 0


def test_evidence_and_removals_are_those_of_each_view(run: Path) -> None:
    compared = 0
    for at, graph in enumerate(graphs()):
        page = page_of(run, at + 1)
        shown: dict[tuple[int, str, str], tuple[float, float, bool, float]] = {}
        for card in page.all("article"):
            atom = card.attributes["data-filter"].split()[0]
            for table in card.all("table", class_="sortable evidence"):
                for cells in body_rows(table):
                    for view, text in enumerate(in_turn(cells[3])):
                        if text:
                            change = number(in_turn(cells[4])[view])
                            key = (view, atom, cells[0].text)
                            against = "contradicts" in cells[1].text
                            value = (number(text), change, against, number(cells[2].text))
                            assert key not in shown
                            shown[key] = value
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
                # Three decimals are shown, of the probability two.
                assert value[0] == pytest.approx(rest, abs=5.001e-4)
                assert value[1] == pytest.approx(whole[atom][1] - rest, abs=5.001e-4)
                assert value[2] == (relation.kind is RelationKind.CONTRADICTION)
                assert value[3] == pytest.approx(relation.probability, abs=5.001e-3)
                expected += 1
        assert len(shown) == expected
        compared += expected
        views = {view for view, *_ in shown}
        assert views == {0, 1, 2, 3}
        pairs = [{key[1:] for key in shown if key[0] == view} for view in (0, 2)]
        assert pairs[0] != pairs[1], "the two relation models must not find the same"
    assert compared > 20


def test_what_was_learned_is_said_under_its_views_alone(run: Path) -> None:
    table = pd.read_csv(run / "priors.csv")
    folds = response_folds([one.id for one in graphs()], 2, 3)
    for at in range(3):
        told = page_of(run, at + 1).all("p", class_="learned quiet")
        assert [one.attributes["data-only"] for one in told] == ["1", "3"]
        for one, model in zip(told, ("recorded", "lexical"), strict=True):
            own = table[(table.relation_model == model) & (table.fold == folds[at])]
            values = ", ".join(
                f"{name} {value:.3f}"
                for name, value in zip(own.parameter, own.estimate, strict=True)
            )
            assert one.text == f"taught, learned from all but fold {folds[at]}: {values}."


def test_the_first_page_has_selections_models_and_true_counts(run: Path) -> None:
    index = read_page(run / "report" / "index.html")
    summary = pd.read_csv(run / "summary.csv")
    table = index.one("details", id="cells").one("table")
    titles = [head.text for head in table.one("thead").all("th")]
    assert titles[:6] == ["variant", "relations", "encoding", "priors", "backend", "selection"]
    rows = body_rows(table)
    assert [row[5].text for row in rows] == list(summary.selection) == ["all", "core"] * 8
    assert [cell.text for cell in rows[-1][:4]] == ["–", "–", "–", "–"]
    tiles = {
        one.one("dt").text: one.one("dd").text for one in index.one("dl", class_="tiles").children
    }
    assert (tiles["cells"], tiles["units"], tiles["failed"]) == ("8", "24", "0")
    manifest = json.loads((run / "manifest.json").read_text())
    asked = {row[0].text: [cell.text for cell in row[1:]]
             for row in body_rows(index.one("table", id="models"))}  # fmt: skip
    facts = manifest["models"]["assessors"]["verify"]
    counts = ("responses", "asked", "missing", "dropped", "failed", "answers", "prompt_tokens",
              "completion_tokens")  # fmt: skip
    assert asked["verify"] == [
        "assessor", "openai/scripted", *(f"{facts[name]:,}" for name in counts),
        "–", f"{facts['unpriced']:,}",
    ]  # fmt: skip
    assert facts["unpriced"] == facts["answers"], "what no price is known of costs no 0"
    assert asked["lexical"][:2] == ["relation model", "–"]
    options = [one.text for one in index.one("section", id="responses").all("option")]
    assert options[-2:] == ["factscore", "verify"]


def test_it_is_made_again_from_the_folder_to_the_byte(run: Path, copied: Path) -> None:
    summary = read_subject(copied).summary
    written = pd.read_csv(run / "summary.csv")
    # A CSV file holds every number in full.
    assert summary.brier.tolist() == written.brier.tolist()
    assert list(summary.selection) == ["all", "core"] * 8
    invoke("report", copied)
    assert bytes_of(copied / "report") == bytes_of(run / "report")


def test_without_the_store_it_says_what_was_not_kept(copied: Path) -> None:
    (copied / STORE).unlink()
    invoke("report", copied)
    page = page_of(copied, 1)
    unknown = page.all("p", class_="unknown")
    assert [one.attributes["data-only"] for one in unknown] == ["2 3"]
    assert "the relations that lexical found were not kept" in unknown[0].text
    said = words(page.one("section", id="evidence"))
    assert (
        "In 1 of 4 views it was not computed (–), because what was learned for these priors was "
        "not kept." in said
    )
    for table in page.all("table", class_="sortable evidence"):
        for cells in body_rows(table):
            without_it = in_turn(cells[3])
            assert re.fullmatch(r"[01]\.\d{3}", without_it[0])
            assert without_it[1:] == ["–", "", ""]
    for row in body_rows(page.one("table", id="context-rows")):
        assert in_turn(row[3])[2:] == ["–", "–"]
    assert {one.attributes["data-only"] for one in page.all("figure")} == {"0 1"}
    assert page.all("p", class_="learned quiet") == []


def test_what_the_manifest_does_not_vouch_for_is_not_shown(copied: Path) -> None:
    """As after a run that was begun anew with --overwrite, and died."""
    with closing(sqlite3.connect(copied / STORE)) as connection, connection:
        for kind in ("texts", "priors"):
            last = "SELECT max(rowid) FROM kept WHERE kind = ?"
            connection.execute(f"DELETE FROM kept WHERE rowid = ({last})", (kind,))
    invoke("report", copied, "--response", str(graphs()[0].id))
    page = page_of(copied, 1)
    # The last record of each is gone: relations of one response, and a fit.
    (unknown,) = page.all("p", class_="unknown")
    assert unknown.attributes["data-only"] == "2 3"
    assert "In 1 of 4 views it was not computed" in words(page.one("section", id="evidence"))


def test_assessors_alone_have_pages(copied: Path) -> None:
    only = ("--only", "backend=factscore,verify", "--response", str(graphs()[0].id))
    invoke("report", copied, *only)
    page = page_of(copied, 1)
    assert "no graph" in words(page.one("div", class_="tools sticky"))
    assert "assessors judge texts and have no relations" in words(
        page.one("section", id="evidence")
    )
    assert page.all("table", class_="sortable evidence") == []
    assert page.all("section", id="graph") == []


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("priors=[{name: none, atom: 0.4}]", "assessors, which have no priors, are called none"),
        ("priors=[{name: data, atom: 0.4}]", "the priors of the data alone are called data"),
        ("priors=[{name: data, learned: {}}]", "the priors of the data alone are called data"),
        ("relation_models=[{model: lexical, label: none}]", "have no relations, are called none"),
    ],
)
def test_names_that_pages_would_take_for_another_thing_are_refused(
    override: str, said: str
) -> None:
    assert said in invoke("run", "compare", override, "--dry-run", code=2).stderr


def test_no_relations_is_a_reason_and_never_those_of_the_data() -> None:
    graph = graphs()[0]
    view = GraphView("FR1", "implication", PriorSetting("data", None, None), 1.0, "asked")
    (one,), seconds = removals.removals_of(
        graph, [view], 9.0, {("asked", "FR1"): "none of 4 relations was found: refused"}
    )
    assert (one.seen, one.removals, seconds) == (None, None, 9.0)
    assert one.reason == "asked found no relations: none of 4 relations was found: refused"
