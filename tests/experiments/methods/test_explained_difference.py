"""`diff` names the conventions that explain a difference, claim by claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from experiments import assess, diff, infer, run, score
from experiments.evaluators.convention_effects import EXPLAINED, claim_effects
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.conventions import PRESETS, Conventions
from factormodels.datasets import load
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.experiments.methods.test_declared_conventions import Stated, with_texts
from tests.experiments.study.test_study_conventions import responses
from tests.factormodels.test_conventions import drawn

PAPER, RELEASE = PRESETS["paper"], PRESETS["fact-reasoner-0.8"]
ENTAILMENT, CONTRADICTION = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION


def chosen() -> list[FactGraph]:
    """Responses of which each depends on one convention alone.

    One strong passage of a claim; a passage that is shared by two claims, at a prior that is a
    statement of its own; a weak relation, at such a prior.
    """
    c0, stated_prior = Context("c0", retrieved_for=("a0",)), 0.95
    alone = FactGraph("prior", (Atom("a0"),), (c0,), (Relation("c0", "a0", ENTAILMENT, 0.9),))
    shared = FactGraph(
        "shared",
        (Atom("a0"), Atom("a1")),
        (Context("c0", prior=stated_prior, retrieved_for=("a0", "a1")),),
        (Relation("c0", "a0", ENTAILMENT, 0.9), Relation("c0", "a1", CONTRADICTION, 0.8)),
    )
    weak = FactGraph(
        "weak",
        (Atom("a0"),),
        (replace(c0, prior=stated_prior),),
        (Relation("c0", "a0", ENTAILMENT, 0.3),),
    )
    return [alone, shared, weak]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_fact_graphs(chosen(), tmp_path / "d.jsonl")
    write_fact_graphs([replace(drawn(n), id=f"r{n}") for n in range(4)], tmp_path / "drawn.jsonl")
    return tmp_path


BEFORE: Any = {"like": "paper", "weak_relations": "left-out"}
"""Conventions of which each differs from the release's."""


def both(source: str, variant: Literal["FR1", "FR3"], **more: Any) -> tuple[Any, Any]:
    return (
        infer(source, variant=variant, **BEFORE),
        infer(source, variant=variant, like="fact-reasoner-0.8", **more),
    )


@pytest.mark.usefixtures("data")
def test_diff_names_the_convention_that_explains_each_claim() -> None:
    before, after = both("d.jsonl", "FR1", encoding="implication")
    findings = diff(before, after)
    by_claim = {
        (row["response"], row["claim"]): row["explained_by"]
        for row in findings["explained"].to_dict("records")
    }
    assert by_claim == {
        ("prior", "a0"): "prior of passages",
        ("shared", "a0"): "shared passages",
        ("shared", "a1"): "shared passages",
        ("weak", "a0"): "relations below 1/2",
    }
    assert "The shared passages explain 2 of 4 claims that changed." in findings.sentences
    assert "The prior of passages explains 1 of 4 claims that changed." in findings.sentences
    table = findings["conventions"].set_index("convention")
    prior = table[["before", "after"]].to_dict("index")["prior of passages"]
    assert prior == {"before": "0.99", "after": "0.9"}
    assert table["n_moved"].to_dict() == {
        "prior of passages": 1,
        "shared passages": 2,
        "relations below 1/2": 1,
    }
    # A column has the posterior under the first's conventions with one of the second's.
    (row,) = [r for r in findings["explained"].to_dict("records") if r["response"] == "prior"]
    only = infer("d.jsonl", response="prior", variant="FR1", **BEFORE, context_prior=0.9)
    assert row["context_prior"] == pytest.approx(only["posteriors"]["p"][0], abs=1e-12)


@pytest.mark.usefixtures("data")
def test_claims_that_several_conventions_move_name_the_fewest_that_suffice() -> None:
    before, after = both("drawn.jsonl", "FR3")
    findings = diff(before, after)
    rows = findings["explained"].to_dict("records")
    changed = {
        (r["response"], r["variable"]): r["p"]
        for r in after["posteriors"].to_dict("records")
        if r["kind"] == "atom"
    }
    assert {(r["response"], r["claim"]) for r in rows} <= changed.keys()
    names = ("context_prior", "equivalence", "weak_relations", "encoding")
    for row in rows:
        assert row["explained_by"] != "something else"
        gap = EXPLAINED * abs(row["after"] - row["before"])
        suffices = [name for name in names if abs(row["after"] - row[name]) <= gap]
        alone = " and " not in row["explained_by"]
        assert bool(suffices) == alone
    assert any(" and " in row["explained_by"] for row in rows)
    # What the conventions do not give is not put down to them.
    damped = infer("drawn.jsonl", variant="FR3", like="fact-reasoner-0.8", backend="cavi")
    other = diff(before, damped)
    assert "something else" in other["explained"]["explained_by"].tolist()
    assert any("also differ in something else" in each for each in other.sentences)


@pytest.mark.usefixtures("data")
def test_saved_findings_are_explained_where_their_data_lie() -> None:
    for side, like in zip(both("d.jsonl", "FR1"), ("a", "b"), strict=True):
        side.save(like)
    findings = diff("a", "b")
    assert "explained" in findings.tables
    Path("d.jsonl").rename("elsewhere.jsonl")
    sentences = diff("a", "b").sentences
    assert any(
        "cannot be attributed to conventions" in each and "d.jsonl" in each for each in sentences
    )


