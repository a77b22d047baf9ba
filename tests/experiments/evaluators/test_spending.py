"""Relations on a budget: what is asked, what is not, what is said of that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from experiments import assess
from experiments.evaluators.spending import Limits, limits, near_duplicates_merged, spending_stage
from experiments.findings.table import markdown
from factormodels import datasets
from factormodels.claims import Atom, Context, RelationKind
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.stages.relations import METADATA_KEY
from factormodels.fact_graph import FactGraph
from tests.refusals import refused


@dataclass
class Supporting:
    """Supports where the passage holds the claim word for word; remembers what it was asked."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    name: str = "supporting"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        self.asked += [(pair.source, pair.target) for pair in pairs]
        kinds = [
            RelationKind.ENTAILMENT if pair.hypothesis in pair.premise else RelationKind.NEUTRAL
            for pair in pairs
        ]
        return [Judgement(kind, 0.9, "recorded") for kind in kinds]


def graph(claims: int = 6, passages: int = 5) -> FactGraph:
    """Claim k is in passage k; every passage was found for the claim of its number."""
    atoms = tuple(Atom(f"a{k}", f"claim number {k}.", sentence=k) for k in range(claims))
    contexts = tuple(
        Context(f"c{k}", f"passage {k} {'xyz'[k % 3] * 9} says claim number {k}.",
                retrieved_for=(f"a{k}",))
        for k in range(passages)
    )  # fmt: skip
    return FactGraph("r", atoms, contexts)


def asked_of(calls: int | None, stop: float | None = None) -> tuple[Supporting, FactGraph]:
    model = Supporting()
    allowed = Limits(None if calls is None else {"r": calls}, stop)
    return model, spending_stage(model, "FR2", 0.5, "implication", allowed, {})(graph())


@pytest.mark.parametrize("calls", [0, 1, 5, 11, 30, 99])
def test_no_more_is_asked_than_the_budget_allows_and_nothing_twice(calls: int) -> None:
    model, found = asked_of(calls)
    assert len(model.asked) == len(set(model.asked)) == min(calls, 30)
    told = found.metadata[METADATA_KEY]
    assert told["asked"] == min(calls, 30)
    assert len(told.get("unasked", ())) == 30 - min(calls, 30)
    assert not told["missing"]
    assert set(told["risk"]) == set(found.atom_ids)
    if calls >= 30:
        assert set(told["risk"].values()) == {0.0}


def test_a_larger_budget_goes_on_where_a_smaller_one_ended() -> None:
    small, _ = asked_of(11)
    large, _ = asked_of(20)
    assert set(small.asked) < set(large.asked)


def test_own_passages_come_first() -> None:
    model, _ = asked_of(5)
    assert set(model.asked) == {(f"c{k}", f"a{k}") for k in range(5)}


def test_asking_ends_once_the_stated_risk_is_below_the_limit() -> None:
    model, found = asked_of(None, stop=0.2)
    assert 0 < len(model.asked) < 30
    assert max(found.metadata[METADATA_KEY]["risk"].values()) <= 0.2
    strict, _ = asked_of(None, stop=0.0)
    assert len(strict.asked) == 30


def test_a_budget_is_shared_out_by_claims() -> None:
    graphs = [FactGraph(f"r{n}", tuple(Atom(f"a{k}") for k in range(n))) for n in (1, 3, 6)]
    assert limits(graphs, "20", None, None, 1.0).calls == {"r1": 2, "r3": 6, "r6": 12}
    dollars = limits(graphs, "US$ 2", None, 0.1, 1.0)
    assert dollars.calls == {"r1": 2, "r3": 6, "r6": 12}
    assert dollars.purse is not None
    assert dollars.purse.shares == pytest.approx({"r1": 0.2, "r3": 0.6, "r6": 1.2})
    assert limits(graphs, "40", None, None, 2.0).calls == {"r1": 2, "r3": 6, "r6": 12}
    shared = limits(graphs, "7", None, None, 1.0).calls
    assert sum((shared or {}).values()) == 7
    assert limits(graphs, None, 0.1, None, 1.0) == Limits(None, 0.1)


@pytest.mark.parametrize(
    ("spend", "said"),
    [("much", "is no budget"), ("-3", "is no budget"), ("US$ 2", "price of a call is not known")],
)
def test_a_budget_that_cannot_be_read_is_refused(spend: str, said: str) -> None:
    refused(said, limits, [graph()], spend, None, None, 1.0)


