"""A label that taught a probability is refused where it would judge or correct it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.learned_potentials import read_judge
from experiments import apply, estimate, fit, keep, score, self_knowledge
from factormodels import Atom, FactGraph, InputError
from factormodels.extraction.pipeline import relation_stage
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.io import read_many, write_many
from factormodels.metadata.learned_from import LearnedFrom, mark_of
from factormodels.metadata.recorded_verdicts import recorded_marks
from tests.calibration.learned_potentials.data import of_cities
from tests.refusals import refused

QUICK: dict[str, Any] = {"n_bootstrap": 20, "resamples": 20}


def claims(n: int = 12, taught: int = 4, **columns: Any) -> pd.DataFrame:
    """Return a table of n responses of three claims; the first were learned from their labels."""
    rows = [
        {
            "response": f"r{response}",
            "claim": f"c{claim}",
            "p": 0.15 + 0.06 * ((3 * response + 5 * claim) % 13),
            "label": (response + claim) % 3 != 0,
            "p_learned_from": "this response" if response < taught else "other responses",
            **columns,
        }
        for response in range(n)
        for claim in range(3)
    ]
    return pd.DataFrame(rows)


def test_score_refuses_such_labels_and_names_the_responses() -> None:
    refusal = refused(
        "labels of 4 responses \\(r0, r1, r2, \\.\\.\\.\\) trained", score, claims(), **QUICK
    )
    assert "give labels of other responses" in refusal
    assert "`leave_out_taught`" in refusal
    # Of the responses whose labels taught nothing, the labels may be used.
    assert score(claims(taught=0), **QUICK)["scores"]["n_claims"].tolist() == [36]
    unlabeled = claims().astype({"label": object})
    unlabeled.loc[unlabeled["p_learned_from"] == "this response", "label"] = None
    assert score(unlabeled, **QUICK)["scores"]["n_claims"].tolist() == [24]


def test_responses_that_taught_are_left_out_where_that_is_asked_for() -> None:
    scores = score(claims(), leave_out_taught=True, **QUICK)
    alone = score(claims().iloc[12:], **QUICK)
    assert scores["scores"]["brier"].tolist() == alone["scores"]["brier"].tolist()
    assert any("4 responses (r0, r1, r2, ...) are left out" in each for each in scores.sentences)
    refused("labels of all 12 responses", score, claims(taught=12), leave_out_taught=True)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".json"])
def test_the_mark_is_read_from_any_file(tmp_path: Path, suffix: str) -> None:
    path, frame = tmp_path / f"claims{suffix}", claims().sample(frac=1.0, random_state=1)
    if suffix in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=suffix == ".jsonl")
    refused("labels of 4 responses", score, path)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({"p": "chance"}, {"p": ("chance",)}),
        ({"p": "chance", "p_learned_from": "chance learned from"}, {"p": ("chance",)}),
        ({"p_learned_from": "P-Learned-From"}, {}),
        ({"p_learned_from": "learned_from"}, {}),
        ({"p_learned_from": "p_learned_from_x"}, {}),
        ({"p_learned_from": "origin"}, {}),
    ],
)
def test_the_mark_stays_with_columns_that_are_renamed(
    names: dict[str, str], options: dict[str, Any]
) -> None:
    refused("labels of 4 responses", score, claims().rename(columns=names), **options)


def test_the_mark_is_that_of_its_own_column_of_probabilities() -> None:
    both = claims(plain=0.6)
    refused("labels of 4 responses", score, both, p=("plain", "p"))
    assert score(both, p=("plain",), **QUICK)["scores"]["n_claims"].tolist() == [36]
    # Models are compared on the same responses.
    scores = score(both, p=("plain", "p"), leave_out_taught=True, **QUICK)
    assert scores["scores"]["n_claims"].tolist() == [24, 24]


def test_the_mark_may_be_of_one_of_several_models_in_rows() -> None:
    learned, given = claims(model="judge"), claims(taught=0, model="given")
    long = pd.concat([learned, given], ignore_index=True)
    refused("labels of 4 responses", score, long)
    scores = score(long, leave_out_taught=True, **QUICK)
    assert scores["scores"]["n_claims"].tolist() == [24, 24]


def test_a_mark_that_is_no_mark_is_refused_with_its_place(tmp_path: Path) -> None:
    frame = claims()
    frame.loc[2, "p_learned_from"] = "maybe"
    frame.to_csv(tmp_path / "t.csv", index=False)
    refused(["t.csv, line 4", "'maybe' does not say"], score, tmp_path / "t.csv")
    assert mark_of(" This  Response ", "x") is LearnedFrom.THIS_RESPONSE
    assert mark_of(float("nan"), "x") is mark_of("", "x") is None


def test_estimate_refuses_such_labels_of_the_table_and_of_sheets(tmp_path: Path) -> None:
    refused("labels of 4 responses", estimate, claims())
    table, sheet = claims().drop(columns="label"), tmp_path / "sheet.csv"
    labels = claims()[["response", "claim", "label"]]
    labels.iloc[6:18].to_csv(sheet, index=False)
    refused("labels of 2 responses \\(r2, r3\\)", estimate, table, labels=(str(sheet),))
    estimated = estimate(table, labels=(str(sheet),), leave_out_taught=True, quantities=("brier",))
    assert estimated["estimates"]["n_items"].tolist() == [24]
    assert estimated["estimates"]["n_labeled"].tolist() == [6]
    assert any("4 responses (r0, r1, r2, ...) are left out" in each for each in estimated.sentences)


def test_estimate_leaves_out_what_taught_even_without_its_labels(tmp_path: Path) -> None:
    # Their probabilities are nearer to the truth than those that the labels correct.
    sheet = tmp_path / "sheet.csv"
    claims()[["response", "claim", "label"]].iloc[12:30].to_csv(sheet, index=False)
    rest = estimate(
        claims().drop(columns="label"), labels=(str(sheet),), quantities=("share", "brier")
    )
    alone = estimate(
        claims().iloc[12:].drop(columns="label"),
        labels=(str(sheet),),
        quantities=("share", "brier"),
    )
    assert rest["estimates"]["value"].tolist() == alone["estimates"]["value"].tolist()
    assert any("left out" in each for each in rest.sentences)


def test_self_knowledge_refuses_labels_that_taught_the_confidences() -> None:
    names = {"p": "confidence", "p_learned_from": "confidence_learned_from"}
    refusal = refused(
        "labels of 4 responses \\(r0, r1, r2, \\.\\.\\.\\) trained",
        self_knowledge,
        claims().rename(columns=names),
    )
    assert "give labels of other responses" in refusal
    measured = self_knowledge(claims(taught=0).rename(columns=names), bins=1)
    assert measured["quantities"]["estimate"].between(0, 1).any()


def test_keep_learns_no_threshold_from_such_labels() -> None:
    known, new = claims(), claims(6, taught=1).drop(columns="label")
    new["response"] += "new"
    refused("labels of 4 responses", keep, known, new)
    kept = keep(known, new, leave_out_taught=True, splits=5)
    assert any("calibrated on 8 labeled responses" in each for each in kept.sentences)
    assert any("Labels of 1 new response (r0new) trained" in each for each in kept.sentences)
    marks = kept["claims"].set_index("response")["p_learned_from"].fillna("")
    assert marks[marks != ""].to_dict() == {"r0new": "this response"}
    assert "p_learned_from" not in keep(claims(taught=0), new.iloc[3:], splits=5)["claims"]


# ----------------------------------------------------------------------- what writes the marks


def unlabeled(graphs: Sequence[FactGraph]) -> list[FactGraph]:
    """Return the same without labels."""
    return [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in graphs]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of the first six of the responses."""
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("taught") / "judge.json"
    fit(of_cities(), penalty=30.0, folds=0, columns=("position",), save=path)
    return path


