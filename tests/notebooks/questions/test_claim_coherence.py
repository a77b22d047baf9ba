"""Readouts of coherence: the agreement is what planted conflicts move."""

from __future__ import annotations

import pytest

from notebooks.questions.claim_coherence import claim_coherence

pytestmark = pytest.mark.slow


def test_readouts_of_coherence_are_compared_on_what_was_planted() -> None:
    made = claim_coherence(responses=60, timed=(8,), encodings=("conditional",))
    readouts = made.tables["readouts"].frame
    assert readouts["prior"].tolist() == [0.5, 0.99]
    # Only conflicts move the agreement; entailments and sizes move the others.
    for other in ("mean_marginal", "no_active_conflict", "reified", "position", "consistency"):
        assert (readouts["agreement"] < readouts[other] - 0.05).all()
    times = made.tables["times"].frame
    assert times["claims"].tolist() == [8]
    assert (times["milliseconds"] > 0).all()
