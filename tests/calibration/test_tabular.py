"""Results that are tables: frames, text and HTML."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from calibration import (
    corp_curve,
    reliability_bins,
    score,
)
from calibration.curves import group_calibration, risk_curve
from calibration.intervals import (
    IntervalSettings,
    RatioSums,
    estimate_all,
)
from calibration.scores import measure_responses
from calibration.self_knowledge import (
    compare_conditions,
    in_sample_balance,
    out_of_sample,
    self_knowledge,
)
from tests.calibration.coverage_simulation import draw
from tests.calibration.self_knowledge.claims import random_records

MOST_LINES = 12


RESULTS = (
    *("scores", "measures", "scores of methods", "bins", "corp", "risk", "groups", "estimates"),
    *("self-knowledge", "conditions", "prediction", "balance"),
)


@cache
def results() -> dict[str, Any]:
    """Compute a result of every kind, once in a process and not to list the tests."""
    p, y, responses = draw(np.random.default_rng(0), 30)
    records, others = random_records(0), random_records(1)
    true, claims = (np.bincount(responses, each)[:, None].astype(float) for each in (y, None))
    sums = RatioSums(true, claims)
    methods = {"one": p, "half": p / 2}
    every = [
        score(p, y, responses),
        measure_responses(p, responses),
        score(methods, y, responses, n_resamples=20, scores=["brier"]),
        reliability_bins(p, y),
        corp_curve(p, y, band="none"),
        risk_curve(p, y, n_bootstrap=5),
        group_calibration(p, y, responses % 3, n_bootstrap=5),
        *estimate_all([sums.named("share")], IntervalSettings("delta")),
        self_knowledge(records),
        compare_conditions(records, others),
        out_of_sample(records, n_splits=3),
        in_sample_balance(records),
    ]
    return dict(zip(RESULTS, every, strict=True))


@pytest.mark.parametrize("name", RESULTS)
def test_a_table_is_a_frame_a_short_text_and_html(name: str) -> None:
    result = results()[name]
    rows, frame = result.rows(), result.to_frame()
    assert frame.shape == (len(rows), len(rows[0]))
    assert list(frame.columns) == list(rows[0])
    text = repr(result)
    assert text.startswith(type(result).__name__)
    assert len(rows) == 1 or f"{len(rows)} rows" in text
    assert len(text.splitlines()) <= MOST_LINES
    html = result._repr_html_()
    assert html.startswith("<table")
    assert all(f"<th>{name}</th>" in html for name in frame.columns)
