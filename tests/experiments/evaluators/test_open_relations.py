"""A missing relation qualifies the headline: ranges that hold whatever it would have been."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibration.scores.measures import entropy_measure, f1_at_k, factual_precision
from experiments import assess
from experiments.evaluators.open_relations import open_measures
from experiments.evaluators.response import (
    AssessedResponse,
    AssessmentView,
    assess_graph,
    judged,
    summarize_judged,
)
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets
from factormodels.claims import JUDGED_KINDS
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.stages.relations import with_relations
from inference import get_backend
from tests.experiments.conftest import invoke, write_batch
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply

ROUNDING = 1e-9
"""Means over a dozen claims of numbers up to one."""

EXACT = get_backend("exact")


@dataclass
class Answers:
    """A relation model that answers at random, each pair alike whenever it is asked, or not."""

    seed: int
    lost: frozenset[tuple[str, str]] = frozenset()
    name: str = "answers"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        return [self._of(pair) for pair in pairs]

    def _of(self, pair: TextPair) -> Judgment | Missing:
        if (pair.source, pair.target) in self.lost:
            return Missing("filtered")
        random = Random(f"{self.seed} {pair.source} {pair.target}")
        return Judgment(random.choice(JUDGED_KINDS), random.uniform(0.3, 1.0), "recorded")


def small_graph() -> FactGraph:
    atoms = tuple(Atom(f"a{n}", f"Claim {n}.") for n in range(1, 5))
    contexts = tuple(
        Context(f"c{n}", f"Passage {n}.", prior=0.7 + 0.09 * n, retrieved_for=(f"a{n}", "a4"))
        for n in range(1, 4)
    )
    return FactGraph("r", atoms, contexts)


def assessed(graph: FactGraph, views: Sequence[AssessmentView]) -> FactGraph:
    return replace(graph, metadata={**graph.metadata, "assessment": assess_graph(graph, views)})


@pytest.mark.parametrize("encoding", ["implication", "conditional", "mixture"])
@pytest.mark.parametrize("variant", ["FR1", "FR2", "FR3"])
@pytest.mark.parametrize("seed", range(8))
def test_the_answers_that_are_missing_lead_into_the_range(
    seed: int, variant: str, encoding: str
) -> None:
    views = [AssessmentView(variant, encoding, EXACT)]
    whole = with_relations(small_graph(), Answers(seed), variant)
    measures = judged(assessed(whole, views))
    assert measures.ranges[variant] == tuple((p, p) for p in measures.p[variant])
    pairs = [(r.source, r.target) for r in whole.relations]
    lost = frozenset(Random(seed).sample(pairs, max(1, len(pairs) // 4)))
    part = assessed(with_relations(small_graph(), Answers(seed, lost), variant), views)
    lacking = judged(part)
    assert lacking.missing == len(lost)
    for p, ends in zip(measures.p[variant], lacking.ranges[variant], strict=True):
        assert p is not None
        assert ends is not None
        assert ends[0] - ROUNDING <= p <= ends[1] + ROUNDING
    compared = summarize_judged([lacking], [variant])
    if not compared.ranges:
        assert all(p is None for p in lacking.p[variant])
        return
    summary = compared.summaries[variant]
    assert summary is not None
    p_of_all = [p for p in measures.p[variant] if p is not None]
    expected = {
        "precision": factual_precision(p_of_all),
        "f1_at_k": f1_at_k(p_of_all, summary["k"]),
        "entropy": entropy_measure(p_of_all),
    }
    for measure, value in expected.items():
        lower, upper = compared.ranges[variant][measure]
        assert lower - ROUNDING <= value <= upper + ROUNDING
        # The headline is of the range too, though it is of the claims with an answer alone.
        assert lower - ROUNDING <= summary[measure] <= upper + ROUNDING


def test_with_every_answer_missing_there_is_nothing_to_sum_up() -> None:
    views = [AssessmentView("FR1", "implication", EXACT)]
    whole = with_relations(small_graph(), Answers(0), "FR1")
    lost = frozenset((pair.source, pair.target) for pair in whole.relations)
    part = judged(assessed(with_relations(small_graph(), Answers(0, lost), "FR1"), views))
    assert set(part.p["FR1"]) == {None}
    compared = summarize_judged([part], ["FR1"])
    assert (compared.summaries, compared.ranges) == ({"FR1": None}, {})


def test_one_missing_answer_leaves_a_firm_claim_as_it_is() -> None:
    """Two entailments of 0.95 hold against a passage of prior 0.7 whose answer is missing."""
    atoms = (Atom("a1", "One."), Atom("a2", "Two."))
    given = [("a1", 0.99), ("a1", 0.99), ("a1", 0.7), ("a2", 0.99)]
    contexts = tuple(
        Context(f"c{n}", f"P{n}.", prior=prior, retrieved_for=(atom,))
        for n, (atom, prior) in enumerate(given, 1)
    )

    class Firm:
        name = "firm"

        def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
            return [
                Missing("filtered")
                if pair.source == "c3"
                else Judgment(RelationKind.ENTAILMENT, 0.95, "recorded")
                for pair in pairs
            ]

    graph = with_relations(FactGraph("r", atoms, contexts), Firm(), "FR1")
    view = assess_graph(graph, [AssessmentView("FR1", "implication", EXACT)])["FR1"]
    (lower, upper) = view["open"]["a1"]
    # Odds of each entailment: 1 - 0.99 * 0.05 - ... as a message; of the missing one 0.3 to 1/0.3.
    message = 0.95 / (0.99 * 0.05 + 0.01 * 0.95)
    for odds, p in ((message**2 * 0.3, lower), (message**2 / 0.3, upper)):
        assert p == pytest.approx(odds / (1.0 + odds))
    assert lower > 0.5
    assert "a2" not in view["open"]


def test_atom_without_any_answer_has_bounds_0_and_1() -> None:
    graph = small_graph()
    lost = frozenset(product(graph.context_ids, ["a4"]))
    part = with_relations(graph, Answers(0, lost), "FR1")
    view = assess_graph(part, [AssessmentView("FR1", "implication", EXACT)])["FR1"]
    assert view["open"] == {"a4": [0.0, 1.0]}


def test_a_wider_variant_beside_it_opens_nothing() -> None:
    graph = small_graph()
    views = [AssessmentView(name, "implication", EXACT) for name in ("FR1", "FR2", "FR3")]
    # FR1 asks for neither, FR2 for the first alone.
    part = with_relations(graph, Answers(1, frozenset({("c1", "a2"), ("c1", "c2")})), "FR3")
    assessed = assess_graph(part, views)
    assert assessed["FR1"]["open"] == {}
    assert assessed["FR1"]["measures"]["missing_relations"] == 0
    assert assessed["FR2"]["measures"]["missing_relations"] == 1
    assert assessed["FR3"]["measures"]["missing_relations"] == 2
    alone = assess_graph(
        with_relations(graph, Answers(1, frozenset({("c1", "a2")})), "FR2"), views[1:2]
    )
    assert assessed["FR2"]["open"] == alone["FR2"]["open"]


def test_a_missing_verdict_may_be_any() -> None:
    known = ((1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (0.0, 1.0), None)
    graph_model = ((0.9, 0.9), (0.8, 0.8), (0.2, 0.2), (0.3, 0.3), (0.6, 0.6))
    opened = open_measures([{"factscore": known, "FR1": graph_model}], 4.0)
    assert opened["factscore"]["precision"] == (0.25, 0.5)
    assert opened["factscore"]["recall_at_k"] == (0.25, 0.5)
    # Nothing of the other row is missing; what the assessor drops is left out of both.
    assert opened["FR1"]["precision"] == (0.5, 0.5)
    e = entropy_measure([0.9, 0.8, 0.2, 0.3])
    assert opened["FR1"]["entropy"] == pytest.approx((e, e))
    # At P = 1/e the measure of an atom is largest.
    peak = 0.15051499783199057 + 0.15976801113064
    assert opened["factscore"]["entropy"] == pytest.approx((0.150515 / 4, peak / 4), abs=1e-6)


def test_range_over_several_responses_is_a_mean() -> None:
    def response(name: str, p: float | None, ends: tuple[float, float]) -> AssessedResponse:
        return AssessedResponse(
            name,
            (None,) * 2,
            {"FR2": (0.9, p)},
            missing=int(p is None),
            failures=0,
            ranges={"FR2": ((0.9, 0.9), ends)},
        )

    both = [response("one", 0.2, (0.2, 0.2)), response("two", None, (0.0, 1.0))]
    judged_both = summarize_judged(both, ["FR2"])
    # The second claim of the second response could be true, or not.
    assert judged_both.ranges["FR2"]["precision"] == (0.5, 0.75)
    summary = judged_both.summaries["FR2"]
    assert summary is not None
    assert (summary["precision"], summary["k"]) == (0.75, 1.5)
    # One supported claim in each response.
    assert judged_both.measure("FR2", "recall_at_k") == pytest.approx(1 / 1.5)
    assert judged_both.ranges["FR2"]["recall_at_k"] == pytest.approx((1 / 1.5, (1 / 1.5 + 1) / 2))
    assert summarize_judged(both[:1], ["FR2"]).ranges == {}


@pytest.mark.service
def test_with_most_relations_filtered_the_range_is_printed_and_the_code_says_it(
    keyed: Path,
) -> None:
    sentences = [f"Train {n} crosses the bridge." for n in range(1, 12)]
    notes = {f"{word}.txt": f"All trains cross the bridge {word}." for word in ("daily", "yearly")}
    write_batch(keyed, [" ".join(sentences)], notes)
    allowed = {"daily": range(1, 6), "yearly": range(1, 3)}

    def filtering(request: dict[str, Any], _: int) -> Reply:
        question = question_of(request)
        premise, hypothesis = question.rsplit("<hypothesis>", 1)
        word = "daily" if "daily" in premise.rpartition("<premise>")[2] else "yearly"
        (number,) = map(int, re.findall(r"Train (\d+)", hypothesis))
        if number not in allowed[word]:
            return Reply("", finish="content_filter")
        return label_reply("contradiction", 0.97, {"entailment": 0.02, "neutral": 0.01})

    command = ["assess", "batch.jsonl", "--documents", "notes", "--atoms", "sentences"]
    command += ["--model", "openai/scripted", "--out", "o"]
    with ScriptedServer(filtering) as server:
        result = invoke(*command, "--api-base", server.url, code=1)
    shown = " ".join(result.stdout.split())
    assert "1 response, 5 atoms" in shown
    assert "15 of 22 relations missing" in result.stdout
    assert "More than 5% of the requested answers are missing" in result.stdout
    # Five claims with a verdict, none true; each lacks an answer but the first two.
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("- FR2, over all")]
    assert "Pr [0.000, 0.818], R_K [0.000, 1.000]" in line, line
    header = next(line for line in result.stdout.splitlines() if "F1@K" in line)
    assert header.split()[6:9] == ["Pr", "R_K", "F1@K"]
    (written,) = (keyed / "o/graphs.jsonl").read_text().splitlines()
    bounds = json.loads(written)["metadata"]["assessment"]["FR2"]["open"]
    assert bounds["a11"] == [0.0, 1.0]


def test_the_front_door_says_the_range_too() -> None:
    graph = datasets.load("demonstration").graphs[0]
    (row,) = assess(graph, retriever="given")["summary"].to_dict("records")
    for measure in ("precision", "recall_at_k", "f1_at_k", "entropy"):
        # Nothing is missing of what the lexical model is asked.
        assert row[f"{measure}_from"] == row[measure] == row[f"{measure}_to"]


def test_one_missing_answer_of_many_leaves_the_verdicts_on_other_claims() -> None:
    """In a graph with many cycles, ten claims of which three passages each say the same."""
    random = Random(0)
    atoms = tuple(Atom(f"a{n}", f"Claim {n}.") for n in range(10))
    contexts = tuple(Context(f"c{n}", f"Passage {n}.") for n in range(30))
    kinds = [random.choice(JUDGED_KINDS[:2]) for _ in atoms]
    relations = tuple(
        Relation(context.id, atom.id, kind, random.uniform(0.8, 0.99))
        for atom, kind in zip(atoms, kinds, strict=True)
        for context in random.sample(contexts[1:], 4)
    )
    missing = {"relations": {"missing": [["c0", "a0", "filtered"]], "asked": 300, "least": 0.5}}
    graph = FactGraph("r", atoms, contexts, relations, metadata=missing)
    view = assess_graph(graph, [AssessmentView("FR2", "implication", EXACT)])["FR2"]
    assert {"a0"} <= set(view["open"])
    for atom, (lower, upper) in view["open"].items():
        assert lower <= view["atoms"][atom]["p"] <= upper
        assert atom == "a0" or lower > 0.5 or upper < 0.5


def test_one_missing_answer_of_a_dense_graph_leaves_nearly_all_verdicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every second passage on each claim: sure bounds say little, draws enough."""
    monkeypatch.setattr("inference.tasks.open_tables._MOST_SECONDS", 1e-12)
    random = Random(0)
    atoms = tuple(Atom(f"a{n}", f"Claim {n}.") for n in range(16))
    contexts = tuple(Context(f"c{n}", f"Passage {n}.") for n in range(50))
    labels = {atom.id: random.random() < 0.6 for atom in atoms}
    relations = tuple(
        Relation(
            context.id,
            atom.id,
            RelationKind(
                "entailment" if labels[atom.id] == (random.random() < 0.8) else "contradiction"
            ),
            random.uniform(0.5, 0.99),
        )
        for atom, context in product(atoms, contexts)
        if (context.id, atom.id) != ("c0", "a0") and random.random() < 0.5
    )
    missing = {"relations": {"missing": [["c0", "a0", "filtered"]], "asked": 800, "least": 0.5}}
    graph = FactGraph("r", atoms, contexts, relations, metadata=missing)
    view = AssessmentView("FR2", "implication", get_backend("auto"))

    def undecided() -> int:
        left_open = assess_graph(graph, [view])["FR2"]["open"]
        return sum(lower <= 0.5 < upper for lower, upper in left_open.values())

    assert undecided() <= 1
    monkeypatch.setattr("experiments.evaluators.open_relations._draws", None)
    assert undecided() >= 8
