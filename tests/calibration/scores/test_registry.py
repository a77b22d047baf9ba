"""One vocabulary of scores: the same name, number and direction wherever a score is given."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

from calibration import compare_methods, score_table, summarise
from calibration.intervals import IntervalMethod
from calibration.scores import MEASURES, REGISTRY, SCORES, Summary, estimate_scores
from calibration.scores.registry import DEFAULT_MEASURES
from tests.calibration.coverage_simulation import draw

P, Y, RESPONSES = draw(np.random.default_rng(7), 40)


def test_every_name_is_in_the_registry_once() -> None:
    assert {*SCORES, *MEASURES} == set(REGISTRY)
    assert set(SCORES) & set(MEASURES) == {"brier", "log_loss"}
    assert set(DEFAULT_MEASURES) <= set(MEASURES)
    assert set(MEASURES) <= {field.name for field in fields(Summary)}
    titles = [score.title for score in REGISTRY.values()]
    assert len(set(titles)) == len(titles)


def test_a_score_is_the_same_number_everywhere() -> None:
    summary = summarise(P, Y, RESPONSES)
    tested = compare_methods({"own": P, "half": P / 2}, Y, RESPONSES, n_resamples=10)
    for row in score_table(P, Y, n_bootstrap=0, scores=["brier", "log_loss"]):
        # Sums in another order: a few roundings of doubles.
        assert row.value == pytest.approx(getattr(summary, row.score), rel=1e-12)
        assert row.value == pytest.approx(tested.cell("own", row.score).estimate, rel=1e-12)


def test_a_score_that_needs_labels_has_none_without() -> None:
    bare = summarise(P, None, RESPONSES)
    assert {name for name in MEASURES if math.isnan(getattr(bare, name))} == {
        name for name in MEASURES if REGISTRY[name].needs_labels
    }
    assert all(REGISTRY[name].needs_labels for name in SCORES)


def test_the_better_way() -> None:
    good = np.where(Y, 0.9, 0.1)
    values = [
        {
            **{name: getattr(summarise(p, Y, RESPONSES), name) for name in MEASURES},
            **{row.score: row.value for row in score_table(p, Y, n_bootstrap=0)},
        }
        for p in (good, 1 - good)
    ]
    for name, score in REGISTRY.items():
        if score.higher_is_better is None or not score.needs_labels:
            continue
        gain = values[0][name] - values[1][name]
        assert (gain > 0) == score.higher_is_better, name


def test_a_score_has_the_same_interval_everywhere() -> None:
    summary = estimate_scores(P, Y, RESPONSES)
    tested = compare_methods({"own": P, "half": P / 2}, Y, RESPONSES, n_resamples=10)
    for row in score_table(P, Y, responses=RESPONSES, scores=["brier", "log_loss"]):
        assert row.method == REGISTRY[row.score].interval is IntervalMethod.DELTA
        cell = tested.cell("own", row.score)
        # Sums in another order: a few roundings of doubles.
        own = summary[row.score]
        assert row.interval == pytest.approx((own.lower, own.upper), rel=1e-12)
        assert row.interval == pytest.approx((cell.lower, cell.upper), rel=1e-12)
