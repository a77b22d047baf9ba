"""The measurement of the runner counts what was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.bench.runner_cost import measure_runner


def test_the_cost_is_what_inference_leaves(tmp_path: Path) -> None:
    cost = measure_runner(tmp_path / "out", n_responses=20, workers=1)
    assert cost.n_units == 60
    assert 0 < cost.inference_seconds < cost.seconds
    # By definition, up to rounding.
    assert cost.overhead * 60 + cost.inference_seconds == pytest.approx(cost.seconds, rel=1e-12)
    assert (tmp_path / "out" / "table.md").exists()
