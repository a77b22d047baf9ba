"""Scores with their intervals: of the same numbers as a summary, over responses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibration.scores import MEASURES, Summary, estimate_scores, summarise


def atoms(seed: int = 0, n_responses: int = 80) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (p, y, responses) of made-up claims, one in eight without a label."""
    rng = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), rng.integers(1, 12, n_responses))
    p = rng.uniform(0.01, 0.99, responses.size)
    y = (rng.uniform(size=p.size) < p).astype(float)
    y[rng.uniform(size=p.size) < 0.125] = np.nan
    p[rng.uniform(size=p.size) < 0.125] = 0.5
    return p, y, responses


def ends(p: Any, y: Any, responses: Any, **how: Any) -> dict[str, tuple[float, float]]:
    found = estimate_scores(p, y, responses, **how)
    return {name: (each.lower, each.upper) for name, each in found.items()}


@pytest.mark.parametrize("policy", ["exclude", "false"])
def test_every_interval_holds_its_measure(policy: str) -> None:
    p, y, responses = atoms()
    summary = summarise(p, y, responses, unlabelled=policy)
    for name, each in estimate_scores(p, y, responses, unlabelled=policy).items():
        assert each.value == getattr(summary, name)
        assert each.lower < each.value < each.upper, name


def test_an_interval_of_a_mean_by_hand() -> None:
    p, y, responses = atoms()
    own = np.array([p[responses == one].mean() for one in np.unique(responses)])
    lower, upper = ends(p, y, responses)["expected_precision"]
    # Student's t at 79 degrees of freedom, symmetric in the logit.
    mean = own.mean()
    reach = 1.9904502 * own.std(ddof=1) / math.sqrt(own.size) / (mean * (1 - mean))
    logit = math.log(mean / (1 - mean))
    assert lower == pytest.approx(1 / (1 + math.exp(reach - logit)), abs=1e-7)
    assert upper == pytest.approx(1 / (1 + math.exp(-reach - logit)), abs=1e-7)


def test_what_is_undefined_has_no_interval() -> None:
    p, _, responses = atoms()
    found = ends(p, None, responses)
    assert all(map(math.isnan, found["brier"]))
    assert not any(map(math.isnan, found["precision"]))
    certain = ends([0.0, 1.0, 0.4], [True, True, False], ["a", "b", "b"])
    assert all(map(math.isnan, certain["log_loss"]))
    assert all(map(math.isnan, certain["mean_surprisal"]))
    one = ends([0.2, 0.7], [True, False], ["a", "a"])
    assert all(map(math.isnan, one["mean_surprisal"]))
    # A share that no redraw can move gets Wilson's interval of one trial: nearly everything. Losses
    # are no shares.
    assert np.subtract(*one["precision"][::-1]) > 0.7
    assert all(map(math.isnan, one["brier"]))


def test_no_end_is_farther_than_a_response() -> None:
    # Two responses, one of them almost certain: Student's t with one degree reaches far beyond.
    found = ends([0.999, 0.6], [True, True], ["a", "b"])
    assert found["log_loss"] == pytest.approx((-math.log(0.999), -math.log(0.6)))


def test_all_measures_of_a_summary_have_one() -> None:
    rest = {"n_responses", "n_atoms", "n_labelled", "label_policy", "k", "k_policy"}
    assert set(MEASURES) == set(Summary.__dataclass_fields__) - rest
