"""Measures of one response: certain atoms, hand values, published numbers, the corners."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

from calibration import f1_at_k, factual_precision
from calibration.scores import (
    choose_k,
    entropy_measure,
    expected_precision,
    mean_surprisal,
)
from calibration.scores.measures import verdicts
from calibration.significance.bootstrap import paired_bootstrap
from calibration.validation import is_missing, is_number
from tests.refusals import refused

# Posterior probabilities of the 21 atoms in the output file of the FactReasoner release
# (biography of Lanny Flaherty), printed there to six decimals.
RELEASED = [1.0, 1.0, 0.927697, 0.930674, 0.96242, 0.995042, 0.96242, 0.96242, 1.0, 0.999949]
RELEASED += [0.999997, 0.999354, 1.0, 0.972747, 1.0, 0.96242, 1.0, 0.999885, 0.079761, 0.5, 1.0]


def test_all_atoms_certain_and_true() -> None:
    p = [1.0] * 5
    assert factual_precision(p) == 1.0
    assert f1_at_k(p, 5) == 1.0
    assert entropy_measure(p) == 0.0
    assert math.copysign(1, entropy_measure(p)) == 1.0
    assert mean_surprisal(p) == 0.0
    assert expected_precision(p) == 1.0


def test_hand_values() -> None:
    p = [0.9, 0.6, 0.5, 0.2]
    assert verdicts(np.array(p)).tolist() == [1, 1, 0, -1]
    assert factual_precision(p) == 0.5
    # 2 * 1/2 * 2/3 / (1/2 + 2/3) = 4/7, up to rounding.
    assert f1_at_k(p, 3) == pytest.approx(4 / 7, abs=1e-15)
    assert expected_precision(p) == pytest.approx(0.55, abs=1e-15)
    powers = [0.1, 0.01, 1.0, 1.0]
    # -P log10 P is 0.1, 0.02, 0 and 0; -log10 P is 1, 2, 0 and 0.
    assert entropy_measure(powers) == pytest.approx(0.03, abs=1e-15)
    assert mean_surprisal(powers) == pytest.approx(0.75, abs=1e-15)


def test_published_entropy_of_undecided_atoms() -> None:
    # FactReasoner, section 3.2: E = 0.150515 if every atom has P = 1/2, printed to six digits.
    assert entropy_measure([0.5] * 7) == pytest.approx(0.150515, abs=5e-7)


def test_published_precision_and_f1_of_an_example() -> None:
    # FactReasoner, appendix B, example 4: 14 atoms, Pr = 0.43, and F1@K = 0.57 with K = 7, which
    # 6 supported atoms give; printed to two digits.
    p = [0.9] * 6 + [0.1] * 8
    assert factual_precision(p) == pytest.approx(0.43, abs=0.005)
    assert f1_at_k(p, 7) == pytest.approx(0.57, abs=0.005)


def test_published_measures_of_a_released_output() -> None:
    # The file's factuality_score, f1_k (recall_k is 1, so K is at most 19) and num_uniform_atoms.
    assert factual_precision(RELEASED) == pytest.approx(0.9047619047619048, abs=1e-15)
    assert f1_at_k(RELEASED, 10) == pytest.approx(0.9500000000000001, abs=1e-15)
    signs = verdicts(np.array(RELEASED))
    assert [int((signs == sign).sum()) for sign in (1, -1, 0)] == [19, 1, 1]
    # Its avg_prob, avg_logprob and avg_entropy come from probabilities before they were rounded to
    # six decimals: each P is off by 5e-7 at most, and log P by 6.3e-6 at P = 0.079761. The file
    # takes natural logarithms, where the paper's 0.150515 is of base 10.
    assert expected_precision(RELEASED) == pytest.approx(0.9168942380952381, abs=5e-7)
    natural = math.log(10)
    assert mean_surprisal(RELEASED) * natural == pytest.approx(0.16930501241671717, abs=1e-6)
    assert entropy_measure(RELEASED) * natural == pytest.approx(0.04118386487446189, abs=1e-6)


def test_agreement_with_scipy() -> None:
    from scipy.special import entr
    from scipy.stats import hmean

    generator = np.random.default_rng(5)
    for _ in range(20):
        p = generator.random(generator.integers(1, 40))
        p[generator.random(p.size) < 0.2] = generator.choice([0.0, 0.5, 1.0])
        k = float(generator.uniform(0.5, 40))
        # The same sums in another order of rounding.
        assert entropy_measure(p) == pytest.approx(entr(p).mean() / math.log(10), abs=1e-12)
        precision = factual_precision(p)
        recall = min(p.size * precision / k, 1.0)
        assert f1_at_k(p, k) == pytest.approx(hmean([precision, recall]), abs=1e-12)


def test_no_supported_atom_gives_f1_of_zero() -> None:
    assert f1_at_k([0.5, 0.1], 3) == 0.0
    assert factual_precision([0.5, 0.1]) == 0.0


def test_recall_stops_at_one() -> None:
    # Precision is 1, so F1@K is 2 R / (1 + R).
    assert f1_at_k([0.9] * 5, 5) == f1_at_k([0.9] * 50, 5) == 1.0
    assert f1_at_k([0.9], 6.5) == pytest.approx(2 / 7.5, abs=1e-15)


def test_decisions_forgive_rounding_but_not_more() -> None:
    p = np.array([0.5 + 1e-12, 0.5 - 1e-12, 0.5 + 1e-6, 0.5 - 1e-6])
    assert verdicts(p).tolist() == [0, 0, 1, -1]
    assert verdicts(p, 0.0).tolist() == [1, -1, 1, -1]


def test_false_for_certain_has_no_entropy_and_infinite_surprisal() -> None:
    assert entropy_measure([0.0, 0.0]) == 0.0
    assert mean_surprisal([1.0, 0.0]) == math.inf
    assert expected_precision([0.0, 1.0]) == 0.5


def test_entropy_warns_where_it_misorders(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="calibration.scores.measures"):
        doubtful, false = entropy_measure([0.3]), entropy_measure([0.05, 0.05, 0.9])
    assert [record.args for record in caplog.records] == [(1, 1), (2, 3)]
    assert "does not order responses by truth" in caplog.records[0].getMessage()
    # What the warning is about: two of three atoms are false, yet E says nearer to the truth.
    assert false < doubtful
    assert mean_surprisal([0.05, 0.05, 0.9]) > mean_surprisal([0.3])
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="calibration.scores.measures"):
        entropy_measure([0.37, 0.5, 1.0])
    assert not caplog.records


def test_k_by_every_policy() -> None:
    counts = [3, 10, 4, 5]
    assert choose_k("fixed:32", counts).tolist() == [32.0] * 4
    assert choose_k(32, counts).tolist() == [32.0] * 4
    assert choose_k(2.5, counts).tolist() == [2.5] * 4
    assert choose_k("median", counts).tolist() == [4.5] * 4
    assert choose_k("half", counts).tolist() == [1.5, 5.0, 2.0, 2.5]
    # As FactReasoner's release: int(n / 2), and 1 for a single claim.
    assert choose_k("half-down", counts).tolist() == [1.0, 5.0, 2.0, 2.0]
    assert choose_k("half-down", [1]).tolist() == [1.0]


@pytest.mark.parametrize("k", ["mean", "fixed:", "fixed:0", "fixed:-3", "fixed:2.5", "32", ""])
def test_an_unknown_policy_for_k_is_named(k: str) -> None:
    refused(f"k is '{k}'; give a number above 0, 'fixed:INT'", choose_k, k, [3])


@pytest.mark.parametrize("k", [0, -1, math.nan, math.inf, True, None])
def test_k_is_above_zero(k: Any) -> None:
    for call in (lambda: choose_k(k, [3]), lambda: f1_at_k([0.7], k)):
        refused(f"k is {k!r}; give a number above 0", call)


def test_a_whole_number_that_no_float_holds_is_refused_in_a_sentence() -> None:
    huge = 10**400
    refused(r"k is 10+\.\.\.; give a number above 0", choose_k, huge, [3])
    refused("is not all numbers", paired_bootstrap, [huge, 1.0], [0.0, 1.0], ["a", "b"])
    assert not is_number(huge)
    assert not is_missing(huge)


@pytest.mark.parametrize("counts", [[], [0, 2], [1.5], [[1, 2]], 3])
def test_counts_of_atoms_are_checked(counts: Any) -> None:
    refused("atom_counts is", choose_k, "median", counts)
