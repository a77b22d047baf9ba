"""What the papers' studies make of claims and words."""

from __future__ import annotations

from experiments.analyses.papers.assessors import conflicting_claims
from experiments.analyses.papers.selection_agreement import ContainedWords
from factormodels.claims import RelationKind
from factormodels.extraction.relation_models.base import TextPair
from tests.experiments.analyses.papers.conftest import GRAPHS
from tests.refusals import refused


def test_conflicting_claims_have_one_passage_on_either_side() -> None:
    found = conflicting_claims(GRAPHS)
    # Counted by hand on the file: true claims that some passage entails and another contradicts.
    assert len(found) == 31
    assert len({one.id for one in found}) == 31
    for one in found:
        (atom,) = one.atoms
        assert atom.label is True
        kinds = [relation.kind for relation in one.relations if relation.target == atom.id]
        assert sorted(kinds) == [RelationKind.CONTRADICTION, RelationKind.ENTAILMENT]
        assert all(context.retrieved_for == (atom.id,) for context in one.contexts)


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
    refused("share is 0", ContainedWords, 0.0)
