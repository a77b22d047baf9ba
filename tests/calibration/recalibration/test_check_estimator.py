"""scikit-learn's own checks of estimators.

They feed any numbers, in several columns, and labels of several values, where recalibrators take
one column of probabilities and labels of true and false. The checks that ask for more than that
are run on a subclass which maps such input to ours; everything else of it is the estimator's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.validation import column_or_1d, validate_data

from calibration.recalibration import (
    RECALIBRATORS,
    BetaRecalibrator,
    HistogramRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Recalibrator,
    TemperatureRecalibrator,
    VennAbersRecalibrator,
)
from calibration.scores.logistic import sigmoid
from calibration.validation import Floats

PARTED = "its clusters are parted at a threshold on p, where no map of this family is most likely"

NOT_APPLICABLE: dict[str, dict[str, str]] = {
    "temperature": dict.fromkeys(
        (
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
        ),
        PARTED,
    ),
    "beta": dict.fromkeys(
        (
            "check_pipeline_consistency",
            "check_estimators_pickle",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
        ),
        PARTED,
    ),
}
"""By estimator, the checks whose data it refuses, with the reason; all others must pass."""


class AnyNumbers:
    """Takes the first column of any numbers, and labels of any number."""

    def _probabilities(self, X: Any, *, reset: bool) -> Floats:
        # Numbers of up to several hundred stay apart.
        return sigmoid(validate_data(self, X, reset=reset, dtype=np.float64)[:, 0] / 50)

    def _labels(self, y: Any) -> Floats:
        numbers = np.abs(np.asarray(column_or_1d(y, warn=True), dtype=np.float64))
        labels: Floats = np.floor(3 * numbers) % 2
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        return tags


class AnyPlatt(AnyNumbers, PlattRecalibrator):
    pass


class AnyTemperature(AnyNumbers, TemperatureRecalibrator):
    pass


class AnyBeta(AnyNumbers, BetaRecalibrator):
    pass


class AnyIsotonic(AnyNumbers, IsotonicRecalibrator):
    pass


class AnyHistogram(AnyNumbers, HistogramRecalibrator):
    pass


class AnyVennAbers(AnyNumbers, VennAbersRecalibrator):
    pass


OF_ANY_NUMBERS: dict[str, type[Recalibrator]] = {
    "platt": AnyPlatt,
    "temperature": AnyTemperature,
    "beta": AnyBeta,
    "isotonic": AnyIsotonic,
    "histogram": AnyHistogram,
    "venn_abers": AnyVennAbers,
}


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_the_estimator_as_it_is(name: str) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    # scikit-learn says that it skips what needs several columns, as for its IsotonicRegression.
    with pytest.warns(UserWarning, match="Can't test estimator"):
        results = check_estimator(RECALIBRATORS[name](), on_skip=None)
    assert [result["status"] for result in results].count("passed") >= 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OF_ANY_NUMBERS)
def test_the_estimator_on_any_numbers(name: str) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    expected = NOT_APPLICABLE.get(name, {})
    results = check_estimator(
        OF_ANY_NUMBERS[name](), expected_failed_checks=expected, on_skip=None, on_fail=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    refused = {r["check_name"] for r in results if r["status"] == "xfail"}
    # A check that passes after all must leave the list.
    assert refused == set(expected)
    assert [result["status"] for result in results].count("passed") > 50
