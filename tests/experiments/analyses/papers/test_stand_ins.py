"""Stand-ins: a model that is a rule, and data made from the embedded ones."""

from __future__ import annotations

import pytest

from experiments.analyses.papers.stand_in_model import StandInModel, shown_passages
from experiments.analyses.papers.stand_ins import conflicting_claims, retrieved_anew, without_labels
from experiments.analyses.papers.worded_relations import ContainedWords
from factormodels import datasets
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.assessors import assess
from factormodels.extraction.atomizer import atomize
from factormodels.extraction.preverification import extract
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.recorded import recorded_in_graphs
from factormodels.extraction.self_judgement import judge_own_claims
from factormodels.fact_graph import FactGraph

DEMONSTRATION = datasets.load("demonstration").graphs

FOR, AGAINST = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION


def graph(*sides: tuple[RelationKind, float]) -> FactGraph:
    """Return a claim with passages that are for or against it; titles hold what splits texts."""
    contexts = tuple(
        Context(f"c{n}", f"passage [{n}]\nof two lines", title=f"T{n}: [1] x", retrieved_for=("a",))
        for n in range(len(sides))
    )
    relations = tuple(Relation(f"c{n}", "a", kind, p) for n, (kind, p) in enumerate(sides))
    return FactGraph("g", atoms=(Atom("a", "It is so."),), contexts=contexts, relations=relations)


@pytest.mark.parametrize(
    ("sides", "verdicts"),
    [
        # factscore, factverify, veriscore, fastfact
        ((), ("false", "undecided", "undecided", "insufficient")),
        (((FOR, 0.8),), ("true", "supported", "supported", "supported")),
        (((AGAINST, 0.8),), ("false", "contradicted", "contradicted", "refuted")),
        (((FOR, 0.8), (AGAINST, 0.9)), ("true", "contradicted", "undecided", "conflicting")),
        (((FOR, 0.9), (AGAINST, 0.8)), ("true", "supported", "undecided", "conflicting")),
        (((FOR, 0.8), (AGAINST, 0.8)), ("true", "undecided", "undecided", "conflicting")),
        # What is held less likely than not counts for nothing.
        (((FOR, 0.4), (AGAINST, 0.8)), ("false", "contradicted", "contradicted", "refuted")),
    ],
)
def test_the_rule_of_each_assessor(
    sides: tuple[tuple[RelationKind, float], ...], verdicts: tuple[str, ...]
) -> None:
    one = graph(*sides)
    model = StandInModel(recorded_in_graphs([one], unrecorded=0.9), shown_passages([one]))
    for name, wanted in zip(
        ("factscore", "factverify", "veriscore", "fastfact"), verdicts, strict=True
    ):
        (found,) = assess(one, name, model)
        assert (found.label, found.missing) == (wanted, "")


def test_without_passages_it_knows_nothing() -> None:
    model = StandInModel(ContainedWords(1.0))
    (found,) = assess(graph((FOR, 0.9)), "own-knowledge", model)
    assert found.label == "undecided"


def test_it_gives_sentences_as_claims() -> None:
    text = "Rain fell in May. Snow fell in June: 3: two feet. Nobody went out."
    model = StandInModel(ContainedWords(1.0))
    atoms = atomize(text, model, stride=2).atoms
    assert [atom.sentence for atom in atoms] == [1, 2, 3]
    assert " ".join(atom.text for atom in atoms) == text
    found = extract(text, model, stride=None)
    assert [claim.claim for claim in found.claims] == [atom.text for atom in atoms]
    assert not any(claim.skips(0.0) for claim in found.claims)


def test_a_prompt_without_a_rule_is_missing_and_not_an_answer() -> None:
    (judged,) = judge_own_claims(graph(), StandInModel(ContainedWords(1.0)))
    assert not judged.judgements
    assert "no rule" in next(iter(judged.missing.values()))


def test_conflicting_claims_have_one_passage_on_either_side() -> None:
    found = conflicting_claims(DEMONSTRATION)
    # Counted by hand on the file: true claims that some passage entails and another contradicts.
    assert len(found) == 31
    assert len({one.id for one in found}) == 31
    for one in found:
        (atom,) = one.atoms
        assert atom.label is True
        kinds = [relation.kind for relation in one.relations if relation.target == atom.id]
        assert sorted(kinds) == [AGAINST, FOR]
        assert all(context.retrieved_for == (atom.id,) for context in one.contexts)


def test_passages_found_anew_are_at_most_so_many_for_each_claim() -> None:
    for one in DEMONSTRATION[:4]:
        anew = retrieved_anew(one, 5)
        for atom in anew.atoms:
            served = [c for c in anew.contexts if atom.id in c.retrieved_for]
            assert 1 <= len(served) <= 5
        assert all(context.retrieved_for for context in anew.contexts)
        assert set(anew.relations) <= set(one.relations)


def test_labels_are_withheld_and_nothing_else() -> None:
    one = without_labels(DEMONSTRATION[0])
    assert {atom.label for atom in one.atoms} == {None}
    assert [atom.text for atom in one.atoms] == [atom.text for atom in DEMONSTRATION[0].atoms]


def test_contained_words_counts_words_without_order_or_case() -> None:
    model = ContainedWords(0.5)
    pairs = [
        TextPair("red apples and green pears", "GREEN apples"),
        TextPair("red apples", "green pears"),
        TextPair("red apples", "apples pears"),
        TextPair("red apples", ""),
    ]
    kinds = [answer.kind.value for answer in model.judge(pairs)]  # type: ignore[union-attr]
    assert kinds == ["entailment", "neutral", "entailment", "neutral"]
    with pytest.raises(InputError, match="share is 0"):
        ContainedWords(0.0)
