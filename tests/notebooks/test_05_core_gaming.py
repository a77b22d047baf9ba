"""Notebook 5: padding gains what the tests of gaming measured, and no more under Core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.notebooks.execution import run

pytestmark = [pytest.mark.notebook, pytest.mark.nightly]


def test_numbers(tmp_path: Path) -> None:
    folder = run("05_core_gaming", tmp_path)
    price: Any = pd.read_csv(folder / "price.csv")
    # The corpus has 134 claims; true ones go more often, as the notebook says.
    assert price.claims.tolist() == [91, 43]
    assert price.left_out[0] > price.left_out[1] > 0
    gains: Any = pd.read_csv(folder / "gains.csv").set_index(["guard", "padding"])
    for padding in ("repetitive", "uninformative"):
        # As tests/experiments/evaluators/test_gaming.py: 0.220 plain, 0.012 and 0.014 by words.
        plain, words = gains.loc[("no guard", padding)], ("Core, words compared", padding)
        assert plain.rise == pytest.approx(0.220, abs=0.001)
        assert plain.raised == 14
        assert 0 < gains.rise[words] < 0.02
        # The same claims are selected: equal numbers, not close ones.
        known = gains.loc[("Core, paraphrases known", padding)]
        assert (known.rise, known.raised, known.claims_padded) == (0, 0, known.claims)
        assert known.claims == pytest.approx(price.selected.sum() / 14, abs=1e-12)
    assert plain.claims == pytest.approx(134 / 14, abs=1e-12)
    uniform = gains.loc["Core, uniform weights"]
    assert uniform.rise["repetitive"] == 0
    assert uniform.lower["uninformative"] > 0.03

    curves: Any = pd.read_csv(folder / "figure.csv")
    end = curves[curves.appended == 20].set_index(["guard", "version", "padding"])
    start = curves[curves.appended == 0].set_index(["guard", "version", "padding"])
    for padding in ("repetitive", "uninformative"):
        clean = start.precision["no guard", "clean", padding]
        assert end.precision["no guard", "corrupted", padding] > clean
        assert end.passes["no guard", "corrupted", padding] > 0.5
        cell = ("Core, paraphrases known", "corrupted", padding)
        assert end.precision[cell] == start.precision[cell]
        assert end.passes[cell] == 0
        assert end.precision["no guard", "clean", padding] - clean == pytest.approx(
            gains.rise["no guard", padding], abs=1e-12
        )

    kinds: Any = pd.read_csv(folder / "kinds.csv").set_index(["assessor", "core", "kind"])
    for assessor in ("human labels", "FR1"):
        # As the test of the table of kinds: padding alone is all true, and Core empties it.
        assert kinds.precision[assessor, "without", "repetitive, alone"] == 1
        assert kinds.counted[assessor, "with", "uninformative, alone"] == 0
        assert kinds.counted[assessor, "with", "repetitive, alone"] <= 1
        for padding in ("repetitive", "uninformative"):
            padded = kinds.loc[(assessor, "with", f"{padding}, appended")]
            assert padded.equals(kinds.loc[(assessor, "with", "normal")])

    real: Any = pd.read_csv(folder / "real.csv").set_index("kind")
    # All padding is true, so that without Core it all gains the same; Core does not see the third.
    assert real.plain.max() == pytest.approx(real.plain.min(), abs=1e-12)
    assert real.core_upper["repetitive, appended"] < real.plain_lower["repetitive, appended"] / 2
    assert real.core_lower["off-topic, appended"] > real.plain_upper["off-topic, appended"]
