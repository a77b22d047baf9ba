"""The recalibrator that is chosen by cross-validation, and the choice in nested folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration.folds import response_folds
from calibration.recalibration import (
    RECALIBRATORS,
    BestRecalibrator,
    IsotonicRecalibrator,
    cross_fit,
)
from calibration.scores import brier, log_loss
from tests.calibration.recalibration.test_recalibrators import overconfident
from tests.refusals import refused

CANDIDATES = ("none", "platt", "temperature", "isotonic")


def clustered(seed: int, n_responses: int = 40) -> tuple[Any, Any, Any]:
    p, y = overconfident(seed, 6 * n_responses)
    return p, y, np.repeat(np.arange(n_responses), 6)


def test_scores_are_those_of_cross_fitting() -> None:
    p, y, responses = clustered(0)
    best = BestRecalibrator(CANDIDATES, n_folds=4, seed=3).fit(p, y, responses=responses)
    expected = {"none": log_loss(p, y)}
    for name in CANDIDATES[1:]:
        fitted = cross_fit(RECALIBRATORS[name](), p, y, responses, n_folds=4, seed=3)
        expected[name] = log_loss(fitted.p, y)
    # Sums in another order, and the end of Newton's method.
    assert best.scores_ == pytest.approx(expected, rel=1e-9)
    assert best.chosen_ == min(expected, key=lambda name: expected[name])
    whole = RECALIBRATORS[best.chosen_]().fit(p, y)
    np.testing.assert_allclose(best.predict(p), whole.predict(p), atol=1e-9)


def test_a_weight_is_a_number_of_atoms_of_its_response() -> None:
    p, y, responses = clustered(4)
    weights = np.random.default_rng(4).integers(1, 4, p.size)
    weighted = BestRecalibrator(CANDIDATES).fit(p, y, weights, responses=responses)
    repeated = BestRecalibrator(CANDIDATES).fit(
        *(np.repeat(each, weights) for each in (p, y)), responses=np.repeat(responses, weights)
    )
    # Sums in another order, and the end of Newton's method.
    assert weighted.scores_ == pytest.approx(repeated.scores_, rel=1e-9)
    assert weighted.chosen_ == repeated.chosen_ != "none"
    np.testing.assert_allclose(weighted.predict(p), repeated.predict(p), atol=1e-9)


def test_calibrated_probabilities_are_not_changed() -> None:
    generator = np.random.default_rng(1)
    p = generator.random(5000)
    y = generator.random(5000) < p
    best = BestRecalibrator(("isotonic", "histogram", "none")).fit(p, y)
    assert best.chosen_ == "none"
    assert best.best_ is None
    assert best.predict(p).tolist() == p.tolist()


def test_nested_folds_choose_without_the_atoms_they_are_judged_by() -> None:
    p, y, responses = clustered(2)
    nested = cross_fit(BestRecalibrator(CANDIDATES, seed=1), p, y, responses, n_folds=5, seed=2)
    fold = response_folds(responses, 5, 2)
    for number, estimator in enumerate(nested.estimators):
        outside = fold != number
        alone = BestRecalibrator(CANDIDATES, seed=1).fit(
            p[outside], y[outside], responses=responses[outside]
        )
        assert estimator.chosen_ == alone.chosen_
        assert estimator.scores_ == pytest.approx(alone.scores_)
        np.testing.assert_allclose(nested.p[~outside], alone.predict(p[~outside]), atol=1e-12)
    # Labels of the outer fold, turned round, leave its probabilities as they are.
    inside = fold == 0
    turned = cross_fit(
        BestRecalibrator(CANDIDATES, seed=1), p, y ^ inside, responses, n_folds=5, seed=2
    )
    np.testing.assert_array_equal(turned.p[inside], nested.p[inside])


def test_inner_folds_do_not_split_responses() -> None:
    # Every response has one probability and one label: isotonic regression learns responses by
    # heart, which folds of atoms reward and folds of responses punish.
    generator = np.random.default_rng(3)
    p = np.repeat(generator.random(60), 8)
    y = np.repeat(generator.random(60) < 0.5, 8)
    responses = np.repeat(np.arange(60), 8)
    split = BestRecalibrator(["isotonic"], loss="brier").fit(p, y)
    whole = BestRecalibrator(["isotonic"], loss="brier").fit(p, y, responses=responses)
    # Of labels that p tells nothing of, no map knows more than a Brier score of 1/4.
    assert split.scores_["isotonic"] < 0.235
    assert whole.scores_["isotonic"] > 0.25


def test_the_best_is_no_worse_than_a_bad_choice_on_new_atoms() -> None:
    p, y, responses = clustered(4, 200)
    new_p, new_y, _ = clustered(5, 600)
    best = BestRecalibrator(loss="brier").fit(p, y, responses=responses)
    losses = {
        "best": brier(best.predict(new_p), new_y),
        "none": brier(new_p, new_y),
        "isotonic": brier(IsotonicRecalibrator().fit(p, y).predict(new_p), new_y),
    }
    # 3600 new atoms: a difference of two losses has a standard error of about 0.001.
    assert losses["best"] < losses["none"] - 0.01
    assert losses["best"] < losses["isotonic"] + 0.003


def test_a_map_that_a_fold_cannot_determine_is_passed_over() -> None:
    p = [0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.8]
    y = [0, 0, 0, 1, 1, 1, 1]
    best = BestRecalibrator(("temperature", "platt"), n_folds=3).fit(p, y)
    assert best.scores_["temperature"] == float("inf")
    assert best.chosen_ == "platt"
    refused("none of temperature can be fitted in 3 folds",
            BestRecalibrator(("temperature",), n_folds=3).fit, p, y)  # fmt: skip


def test_bad_settings_are_named() -> None:
    p, y, _ = clustered(6)
    refused("candidates is .'best'.; give a list", BestRecalibrator(["best"]).fit, p, y)
    refused("candidates is 'platt'; give a list", BestRecalibrator("platt").fit, p, y)
    refused("loss is 'auroc'; choose one of brier", BestRecalibrator(loss="auroc").fit, p, y)
    refused("n_folds is 1", BestRecalibrator(n_folds=1).fit, p, y)
    refused("one response", BestRecalibrator().fit, p, y, responses=["x"] * p.size)
