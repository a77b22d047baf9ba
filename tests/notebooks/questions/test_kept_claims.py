"""Kept claims: the study's rows, held to halves by hand and to what is promised."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.filtering import conformal_filter
from factormodels import datasets
from factormodels.variants import variant
from inference import infer
from notebooks.questions.kept_claims import probabilities, promised_rows

SELFCHECK = list(datasets.load("selfcheck").graphs)


def test_probabilities_are_shares_of_yes_and_posteriors_where_nobody_voted() -> None:
    first = SELFCHECK[0]
    shares = probabilities([first], "FR1")
    votes = first.metadata["votes"]
    by_hand = [sum(v == "Y" for v in votes[a.id]) / len(votes[a.id]) for a in first.atoms]
    assert shares.tolist() == by_hand
    graph = datasets.load("factscore").graphs[0]
    view = variant(graph, "FR1")
    p = infer(view.to_factor_graph(), "exact").marginals.of_state(1, view.atom_ids)
    np.testing.assert_allclose(probabilities([graph], "FR1"), p, atol=1e-12)


def test_a_row_is_what_half_of_the_responses_had_by_a_threshold_of_the_other_half() -> None:
    p = probabilities(SELFCHECK, "FR1")
    rows = promised_rows(SELFCHECK, p, 0.7, (0.8, 0.9), 1, 0)
    assert [row["promise"] for row in rows] == [
        *("with probability 0.8", "with probability 0.9", "in the mean"),
    ]
    responses = np.repeat(np.arange(len(SELFCHECK)), [len(graph.atoms) for graph in SELFCHECK])
    labels = np.array([atom.label for graph in SELFCHECK for atom in graph.atoms])
    labeled = np.array([label is not None for label in labels])
    # Responses without a label play no part in the halves.
    ids, index = np.unique(responses[labeled], return_inverse=True)
    q, y = p[labeled], labels[labeled].astype(float)
    first = np.random.default_rng(0).permutation(ids.size)[: ids.size // 2]
    known = np.isin(index, first)
    chosen = conformal_filter(q[known], y[known], index[known], precision=0.7, confidence=0.8)
    kept = q > chosen.threshold
    precisions = [
        y[kept & (index == each)].mean() if (kept & (index == each)).any() else 1.0
        for each in range(ids.size)
        if each not in set(first.tolist())
    ]
    assert rows[0]["mean"] == pytest.approx(np.mean(precisions), abs=1e-12)
    assert rows[0]["reached"] == pytest.approx(np.mean(np.array(precisions) >= 0.7), abs=1e-12)
    assert rows[0]["kept"] == pytest.approx(kept[~known].mean(), abs=1e-12)


def test_promises_hold_on_other_halves() -> None:
    p = probabilities(SELFCHECK, "FR1")
    surer, sure, mean = promised_rows(SELFCHECK, p, 0.7, (0.8, 0.9), 60, 1)
    # Means of 60 halves of the same 119 responses: two hundredths are chance.
    assert surer["reached"] > 0.8 - 0.02
    assert sure["reached"] > 0.9 - 0.02
    assert mean["mean"] > 0.7
    # What is surer keeps less.
    assert mean["kept"] > surer["kept"] > sure["kept"] > 0
