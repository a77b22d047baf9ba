"""Means and differences with intervals over responses, as rows of tables take them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from experiments.findings.interval_values import (
    difference_of_clusters,
    interval_text,
    kendall,
    tiny,
)


def test_kendall_is_scipys() -> None:
    generator = np.random.default_rng(0)
    first = generator.integers(0, 5, 30).astype(float)
    second = first + generator.integers(0, 4, 30)
    value, lower, upper = kendall(first, second, seed=0)
    # The same pairs are counted, in floating point.
    assert value == pytest.approx(kendalltau(first, second).statistic, abs=1e-12)
    assert lower < value < upper
    assert np.isnan(kendall(np.ones(4), np.arange(4.0), seed=0)[0])


def test_a_difference_of_equal_clusters_is_nothing() -> None:
    totals, sizes = np.array([1.0, 2.0, 5.0]), np.array([2.0, 2.0, 6.0])
    value, lower, upper = difference_of_clusters((totals, sizes), (totals, sizes), seed=0)
    assert value == 0.0
    assert np.isnan([lower, upper]).all()


def test_small_numbers_as_text() -> None:
    assert tiny(3e-17) == "0"
    assert tiny(0.00123) == "1.2e-03"
    assert tiny(0.00123, "+") == "+1.2e-03"
    assert tiny(float("nan")) == "--"
    row = {"x": 0.5, "x_lower": 0.25, "x_upper": 0.75}
    frame = pd.DataFrame([row, {**row, "x_lower": float("nan")}])
    assert interval_text(frame, "x") == ["5.0e-01 [2.5e-01, 7.5e-01]", "5.0e-01"]
