"""What can be foretold of an answer that was not asked for: counts of answers add nothing."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.unasked import AnswerLaw, Answers, AskablePairs, FieldState, play
from calibration.unasked.law import TIE, evidence
from calibration.unasked.order import tell
from experiments.analyses.ours.shared.recorded_calls import learned, recorded
from factormodels import datasets


def counts(pairs: AskablePairs, state: FieldState, told: Answers) -> np.ndarray:
    """Supports and other answers so far: of the passage, the claim, and its sentence's others.

    Also the passage's supports among claims that it was found for, and the claims of the sentence
    that are supported.
    """
    own, asked = pairs.columns[:, 1] > 0, state.asked
    supported, refused = asked & (told.weight > 0), asked & (told.weight <= 0)
    _, sentence = np.unique(pairs.sentence, return_inverse=True)
    both = sentence * (pairs.passage.max() + 1) + pairs.passage
    found = [
        np.bincount(by, of)[by]
        for of in (supported, refused, supported & own)
        for by in (pairs.passage, pairs.claim, sentence, both)
    ]
    claims = np.unique(pairs.claim[supported])
    return np.column_stack([*found, np.isin(pairs.claim, claims), told.score * asked])


def moments(
    law: AnswerLaw, pairs: AskablePairs, told: Answers, order: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Evidence and counts of open pairs at four moments, whether they support, and the chance."""
    state, odds = law.start(pairs), pairs.prior.copy()
    stops = set(np.random.default_rng(seed).integers(0, max(1, order.size), 4).tolist())
    rows, truth, stated = [], [], []
    for number, pair in enumerate(order.tolist()):
        if number in stops:
            left = ~state.asked & (np.abs(odds) <= TIE)[pairs.claim]
            seen = evidence(pairs, state, told.weight, law.shares)
            rows.append(np.column_stack([seen, counts(pairs, state, told)])[left])
            truth.append((told.weight > 0)[left])
            stated.append(law.chances(pairs, state, told.weight)[0][left])
        tell(law, pairs, state, odds, pair, told)
    width = law.support.size + 14
    empty = np.zeros((0, width))
    return (
        np.concatenate([empty, *rows]),
        np.concatenate([[], *truth]),
        np.concatenate([[], *stated]),
    )


@pytest.mark.slow
def test_counts_of_answers_foretell_no_more_than_the_law_does() -> None:
    """Of biographies that neither was learned from; a thousandth of the log loss is nothing."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    own = recorded(datasets.load("factscore").graphs, "FR2", 3, 0)
    law = learned([own], without=0)
    order = play(
        [law] * len(own.pairs), own.pairs, own.answers, sum(p.size for p in own.pairs) // 3
    )
    seen = [
        moments(law, pairs, told, order.pair[order.response == number], number)
        for number, (pairs, told) in enumerate(zip(own.pairs, own.answers, strict=True))
    ]
    parts: dict[bool, list[np.ndarray]] = {}
    for held_out in (False, True):
        those = [one for one, fold in zip(seen, own.fold, strict=True) if (fold == 0) == held_out]
        parts[held_out] = [np.concatenate(each) for each in zip(*those, strict=True)]
    columns, truth, _ = parts[False]
    trees = ensemble.HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=12, l2_regularization=5.0, random_state=0
    ).fit(columns, truth)
    columns, truth, stated = parts[True]

    def log_loss(p: np.ndarray) -> float:
        return float(-np.log(np.where(truth > 0, p, 1 - p)).mean())

    of_trees, of_law = log_loss(trees.predict_proba(columns)[:, 1]), log_loss(stated)
    assert of_law < of_trees + 1e-3, f"log loss: law {of_law:.4f}, trees {of_trees:.4f}"
    # Both foretell something.
    assert max(of_law, of_trees) < 0.95 * log_loss(np.full(truth.size, truth.mean()))
