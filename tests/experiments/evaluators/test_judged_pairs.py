"""Relation models against pairs of texts with people's probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from experiments.evaluators.relation_quality import (
    graded_forecasts,
    graded_scores,
    labelled_from_judged,
    relation_forecasts,
)
from factormodels import InputError, RelationKind
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.io.published.unli import JudgedPair
from tests.refusals import refused

E, C, N = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL


class Scripted:
    """Answers by the last word of the hypothesis: three probabilities, or one of entailment."""

    name = "scripted"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        return [self.answer(pair.hypothesis.split()[-1]) for pair in pairs]

    def answer(self, word: str) -> Judgement | Missing:
        if word == "lost":
            return Missing("lost")
        shares = [float(part) for part in word.split("/")]
        if len(shares) == 1:
            return Judgement(E, shares[0], "nli")
        first, second, third = shares
        return Judgement(E, first, "nli", (first, second, third))


def pair(number: int, hypothesis: str, probability: float, premise: str = "A man.") -> JudgedPair:
    return JudgedPair(f"p{number}", premise, hypothesis, probability)


PAIRS = [
    pair(1, "He is 0.8/0.1/0.1", 0.95),
    pair(2, "He is 0.1/0.7/0.2", 0.05),
    pair(3, "He is lost", 0.4),
    pair(4, "He is 0.6", 0.5, "A woman."),
]


def test_probabilities_come_to_relations() -> None:
    labelled = labelled_from_judged(PAIRS)
    assert [item.kind for item in labelled] == [E, C, N, N]
    assert [item.response for item in labelled] == ["premise-0"] * 3 + ["premise-1"]
    # The bounds belong to the outer relations.
    edges = labelled_from_judged(
        [pair(1, "x", 0.2), pair(2, "y", 0.7)], contradicted=0.2, entailed=0.7
    )
    assert [item.kind for item in edges] == [C, E]
    found = relation_forecasts(Scripted(), labelled)
    assert found[E].y.tolist() == [True, False, False]
    assert found[E].missing == 1


def test_forecasts_share_the_neutral_part() -> None:
    found = graded_forecasts(Scripted(), PAIRS)
    # 0.8 + 0.1/2; 0.1 + 0.2/2; of 0.6 alone the rest 0.4 is shared: 0.6 + 0.2/2.
    assert found.p == pytest.approx([0.85, 0.2, 0.7])
    assert found.y.tolist() == [0.95, 0.05, 0.5]
    assert found.responses.tolist() == [0, 0, 1]
    assert found.missing == 1
    certain = graded_forecasts(Scripted(), PAIRS, neutral=0.0)
    assert certain.p == pytest.approx([0.8, 0.1, 0.6])


def test_scores_are_those_of_scipy_and_by_hand() -> None:
    rng = np.random.default_rng(0)
    pairs = [
        pair(i, f"He is {rng.uniform():.3f}", float(rng.uniform()), f"Premise {i % 40}.")
        for i in range(200)
    ]
    found = graded_forecasts(Scripted(), pairs)
    scored = graded_scores(found, n_bootstrap=200)
    errors = found.p - found.y
    expected = {
        "bias": errors.mean(),
        "mae": np.abs(errors).mean(),
        "rmse": np.sqrt((errors**2).mean()),
        "pearson": pearsonr(found.p, found.y).statistic,
        "spearman": spearmanr(found.p, found.y).statistic,
    }
    for name, own in scored.items():
        # Sums of 200 doubles in two orders.
        assert own.value == pytest.approx(expected[name], abs=1e-12)
        assert own.lower < own.value < own.upper
        assert own.n == 40
    assert graded_scores(found, n_bootstrap=200) == scored
    narrow = graded_scores(found, n_bootstrap=200, level=0.5)["mae"]
    wide = scored["mae"]
    assert wide.lower < narrow.lower < narrow.upper < wide.upper


def test_pairs_of_one_premise_stay_together() -> None:
    # One premise: every replicate is the sample, and its interval a point.
    pairs = [pair(i, f"He is {i / 10}", i / 10) for i in range(10)]
    scored = graded_scores(graded_forecasts(Scripted(), pairs), n_bootstrap=20)
    for own in scored.values():
        assert own.interval == pytest.approx((own.value, own.value))


def test_a_perfect_model_has_no_error() -> None:
    pairs = [pair(i, f"He is {i / 4}/{1 - i / 4}/0", i / 4, f"P{i}") for i in range(5)]
    scores = graded_scores(graded_forecasts(Scripted(), pairs), n_bootstrap=50)
    assert [scores[name].value for name in ("bias", "mae", "rmse")] == [0.0, 0.0, 0.0]
    assert scores["spearman"].value == pytest.approx(1.0)


def test_a_constant_has_no_correlation() -> None:
    pairs = [pair(i, "He is 0.5", i / 4, f"P{i}") for i in range(5)]
    scores = graded_scores(graded_forecasts(Scripted(), pairs), n_bootstrap=20)
    assert np.isnan(scores["pearson"].value)
    assert scores["mae"].value > 0


def test_bad_arguments_are_told() -> None:
    with pytest.raises(InputError, match=r"contradicted 0\.9 is not below entailed 0\.9"):
        labelled_from_judged(PAIRS, contradicted=0.9)
    refused("there are no judged pairs", labelled_from_judged, [])
    refused("neutral: the probability 2", graded_forecasts, Scripted(), PAIRS, neutral=2)
    lost = graded_forecasts(Scripted(), [PAIRS[2]])
    refused("none of the 1 pairs was answered", graded_scores, lost)
    refused("n_bootstrap", graded_scores, graded_forecasts(Scripted(), PAIRS), n_bootstrap=0)
