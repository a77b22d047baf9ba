"""The lexical relation model: its features by hand, its distribution, its invariances."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import RelationKind
from factormodels.extraction.relation_models.base import Judgment, TextPair
from factormodels.extraction.relation_models.lexical import (
    COEFFICIENTS,
    INTERCEPTS,
    LexicalRelations,
)
from factormodels.extraction.relation_models.lexical_features import FEATURES, pair_features

PREMISE = "The bridge opened in 1890. Two trains cross it every hour. Cars never use it."


def features(premise: str, hypothesis: str) -> dict[str, float]:
    row = pair_features([TextPair(premise, hypothesis)])[0]
    return dict(zip(FEATURES, row.tolist(), strict=True))


def judgment(premise: str, hypothesis: str) -> Judgment:
    (answer,) = LexicalRelations().judge([TextPair(premise, hypothesis)])
    assert isinstance(answer, Judgment)
    return answer


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        # bridge, opened, 1890: all in the first sentence. No capital but that of "The", which
        # carries no content, so there is no name to be found.
        (
            "The bridge opened in 1890.",
            {"sentence": 1, "passage": 1, "names": 0, "numbers": 1, "number_conflict": 0},
        ),
        # Of bridge, opened, 1895, two are there, and 1890 stands where 1895 should.
        (
            "The bridge opened in 1895.",
            {"sentence": 2 / 3, "passage": 2 / 3, "numbers": 0, "number_conflict": 2 / 3},
        ),
        # Bridge in one sentence, trains and cross in another.
        ("Trains cross the bridge.", {"sentence": 2 / 3, "passage": 1, "names": 1, "numbers": 1}),
        # "Two" is the number 2; three is missing and two is there instead.
        ("Three trains cross it.", {"sentence": 2 / 3, "numbers": 0, "number_conflict": 2 / 3}),
        # The third sentence is negated and the hypothesis is not; "use" and "cars" are shared.
        ("Cars use it.", {"sentence": 1, "negation": 1}),
        ("Cars do not use it.", {"sentence": 1, "negation": 0}),
        # A year is no answer to a number that is no year.
        ("The bridge opened 40 times.", {"number_conflict": 0}),
        ("Bananas ripen.", dict.fromkeys(FEATURES, 0) | {"numbers": 1}),
        ("", dict.fromkeys(FEATURES, 0) | {"numbers": 1}),
    ],
)
def test_features_by_hand(hypothesis: str, expected: dict[str, float]) -> None:
    values = features(PREMISE, hypothesis)
    # Quotients of small whole numbers, one rounding each.
    assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Marie Skłodowska's physics", "marie skłodowska PHYSICS"),
        ("Irène lived in Zürich", "Irene lived in Zurich"),
        ("<s>12,500 trains</s>", "12500 trains"),
        ("ﬁve bridges", "five bridge"),
        ("It isn’t red", "It isn't red"),
    ],
)
def test_spellings_that_do_not_matter(first: str, other: str) -> None:
    assert features(first, other)["sentence"] == 1
    assert features(first, other)["negation"] == 0


def test_the_distribution_by_hand() -> None:
    # sentence = passage = numbers = 1, no names, no conflict.
    answer = judgment(PREMISE, "The bridge opened in 1890.")
    logits = [
        INTERCEPTS[kind] + sum(COEFFICIENTS[kind][f] for f in ("sentence", "passage", "numbers"))
        for kind in (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION)
    ]
    weights = [math.exp(logit) for logit in (*logits, 0.0)]
    assert answer.distribution == pytest.approx([w / sum(weights) for w in weights], rel=1e-12)
    assert answer.kind is RelationKind.ENTAILMENT
    assert answer.origin == "lexical"


def test_baseline_gets_these_pairs_right() -> None:
    judged = judgment(PREMISE, "The bridge opened in 1890.")
    other_year = judgment(PREMISE, "The bridge opened in 1895.")
    unrelated = judgment(PREMISE, "Bananas ripen in the sun.")
    assert judged.distribution is not None
    assert other_year.distribution is not None
    assert judged.distribution[0] > other_year.distribution[0]
    assert other_year.distribution[1] > judged.distribution[1]
    assert unrelated.kind is RelationKind.NEUTRAL


def test_baseline_gets_the_documented_pairs_wrong() -> None:
    # The words are the same and the roles are not.
    assert judgment("The dog bit the man.", "The man bit the dog.").kind is RelationKind.ENTAILMENT


TEXTS = st.text(
    st.sampled_from("abAB 12.,!?\n'’éßﬁ\u0301\u2028\0<s>٣三"), max_size=30
) | st.sampled_from(["no", "1890", "1890 1891", "Two red bridges.", "\ud800"])


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
@pytest.mark.slow
def test_a_judgment_is_a_distribution_and_depends_on_its_pair_alone(
    texts: list[tuple[str, str]],
) -> None:
    pairs = [TextPair(premise, hypothesis) for premise, hypothesis in texts]
    together = LexicalRelations().judge(pairs)
    assert len(together) == len(pairs)
    for pair, answer in zip(pairs, together, strict=True):
        assert isinstance(answer, Judgment)
        assert answer.distribution is not None
        assert sum(answer.distribution) == pytest.approx(1, abs=1e-12)
        assert answer.probability == max(answer.distribution)
        assert LexicalRelations().judge([pair]) == [answer]
