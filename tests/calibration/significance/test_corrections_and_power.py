"""Corrections for the number of tests, and the size of what can be found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from calibration.significance import (
    adjust,
    equivalence_power,
    minimum_detectable_effect,
    paired_t_test,
    responses_for_equivalence,
    responses_needed,
    sample_size_table,
    standard_deviation_of_differences,
    stars,
)
from tests.calibration.references import r_values
from tests.refusals import refused

# Benjamini and Hochberg 1995, section 4.1: fifteen comparisons of two treatments.
NEUHAUS = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
    0.6528, 0.7590, 1.0000,
]  # fmt: skip


def test_published_rejections() -> None:
    # The paper's procedure rejects four hypotheses at 0.05; familywise control rejects three.
    assert (adjust(NEUHAUS, "benjamini-hochberg") <= 0.05).sum() == 4
    assert (adjust(NEUHAUS) <= 0.05).sum() == 3


def test_hand_values() -> None:
    assert adjust([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06], abs=1e-15)
    corrected = adjust([0.01, 0.04, 0.03], "benjamini-hochberg")
    assert corrected.tolist() == pytest.approx([0.03, 0.04, 0.04], abs=1e-15)
    assert adjust([0.9, 0.8]).max() == 1.0


@pytest.mark.parametrize(("method", "theirs"), [("holm", "holm"), ("benjamini-hochberg", "fdr_bh")])
@pytest.mark.parametrize("n", [1, 2, 15, 200])
@pytest.mark.slow
def test_every_bit_is_that_of_statsmodels(method: str, theirs: str, n: int) -> None:
    from statsmodels.stats.multitest import multipletests

    # Rounded, so that some are equal, and with both ends of the interval.
    values = np.random.default_rng(n).uniform(0.0, 0.2, n).round(3)
    values[:2] = (0.0, 1.0)[:n]
    expected = multipletests(values, method=theirs)[1]
    np.testing.assert_array_equal(adjust(values, method), expected)


def test_tests_that_could_not_be_done_do_not_count() -> None:
    corrected = adjust([0.02, math.nan, 0.5])
    assert corrected[0] == pytest.approx(0.04, abs=1e-15)
    assert math.isnan(corrected[1])
    assert np.isnan(adjust([math.nan])).all()
    assert adjust([]).size == 0


def test_stars() -> None:
    assert [stars(p) for p in (0.0005, 0.001, 0.02, 0.05, math.nan)] == ["***", "**", "*", "", ""]


def test_published_sample_size() -> None:
    # G*Power 3, paired t-test: d = 0.5, alpha 0.05, power 0.8: 34 pairs two-sided, 27 one-sided.
    assert responses_needed(0.5, 1.0) == 34
    assert responses_needed(-0.5, 1.0) == 34
    assert responses_needed(0.5, 1.0, alternative="greater") == 27
    assert responses_needed(0.5, 1.0, alternative="less") == 27
    assert responses_needed(50.0, 1.0) == 2


def test_the_effect_and_the_number_are_inverse_and_scale() -> None:
    effect = minimum_detectable_effect(2.0, 34)
    assert effect == pytest.approx(2 * minimum_detectable_effect(1.0, 34), rel=1e-6)
    assert responses_needed(effect, 2.0) == 34
    assert 0.49 < minimum_detectable_effect(1.0, 34) < 0.5


def test_power_is_how_often_the_test_finds_the_effect() -> None:
    generator = np.random.default_rng(0)
    effect = minimum_detectable_effect(1.5, 20)
    found = sum(
        paired_t_test(
            generator.normal(effect, 1.5, 20), np.zeros(20), alternative="two-sided"
        ).p_value
        <= 0.05
        for _ in range(600)
    )
    # 600 draws of 0.8: a standard deviation of 0.016, four of which are 0.065.
    assert found / 600 == pytest.approx(0.8, abs=0.065)


def test_sample_size_of_r() -> None:
    # power.t.test(delta = 0.03, sd = 0.1, power = 0.8, type = "paired") of R 4.2.2.
    (needed,) = r_values("stats", "responses_needed")
    assert responses_needed(0.03, 0.1) == math.ceil(needed)


def test_equivalence_is_shown_as_often_as_its_power_says() -> None:
    generator = np.random.default_rng(1)
    for n_responses, margin in ((8, 1.2), (30, 0.6)):
        power = equivalence_power(margin, 1.0, n_responses)
        drawn = generator.normal(0, 1, (4000, n_responses))
        error = drawn.std(axis=1, ddof=1) / math.sqrt(n_responses)
        shown = np.abs(drawn.mean(axis=1)) + t.ppf(0.95, n_responses - 1) * error < margin
        # 4000 draws of a share have a standard deviation of at most 0.0079.
        assert shown.mean() == pytest.approx(power, abs=4 * 0.0079)


def test_a_table_for_planning() -> None:
    table = sample_size_table(0.2, [0.1, 0.02], powers=[0.8, 0.9])
    assert [(row.effect, row.power) for row in table] == [
        (0.1, 0.8), (0.1, 0.9), (0.02, 0.8), (0.02, 0.9),
    ]  # fmt: skip
    for row in table:
        assert row.to_find == responses_needed(row.effect, 0.2, power=row.power)
        assert equivalence_power(row.effect, 0.2, row.to_exclude) >= row.power
        assert equivalence_power(row.effect, 0.2, row.to_exclude - 1) < row.power
    # For many responses (z(0.95) + z(0.9))^2 sd^2 / margin^2, the textbook's normal approximation.
    expected = (norm.ppf(0.95) + norm.ppf(0.9)) ** 2 * 100
    assert table[2].to_exclude == pytest.approx(expected, abs=3)
    assert table.to_frame().shape == (4, 4)


def test_standard_deviation_of_differences() -> None:
    spread = standard_deviation_of_differences([0.5, 1.0, 0.0], [0.25, 0.25, 0.25])
    assert spread == pytest.approx(np.std([0.25, 0.75, -0.25], ddof=1), rel=1e-12)
    refused("first has 1 and second 1 values", standard_deviation_of_differences, [0.5], [0.5])


def test_bad_input_is_named() -> None:
    refused(r"p_values\[1\] is 1.5, outside \[0, 1\]", adjust, [0.5, 1.5])
    refused("flat sequence", adjust, [[0.5]])
    refused("correction is 'bonferroni'; choose one of holm", adjust, [0.5], "bonferroni")
    refused("standard_deviation is 0", minimum_detectable_effect, 0, 10)
    refused("n_responses is 1", minimum_detectable_effect, 1, 1)
    refused(r"power is 0\.01", minimum_detectable_effect, 1, 10, power=0.01)
    refused("effect is 0", responses_needed, 0, 1)
    refused("margin is 0", responses_for_equivalence, 0, 1)
