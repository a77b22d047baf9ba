"""Trends by relative position, with responses as clusters."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.self_knowledge import TrendStatus, position_trends
from calibration.self_knowledge.claims import Claims, claims_of_columns
from factormodels.io.claim_records import Setting
from tests.calibration.self_knowledge.claims import claim, random_records

SETTING = Setting.NONE_OF_THE_ABOVE


def drawn(generator: np.random.Generator, n_responses: int, slope: float = 0.0) -> Claims:
    """Claims, one a sentence, whose log odds have a level per response and a slope."""
    sizes = generator.integers(3, 12, n_responses)
    response = np.repeat(np.arange(n_responses), sizes)
    sentence = np.concatenate([np.arange(1, size + 1) for size in sizes])
    level = generator.normal(size=n_responses)[response]
    odds = 0.4 + level + slope * (sentence / sizes[response] - 0.6)
    supported = generator.random(len(response)) < 1 / (1 + np.exp(-odds))
    judged = generator.random(len(response)) < np.where(supported, 0.8, 0.4)
    labels = np.where(supported, 0, 1).astype(np.int8)
    codes = {SETTING: judged.astype(np.int8)}
    return claims_of_columns(response, sentence, np.repeat(sizes, sizes), labels, codes)


def test_trends_are_those_of_statsmodels_on_the_same_columns() -> None:
    import statsmodels.api as sm

    records = random_records(3, 40)
    table = position_trends(records)
    rows = [record for record in records if record.label != "IR" and record.none_of_the_above]
    position = np.array([record.sentence / record.sentences for record in rows])
    true = np.array([record.label == "S" for record in rows])
    judged = np.array([record.none_of_the_above == "true" for record in rows])
    response = np.unique([record.response for record in rows], return_inverse=True)[1]
    every = np.ones(len(rows), dtype=np.bool_)
    for at, (outcome, among) in enumerate(
        ((true, every), (judged, every), (judged, true), (~judged, ~true))
    ):
        fit = sm.GEE(
            outcome[among].astype(float),
            sm.add_constant(position[among]),
            groups=response[among],
            family=sm.families.Binomial(),
        ).fit(cov_type="bias_reduced")
        # Both solve the same equations, each to its own tolerance.
        assert table["slope"][at] == pytest.approx(fit.params[1], abs=1e-8)
        assert table["standard_error"][at] == pytest.approx(fit.bse[1], abs=1e-8)
        assert table["n_claims"][at] == among.sum()


@pytest.mark.parametrize("n_draws", [40, pytest.param(100, marks=pytest.mark.nightly)])
def test_claims_without_a_trend_are_rejected_at_the_nominal_rate(n_draws: int) -> None:
    generator = np.random.default_rng(1)
    tables = [position_trends(drawn(generator, 20)) for _ in range(n_draws)]
    rejected = np.array([np.asarray(table["p_value"]) < 0.05 for table in tables])
    # 0.05 plus three standard errors of a share.
    assert rejected.mean(axis=0).max() < 0.05 + 3 * (0.05 * 0.95 / n_draws) ** 0.5


@pytest.mark.parametrize(
    ("n_draws", "least"), [(10, 7), pytest.param(20, 16, marks=pytest.mark.nightly)]
)
def test_a_trend_is_found_and_its_interval_covers_it(n_draws: int, least: int) -> None:
    generator = np.random.default_rng(2)
    tables = [position_trends(drawn(generator, 100, slope=-2.0)) for _ in range(n_draws)]
    assert all(table["p_value"][0] < 0.05 for table in tables)
    # Averaged over levels of standard deviation 1, slopes shrink by about (1 + 0.346)^-1/2.
    marginal = -2.0 / 1.346**0.5
    covered = [table["lower"][0] < marginal < table["upper"][0] for table in tables]
    # Of 20 intervals at 95 % fewer than 16 hold the truth three times in 1000 tries, of 10 fewer
    # than 7 once.
    assert sum(covered) >= least


def test_undefined_trends_have_a_status() -> None:
    def statuses(labels: str, n_responses: int = 4) -> list[str]:
        each = labels.split()
        records = [
            claim(f"r{number}", at, len(each), label, None, None, "true")
            for number in range(n_responses)
            for at, label in enumerate(each, 1)
        ]
        return [str(status) for status in position_trends(records)["status"]]

    assert statuses("S NS", n_responses=2)[0] == TrendStatus.FEW
    assert statuses("S S")[0] == TrendStatus.CONSTANT
    assert statuses("S NS")[0] == TrendStatus.SEPARATED
    assert statuses("S NS S NS")[:2] == [TrendStatus.OK, TrendStatus.CONSTANT]
