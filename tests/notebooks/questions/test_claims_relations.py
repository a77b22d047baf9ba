"""Relations between claims beside evidence: graphs that are learned on, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials.graph_potentials import items_of
from factormodels import Atom, FactGraph, Relation, RelationKind, datasets
from factormodels.variants import between_claims, variant
from inference import infer
from notebooks.questions.claims_relations import (
    STRENGTHS,
    claims_relations,
    evidence_alone,
    learned_posteriors,
    with_causes,
    with_related_claims,
)

pytestmark = pytest.mark.slow


def test_votes_are_evidence_by_their_share() -> None:
    claims = (Atom("a1", label=True), Atom("a2", label=False))
    related = Relation("a1", "a2", RelationKind.EQUIVALENCE, 0.7)
    graph = FactGraph("r", claims, (), (related,), metadata={"votes": {"a1": "YYN", "a2": "NNN"}})
    alone = evidence_alone(graph)
    assert [(relation.target, relation.probability) for relation in alone.relations] == [
        ("a1", 2 / 3),
        ("a2", 0.0),
    ]
    both = with_related_claims(graph)
    assert both.relations == (*alone.relations, related)
    names = [item.weight for item in items_of(STRENGTHS, both)[1]]
    assert names == [f"probability[{name}]" for name in ("p4", "p0", "equivalence sure")]


def test_hidden_causes_join_claims_in_a_tree_and_even_ones_change_nothing() -> None:
    graph = datasets.load("selfcheck").graphs[0]
    alone, tree = evidence_alone(graph), with_causes(graph)
    assert len(tree.relations) == len(tree.atoms) + len(tree.contexts) - 1
    causes = {relation.source for relation in tree.relations[len(alone.relations) :]}
    even = replace(
        tree,
        relations=tuple(
            replace(relation, probability=0.5) if relation.source in causes else relation
            for relation in tree.relations
        ),
    )
    before, after, joined = (
        infer(each.with_parameters().to_factor_graph()).marginals.of_state(1, graph.atom_ids)
        for each in (alone, even, tree)
    )
    assert after == pytest.approx(before, abs=1e-12)
    assert np.abs(joined - before).max() > 1e-3
    names = {item.weight for item in items_of(STRENGTHS, tree)[1]}
    assert {"probability[sentence]", "probability[response]"} < names


def test_passages_are_those_of_each_claim() -> None:
    graph = datasets.with_claim_relations(datasets.load("factscore"))[0]
    alone = evidence_alone(graph)
    assert len(alone.relations) == len(variant(graph, "FR1").relations)
    both = with_related_claims(graph)
    assert between_claims(both) == between_claims(graph)


def test_relations_between_claims_are_learned_from_labels() -> None:
    """If claims agree in pairs, the evidence of one informs the other."""
    rng = np.random.default_rng(0)
    graphs = []
    for number in range(60):
        truth = bool(rng.random() < 0.5)
        share = 0.9 if truth else 0.1
        vote = "Y" * int(20 * share) + "N" * (20 - int(20 * share))
        graphs.append(
            FactGraph(
                f"r{number}",
                (Atom("a1", label=truth), Atom("a2", label=truth)),
                relations=(Relation("a1", "a2", RelationKind.EQUIVALENCE, 0.7),),
                metadata={"votes": {"a1": vote}},
            )
        )
    labels = np.array([atom.label for graph in graphs for atom in graph.atoms], float)
    alone = learned_posteriors([evidence_alone(graph) for graph in graphs], 3, 0)
    both = learned_posteriors([with_related_claims(graph) for graph in graphs], 3, 0)
    second = np.arange(1, 120, 2)
    assert np.ptp(alone[second]) < 0.2
    assert np.mean((both[second] - labels[second]) ** 2) < 0.05


def test_the_answer_gives_differences_from_evidence_alone() -> None:
    made = claims_relations(data=("selfcheck",), folds=2)
    rows: Any = made.tables["relations"].frame.set_index("graph")
    assert rows["relations"].tolist() == [0, 10, 0]
    change = rows.loc["hidden causes", "brier"] - rows.loc["evidence alone", "brier"]
    assert rows.loc["hidden causes", "difference"] == pytest.approx(change, abs=1e-12)
    # What claims of a passage have in common is their writer.
    assert rows.loc["hidden causes", "difference_upper"] < 0
