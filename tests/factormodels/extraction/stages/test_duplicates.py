"""Claims that a response makes more than once."""

from __future__ import annotations

from factormodels import Atom, Context, FactGraph, Relation, RelationKind
from factormodels.extraction.stages.duplicates import every_atom, merge_duplicate_atoms

E, C = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION


def graph() -> FactGraph:
    return FactGraph(
        "g",
        (
            Atom("a1", "It is red.", label=True, sentence=1),
            Atom("a2", "It is old."),
            Atom("a3", "IT  is red.", label=False, annotation="NS", sentence=4),
            Atom("a4", ""),
            Atom("a5", ""),
        ),
        (
            Context("c1", "One.", retrieved_for=("a3", "a1")),
            Context("c2", "Two.", retrieved_for=("a2", "a3")),
        ),
        (
            Relation("c1", "a3", C, 0.8),
            Relation("c2", "a3", E, 0.7),
            Relation("c1", "a1", E, 0.9),
        ),
        metadata={"kept": 1},
    )


def test_equal_claims_become_one_with_all_that_was_found_for_them() -> None:
    merged = merge_duplicate_atoms(graph())
    # Claims without a text say nothing that could be the same.
    assert merged.atom_ids == ("a1", "a2", "a4", "a5")
    assert [context.retrieved_for for context in merged.contexts] == [("a1",), ("a2", "a1")]
    assert set(merged.relations) == {Relation("c1", "a1", E, 0.9), Relation("c2", "a1", E, 0.7)}
    facts = {"same_as": "a1", "label": False, "annotation": "NS", "sentence": 4}
    assert merged.metadata == {"kept": 1, "duplicates": {"a3": facts}}
    assert merge_duplicate_atoms(merged) == merged


def test_measures_count_every_claim_with_its_own_label() -> None:
    every = every_atom(merge_duplicate_atoms(graph()))
    assert [(atom.id, same, atom.label) for atom, same in every] == [
        ("a1", "a1", True),
        ("a2", "a2", None),
        ("a4", "a4", None),
        ("a5", "a5", None),
        ("a3", "a1", False),
    ]
    assert every_atom(graph()) == [(atom, atom.id) for atom in graph().atoms]
