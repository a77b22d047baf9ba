"""Evidence that is a mixture of what was learned is let pass, whatever single responses show."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.learned_potentials.shift import LawOfEvidence, shift_of
from calibration.validation import Floats

KNOWN, CLAIMS = 80, 10


def evidence(per_response: Floats, means: Floats, seed: int) -> LawOfEvidence:
    """Claims whose log odds have given means, beside a number that all of a response share."""
    owners = np.repeat(np.arange(len(per_response)), CLAIMS)
    drawn = np.random.default_rng(seed).normal(means, 1.0)
    values = np.stack([drawn, per_response[owners], *np.zeros((2, len(owners)))], axis=1)
    return LawOfEvidence(values, owners, len(per_response))


def p_value(true: LawOfEvidence, false: LawOfEvidence, new: LawOfEvidence, draws: int) -> float:
    """Return the p-value of the hypothesis that new evidence is a mixture of the others."""
    return shift_of(true, false, new, 0.5, n_bootstrap=draws).p_value


def known() -> tuple[LawOfEvidence, LawOfEvidence]:
    """Claims that are true and false in turn; six in ten responses have five relations each."""
    counts = np.where(np.arange(KNOWN) % 5 < 3, 5.0, 2.0)
    true = np.arange(KNOWN * CLAIMS) % 2 == 0
    both = evidence(counts, np.where(true, 1.0, -1.0), 0)
    return both.of(np.flatnonzero(true)), both.of(np.flatnonzero(~true))


def test_few_responses_that_happen_to_be_alike_are_no_other_evidence() -> None:
    # Three of three with five relations have the probability 0.6 cubed, 0.22; redrawing them alone
    # would show no noise at all.
    means = np.where(np.arange(3 * CLAIMS) % 5 == 0, 1.0, -1.0)
    assert p_value(*known(), evidence(np.full(3, 5.0), means, 1), 400) > 0.05


def test_many_that_are_alike_are() -> None:
    means = np.where(np.arange(60 * CLAIMS) % 5 == 0, 1.0, -1.0)
    assert p_value(*known(), evidence(np.full(60, 5.0), means, 1), 400) < 0.01


@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_claims_between_the_two_kinds_or_beyond_both_are_no_mixture(mean: float) -> None:
    counts = np.where(np.arange(40) % 5 < 3, 5.0, 2.0)
    new = evidence(counts, np.full(40 * CLAIMS, mean), 1)
    assert p_value(*known(), new, 400) < 0.01


def test_rare_evidence_decides_nothing() -> None:
    counts = np.where(np.arange(20) % 5 < 3, 5.0, 2.0)
    means = np.where(np.arange(20 * CLAIMS) % 5 == 0, 1.0, -1.0)
    new = evidence(counts, means, 1)
    rare = new.values.copy()
    rare[:3, 3] = 1.0
    changed = LawOfEvidence(rare, new.owners, new.n_responses)
    assert p_value(*known(), changed, 400) == p_value(*known(), new, 400)


def test_incomparable_models_have_no_p_value_and_equal_ones_have_one() -> None:
    true, false = known()
    single = evidence(np.full(1, 5.0), np.zeros(CLAIMS), 1)
    assert np.isnan(p_value(true, false, single, 50))
    alike = LawOfEvidence(np.ones_like(true.values), true.owners, true.n_responses)
    assert p_value(alike, alike, alike, 50) == 1.0


@pytest.mark.parametrize(("share", "other"), [(0.2, 0.0), (0.8, 0.0), (0.5, 1.5)])
def test_the_interval_holds_the_distance_and_that_of_many_responses(
    share: float, other: float
) -> None:
    def distance(responses: int, seed: int) -> tuple[float, float, float]:
        is_true = np.arange(responses * CLAIMS) % 10 < 10 * share
        means = np.where(is_true, 1.0, -1.0) + other
        counts = np.where(np.arange(responses) % 5 < 3, 5.0, 2.0)
        shift = shift_of(*known(), evidence(counts, means, seed), 0.5, n_bootstrap=200)
        assert shift.lower <= shift.distance <= shift.upper
        return shift.lower, shift.distance, shift.upper

    exact = distance(3000, 1000)[1] if other else 0.0
    intervals = [distance(20, seed) for seed in range(1, 31)]
    assert sum(lower <= exact <= upper for lower, _, upper in intervals) >= 27
