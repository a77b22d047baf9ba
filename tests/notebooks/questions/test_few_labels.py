"""Few labels: the study's coverage on a few draws, held to estimates made another way."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.estimation import estimate, share
from experiments.findings.claim_scores import LabeledAtoms
from notebooks.questions.few_labels import Sampling, coverage_rows


@pytest.mark.parametrize("design", ["responses", "claims", "chosen responses", "chosen claims"])
def test_rows_are_means_over_draws_of_what_covers(design: str) -> None:
    generator = np.random.default_rng(0)
    p = generator.random(240)
    labels = (generator.random(240) < p).astype(np.float64)
    responses = np.repeat(np.arange(40), 6)
    atoms = LabeledAtoms(labels, responses, np.ones(240, dtype=np.bool_))
    sampling = Sampling(design, 12, ("share", "f1-at-k"), 60)  # type: ignore[arg-type]
    posteriors = {"good": p, "useless": generator.permutation(p)}
    rows = coverage_rows(posteriors, atoms, sampling, 0)
    of_claims = design.endswith("claims")
    assert {row["quantity"] for row in rows} == ({"share"} if of_claims else {"share", "f1-at-k"})
    for row in rows:
        # Never wider than labels alone; nominal .95 of 60: fewer than 51 are one in 500.
        assert row["widest_ratio"] <= 1.0
        assert row["covers"] >= 51 / 60
    if design == "responses":
        # The first draw, by hand.
        kept = np.random.default_rng(0).choice(40, 12, replace=False)
        known = np.where(np.isin(responses, kept), labels, np.nan)
        sampling = Sampling("responses", 12, ("share",), 1)
        (row,) = coverage_rows({"good": p}, atoms, sampling, 0)
        estimated = estimate(share(p, known, responses))
        # To rounding: weights of all responses are alike, whatever they are.
        assert row["width"] == pytest.approx(estimated.upper - estimated.lower, abs=1e-12)
        # Of the Brier score also the difference, whose truth is that of all labels.
        sampling = Sampling("responses", 12, ("brier",), 40)
        *_, row = coverage_rows(posteriors, atoms, sampling, 0)
        assert (row["posteriors"], row["quantity"]) == ("good minus useless", "brier")
        assert row["covers"] >= 33 / 40
