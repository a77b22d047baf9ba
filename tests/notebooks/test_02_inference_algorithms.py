"""Notebook 2: algorithms keep what they promise, on graphs that an outside library solves too."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from factormodels.synthetic import grid
from inference import infer
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("02_inference_algorithms", tmp_path)
    grids = pd.read_csv(folder / "figure.csv")
    # WMB's bounds are certified; 1e-9 is rounding of sums of some hundred logarithms.
    for name in ("wmb-6", "wmb-10"):
        assert (grids[f"{name}_lower"] <= grids.log_z + 1e-9).all()
        assert (grids[f"{name}_upper"] >= grids.log_z - 1e-9).all()
    first = grids.iloc[0]
    graph = grid(10, 10, coupling=first.coupling, field=0.5, seed=20_261_121)
    assert infer(graph, "pyagrum").log_z == pytest.approx(first.log_z, abs=1e-9)

    algorithms = pd.read_csv(folder / "algorithms.csv").set_index(["family", "algorithm"])
    kinds = algorithms.log_z_kind
    # Bounds lie on their side of the truth; the slack is rounding.
    assert (algorithms.log_z_error[kinds == "upper"] >= -1e-9).all()
    assert (algorithms.log_z_error[kinds == "elbo"] <= 1e-9).all()
    assert {"upper", "elbo", "bethe", "exact", "none", "estimate"} == set(kinds)
    # Along the frontier more seconds buy less error, down to the least there is.
    for _, family in algorithms.groupby("family"):
        front = family[family.on_frontier].sort_values("seconds")
        assert front.largest_error.is_monotonic_decreasing
        assert front.largest_error.iloc[-1] == family.largest_error.min()

    failure = pd.read_csv(folder / "failure.csv")
    assert (failure[["wmb_6_holds", "wmb_10_holds"]] == 1.0).all(axis=None)
    # What the notebook says: belief propagation is right where couplings are weak and far off
    # where they are strong, where WMB with i = 10 stays within a tenth.
    assert failure.lbp_error.iloc[0] < 0.01
    assert failure.lbp_error.iloc[-1] > 0.3
    assert failure.wmb_10_error.iloc[-1] < 0.1
