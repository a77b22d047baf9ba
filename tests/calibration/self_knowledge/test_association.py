"""Correlations of Self-Known and Self-Unknown with the factuality."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.intervals import IntervalSettings
from calibration.self_knowledge import association, self_knowledge
from tests.calibration.self_knowledge.claims import in_sentence, random_records
from tests.refusals import refused

QUICK = IntervalSettings(n_bootstrap=200, seed=3)


@pytest.mark.parametrize("n_responses", [30, 5])
def test_correlations_are_scipys_over_the_cells_of_the_tables(n_responses: int) -> None:
    from scipy.stats import pearsonr, spearmanr

    # Shares of few responses tie.
    groups = {name: random_records(seed, n_responses) for seed, name in enumerate("xyz")}
    found = association(groups, intervals=QUICK)
    assert found["over"][::2].tolist() == [
        *(f"positions of {name}" for name in groups),
        "positions and models",
        "models",
    ]
    tables = {name: self_knowledge(records, intervals=QUICK) for name, records in groups.items()}

    def cells(quantity: str, over: str) -> list[float]:
        parts = [
            table[quantity].estimate
            for name, table in tables.items()
            if over in ("positions and models", "models", f"positions of {name}")
        ]
        return [v for part in parts for v in (part[-1:] if over == "models" else part[:-1])]

    for row in found.rows():
        truth = np.array(cells("factuality", row["over"]))
        truth = truth if row["first"] == "self_known" else 1 - truth
        said = np.array(cells(row["first"], row["over"]))
        held = ~np.isnan(said)
        assert row["n_cells"] == held.sum()
        # Both sum some fifteen shares of size 1.
        pair = said[held], truth[held]
        assert row["correlation"] == pytest.approx(pearsonr(*pair)[0], abs=1e-12)
        assert row["rank_correlation"] == pytest.approx(spearmanr(*pair)[0], abs=1e-12)
        assert row["lower"] <= row["upper"]


def test_a_response_is_redrawn_in_all_groups_at_once() -> None:
    same = random_records(5, 25)
    alone = association({"": same}, intervals=QUICK)
    twice = association({"x": same, "y": same}, intervals=QUICK)
    # Two copies of the same cells have the same correlation in every replicate.
    both = twice["over"].tolist().index("positions and models")
    np.testing.assert_allclose(twice["lower"][both : both + 2], alone["lower"], atol=1e-12)
    np.testing.assert_allclose(twice["upper"][both : both + 2], alone["upper"], atol=1e-12)


def test_too_few_cells_and_no_spread_are_told_from_numbers() -> None:
    assert association({"": random_records(0)}, n_positions=2, intervals=QUICK).rows() == []
    still = [
        record
        for sentence in (1, 2, 3)
        for response in "pq"
        for label, said in (("S", "true"), ("NS", "false"))
        for record in in_sentence(f"{response}{label}", sentence, 3, label, said)
    ]
    for row in association({"": still}, n_positions=3, intervals=QUICK).rows():
        assert math.isnan(row["correlation"])
        assert math.isnan(row["lower"])
    refused("groups is empty", association, {})
