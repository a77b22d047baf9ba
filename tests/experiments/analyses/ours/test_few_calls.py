"""Few calls: the study on a few responses, held to what its graphs say one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.unasked import AnswerLaw, Asked, learn_law
from experiments.analyses.ours.few_calls import Settings, compared
from experiments.analyses.ours.shared.derive_answer_law import derive
from experiments.analyses.ours.shared.derive_answer_law import main as derive_law
from experiments.analyses.ours.shared.recorded_calls import (
    HINDSIGHT,
    Recorded,
    first,
    learned,
    likenesses,
    posteriors,
    recorded,
    risk_rows,
    rivals,
    true,
)
from experiments.evaluators.spending import ANSWER_LAW, answer_law_from, default_law
from experiments.evaluators.unasked import answer_of, answers_of, askable
from experiments.study.config import DatasetChoice
from factormodels import datasets
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.io.learned_files import read_learned
from factormodels.variants import variant
from inference import infer
from tests.refusals import refused

GRAPHS = [variant(graph, "FR2") for graph in datasets.load("factcheck-bench").graphs[:8]]


@pytest.mark.parametrize("kind", [RelationKind.ENTAILMENT, RelationKind.CONTRADICTION])
@pytest.mark.parametrize(("context", "atom"), [(0.99, 0.5), (0.7, 0.2)])
@pytest.mark.parametrize("encoding", ["implication", "conditional"])
def test_weights_are_what_one_passage_adds_to_log_odds(
    kind: RelationKind, context: float, atom: float, encoding: str
) -> None:
    relation = Relation("c1", "a1", kind, 0.8)
    graph = FactGraph("r", (Atom("a1", prior=atom),), (Context("c1", prior=context),), (relation,))
    p = infer(graph.to_factor_graph(encoding), "exact").marginals["a1"][1]
    _, weight = answer_of(relation, context, atom, encoding)
    odds = np.log(p / (1 - p)) - np.log(atom / (1 - atom))
    assert weight == pytest.approx(odds, abs=1e-9)


def test_columns_say_for_whom_a_passage_was_found() -> None:
    atoms = (Atom("a1", sentence=1), Atom("a2", sentence=1), Atom("a3", sentence=4))
    contexts = (Context("c1", retrieved_for=("a1",)), Context("c2", retrieved_for=("a1", "a3")))
    found = askable(FactGraph("r", atoms, contexts))
    assert found.names[:3] == (("c1", "a1"), ("c1", "a2"), ("c1", "a3"))
    own, reach, distance, rank = (found.pairs.columns[:, k] for k in (1, 2, 4, 7))
    assert own.tolist() == [1, 0, 0, 1, 0, 1]
    np.testing.assert_allclose(np.exp(reach), [1, 1, 1, 2, 2, 2])
    np.testing.assert_allclose(np.expm1(distance), [0, 0, 3, 0, 0, 0])
    assert rank.tolist() == [0, 0, 0, 1, 0, 0]
    assert askable(FactGraph("r", atoms, contexts), "FR1").names == (
        *(("c1", "a1"), ("c2", "a1"), ("c2", "a3")),
    )


def test_posteriors_of_what_was_asked_are_those_of_the_graph_without_the_rest() -> None:
    own = recorded(GRAPHS[:2], "FR1", 2, 0)
    graphs, asked = own.graphs, own.asked
    everything = Asked(
        np.repeat([0, 1], [each.pairs.size for each in asked]),
        np.concatenate([np.arange(each.pairs.size) for each in asked]),
    )
    whole = [infer(graph.to_factor_graph(), "exact").marginals for graph in graphs]
    by_hand = [m[atom][1] for m, g in zip(whole, graphs, strict=True) for atom in g.atom_ids]
    np.testing.assert_allclose(posteriors(own, everything), by_hand, atol=1e-12)
    nothing = Asked(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    np.testing.assert_allclose(posteriors(own, nothing), 0.5)


def test_sums_of_weights_give_the_verdicts_of_exact_inference() -> None:
    for graph in GRAPHS:
        asked = askable(graph, "FR1")
        weight = answers_of(graph, asked).weight
        odds = np.bincount(asked.pairs.claim, weight, len(graph.atoms))
        p = infer(graph.to_factor_graph(), "exact").marginals.of_state(1, graph.atom_ids)
        assert true(p).tolist() == (odds > 1e-9).tolist()


def two_claims() -> Recorded:
    """Two claims and two passages; the second passage entails the second claim, and the first."""
    atoms = (Atom("a1", "It is old and red."), Atom("a2", "It is tall."))
    contexts = (Context("c1", "An old red barn.", retrieved_for=("a1",)),
                Context("c2", "Tall trees.", retrieved_for=("a2",)))  # fmt: skip
    entails = (("c2", "a2", 0.9), ("c2", "c1", 0.8), ("c1", "a1", 0.7))
    neutral = (("c1", "a2", 0.9), ("c2", "a1", 0.9))
    relations = tuple(Relation(s, t, RelationKind.ENTAILMENT, p) for s, t, p in entails)
    relations += tuple(Relation(s, t, RelationKind.NEUTRAL, p) for s, t, p in neutral)
    return recorded([FactGraph("r", atoms, contexts, relations)], "FR3", 2, 0)


def test_pairs_of_passages_are_asked_last_and_in_both_orders() -> None:
    own = two_claims()
    assert (own.calls, len(own.between[0])) == (4 + 2, 1)
    everything = Asked(np.zeros(4, dtype=np.int64), np.arange(4))
    graph = own.graphs[0]
    without = graph.derived(graph.contexts, tuple(r for r in graph.relations if r.target != "c1"))
    for between, seen in ((0, without), (1, without), (2, graph)):
        p = infer(seen.to_factor_graph(), "exact").marginals.of_state(1, graph.atom_ids)
        np.testing.assert_allclose(posteriors(own, everything, between), p, atol=1e-12)
    # An entailed passage is more probable, and what it says too.
    assert posteriors(own, everything, 2)[0] > posteriors(own, everything, 0)[0]


def test_who_knows_the_answers_asks_for_one_support_of_each_claim() -> None:
    own = two_claims()
    order = rivals(own.pairs, own.answers, np.random.default_rng(0))[HINDSIGHT]
    assert true(posteriors(own, first(order, 2))).all()
    assert not true(posteriors(own, first(order, 1))).all()


def test_likeness_of_a_pair_is_that_of_its_own_texts() -> None:
    own = two_claims()
    asked = []

    def shared_letters(texts: Sequence[str]) -> NDArray[np.float64]:
        asked.append(list(texts))
        return np.array([[len({*one} & {*other}) for other in texts] for one in texts], dtype=float)

    found = likenesses(own, shared_letters)
    texts = {one.id: one.text for one in own.graphs[0].atoms}
    contents = {one.id: one.content for one in own.graphs[0].contexts}
    by_hand = [len({*texts[a]} & {*contents[c]}) for c, a in own.asked[0].names]
    assert found.tolist() == by_hand
    # Neighbours' passages come by it: that of the pair which is not own.
    order = rivals(own.pairs, own.answers, np.random.default_rng(0), found, found)
    last = order["own, then neighbours'"].pair[2:].tolist()
    assert [by_hand[pair] for pair in last] == sorted(
        (by_hand[pair] for pair in last), reverse=True
    )


@pytest.mark.slow
def test_rows_end_with_all_verdicts_and_classes_hold_every_claim() -> None:
    choice = DatasetChoice(name="factcheck-bench")
    settings = Settings(datasets=(choice,), shares=(0.3, 1.0), risks_at=(0.3,), folds=2)
    own = recorded(GRAPHS, "FR1", settings.folds, 0)
    rows, risks = compared(own, "FR1", [own], settings, 0, lambda: None)
    assert {row["method"] for row in rows} == {
        *("value", "rank order", "rank order, stopping early", "own, then neighbours'", "random"),
        HINDSIGHT,
    }
    for row in rows:
        assert (row["kept"], row["change"]) == (1.0, 0.0) or row["share"] < 1
    assert sum(row["claims"] for row in risks) == sum(len(g.atoms) for g in GRAPHS if g.contexts)


def test_classes_of_risk_by_hand() -> None:
    stated, changed = np.array([0.01, 0.02, 0.04, 0.9]), np.array([False, True, True, True])
    rows = risk_rows(stated, changed, np.array([0, 2, 1, 1]), 0)
    assert [(row["most"], row["claims"], row["changed"]) for row in rows] == [
        *((0.02, 2, 0.5), (0.05, 1, 1.0), (1.0, 1, 1.0)),
    ]
    # Redrawn responses have the one claim, the other, or both.
    assert (rows[0]["changed_lower"], rows[0]["changed_upper"]) == (0.0, 1.0)


def test_the_law_of_assess_is_one_file_of_numbers(tmp_path: Path) -> None:
    out = tmp_path / "law.json"
    assert derive(out, limit=5) == 10
    found, signed = read_learned(out.read_text(), out, ANSWER_LAW, answer_law_from)
    assert signed
    shipped = default_law()
    for name in (each.name for each in fields(AnswerLaw)):
        assert getattr(found, name).shape == getattr(shipped, name).shape
        assert np.isfinite(getattr(shipped, name)).all()
    assert derive_law(["/nowhere/law.json"]) == 2
    text = out.read_text().replace('"shares": [', '"shares": [7, ')
    refused("key 'shares'", read_learned, text, out, ANSWER_LAW, answer_law_from)


@pytest.mark.slow
def test_the_law_of_assess_is_what_the_script_derives(tmp_path: Path) -> None:
    assert derive(tmp_path / "law.json") > 100
    found = read_learned((tmp_path / "law.json").read_text(), "x", ANSWER_LAW, answer_law_from)[0]
    for name, each in vars(found).items():
        # Answers are asked for in an order that the last bits of a machine may change.
        np.testing.assert_allclose(each, getattr(default_law(), name), rtol=0.05, atol=0.05)


def test_laws_of_a_fold_are_learned_without_it() -> None:
    own = recorded(GRAPHS, "FR1", 2, 0)
    one = learned([own], without=0)
    rest = [number for number, fold in enumerate(own.fold.tolist()) if fold != 0]
    same = learn_law([own.pairs[i] for i in rest], [own.answers[i] for i in rest])
    np.testing.assert_array_equal(one.support, same.support)
    both = learned([own, own])
    assert not np.array_equal(both.support, one.support)