def test_passages_with_nearly_the_same_words_are_one() -> None:
    words = " ".join(f"word{k}" for k in range(40))
    texts = (words, f"{words} more", "something else", words.replace("word", "Word"))
    contexts = tuple(
        Context(f"c{k}", text, retrieved_for=(f"a{k % 2}",)) for k, text in enumerate(texts)
    )
    found = near_duplicates_merged(FactGraph("r", (Atom("a0"), Atom("a1")), contexts))
    assert [context.id for context in found.contexts] == ["c0", "c2"]
    assert found.contexts[0].retrieved_for == ("a0", "a1")
    apart = near_duplicates_merged(FactGraph("r", (Atom("a0"), Atom("a1")), contexts[:3]), 1.0)
    assert len(apart.contexts) == 3


@pytest.mark.parametrize("changed", ["word39 1891", "not 1890"])
def test_passages_that_differ_in_a_number_or_a_negation_are_two(changed: str) -> None:
    words = " ".join(f"word{k}" for k in range(39))
    pair = tuple(
        Context(f"c{k}", f"{words} {end}") for k, end in enumerate(("word39 1890", changed))
    )
    assert len(near_duplicates_merged(FactGraph("r", (), pair)).contexts) == 2
    # Nor by embeddings.
    by_meaning = near_duplicates_merged(
        FactGraph("r", (), pair), alike=lambda pairs: np.ones(len(pairs))
    )
    assert len(by_meaning.contexts) == 2


def test_an_assessment_says_what_was_not_asked_and_what_that_leaves_open() -> None:
    texts = datasets.load("demonstration")
    found = assess(texts.graphs, spend="10")
    said = " ".join(found.sentences)
    assert "10 of " in said
    assert "in order of what they are worth" in said
    assert "A verdict is whether the probability is more than one half" in said
    assert not found.incomplete
    claims = found.tables["claims"].frame
    assert claims["risk"].between(0, 1).all()
    assert claims["p"].notna().all()
    ranged = found.tables["responses"].frame
    assert (ranged["FR2_lower"] <= ranged["FR2"]).all()
    assert (ranged["FR2"] <= ranged["FR2_upper"]).all()
    assert (ranged["FR2_lower"] < ranged["FR2_upper"]).any()
    # Of a single response the table of measures stands alone: it has the ranges too.
    alone = assess(texts.graphs[:1], spend="10")
    said = next(each for each in alone.sentences if "whatever the missing answers" in each)
    low, high = re.search(r"Pr \[(.+?), (.+?)\]", said).groups()  # type: ignore[union-attr]
    assert f"[{low}, {high}]" in markdown(alone.tables["summary"])
    whole = assess(texts.graphs, spend="100000").tables["claims"].frame
    plain = assess(texts.graphs).tables["claims"].frame
    assert whole["p"].tolist() == pytest.approx(plain["p"].tolist(), abs=1e-12)
    bound = assess(texts.graphs, spend="10", dry_run=True)
    frontier = bound.tables["frontier"].frame
    assert frontier["risk"].iloc[0] > frontier["risk"].iloc[-1] == 0.0
    (axes,) = bound.draw()["stated-risk"].figure.axes
    mean, largest = axes.get_lines()
    assert np.array(mean.get_ydata()).tolist() == frontier["risk"].tolist()
    assert np.array(largest.get_xdata()).tolist() == frontier["calls"].tolist()
    # Tables and figures are written to one folder, under their names.
    assert bound.draw().keys().isdisjoint(bound.tables)
    # The budget has a row of its own, and the calls are no more than it.
    assert frontier["calls"].is_monotonic_increasing
    at: Any = frontier.set_index("calls")
    assert at.loc[0, "risk"] > at.loc[10, "risk"] > 0
    assert bound.tables["frontier"].note.startswith("10 calls: the budget")
    calls: Any = bound.tables["calls"].frame.set_index("stage")
    assert calls.loc["relations FR2", "calls"] == 10
    unlimited = assess(texts.graphs, dry_run=True)
    every: Any = unlimited.tables["calls"].frame.set_index("stage")
    assert every.loc["relations FR2", "calls"] > 10
    assert not unlimited.draw()
