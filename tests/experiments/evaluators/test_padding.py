"""Sentences appended to a response, and falsified claims."""

from __future__ import annotations

import pytest

from experiments.evaluators.padding import (
    corrupted,
    off_topic,
    paddings_of,
    repeated_claim,
    repetitive,
    uninformative,
    written_by,
)
from factormodels import Atom, FactGraph, InputError, RelationKind, datasets
from factormodels.selection import restricted
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

GRAPHS = datasets.load("demonstration").graphs


def test_repetitions_have_the_evidence_of_what_they_repeat() -> None:
    graph = GRAPHS[0]
    original = repeated_claim(graph)
    padding = repetitive(graph, 12)
    fresh = padding.graph.atoms[-12:]
    assert original.label is True
    assert [atom.label for atom in fresh] == [True] * 12
    assert set(padding.canonical.values()) == {original.text}
    evidence = {(r.source, r.kind) for r in padding.graph.relations if r.target == fresh[3].id}
    assert evidence == {(r.source, r.kind) for r in graph.relations if r.target == original.id}
    served = {c.id for c in padding.graph.contexts if fresh[0].id in c.retrieved_for}
    assert served == {c.id for c in graph.contexts if original.id in c.retrieved_for}
    assert fresh[0].sentence == max(atom.sentence or 0 for atom in graph.atoms) + 1


def test_empty_padding_names_its_subject_and_has_a_passage() -> None:
    padding = uninformative(GRAPHS[0], 30).graph
    fresh = padding.atoms[-30:]
    assert len({atom.text for atom in fresh}) == 30
    assert all("Marie Curie" in atom.text for atom in fresh)
    assert len(restricted(padding, [atom.id for atom in fresh]).contexts) == 30


@pytest.mark.parametrize("name", paddings_of(GRAPHS))
def test_a_longer_padding_begins_as_a_shorter_one_does(name: str) -> None:
    padder = paddings_of(GRAPHS[:4])[name]
    graph = GRAPHS[0]
    longer, shorter = padder(graph, 25).graph, padder(graph, 7).graph
    assert restricted(longer, longer.atom_ids[: len(graph.atoms) + 7]) == shorter
    assert restricted(longer, longer.atom_ids[: len(graph.atoms)]) == graph


def test_true_claims_on_other_topics_come_from_the_data_with_their_evidence() -> None:
    graph, *others = GRAPHS[:4]
    padding = off_topic(graph, 7, GRAPHS[:4]).graph
    fresh = padding.atoms[len(graph.atoms) :]
    sources = {atom.text: (other, atom) for other in others for atom in other.atoms if atom.label}
    assert [atom.label for atom in fresh] == [True] * 7
    # One of each other response in turn.
    assert [sources[atom.text][0].id for atom in fresh[:3]] == [other.id for other in others]
    for atom in fresh:
        other, original = sources[atom.text]
        kinds = sorted(r.kind for r in padding.relations if r.target == atom.id)
        contexts = {context.id for context in other.contexts}
        assert kinds == sorted(
            r.kind for r in other.relations if r.target == original.id and r.source in contexts
        )
    assert padding.contexts[: len(graph.contexts)] == graph.contexts
    with pytest.raises(InputError, match="no other response has a claim labeled true"):
        off_topic(graph, 1, [graph])
    assert list(paddings_of([graph])) == ["repetitive", "uninformative"]


def test_corruption_turns_labels_and_evidence_but_spares_what_is_repeated() -> None:
    graph = GRAPHS[0]
    wrong = corrupted(graph, 1.0)
    spared = repeated_claim(graph).id
    assert [atom.id for atom in wrong.atoms if atom.label] == [spared]
    before = {(r.source, r.target): r.kind for r in graph.relations}
    turned = next(atom.id for atom in graph.atoms if atom.label and atom.id != spared)
    for relation in wrong.relations:
        if relation.target == turned and relation.kind is not RelationKind.NEUTRAL:
            assert relation.kind is not before[relation.source, relation.target]
    assert corrupted(graph, 0.0) == graph
    assert corrupted(graph, 0.5, 3) == corrupted(graph, 0.5, 3)
    refused("share of corrupted claims is 2", corrupted, graph, 2)


def test_names_and_numbers_are_swapped_for_others_of_their_kind() -> None:
    graph = GRAPHS[0]
    wrong = corrupted(graph, 1.0, 1, GRAPHS)
    before = {atom.id: atom for atom in graph.atoms}
    swapped = [
        atom
        for atom in wrong.atoms
        if atom.text != before[atom.id].text and not atom.text.startswith("It is not the case")
    ]
    assert swapped
    for atom in swapped:
        assert atom.label is False
        old, new = before[atom.id].text, atom.text
        assert len(set(new.split()) - set(old.split())) >= 1
        # The rest of the sentence stands.
        assert len(set(old.split()) & set(new.split())) >= 2
    # Verdicts of evidence turn as with denial.
    denied = corrupted(graph, 1.0, 1)
    assert [r.kind for r in wrong.relations] == [r.kind for r in denied.relations]
    assert [a.label for a in wrong.atoms] == [a.label for a in denied.atoms]


def test_a_language_model_writes_the_padding() -> None:
    model = AnsweringModel(lambda _: '["Curie is a person.", "Curie lived.", "Curie was."]')
    empty = written_by(model, "uninformative")(GRAPHS[0], 2)
    assert [atom.text for atom in empty.graph.atoms[-2:]] == ["Curie is a person.", "Curie lived."]
    assert "Marie Curie" in model.asked[0].messages[-1].content
    repeated = written_by(model, "repetitive")(GRAPHS[0], 3)
    assert repeated_claim(GRAPHS[0]).text in model.asked[1].messages[-1].content
    assert len(repeated.graph.atoms) == len(GRAPHS[0].atoms) + 3
    wrong = written_by(AnsweringModel(lambda _: "[1]"), "repetitive")(GRAPHS[0], 3)
    assert wrong.graph == GRAPHS[0]
    assert "its form is not the requested one" in wrong.failures[0]


def test_without_a_true_claim_nothing_can_be_repeated() -> None:
    with pytest.raises(InputError, match="no claim is labeled true"):
        repetitive(FactGraph("g", (Atom("a", "A.", label=False),)), 1)
