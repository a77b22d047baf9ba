"""Base class of recalibrators, with input checks and scikit-learn's estimator interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from calibration.forecasts import Sample, pooled
from calibration.labels import LabelPolicy
from calibration.validation import Floats, label_array, probability_array
from factormodels.errors import InputError


class Recalibrator(ABC, TransformerMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A map from probabilities to probabilities, learned from labels.

    Attributes:
        n_features_in_: 1, for the column of probabilities.
        n_unlabeled_: number of atoms without a label in the fit.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: str = LabelPolicy.EXCLUDE,
    ) -> Self:
        """Learn the map.

        Args:
            X: probabilities in [0, 1], (n,) or (n, 1).
            y: labels (n,), True or False, None where unlabeled.
            sample_weight: weights (n,), the number of atoms that each represents; None for 1 each.
            unlabeled: treatment of atoms without a label, as in `apply_policy`.

        Raises:
            InputError: for bad arrays, different lengths, no labeled atom, bad settings, or
                labels that do not determine the map.

        Returns:
            The recalibrator.
        """
        p = self._probabilities(X, reset=True)
        sample = pooled(p, self._labels(y), sample_weight, unlabeled)
        self._learn(sample)
        self.n_unlabeled_ = sample.forecasts.n_unlabeled
        return self

    def predict(self, X: Any) -> Floats:
        """Recalibrate probabilities X, (n,) or (n, 1); return them with shape (n,).

        Raises:
            InputError: for bad probabilities.
            NotFittedError: before `fit`.
        """
        check_is_fitted(self)
        return self._map(self._probabilities(X, reset=False))

    def transform(self, X: Any) -> Floats:
        """Recalibrate probabilities X, (n,) or (n, 1); return them in the shape of X.

        Raises:
            InputError: for bad probabilities.
            NotFittedError: before `fit`.
        """
        recalibrated = self.predict(X)
        return recalibrated if np.asarray(X).ndim == 1 else recalibrated[:, np.newaxis]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the name of the column, for scikit-learn's pipelines."""
        check_is_fitted(self)
        if input_features is not None:
            return np.asarray(input_features, dtype=object)
        return np.asarray(getattr(self, "feature_names_in_", ["p"]), dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; like IsotonicRegression, X is a single column."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        # R^2 of calibrated probabilities is the share of variance that they explain; it may be low.
        tags.regressor_tags.poor_score = True
        return tags

    @abstractmethod
    def _learn(self, sample: Sample) -> None:
        """Fit the map and set the fitted attributes."""

    @abstractmethod
    def _map(self, p: Floats) -> Floats:
        """Recalibrate checked probabilities, (n,)."""

    def _probabilities(self, X: Any, *, reset: bool) -> Floats:
        if np.asarray(X).ndim == 1:
            if reset:
                self.n_features_in_ = 1
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            return probability_array(X, "X")
        columns = validate_data(self, X, reset=reset, dtype=np.float64)
        if columns.shape[1] != 1:
            raise InputError(
                f"X has shape {columns.shape}; give one column of probabilities, (n,) or (n, 1)"
            )
        return probability_array(columns[:, 0], "X")

    def _labels(self, y: Any) -> Floats:
        # Apart from `fit`, so that scikit-learn's checks can give other numbers than labels.
        return label_array(y)


def require_both_classes(sample: Sample) -> None:
    """Check that a sample has true and false atoms.

    Raises:
        InputError: if all labels are equal.
    """
    if sample.has_one_class:
        which = "true" if sample.total_true > 0 else "false"
        raise InputError(
            f"y has one class: all labels are {which}; give atoms of both classes to learn from"
        )
