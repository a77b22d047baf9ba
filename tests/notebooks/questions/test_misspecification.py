"""Calibration under a wrong relation model: too extreme where it overstates or passages copy."""

from __future__ import annotations

from typing import Any

import pytest

from notebooks.questions import misspecification

pytestmark = pytest.mark.slow


def test_levels_hold_the_undistorted_once_per_axis() -> None:
    chosen = {"factors": (2.0,), "noises": (), "copied": (0.0, 1.0)}
    assert list(misspecification.levels(chosen)) == [
        ("factors", 1.0),
        ("factors", 2.0),
        ("noises", 0.0),
        ("copied", 0.0),
        ("copied", 1.0),
    ]


def test_calibrated_without_a_distortion_and_too_extreme_with_one() -> None:
    made = misspecification.misspecification(factors=(3.0,), noises=(), copied=(1.0,))
    calibration = made.tables["calibration"].frame
    rows: dict[Any, Any] = {(r.axis, r.level): r for r in calibration.itertuples()}
    plain = rows["factors", 1.0]
    assert plain.slope_lower < 1.0 < plain.slope_upper
    assert plain.cost == 0.0
    for key in (("factors", 3.0), ("copied", 1.0)):
        assert rows[key].slope_upper < 1.0
        assert rows[key].cost_lower > 0.0