def test_apply_marks_every_response_and_claim(judge: Path, tmp_path: Path) -> None:
    applied = apply(judge, of_cities(12), n_bootstrap=20)
    assert any("Labels of 6 responses here trained the judge" in each for each in applied.sentences)
    wanted = ["this response"] * 6 + ["other responses"] * 6
    assert [recorded_marks(graph)["judge"] for graph in applied.graphs] == wanted
    by_response = applied["claims"].groupby("response", sort=False)["p_learned_from"].unique()
    assert [each.tolist() for each in by_response] == [[each] for each in wanted]
    for path in (tmp_path / "judged.jsonl", tmp_path / "folder"):
        applied.save(path)
    refused("labels of 6 responses", score, tmp_path / "judged.jsonl")
    refused("labels of 6 responses", score, tmp_path / "folder" / "graphs.jsonl")
    labeled = pd.read_csv(tmp_path / "folder" / "claims.csv", comment="#")
    refused("labels of 6 responses", score, labeled.assign(label=labeled.index % 2))


def test_labels_that_come_later_are_refused_too(judge: Path, tmp_path: Path) -> None:
    # Labels are taken away for `apply` and put back after it, under other ids.
    renamed = [replace(graph, id=f"b{n}") for n, graph in enumerate(unlabeled(of_cities(12)))]
    judged = apply(judge, renamed, n_bootstrap=20).graphs
    with_labels = [
        replace(graph, atoms=known.atoms)
        for graph, known in zip(judged, of_cities(12), strict=True)
    ]
    write_many(with_labels[::-1], tmp_path / "labeled.jsonl")
    refused("labels of 6 responses", estimate, tmp_path / "labeled.jsonl")
    write_many(with_labels[6:], tmp_path / "others.jsonl")
    assert estimate(tmp_path / "others.jsonl", quantities=("brier",))["estimates"].shape[0] == 1
    # Beside another tool's verdicts the mark goes along.
    write_many(with_labels, tmp_path / "ordered.jsonl")
    refused("labels of 6 responses", score, of_cities(12), beside=(tmp_path / "ordered.jsonl",))
    refused("is judged by all of judge", score, of_cities(12), beside=(tmp_path / "labeled.jsonl",))
    write_many(unlabeled(of_cities(12)), tmp_path / "unlabeled.jsonl")
    refused(
        "no claim has a label",
        score,
        tmp_path / "unlabeled.jsonl",
        beside=(tmp_path / "ordered.jsonl",),
    )


