"""The value of relations that have not been looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from factormodels import FactGraph, InputError
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.synthetic import fact_graph
from inference import infer
from inference.tasks.uncertain_relations import (
    OutcomeLaw,
    RelationValue,
    unseen_pairs,
    value_of_information,
)
from tests.inference.tasks.uncertain_relations.cases import (
    ROUNDING,
    enumerated,
    hub,
    small_fact_graph,
)
from tests.refusals import refused

LAW = OutcomeLaw(entailment=0.5, contradiction=0.2, neutral=0.3, strength=0.85)


def added(graph: FactGraph, row: RelationValue, kind: RelationKind, strength: float) -> FactGraph:
    """Return the graph with the outcome recorded."""
    relation = Relation(row.context, row.atom, kind, strength)
    return replace(graph, relations=(*graph.relations, relation))


def assert_row(row: RelationValue, before: float, entailed: float, contradicted: float) -> None:
    """Check a row against posteriors that were run anew."""
    after = [(LAW.entailment, entailed), (LAW.contradiction, contradicted), (LAW.neutral, before)]
    assert row.probability == pytest.approx(before, abs=ROUNDING)
    assert row.if_entailed == pytest.approx(entailed, abs=ROUNDING)
    assert row.if_contradicted == pytest.approx(contradicted, abs=ROUNDING)
    held = before > 0.5 + 1e-12
    flips = sum(share for share, p in after if (p > 0.5 + 1e-12) != held)
    change = sum(share * abs(p - before) for share, p in after)
    gain = sum(share * max(p, 1 - p) for share, p in after) - max(before, 1 - before)
    assert row.flip_probability == pytest.approx(flips, abs=1e-15)
    assert row.expected_change == pytest.approx(change, abs=ROUNDING)
    assert row.expected_gain == pytest.approx(gain, abs=ROUNDING)


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
def test_small_graphs_against_the_enumeration(encoding: str) -> None:
    checked = 0
    for seed in range(25):
        graph = small_fact_graph(seed)
        rows = value_of_information(graph, encoding=encoding, outcome_law=LAW)
        assert {(row.context, row.atom) for row in rows} == set(unseen_pairs(graph))
        before = enumerated(graph, encoding)
        for row in rows:
            at = graph.atom_ids.index(row.atom)
            entailed, contradicted = (
                enumerated(added(graph, row, kind, LAW.strength), encoding)[at]
                for kind in (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)
            )
            assert_row(row, before[at], entailed, contradicted)
            checked += 1
    assert checked > 60


@pytest.mark.parametrize(
    "graph", [hub(50), fact_graph(6, 3, 0.1, 0.05, seed=1)], ids=["hub", "fr3"]
)
def test_larger_graphs_against_running_anew(graph: FactGraph) -> None:
    rows = value_of_information(graph, encoding="implication", outcome_law=LAW)
    before = infer(graph.to_factor_graph("implication")).marginals
    for row in rows[:: max(1, len(rows) // 8)]:
        entailed, contradicted = (
            infer(added(graph, row, kind, LAW.strength).to_factor_graph("implication"))
            .marginals[row.atom][1]
            .item()
            for kind in (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)
        )
        assert_row(row, before[row.atom][1].item(), entailed, contradicted)


def test_an_isolated_atom_by_hand() -> None:
    graph = FactGraph("one", (Atom("a"),), (Context("c", prior=1.0),))
    law = OutcomeLaw(entailment=0.6, contradiction=0.1, neutral=0.3, strength=0.9)
    (row,) = value_of_information(graph, encoding="implication", outcome_law=law)
    assert (row.context, row.atom) == ("c", "a")
    assert row.if_entailed == pytest.approx(0.9, abs=ROUNDING)
    assert row.if_contradicted == pytest.approx(0.1, abs=ROUNDING)
    # A tie is not held true: only the entailment changes the decision.
    assert row.flip_probability == 0.6
    assert row.expected_change == pytest.approx(0.7 * 0.4, abs=ROUNDING)
    assert row.expected_gain == pytest.approx(0.7 * 0.4, abs=ROUNDING)


def test_rows_are_sorted_best_first_and_ties_keep_their_order() -> None:
    graph = fact_graph(6, 2, 0.1, seed=3)
    rows = value_of_information(graph, encoding="implication", outcome_law=LAW)
    keys = [(-row.flip_probability, -row.expected_change) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) > 3
    nothing = OutcomeLaw(entailment=0.0, contradiction=0.0, neutral=1.0, strength=0.9)
    pairs = unseen_pairs(graph)[::-1]
    same = value_of_information(graph, pairs, encoding="implication", outcome_law=nothing)
    assert tuple((row.context, row.atom) for row in same) == pairs
    assert {(row.flip_probability, row.expected_change, row.expected_gain) for row in same} == {
        (0.0, 0.0, 0.0)
    }


def test_what_has_been_recorded_is_seen_whatever_it_was() -> None:
    relations = (
        Relation("c0", "a0", RelationKind.NEUTRAL, 0.9),
        Relation("a1", "c0", RelationKind.ENTAILMENT, 0.9),
        Relation("c0", "c1", RelationKind.EQUIVALENCE, 0.9),
    )
    graph = FactGraph("seen", (Atom("a0"), Atom("a1")), (Context("c0"), Context("c1")), relations)
    assert unseen_pairs(graph) == (("c1", "a0"), ("c1", "a1"))
    rows = value_of_information(graph, [("c1", "a1")], encoding="conditional", outcome_law=LAW)
    assert [(row.context, row.atom) for row in rows] == [("c1", "a1")]
    assert value_of_information(graph, [], encoding="conditional", outcome_law=LAW) == ()


def test_conflicting_evidence_may_lose() -> None:
    relation = Relation("c0", "a", RelationKind.ENTAILMENT, 0.9)
    contexts = (Context("c0"), Context("c1"))
    graph = FactGraph("sure", (Atom("a"),), contexts, (relation,))
    law = OutcomeLaw(entailment=0.0, contradiction=1.0, neutral=0.0, strength=0.6)
    (row,) = value_of_information(graph, encoding="implication", outcome_law=law)
    assert row.expected_gain < -0.01
    assert row.flip_probability == 0.0


def test_bad_requests_are_named() -> None:
    graph = small_fact_graph(1)
    seen = FactGraph(
        "seen", (Atom("a"),), (Context("c"),), (Relation("c", "a", RelationKind.NEUTRAL, 1.0),)
    )
    for fact, candidates, match in [
        (graph, [("x", "a0")], "candidate 0 of fact graph 'small': 'x' is not a context"),
        (graph, [("c0", "c0")], "'c0' is not an atom"),
        (graph, ["c0"], r"is 'c0'; give a pair \(context, atom\)"),
        (seen, [("c", "a")], "a relation of 'c' and 'a' is recorded"),
        (replace(seen, relations=()), [("c", "a"), ("c", "a")], "candidate 1 .* given twice"),
    ]:
        how = {"encoding": "implication", "outcome_law": LAW}
        refused(match, value_of_information, fact, candidates, **how)
    with pytest.raises(InputError, match="the encoding 'no' is unknown"):
        value_of_information(graph, encoding="no", outcome_law=LAW)


@pytest.mark.parametrize(
    ("numbers", "match"),
    [
        ((0.5, 0.5, 0.5, 0.9), r"neutral 1\.5 in all; give probabilities that sum to 1"),
        ((1.2, -0.2, 0.0, 0.9), r"entailment of the outcome law: the probability 1\.2"),
        ((0.5, 0.5, 0.0, 1.0), r"the strength 1\.0 of the outcome law makes a relation certain"),
        ((0.5, 0.5, 0.0, 0.0), r"the strength 0\.0"),
    ],
)
def test_laws_are_checked(numbers: tuple[float, float, float, float], match: str) -> None:
    refused(match, OutcomeLaw, *numbers)


def test_law_probabilities_as_written_sum_to_one() -> None:
    law = OutcomeLaw(0.7, 0.2, 0.1, 0.9)
    assert np.isclose(law.entailment + law.contradiction + law.neutral, 1.0)
