"""The rule of few calls: order, settled claims, limits, and remarks on the rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from experiments import assess
from experiments.evaluators.batches.batch import Batch, BatchSettings, assess_responses
from experiments.evaluators.calls.few_calls import (
    LIMIT_KEY,
    SETTLED,
    ask_until_settled,
    asking_order,
    few_calls_stage,
)
from factormodels import Atom, Context, FactGraph, RelationKind, datasets, read_many
from factormodels.errors import LimitReachedError
from factormodels.extraction.pipeline import relation_stage
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.stages.relations import (
    METADATA_KEY,
    relation_pairs,
    unanswered_atoms,
)
from tests.experiments.conftest import invoke, write_batch
from tests.experiments.evaluators.test_assess_model import provider, stage_of
from tests.factormodels.extraction.server import ScriptedServer
from tests.refusals import refused

GRAPH = FactGraph(
    "r",
    (Atom("a1", "Herons nest near rivers."), Atom("a2", "Otters sleep in burrows.")),
    (
        Context("c1", "Herons nest in trees.", retrieved_for=("a1",)),
        Context("c2", "Nothing of the kind.", retrieved_for=("a1", "a2")),
        Context("c3", "Otters sleep in burrows near rivers.", retrieved_for=()),
    ),
)


@dataclass
class Scripted:
    """Answers of a script by passage and claim, neutral otherwise; at most `most` of them."""

    script: dict[tuple[str, str], tuple[RelationKind, float] | None] = field(default_factory=dict)
    most: int = 1_000
    asked: list[tuple[str, str]] = field(default_factory=list)
    name: str = "scripted"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        answers: list[Judgment | Missing] = []
        for pair in pairs:
            key = (pair.source, pair.target)
            # What was answered is kept, as in a cache.
            if key not in self.asked:
                if len(self.asked) >= self.most:
                    raise LimitReachedError(f"the limit of {self.most} calls is reached; go on")
                self.asked.append(key)
            answer = self.script.get(key, (RelationKind.NEUTRAL, 0.9))
            answers.append(Missing("lost") if answer is None else Judgment(*answer, "recorded"))
        return answers


def asked_of(model: Scripted, decisive: float = 0.5, variant: str = "FR2") -> FactGraph:
    return few_calls_stage(lambda asked: relation_stage(asked, variant), model, decisive)(GRAPH)


def test_own_passages_come_first_then_those_that_share_most_words() -> None:
    pairs = relation_pairs(GRAPH, "FR3")
    order = [(pairs[number].source, pairs[number].target) for number in asking_order(GRAPH, pairs)]
    of_first = [source for source, target in order if target == "a1"]
    assert of_first == ["c1", "c2", "c3"]
    # A passage of another claim that has all words still comes after its own, which has none.
    assert [source for source, target in order if target == "a2"] == ["c2", "c3", "c1"]
    # Pairs of two passages come last.
    assert all(target.startswith("c") for _, target in order[6:])
    assert sorted(order) == sorted((pair.source, pair.target) for pair in pairs)


def test_equal_shares_keep_the_order_of_passages() -> None:
    bare = replace(
        GRAPH,
        contexts=tuple(
            Context(context.id, "", retrieved_for=context.retrieved_for)
            for context in GRAPH.contexts
        ),
    )
    pairs = [pair for pair in relation_pairs(bare, "FR2") if pair.target == "a1"]
    assert asking_order(bare, pairs) == [0, 1, 2]


@pytest.mark.parametrize("kind", [RelationKind.ENTAILMENT, RelationKind.CONTRADICTION])
def test_a_claim_is_settled_at_its_first_decisive_relation(kind: RelationKind) -> None:
    model = Scripted({("c1", "a1"): (kind, 0.8)})
    related = asked_of(model, decisive=0.8)
    facts = related.metadata[METADATA_KEY]
    assert Counter(target for _, target in model.asked) == {"a1": 1, "a2": 3}
    assert facts["asked"] == 4
    assert facts["unasked"] == [["c2", "a1", SETTLED.reason], ["c3", "a1", SETTLED.reason]]
    assert not facts["missing"]
    assert not unanswered_atoms(related)


@pytest.mark.parametrize("answer", [(RelationKind.ENTAILMENT, 0.79), None])
def test_a_weaker_relation_and_a_missing_answer_settle_nothing(
    answer: tuple[RelationKind, float] | None,
) -> None:
    model = Scripted({("c1", "a1"): answer})
    related = asked_of(model, decisive=0.8)
    assert len(model.asked) == 6
    assert "unasked" not in related.metadata[METADATA_KEY]
    assert LIMIT_KEY not in related.metadata[METADATA_KEY]


def test_every_claim_has_its_first_answer_before_any_has_a_second() -> None:
    model = Scripted()
    asked_of(model)
    rounds = [{target for _, target in model.asked[k : k + 2]} for k in (0, 2, 4)]
    assert rounds == [{"a1", "a2"}] * 3


@pytest.mark.parametrize("most", range(7))
def test_a_limit_leaves_the_rest_unasked_and_claims_without_an_answer_missing(most: int) -> None:
    model = Scripted(most=most)
    related = asked_of(model)
    facts = related.metadata[METADATA_KEY]
    assert facts["asked"] == len(model.asked) == most
    reasons = {reason for *_, reason in facts.get("unasked", ())}
    assert reasons == ({f"not asked: the limit of {most} calls is reached"} if most < 6 else set())
    assert (LIMIT_KEY in facts) == (most < 6)
    # The first round is of a1, whose own passage shares most words, and a2.
    assert unanswered_atoms(related) == {0: {"a1", "a2"}, 1: {"a2"}}.get(most, set())
    # A larger limit goes on where a smaller one ended.
    more = Scripted(most=most + 1)
    asked_of(more)
    assert more.asked[:most] == model.asked


def test_a_limit_among_pairs_of_passages_leaves_the_claims_alone() -> None:
    related = asked_of(Scripted(most=8), variant="FR3")
    unasked = related.metadata[METADATA_KEY]["unasked"]
    assert len(unasked) == 4
    assert {target[0] for _, target, _ in unasked} == {"c"}
    answers, limit = ask_until_settled(Scripted(), GRAPH, relation_pairs(GRAPH, "FR3"), 0.5)
    assert (len(answers), limit) == (12, "")


def test_an_assessment_says_what_was_not_asked_and_what_that_leaves_open() -> None:
    graphs = datasets.load("demonstration").graphs
    few = assess(graphs, few_calls=True)
    every = assess(graphs)
    # docs/how-to/few-calls.md says so.
    assert few.sentences[-1].startswith("345 of 2,249 pairs asked: first the passages")
    assert (
        "1,904 pairs not asked, because a relation with probability 0.5 or more"
        in few.sentences[-1]
    )
    assert not few.incomplete
    verdicts = [assessed["claims"]["verdict"].tolist() for assessed in (few, every)]
    assert verdicts[0] == verdicts[1]
    ranged: Any = few["responses"]
    assert (ranged["FR2_lower"] < ranged["FR2_upper"]).any()
    rows: Any = assess(graphs, few_calls=True, dry_run=True)["calls"].set_index("stage")
    assert rows.loc["relations FR2", "about"] == "about"
    refused("applies only with `few_calls`", assess, graphs, decisive=0.9)
    refused("decisive", assess, graphs, few_calls=True, decisive=0.4)


def test_a_response_that_a_limit_ended_is_taken_up_again(tmp_path: Path) -> None:
    other = replace(GRAPH, id="s")

    def run(model: Scripted, refused_id: str) -> Batch:
        def forbidden(graph: FactGraph) -> FactGraph:
            if graph.id == refused_id:
                raise LimitReachedError("the limit of 4 calls is reached; go on")
            return graph

        related = few_calls_stage(lambda asked: relation_stage(asked, "FR2"), model, 0.5)
        how = BatchSettings(out=tmp_path / "o")
        return assess_responses([GRAPH, other], [forbidden, related], (), {}, how, until_limit=True)

    first = run(Scripted(most=4), "s")
    assert first.limit_reached
    assert [response.asked for response in first.responses] == [4]
    assert first.failed == (("s", "the limit of 4 calls is reached"),)
    second = run(Scripted(), "")
    assert not second.limit_reached
    assert [response.asked for response in second.responses] == [6, 6]
    assert (second.resumed, second.failed) == (0, ())


@pytest.mark.service
def test_a_limit_ends_with_what_was_answered_and_the_same_command_goes_on(keyed: Path) -> None:
    texts = [f"Trains cross bridge {k}. Cars cross {k}. Boats pass below {k}." for k in range(3)]
    write_batch(keyed, texts, {f"{k}.txt": f"Only trains cross bridge {k}." for k in range(3)})

    def run(out: str, *more: str, code: int = 0) -> tuple[int, Any]:
        with ScriptedServer(provider) as server:
            given = ("--model", "openai/scripted", "--api-base", server.url, "--atoms", "sentences")
            result = invoke(
                *("assess", "batch.jsonl", "--documents", "notes", *given, "--few-calls"),
                *("--json", "--out", out, *more),
                code=code,
            )
        return Counter(map(stage_of, server.requests))["relations"], json.loads(result.stdout)

    asked, first = run("o", "--max-calls", "5", code=3)
    assert asked == 5
    assert first["incomplete"]
    sentences = " ".join(first["findings"])
    assert "the limit of 5 calls is reached" in sentences
    claims = first["tables"]["claims"]
    lacking = [row for row in claims if row["p"] is None]
    assert f"{len(lacking)} claims without an answer" in sentences
    assert len(lacking) == len(claims) - 5
    assert {row["verdict"] for row in lacking} == {"missing"}
    graphs = read_many(keyed / "o/graphs.jsonl")
    facts = [graph.metadata[METADATA_KEY] for graph in graphs]
    assert sum(fact["asked"] for fact in facts) == 5
    assert not any(fact["missing"] for fact in facts)
    # What was paid for is not asked again, and the result is that of one calm run.
    again, _ = run("o")
    calm, whole = run("calm", "--cache", "calm.sqlite")
    assert 5 + again == calm
    assert not whole["incomplete"]
    assert (keyed / "o/graphs.jsonl").read_bytes() == (keyed / "calm/graphs.jsonl").read_bytes()
    prices = ("--price-in", "1", "--price-out", "1", "--cache", "paid.sqlite")
    paid, _ = run("paid", *prices, "--max-cost", "0.00005", code=3)
    # A call has twenty-two tokens, at a dollar a million.
    assert 0 < paid <= 3


@pytest.mark.service
def test_responses_whose_claims_a_limit_forbids_have_no_result(keyed: Path) -> None:
    write_batch(keyed, ["Trains cross.", "Cars cross."], {"n.txt": "Only trains cross."})
    with ScriptedServer(provider) as server:
        given = ("--model", "openai/scripted", "--api-base", server.url, "--concurrency", "1")
        command = ("assess", "batch.jsonl", "--documents", "notes", "--few-calls", *given)
        stopped = invoke(*command, "--max-calls", "1", "--out", "o", code=3)
        assert "failed: the limit of 1 calls is reached." in " ".join(stopped.stdout.split())
        before = len(server.requests)
        invoke(*command, "--out", "o")
        assert len(server.requests) > before
    assert len(read_many(keyed / "o/graphs.jsonl")) == 2
