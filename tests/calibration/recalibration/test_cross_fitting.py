"""Cross-fitting: no response is on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from calibration.recalibration import (
    IsotonicRecalibrator,
    PlattRecalibrator,
    cross_fit,
    response_folds,
)
from calibration.scores.families.pointwise import brier
from factormodels.errors import InputError
from tests.calibration.coverage_simulation import draw
from tests.refusals import refused


class Remembering(BaseEstimator):  # type: ignore[misc]
    """An estimator that remembers the probabilities it was fitted to, and gives them back."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembering:
        self.seen_, self.labels_, self.weights_ = set(X[:, 0].tolist()), y, sample_weight
        return self

    def predict(self, X: Any) -> Any:
        return np.array([float(value in self.seen_) for value in X[:, 0].tolist()])


def test_no_response_is_split() -> None:
    generator = np.random.default_rng(0)
    responses = generator.permutation(np.repeat([f"r{i}" for i in range(23)], 7))
    # Atoms of one response have one probability, so that a fit which saw it would know.
    p = np.array([int(response[1:]) / 23 for response in responses])
    y = generator.random(p.size) < p
    for seed in range(5):
        fitted = cross_fit(Remembering(), p, y, responses, n_folds=5, seed=seed)
        assert fitted.p.tolist() == [0.0] * p.size
        by_response = {
            response: set(fitted.fold[responses == response].tolist()) for response in responses
        }
        assert all(len(folds) == 1 for folds in by_response.values())
        sizes = np.bincount([folds.pop() for folds in by_response.values()])
        assert sorted(sizes.tolist()) == [4, 4, 5, 5, 5]
        assert len(fitted.estimators) == 5


def test_every_fold_is_predicted_by_the_others() -> None:
    p, y, responses = draw(np.random.default_rng(1), 60)
    estimator = PlattRecalibrator()
    fitted = cross_fit(estimator, p, y, responses, n_folds=4, seed=2)
    assert not hasattr(estimator, "slope_")
    assert fitted.fold.tolist() == response_folds(responses, 4, 2).tolist()
    for fold, learned in enumerate(fitted.estimators):
        inside = fitted.fold == fold
        again = PlattRecalibrator().fit(p[~inside], y[~inside])
        assert (learned.slope_, learned.intercept_) == (again.slope_, again.intercept_)
        assert fitted.p[inside].tolist() == again.predict(p[inside]).tolist()


def test_unlabeled_atoms_teach_nothing_and_are_recalibrated() -> None:
    p, y, responses = draw(np.random.default_rng(4), 60)
    bare: list[Any] = [None if at % 3 == 0 else label for at, label in enumerate(y)]
    kept = np.array([label is not None for label in bare])
    fitted = cross_fit(PlattRecalibrator(), p, bare, responses, n_folds=4, seed=2)
    assert fitted.n_unlabeled == (~kept).sum()
    for fold, learned in enumerate(fitted.estimators):
        inside = fitted.fold == fold
        again = PlattRecalibrator().fit(p[~inside & kept], y[~inside & kept])
        assert learned.slope_ == again.slope_
        assert fitted.p[inside].tolist() == again.predict(p[inside]).tolist()
    with pytest.raises(InputError, match=r"y\[0\] is unlabeled"):
        cross_fit(PlattRecalibrator(), p, bare, responses, unlabeled="error")
    with pytest.raises(InputError, match="no atom of the other folds has a label"):
        cross_fit(IsotonicRecalibrator(), [0.2, 0.7], [1, None], ["a", "b"], n_folds=2)


def test_folds_are_seeded() -> None:
    responses = np.repeat(np.arange(50), 3)
    assert response_folds(responses, 5, 1).tolist() == response_folds(responses, 5, 1).tolist()
    assert response_folds(responses, 5, 1).tolist() != response_folds(responses, 5, 2).tolist()


def test_cross_fitting_shows_overfitting_that_fitting_hides() -> None:
    p, y, responses = draw(np.random.default_rng(3), 60)
    inside = brier(IsotonicRecalibrator().fit(p, y).predict(p), y)
    outside = brier(cross_fit(IsotonicRecalibrator(), p, y, responses).p, y)
    assert inside < outside


def test_weights_and_other_estimators() -> None:
    p, y, responses = draw(np.random.default_rng(4), 40)
    weights = np.random.default_rng(4).integers(1, 4, p.size).astype(float)
    weighted = cross_fit(Remembering(), p, y, responses, weights=weights)
    for fold, learned in enumerate(weighted.estimators):
        assert learned.weights_.tolist() == weights[weighted.fold != fold].tolist()
    assert all(e.weights_ is None for e in cross_fit(Remembering(), p, y, responses).estimators)
    chain = make_pipeline(PlattRecalibrator(), IsotonicRecalibrator())
    assert cross_fit(chain, p, y, responses).p.shape == p.shape
    # An estimator whose predictions are labels has them taken as such.
    assert set(cross_fit(LogisticRegression(), p, y, responses).p.tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_folds": 1}, "n_folds is 1; give a whole number of at least 2"),
        ({"n_folds": 4}, "n_folds is 4, but there are 3 responses, which are never split"),
        ({"seed": -1}, "seed is -1"),
        ({"responses": ["a"]}, "lengths differ: p has 6, responses has 1"),
        ({"responses": None}, "responses is None"),
        ({"weights": [1, 2]}, "weights has 2"),
        ({"p": [0.1, 0.2, 0.3, 0.4, 0.5, 1.5]}, r"p\[5\] is 1.5"),
        # Without the first response, all labels are true.
        ({"y": [0, 0, 1, 1, 1, 1]}, r"fold \d of 3: y has one class: .* fewer folds or another"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "p": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        "y": [0, 1, 0, 1, 0, 1],
        "responses": ["a", "a", "b", "b", "c", "c"],
        "n_folds": 3,
    }
    refused(message, cross_fit, PlattRecalibrator(), **given | arguments)