@pytest.mark.usefixtures("without_rivals")
def test_cross_fitted_posteriors_may_be_corrected_by_the_same_labels(tmp_path: Path) -> None:
    few = [*of_cities(), *unlabeled(of_cities(12)[6:])]
    fitted = fit(few, penalty=30.0, folds=3, columns=("position",))
    assert [*fitted.frame] == ["model", "score", "value", "lower", "upper", "n_claims"]
    brier = fitted.frame[fitted.frame["score"] == "brier"]
    wide = fitted["scores"][["brier", "brier_lower", "brier_upper"]]
    np.testing.assert_array_equal(brier[["value", "lower", "upper"]], wide)
    assert {recorded_marks(graph)["judge"] for graph in fitted.graphs} == {
        LearnedFrom.OTHER_RESPONSES
    }
    fitted.save(tmp_path / "folds.jsonl")
    estimated = estimate(tmp_path / "folds.jsonl", quantities=("brier",))["estimates"]
    assert estimated["n_responses"].tolist() == [6]
    # The same posteriors as those that `fit` scored.
    alone = fit(of_cities(), penalty=30.0, folds=3, columns=("position",))
    scored = alone["scores"].set_index("model")["brier"]["field"]
    alone.save(tmp_path / "alone.jsonl")
    again = score(tmp_path / "alone.jsonl", **QUICK)["scores"]["brier"][0]
    assert again == pytest.approx(scored, abs=1e-9)


def test_a_mark_in_a_file_that_is_no_mark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    graph = FactGraph("g", (Atom("a", label=True),))
    marked = {"judge": {"learned_from": 3, "verdicts": {}, "missing": []}}
    write_many([replace(graph, metadata={"assessors": marked})], path)
    assert json.loads(path.read_text("utf-8"))
    with pytest.raises(InputError, match="metadata 'assessors', 'judge': key 'learned_from': 3"):
        recorded_marks(read_many(path)[0])


def related(graphs: Sequence[FactGraph], taught: Sequence[int]) -> list[FactGraph]:
    """Return responses whose relations a model made that labels of some of them taught."""
    stage = relation_stage(LexicalRelations(), "FR1")
    marked = []
    for number, graph in enumerate(map(stage, graphs)):
        mark = "this response" if number in taught else "other responses"
        facts = {**graph.metadata["relations"], **({"learned_from": mark} if taught else {})}
        marked.append(replace(graph, metadata={**graph.metadata, "relations": facts}))
    return marked


def test_posteriors_from_relations_that_labels_taught_are_marked(tmp_path: Path) -> None:
    renamed = [replace(graph, id=f"s{number}") for number, graph in enumerate(of_cities(8))]
    write_many(related(renamed, range(3)), tmp_path / "related.jsonl")
    refused("labels of 3 responses \\(s0, s1, s2\\) trained", score, tmp_path / "related.jsonl")
    scores = score(tmp_path / "related.jsonl", leave_out_taught=True, **QUICK)
    assert scores["scores"]["n_claims"].tolist() == [10]
    write_many(related(renamed, ()), tmp_path / "plain.jsonl")
    assert score(tmp_path / "plain.jsonl", **QUICK)["scores"]["n_claims"].tolist() == [16]


def test_judge_learned_from_marked_relations_keeps_the_mark(judge: Path) -> None:
    # The judge was taught by six responses, the relation model by the seventh and the eighth.
    marks = read_judge(judge).learned_from(related(of_cities(9), (6, 7)))
    assert [str(mark) for mark in marks] == ["this response"] * 8 + ["other responses"]


def test_a_response_without_texts_is_known_by_its_relations(judge: Path) -> None:
    without = [
        replace(
            graph, id=f"x{k}", topic="", atoms=tuple(replace(atom, text="") for atom in graph.atoms)
        )
        for k, graph in enumerate(of_cities(12))
    ]
    marks = [recorded_marks(graph) for graph in apply(judge, without).graphs]
    wanted = [LearnedFrom.THIS_RESPONSE] * 6 + [LearnedFrom.OTHER_RESPONSES] * 6
    assert [each["judge"] for each in marks] == wanted
