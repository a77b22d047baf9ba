"""Notebook 7: bounds lie on their side of an outside library's answer, and meet at the width."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from factormodels import datasets
from factormodels.synthetic import FactLaws, fr2, mixed_reliability
from factormodels.variants import fr2 as fr2_of
from inference import infer
from inference.mini_buckets.intervals import certified_intervals
from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("07_bounds", tmp_path)
    laws = FactLaws(context_prior=mixed_reliability(0.2))
    truth = infer(fr2(26, 5, 0.06, always_related=False, seed=1, laws=laws), "pyagrum").log_z
    assert truth is not None
    bounds = pd.read_csv(folder / "bounds.csv").set_index("algorithm")
    # Both sum the same terms in doubles; where bounds meet the truth, so much is rounding.
    assert bounds.log_z.iloc[0] == pytest.approx(truth, abs=1e-9)
    assert (bounds.lower.dropna() <= truth + 1e-9).all()
    assert (bounds.upper.dropna() >= truth - 1e-9).all()
    width = bounds.loc["WMB"].set_index("i_bound").loc[13]
    assert width.lower == pytest.approx(truth, abs=1e-9)
    assert width.upper == pytest.approx(truth, abs=1e-9)

    gaps = pd.read_csv(folder / "figure.csv")
    settled = gaps[gaps.converged]
    # Ruozzi 2012 speaks of fixed points; messages that changed by 1e-9 at most leave the Bethe
    # log Z, which is stationary there, far closer to one than this.
    assert (settled.gap[settled.balanced] <= 1e-9).all()
    assert (gaps.frustrated[gaps.balanced] == 0).all()
    assert gaps.balanced[gaps.kind.isin(["grid, attractive", "grid, balanced"])].all()
    assert (gaps.negative[gaps.kind == "grid, balanced"] > 0.3).all()
    assert settled.gap.max() > 0.01

    claims = pd.read_csv(folder / "claims.csv")
    for i_bound in (4, 8):
        # 1e-12: the exact posterior is itself rounded some hundred times.
        assert (claims[f"lower_{i_bound}"] <= claims.exact + 1e-12).all()
        assert (claims[f"upper_{i_bound}"] >= claims.exact - 1e-12).all()
    intervals = pd.read_csv(folder / "intervals.csv").set_index("i_bound")
    assert (intervals.holds == 1.0).all()
    assert intervals.largest_width[8] < intervals.largest_width[4]

    real = pd.read_csv(folder / "real.csv")
    # One claim clamped either way, bounded by finer mini-buckets: intervals that hold must meet.
    sizes = (59, 47)
    (biography,) = [
        g for g in datasets.load("factscore").graphs if (len(g.atoms), len(g.contexts)) == sizes
    ]
    wide = fr2_of(biography).to_factor_graph("mixture")
    finer = certified_intervals(wide, [real.claim[0]], i_bound=6, iterations=5)[real.claim[0]]
    assert real.lower[0] <= finer.upper
    assert finer.lower <= real.upper[0]
    assert (real.width >= 0).all()
    assert real.width.max() < 0.01
