"""Recording of relations: each question once, whatever kills it; and graphs of recorded answers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.evaluators.recorded_relations import (
    corrected_pairs,
    judged_pairs,
    label_columns_of,
    read_record,
    record_costs,
    recorded_graphs,
    recorded_pairs,
    recorded_ranks,
    relation_score_row,
)
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.extraction.language_model import Completion, Failure, Request, Token, Usage
from factormodels.extraction.relation_models.base import TextPair
from factormodels.fact_graph import FactGraph
from factormodels.io.relation_record import RecordOrigin, read_relation_record
from factormodels.metadata.prompt_identity import PromptIdentity
from tests.factormodels.extraction.models import AnsweringModel
from tests.real_model.recording import (
    PairOfResponse,
    drawn_responses,
    record_relations,
    recording_order,
)
from tests.refusals import refused

PAIRS = tuple(
    PairOfResponse(response, TextPair(f"Passage {c} of {response}.", f"Claim {a}.", c, a))
    for response in ("r1", "r2", "r3")
    for c, a in (("c1", "a1"), ("c2", "a1"), ("c10", "a2"), ("c2", "a2"))
)
RANKS = {("c1", "a1"): 1, ("c2", "a1"): 2, ("c10", "a2"): 2, ("c2", "a2"): 1}

RANKED = tuple(replace(each, rank=RANKS[each.pair.source, each.pair.target]) for each in PAIRS)

ORIGIN = RecordOrigin(
    "factcheck-bench",
    "tiny",
    len(PAIRS),
    prompts=(PromptIdentity("relation", 2, "d"), PromptIdentity("relation_question", 1, "e")),
    seed=1,
)


def weighed(request: Request) -> Completion | Failure:
    """Answer "entailment" or "true" with probability .6; nothing that is read about claim a2."""
    words = ("entailment", "contradiction", "neutral")
    if request.prompt.name == "relation_question":
        words = ("true", "false", "unknown")
    if "Claim a2." in request.messages[-1].content:
        return Completion("I cannot say.", usage=Usage(100, 4, prefix_tokens=90))
    listed = tuple(zip(words, map(math.log, (0.6, 0.25, 0.15)), strict=True))
    token = Token(words[0], math.log(0.6), listed)
    return Completion(words[0], (token,), Usage(100, 2, prefix_tokens=80))


def test_whole_responses_follow_each_other_with_their_passages_in_order() -> None:
    order = recording_order(PAIRS, "responses", 0)
    assert sorted(map(repr, order)) == sorted(map(repr, PAIRS))
    responses = [each.response for each in order]
    assert responses == [name for name in dict.fromkeys(responses) for _ in range(4)]
    assert [each.pair.source for each in order[:4]] == ["c1", "c2", "c2", "c10"]
    # The first response is any of them, by the seed.
    firsts = {recording_order(PAIRS, "responses", seed)[0].response for seed in range(20)}
    assert firsts == {"r1", "r2", "r3"}


def test_pairs_of_all_responses_take_turns() -> None:
    order = recording_order(PAIRS, "pairs", 0)
    assert sorted(map(repr, order)) == sorted(map(repr, PAIRS))
    turns = [[each.response for each in order[at : at + 3]] for at in range(0, 12, 3)]
    assert all(turn == turns[0] for turn in turns)
    assert len(set(turns[0])) == 3
    refused("the order 'length' is unknown", recording_order, PAIRS, "length", 0)


def test_the_best_passages_of_all_claims_come_before_the_second_ones() -> None:
    order = recording_order(RANKED, "ranks", 0)
    assert sorted(map(repr, order)) == sorted(map(repr, RANKED))
    assert [each.rank for each in order] == [1] * 6 + [2] * 6
    # Responses keep their random order at each rank, and the pairs of a passage are together.
    turns = [each.response for each in order]
    assert turns[:6] == turns[6:] == [name for name in dict.fromkeys(turns) for _ in range(2)]
    assert [each.pair.source for each in order[:2]] == ["c1", "c2"]
    assert [each.pair.source for each in order[6:8]] == ["c2", "c10"]


def test_responses_are_drawn_as_a_whole() -> None:
    drawn = drawn_responses(PAIRS, 2, 0)
    names = {each.response for each in drawn}
    assert len(names) == 2
    assert drawn == [each for each in PAIRS if each.response in names]
    assert drawn_responses(PAIRS, 9, 0) == list(PAIRS)
    draws = {each.response for seed in range(20) for each in drawn_responses(PAIRS, 1, seed)}
    assert draws == {"r1", "r2", "r3"}


def test_every_question_is_recorded_with_what_it_cost(tmp_path: Path) -> None:
    path, ticks = tmp_path / "record.jsonl", iter(range(1000))
    model = AnsweringModel(weighed)
    asked = record_relations(path, ORIGIN, PAIRS, model, clock=lambda: float(next(ticks)))
    # Three pairs without content and twelve with, in two prompts; none is asked twice.
    assert asked == len(model.asked) == 2 * (3 + len(PAIRS))
    record = read_relation_record(path)
    assert record.origin == ORIGIN
    assert len(record.answers) == asked
    for prompt in ("relation", "relation_question"):
        answers = record.of_prompt(prompt)
        assert {key[0] for key in answers} == {"r1", "r2", "r3"}
        assert len(record.content_free(prompt)) == 3
        for (_, _, claim), answer in answers.items():
            assert answer.seconds == 1.0
            if claim == "a2":
                assert answer.log_p is None
                assert "gives no single one of" in answer.missing
                assert answer.tokens == (100, 90, 4)
            else:
                assert answer.shares == pytest.approx((0.6, 0.25, 0.15), abs=1e-4)
                assert answer.tokens == (100, 80, 2)
    costs = record_costs(record, "relation")
    assert costs == {"asked": 100.0, "read": 15.0, "answered": 3.0, "seconds": 1.0}


def test_some_prompts_are_asked_first_and_the_others_later(tmp_path: Path) -> None:
    path, model = tmp_path / "record.jsonl", AnsweringModel(weighed)
    record_relations(path, ORIGIN, PAIRS, model, prompts=("relation",))
    assert {request.prompt.name for request in model.asked} == {"relation"}
    record = read_relation_record(path)
    assert record.origin == ORIGIN
    assert (len(record.of_prompt("relation")), len(record.of_prompt("relation_question"))) == (
        12,
        0,
    )
    assert record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed)) == 3 + len(PAIRS)


def test_a_recording_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path, whole = tmp_path / "record.jsonl", tmp_path / "whole.jsonl"

    def clock() -> float:
        return 0.0

    record_relations(whole, ORIGIN, PAIRS, AnsweringModel(weighed), clock=clock)
    record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed), most=2, clock=clock)
    # A kill while a line is written.
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    model = AnsweringModel(weighed)
    record_relations(path, ORIGIN, PAIRS, model, clock=clock)
    assert len(model.asked) == 2 * (len(PAIRS) - 2) + 1
    assert path.read_text(encoding="utf-8") == whole.read_text(encoding="utf-8")
    assert record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed), clock=clock) == 0


def test_a_record_of_another_origin_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed), most=0)
    before = path.read_bytes()
    other = replace(ORIGIN, seed=2, quantization="Q8_0")
    refused(
        "the file was recorded with another quantization and seed",
        *(record_relations, path, other, PAIRS, AnsweringModel(weighed)),
    )
    assert path.read_bytes() == before


def graph_of(response: str) -> FactGraph:
    """A response whose pairs are those of `PAIRS`, judged by people."""
    stances = {"c1": RelationKind.ENTAILMENT, "c2": RelationKind.CONTRADICTION}
    return FactGraph(
        response,
        (Atom("a1", label=True), Atom("a2", label=None)),
        (
            Context("c1", retrieved_for=("a1",)),
            Context("c2", retrieved_for=("a1", "a2")),
            Context("c10", retrieved_for=("a2",)),
        ),
        tuple(Relation(c, "a1", kind, 0.9) for c, kind in stances.items()),
    )


def test_graphs_have_the_relations_that_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    # Whole responses: the first two, and a pair of the third.
    record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed), most=9)
    record = read_record(str(path))
    graphs = [graph_of(name) for name in ("r1", "r2", "r3")]
    pairs = recorded_pairs(record, "relation")
    answers = dict(zip(pairs.keys, pairs.p.tolist(), strict=True))
    made = recorded_graphs(graphs, record, "relation", answers)
    asked = [each.response for each in recording_order(PAIRS, "responses", 1)]
    assert {graph.id for graph in made} == {asked[0], asked[4]}
    for graph in made:
        assert {(r.source, r.target) for r in graph.relations} == {("c1", "a1"), ("c2", "a1")}
        for relation in graph.relations:
            assert relation.kind is RelationKind.ENTAILMENT
            assert relation.probability == pytest.approx(0.6, abs=1e-4)
            assert relation.distribution == pytest.approx((0.6, 0.25, 0.0, 0.15), abs=1e-4)
        # Claim a2 has no label, and its pairs no answer.
        assert graph.metadata["relations"]["missing"] == [["c2", "a2", ""], ["c10", "a2", ""]]
    refused("has no answer to the prompt 'relation_bare'", recorded_pairs, record, "relation_bare")


@pytest.mark.parametrize(("most", "complete"), [(6, 1), (8, 1), (12, 2)])
def test_a_record_by_ranks_has_the_best_passages_of_every_claim(
    tmp_path: Path, most: int, complete: int
) -> None:
    path = tmp_path / "record.jsonl"
    origin = replace(ORIGIN, order="ranks")
    record_relations(path, origin, RANKED, AnsweringModel(weighed), most=most)
    record = read_record(str(path))
    graphs = [graph_of(name) for name in ("r1", "r2", "r3")]
    ranks = recorded_ranks(graphs, record, "relation")
    assert ranks.complete == complete
    assert len(ranks.ranks) == most
    assert all(rank == RANKS[key[1:]] for key, rank in ranks.ranks.items())
    for graph in ranks.best_passages(graphs):
        kept = {(c.id, claim) for c in graph.contexts for claim in c.retrieved_for}
        assert kept == {pair for pair, rank in RANKS.items() if rank <= complete}
        assert not graph.relations
        assert graph.atoms == graph_of(graph.id).atoms


def test_a_claim_whose_best_passage_is_not_recorded_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    origin = replace(ORIGIN, order="ranks")
    record_relations(path, origin, RANKED, AnsweringModel(weighed), most=5)
    record = read_record(str(path))
    graphs = [graph_of(name) for name in ("r1", "r2", "r3")]
    ranks = recorded_ranks(graphs, record, "relation")
    assert ranks.complete == 1
    last = recording_order(RANKED, "ranks", 1)[5]
    kept = {
        (graph.id, context.id, claim)
        for graph in ranks.best_passages(graphs)
        for context in graph.contexts
        for claim in context.retrieved_for
    }
    assert (last.response, last.pair.source, last.pair.target) in kept
    assert len(kept - set(ranks.ranks)) >= 1


def test_a_record_of_whole_responses_states_no_ranks(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed), most=1)
    refused("states no ranks", recorded_ranks, [], read_record(str(path)), "relation")


def test_corrections_divide_by_the_bias_and_learn_from_other_responses(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record_relations(path, ORIGIN, PAIRS, AnsweringModel(weighed))
    pairs = recorded_pairs(read_record(str(path)), "relation")
    judged = judged_pairs(map(graph_of, ("r1", "r2", "r3")))
    y = label_columns_of(pairs.keys, judged)
    assert sorted(y.tolist()) == [0, 0, 0, 1, 1, 1]
    corrected = corrected_pairs(pairs, y, folds=3)
    # Every answer is the same, also to what has no content: nothing remains without the bias.
    assert corrected["none"] == pytest.approx(np.tile([0.6, 0.25, 0.15], (6, 1)), abs=1e-4)
    assert corrected["probe"] == pytest.approx(np.full((6, 3), 1 / 3), abs=1e-4)
    assert set(corrected) == {"none", "probe", "batch", "learned"}
    assert (corrected["learned"][:, 2] < corrected["none"][:, 2]).all()
    assert "learned" not in corrected_pairs(pairs)
    row = relation_score_row(corrected["none"], y, pairs.responses, 0)
    assert row["accuracy"] == 0.5
    assert row["log_loss"] == pytest.approx(-(math.log(0.6) + math.log(0.25)) / 2, abs=1e-3)
    assert row["ece"] == pytest.approx(0.1, abs=1e-3)
