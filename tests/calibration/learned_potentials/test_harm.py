"""Bounds on what a shift of evidence may do hold the truth, and are narrow without a shift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials.harm import Harm, harm_of
from calibration.learned_potentials.shift import LawOfEvidence


def drawn(share: float, offset: float, seed: int, n: int = 120, size: int = 12) -> Any:
    """Evidence, labels and posteriors of responses of a share of true claims.

    Posteriors are right where the share is a half and the offset 0: log odds 2 e of N(±1, 1).
    """
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n), size)
    y = (generator.random(owners.size) < share).astype(float)
    log_odds = 2 * (generator.normal(2 * y - 1, 1.0) + offset)
    return LawOfEvidence(log_odds[:, None], owners, n), y, 1 / (1 + np.exp(-log_odds))


def harm(share: float, offset: float, seed: int) -> tuple[Harm, float, float]:
    """Bounds, and the share of true claims and Brier score that they are to hold."""
    law, labels, _ = drawn(0.5, 0.0, 1000 + seed)
    new, y, p = drawn(share, offset, seed)
    return (
        harm_of(law, labels, new, p, n_bootstrap=100),
        float(y.mean()),
        float(((p - y) ** 2).mean()),
    )


def test_without_a_shift_the_posteriors_can_be_used() -> None:
    bounds, share, brier = harm(0.5, 0.0, 1)
    assert bounds.bounded
    assert bounds.unexplained < 0.05
    assert bounds.share_lower < share < bounds.share_upper
    assert bounds.share_upper - bounds.share_lower < 0.15
    assert bounds.brier_lower < brier < bounds.brier_upper


@pytest.mark.parametrize(("share", "offset"), [(0.5, 0.0), (0.8, 0.0), (0.2, 0.0), (0.5, -3.0)])
def test_bounds_hold_where_the_share_or_the_evidence_is_another(
    share: float, offset: float
) -> None:
    for seed in range(10):
        bounds, true, brier = harm(share, offset, seed)
        assert bounds.share_lower <= true <= bounds.share_upper
        assert bounds.brier_lower <= brier <= bounds.brier_upper


def test_evidence_that_nothing_learned_explains_allows_anything() -> None:
    bounds, _, _ = harm(0.5, 30.0, 0)
    assert bounds.unexplained > 0.9
    assert (bounds.share_lower, bounds.share_upper) == pytest.approx((0.0, 1.0), abs=0.1)
    assert not bounds.bounded
    assert bounds.brier_upper > 0.9


def test_labels_to_know_are_those_of_the_variance_of_losses() -> None:
    law, labels, _ = drawn(0.5, 0.0, 3, n=60)
    new, _, p = drawn(0.5, 0.0, 4, n=40)
    bounds = harm_of(law, labels, new, p, n_bootstrap=10)
    losses = (1 / (1 + np.exp(-law.values[:, 0])) - labels) ** 2
    # Responses have twelve claims each: their mean losses vary as these do.
    by_response = losses.reshape(60, 12).mean(axis=1)
    assert bounds.deviation == pytest.approx(by_response.std(ddof=1), rel=1e-9)
    wide = bounds._replace(deviation=0.2, most_deviation=0.4)
    # (1.96 · 0.2/0.05)² = 61.5, of which there are forty.
    assert (wide.n_to_label, wide._replace(n_responses=100).n_to_label) == (40, 63)
    # (1.96 · 0.4/0.05)² = 245.9.
    assert wide._replace(n_responses=1000).n_in_any_case == 247


def test_no_labels_vary_more_than_those_that_are_counted_on() -> None:
    law, labels, _ = drawn(0.5, 0.0, 3, n=60)
    new, _, p = drawn(0.5, 0.0, 4, n=40)
    bounds = harm_of(law, labels, new, p, n_bootstrap=200)
    generator = np.random.default_rng(5)
    ratios = []
    for _ in range(300):
        # Responses right or wrong throughout, and single claims that are not.
        wrong = (generator.random(40) < generator.random())[new.owners]
        wrong ^= generator.random(p.size) < generator.choice([0.0, 0.1])
        losses = (p - np.where(wrong, p < 0.5, p >= 0.5)) ** 2
        if not bounds.brier_lower <= losses.mean() <= bounds.brier_upper:
            continue
        sums = np.bincount(new.owners, losses - losses.mean(), 40) * 40 / p.size
        ratios.append(sums.std() / bounds.most_deviation)
    assert len(ratios) > 20
    assert 0.7 < max(ratios) <= 1.05
