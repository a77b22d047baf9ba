"""Bounds of mini-buckets by i-bound: they hold always, and are exact at the induced width."""

from __future__ import annotations

import pytest

from experiments.networks.shapes import GraphShape
from notebooks.questions.i_bound import measurements, summarize

pytestmark = pytest.mark.slow


def test_at_the_induced_width_bounds_are_exact_and_always_they_hold() -> None:
    shape = GraphShape(atoms=5, density=0.4)
    measured = measurements({"small": shape}, (1, 2, 8), graphs=2, iterations=20, seed=1)
    assert (measured["held"] == measured["atoms"]).all()
    wide = measured[measured["i_bound"] >= measured["induced_width"]]
    assert len(wide) >= 2
    # Rounding of log Z of about ten; intervals are widened by 1e-10 of it.
    assert wide[["upper", "lower", "total_error"]].to_numpy().max() < 1e-10
    assert wide["total_width"].max() < 1e-7
    assert (wide["decided"] == wide["atoms"]).all()
    narrow = measured[measured["i_bound"] < measured["induced_width"]]
    assert narrow["total_width"].min() > 1e-5
    errors = summarize(measured, seed=0)
    assert (errors["held"] == 1.0).all()
    assert errors.sort_values("i_bound")["width"].is_monotonic_decreasing
