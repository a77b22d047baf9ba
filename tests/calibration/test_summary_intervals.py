"""Intervals of the measures of a summary: of the same numbers, over responses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.intervals import IntervalSettings
from calibration.scores.summary import Summary, summarise
from calibration.significance.summary_intervals import WITH_INTERVALS, summary_intervals


def atoms(seed: int = 0, n_responses: int = 80) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (p, y, responses) of made-up claims, one in eight without a label."""
    rng = np.random.default_rng(seed)
    responses = np.repeat(np.arange(n_responses), rng.integers(1, 12, n_responses))
    p = rng.uniform(0.01, 0.99, responses.size)
    y = (rng.uniform(size=p.size) < p).astype(float)
    y[rng.uniform(size=p.size) < 0.125] = np.nan
    p[rng.uniform(size=p.size) < 0.125] = 0.5
    return p, y, responses


@pytest.mark.parametrize("policy", ["exclude", "false"])
@pytest.mark.parametrize("method", ["delta", "bootstrap"])
def test_every_interval_holds_its_measure(policy: str, method: str) -> None:
    p, y, responses = atoms()
    summary = summarise(p, y, responses, unlabelled=policy)
    settings = IntervalSettings(method=method, n_bootstrap=300)
    for name, (lower, upper) in summary_intervals(
        p, y, responses, unlabelled=policy, settings=settings
    ).items():
        assert lower < getattr(summary, name) < upper, name


def test_both_ways_to_make_them_agree() -> None:
    # 300 responses: both are close to normal theory, and 2000 replicates leave about 3% noise.
    p, y, responses = atoms(n_responses=300)
    linear = summary_intervals(p, y, responses)
    drawn = summary_intervals(p, y, responses, settings=IntervalSettings(n_bootstrap=2000))
    for name in WITH_INTERVALS:
        assert np.subtract(*linear[name]) == pytest.approx(np.subtract(*drawn[name]), rel=0.12), (
            name
        )


def test_an_interval_of_a_mean_by_hand() -> None:
    p, y, responses = atoms()
    own = np.array([p[responses == one].mean() for one in np.unique(responses)])
    settings = IntervalSettings(method="delta")
    lower, upper = summary_intervals(p, y, responses, settings=settings)["expected_precision"]
    # Student's t at 79 degrees of freedom, symmetric in the logit.
    mean = own.mean()
    reach = 1.9904502 * own.std(ddof=1) / math.sqrt(own.size) / (mean * (1 - mean))
    logit = math.log(mean / (1 - mean))
    assert lower == pytest.approx(1 / (1 + math.exp(reach - logit)), abs=1e-7)
    assert upper == pytest.approx(1 / (1 + math.exp(-reach - logit)), abs=1e-7)


def test_what_is_undefined_has_no_interval() -> None:
    p, _, responses = atoms()
    found = summary_intervals(p, None, responses)
    assert all(map(math.isnan, found["brier"]))
    assert not any(map(math.isnan, found["precision"]))
    certain = summary_intervals([0.0, 1.0, 0.4], [True, True, False], ["a", "b", "b"])
    assert all(map(math.isnan, certain["log_loss"]))
    assert all(map(math.isnan, certain["mean_surprisal"]))
    one = summary_intervals([0.2, 0.7], [True, False], ["a", "a"])
    assert all(map(math.isnan, one["mean_surprisal"]))
    # A share that no redraw can move gets Wilson's interval of one trial: nearly everything.
    assert np.subtract(*one["brier"][::-1]) > 0.7


def test_no_end_is_negative() -> None:
    # Two responses, one of them almost certain: Student's t with one degree reaches far below 0.
    found = summary_intervals([0.999, 0.6], [True, True], ["a", "b"])
    assert found["log_loss"][0] == found["mean_surprisal"][0] == 0.0
    assert found["log_loss"][1] > 1.0


def test_all_measures_of_a_summary_have_one() -> None:
    rest = {"n_responses", "n_atoms", "n_labelled", "label_policy", "k", "k_policy"}
    assert set(WITH_INTERVALS) == set(Summary.__dataclass_fields__) - rest
