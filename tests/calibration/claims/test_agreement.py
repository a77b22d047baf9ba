"""Agreement of labels, and edits of claim sets by matching."""

from __future__ import annotations

import itertools
import random

import pytest

from calibration.claims.agreement import (
    claim_edits,
    label_agreement,
    token_similarity,
)
from tests.refusals import refused


def test_labels_agree_exactly_or_by_type() -> None:
    human = ["supported", "refuted", "irrelevant", "supported"]
    labels = ["supported", "not enough evidence", "supported", "supported"]
    agreement = label_agreement(labels, human)
    assert (agreement.exact, agreement.type, agreement.n) == (0.5, 0.75, 4)
    assert label_agreement(human, human).exact == 1.0
    refused("the label 'yes' has no type", label_agreement, ["yes"], ["supported"])
    refused("1 label and 0 human", label_agreement, ["supported"], [])


def test_edits_by_hand() -> None:
    before = ["The tower is tall.", "It was built in 1889.", "It is beautiful."]
    after = ["The tower was built in 1889.", "the tower is tall", "Its architect was Sauvestre."]
    edits = claim_edits(before, after)
    assert edits.unchanged == ((0, 1),)
    # was, built, in, 1889 of 6 words.
    assert edits.revised == ((1, 0),)
    assert edits.similarity == pytest.approx(1 + 4 / 7)
    assert (edits.removed, edits.added) == ((2,), (2,))
    assert edits.counts() == {"removed": 1, "added": 1, "revised": 1, "unchanged": 1}
    strict = claim_edits(before, after, revised_from=0.9)
    assert strict.counts() == {"removed": 2, "added": 2, "revised": 0, "unchanged": 1}


def test_the_matching_is_the_best_of_all() -> None:
    generator = random.Random(0)
    for _ in range(60):
        n, m = generator.randint(0, 5), generator.randint(0, 5)
        values = [[generator.choice([0.2, 0.5, 0.6, 0.7, 0.9]) for _ in range(m)] for _ in range(n)]
        before, after = [f"b{i}" for i in range(n)], [f"a{j}" for j in range(m)]
        table = {(b, a): values[i][j] for i, b in enumerate(before) for j, a in enumerate(after)}
        edits = claim_edits(before, after, lambda b, a, table=table: table[b, a])  # type: ignore[misc]
        best = 0.0
        for size in range(min(n, m) + 1):
            for left in itertools.combinations(range(n), size):
                for right in itertools.permutations(range(m), size):
                    sims = [values[i][j] for i, j in zip(left, right, strict=True)]
                    best = max(best, sum(s for s in sims if s >= 0.5))
        # Sums in other orders: rounding alone.
        assert edits.similarity == pytest.approx(best, abs=1e-12)
        assert len(edits.revised) + len(edits.removed) == n
        assert len(edits.revised) + len(edits.added) == m


def test_equal_claims_are_paired_before_similar_ones() -> None:
    similar = {("x", "x"): 1.0, ("x", "y"): 0.9, ("z", "x"): 0.9, ("z", "y"): 0.0}
    edits = claim_edits(["x", "z"], ["x", "y"], lambda a, b: similar[a, b])
    assert (edits.unchanged, edits.removed, edits.added) == (((0, 0),), (1,), (1,))


def test_similarity_is_one_for_the_same_words_in_the_same_order_alone() -> None:
    assert token_similarity("A dog, barking.", "a DOG barking") == 1.0
    assert token_similarity("man bites dog", "dog bites man") < 1.0
    assert token_similarity("one two", "three") == 0.0
    assert token_similarity("", "") == 1.0


def test_bad_similarities_are_named() -> None:
    refused("claim 0 before and claim 0 after is 2", claim_edits, ["a"], ["b"], lambda *_: 2.0)
    refused("revised_from is 0", claim_edits, [], [], revised_from=0)
    assert claim_edits([], ["a"]).added == (0,)
