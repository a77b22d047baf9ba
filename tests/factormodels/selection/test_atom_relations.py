"""Atoms related to each other: repetition moves no posterior, unless evidence is heard twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factormodels import Atom, Context, FactGraph, Relation, RelationKind, variant
from factormodels.selection.atom_relations import relate_atoms
from inference import infer
from tests.factormodels.graphs import in_words
from tests.factormodels.selection.cases import TableRelations

SAME = {("A.", f"A{k}.", 0.9) for k in range(20)} | {(f"A{k}.", "A.", 0.8) for k in range(20)}
RELATIONS = TableRelations({(p, h): e for p, h, e in SAME} | {("A.", "B."): 0.7})


def response(repeats: int) -> FactGraph:
    """A with a passage for and one against it, B that follows from A, and repetitions of A."""
    atoms = [Atom("a", "A."), Atom("b", "B.")]
    atoms += [Atom(f"r{k}", f"A{k}.") for k in range(repeats)]
    of_a = ("a", *(f"r{k}" for k in range(repeats)))
    return FactGraph(
        id="g",
        atoms=tuple(atoms),
        contexts=(Context("c", retrieved_for=of_a), Context("d", retrieved_for=("a", "b"))),
        relations=(
            *(Relation("c", atom, RelationKind.ENTAILMENT, 0.8) for atom in of_a),
            Relation("d", "a", RelationKind.CONTRADICTION, 0.6),
            Relation("d", "b", RelationKind.ENTAILMENT, 0.6),
        ),
    )


def posterior(graph: FactGraph, atom: str) -> float:
    return float(infer(graph.to_factor_graph(), "exact").marginals[atom][1])


@pytest.mark.parametrize("view", ["FR1", "FR2", "FR3", "given"])
@pytest.mark.parametrize("repeats", [1, 5, 20])
def test_repetitions_move_no_posterior(view: str, repeats: int) -> None:
    clean = relate_atoms(variant(response(0), view), RELATIONS).graph
    related = relate_atoms(variant(response(repeats), view), RELATIONS)
    for atom in ("a", "b"):
        # The repetitions sum to a constant, to rounding.
        assert posterior(related.graph, atom) == pytest.approx(posterior(clean, atom), abs=1e-12)
    assert related.dropped == repeats
    assert related.representative == (0, 1, *(0,) * repeats)


def test_relations_between_atoms_are_equivalences_to_the_first_and_entailments() -> None:
    related = relate_atoms(response(2), RELATIONS)
    between = [r for r in related.graph.relations if {r.source, r.target} <= {"a", "b", "r0", "r1"}]
    assert in_words(between) == "a b entailment 0.7, a r0 equivalence 0.8, a r1 equivalence 0.8"
    # What relates atoms already stays as it is.
    again = relate_atoms(related.graph, RELATIONS)
    assert again.graph.relations == related.graph.relations


def test_the_variants_keep_no_relation_between_atoms() -> None:
    related = relate_atoms(response(1), RELATIONS).graph
    for view in ("FR1", "FR2", "FR3"):
        assert not [r for r in variant(related, view).relations if r.source in related.atom_ids]


def test_evidence_of_a_repetition_alone_stays() -> None:
    graph = response(1)
    alone = Relation("e", "r0", RelationKind.ENTAILMENT, 0.9)
    contexts = (*graph.contexts, Context("e", retrieved_for=("r0",)))
    more = replace(graph, contexts=contexts, relations=(*graph.relations, alone))
    related = relate_atoms(variant(more, "FR2"), RELATIONS)
    assert related.dropped == 1
    assert posterior(related.graph, "a") > posterior(
        relate_atoms(variant(graph, "FR2"), RELATIONS).graph, "a"
    )
