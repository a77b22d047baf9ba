"""Intervals from few labels of unequal responses: a small case, beside counts of claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factormodels.errors import InputError
from notebooks.questions.skewed_responses import ppi_interval, skewed_responses
from tests.chance import least_held


def test_the_rival_is_that_of_ppi_python() -> None:
    # ppi_mean_ci of ppi-python 0.2.3 with alpha 0.05, on these draws; with lam=0 it is classical.
    generator = np.random.default_rng(5)
    f = generator.random(200)
    y = (generator.random(200) < f).astype(float)
    parts = y[:30], f[:30], f[30:]
    assert ppi_interval(*parts) == pytest.approx((0.35345764, 0.68455619), abs=1e-8)
    assert ppi_interval(*parts, weight=0.0) == pytest.approx((0.35481196, 0.71185471), abs=1e-8)


def test_intervals_hold_where_long_responses_decide_and_finished_cells_are_kept(
    tmp_path: Path,
) -> None:
    def rows(draws: int = 100) -> pd.DataFrame:
        return (
            skewed_responses(
                labels=(20,),
                worlds=("skewed",),
                quantities=("share", "brier"),
                draws=draws,
                parts=tmp_path,
            )
            .tables["coverage"]
            .frame
        )

    frame = rows()
    assert [path.name for path in tmp_path.iterdir()] == ["skewed-20.csv"]
    covers, rival = frame["covers"], frame["ppi_covers"]
    assert covers[1] >= least_held(100) / 100
    # Claims of a response are no independent numbers: the rival holds some seven of ten shares.
    assert covers[0] > rival[0] + 0.08
    # Twenty responses may lack a kind that is 14% of all.
    assert frame["silent"].tolist() == [0.0, 0.0]
    again = rows()
    assert again["covers"].tolist() == frame["covers"].tolist()
    with pytest.raises(InputError, match="other --quantities or --draws"):
        rows(7)
    with pytest.raises(InputError, match="--worlds nowhere"):
        skewed_responses(worlds=("nowhere",))