def test_an_assessment_without_weak_relations_is_explained_by_the_other(tmp_path: Path) -> None:
    # Lexical relations of the demonstration, of which the first makes those below 1/2 neutral.
    graphs = load("demonstration").graphs[:4]
    before = assess(graphs, like="paper", weak_relations="left-out", out=tmp_path / "left-out")
    after = assess(graphs, like="fact-reasoner-0.8", out=tmp_path / "kept")
    for first, second in ((before, after), (after, before)):
        explained = diff(first, second)["explained_claims"]["explained_by"]
        assert "something else" not in set(explained)
        assert any("relations below 1/2" in each for each in explained)
    files = [tmp_path / weak / "graphs.jsonl" for weak in ("left-out", "kept")]
    # The response's own relations are not those that the assessments used.
    for given, beside in ((graphs, files), (files[0], files[1:]), (files[1], files[:1])):
        scored = score(given, beside=beside, scores=["brier"], n_bootstrap=20, resamples=20)
        assert "something else" not in set(scored["explained"]["explained_by"])


@pytest.mark.usefixtures("data")
def test_assessments_are_explained_from_their_graphs() -> None:
    graphs = [with_texts(graph) for graph in responses()]
    before, after = (
        assess(graphs, relations=Stated(), variant=["FR1"], like=like, encoding="implication")
        for like in ("paper", "fact-reasoner-0.8")
    )
    findings = diff(before, after)
    assert set(findings["explained"]["explained_by"]) == {"prior of passages"}
    assert "The prior of passages explains 7 of 7 claims that changed." in findings.sentences


def test_runs_are_explained_with_their_measures(data: Path) -> None:
    write_fact_graphs(responses(), data / "r.jsonl")
    study = {
        "study": "s",
        "datasets": [{"name": "d", "path": "r.jsonl"}],
        "variants": ["FR2"],
        "backends": ["exact"],
        "measures": ["precision", "f1", "f1_at_k", "entropy", "brier"],
        "outputs": ["csv"],
    }
    run(study | {"conventions": "paper"}, out="a")
    run(study | {"conventions": "paper"}, out="b", context_prior=0.9, logarithm="e", k="half-down")
    findings = diff("a", "b")
    assert findings["explained"]["explained_by"].unique().tolist() == ["prior of passages"]
    measures = findings["convention_measures"].set_index("measure")
    assert measures["explained_by"].to_dict() == {
        "f1 at k": "K",
        "entropy": "base of logarithms",
        "brier": "prior of passages",
    }
    summaries = [pytest.importorskip("pandas").read_csv(f"{name}/summary.csv") for name in "ab"]
    for side, summary in zip(("before", "after"), summaries, strict=True):
        for measure in ("entropy", "brier"):
            assert measures.loc[measure, side] == pytest.approx(summary[measure][0], abs=1e-12)
    (data / "r.jsonl").rename(data / "moved.jsonl")
    assert any("r.jsonl is neither in this folder" in each for each in diff("a", "b").sentences)
    # The same conventions have nothing to explain.
    assert not {"conventions", "explained"} & diff("a", "a").tables.keys()


def test_above_the_limit_the_first_responses_are_explained(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = [replace(chosen()[0], id=f"r{number}") for number in range(3)]
    write_fact_graphs(graphs, data / "r.jsonl")
    study = {
        "study": "s",
        "datasets": [{"name": "d", "path": "r.jsonl"}],
        "variants": ["FR1"],
        "backends": ["exact"],
        "measures": ["entropy"],
        "outputs": ["csv"],
    }
    run(study | {"conventions": "paper"}, out="a")
    run(study | {"conventions": "paper"}, out="b", context_prior=0.9)
    monkeypatch.setattr("experiments.methods.explained_difference.MOST_SOLVED", 2)
    before, after = both("r.jsonl", "FR1", encoding="implication")
    for findings, what in (
        (diff(before, after), "FR1: changes"),
        (diff("a", "b"), "measures are not attributed, and changes"),
    ):
        # The third response changes as much and is not put down to something else.
        assert findings["explained"]["response"].tolist() == ["r0", "r1"]
        assert set(findings["explained"]["explained_by"]) == {"prior of passages"}
        text = " ".join(findings.sentences)
        assert "The prior of passages explains 2 of 2 claims that changed." in text
        limit = "of claims are attributed to conventions for the first 2 of 3 responses."
        assert f"{what} {limit}" in text
        assert "convention_measures" not in findings.tables


def test_effects_follow_from_what_is_solved() -> None:
    def solve(conventions: Conventions) -> dict[tuple[str, str], float]:
        moved = 0.2 * (conventions.context_prior == 0.9) + 0.01 * (conventions.encoding != "x")
        return {("r", "a"): 0.5 + moved, ("r", "b"): 0.5}

    first = replace(PAPER, encoding="x")
    second = replace(first, context_prior=0.9, encoding="y")
    before, after = {("r", "a"): 0.5, ("r", "b"): 0.5}, {("r", "a"): 0.71, ("r", "b"): 0.5}
    names = ("context_prior", "encoding")
    (effect,), alone = claim_effects(before, after, first, second, names, solve)
    assert (effect.claim, effect.explained_by) == ("a", ("context_prior",))
    assert alone["encoding"]["r", "a"] == pytest.approx(0.51)
    for p in (0.9, 0.72):
        # However near, it is not what the conventions give.
        wrong = after | {("r", "a"): p}
        (effect,), _ = claim_effects(before, wrong, first, second, names, solve)
        assert effect.explained_by == ()
