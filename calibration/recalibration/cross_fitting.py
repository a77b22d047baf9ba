"""Cross-fitting: recalibration of every atom by a map that was learned without its response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from calibration.folds import folds_of, response_folds
from calibration.grouping import group_by_response
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.validation import (
    Floats,
    Integers,
    check_lengths,
    probability_array,
    weight_array,
)
from factormodels.errors import InputError

__all__ = ["CrossFitted", "cross_fit", "response_folds"]


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Cross-fitted recalibrated probabilities.

    Attributes:
        p: float64 (n,), recalibrated probabilities.
        fold: int64 (n,), the fold of each atom's response.
        estimators: the fitted estimator of each fold, learned from all other folds.
        n_unlabeled: number of atoms without a label.
    """

    p: Floats
    fold: Integers
    estimators: tuple[Any, ...]
    n_unlabeled: int = 0


def cross_fit(
    estimator: Any,
    p: ArrayLike,
    y: Any,
    responses: Any,
    n_folds: int = 5,
    seed: int = 0,
    *,
    weights: ArrayLike | None = None,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> CrossFitted:
    """Recalibrate probabilities by cross-fitting over folds of responses.

    Args:
        estimator: a recalibrator, or any scikit-learn estimator or pipeline whose `predict`
            returns probabilities. It is cloned, not changed. It receives X of shape (n, 1), and
            responses if it `takes_responses`, like `BestRecalibrator`.
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        responses: response ids (n,).
        n_folds: number of folds, from 2 to the number of responses.
        seed: seed of the assignment of responses to folds.
        weights: weights (n,), the number of atoms that each represents; None for 1 each. They are
            passed to `fit` as `sample_weight`.
        unlabeled: treatment of atoms without a label, as in `apply_policy`. Excluded atoms are not
            used for fitting, but are recalibrated too.

    Raises:
        InputError: for bad arrays, different lengths, no labeled atom, too many folds, or a
            fold whose other folds do not determine the map.
    """
    atoms = labeled_atoms(p, y, unlabeled)
    probabilities, grouping = probability_array(p), group_by_response(responses)
    check_lengths(p=probabilities.size, responses=grouping.index.size)
    labels = np.full(probabilities.size, np.nan)
    labels[atoms.kept] = atoms.y
    fold = folds_of(grouping, n_folds, seed)
    counts = None if weights is None else weight_array(weights, probabilities.size)
    column = probabilities[:, np.newaxis]
    recalibrated = np.empty_like(probabilities)
    estimators = []
    for number in range(int(fold.max()) + 1):
        inside = fold == number
        taught = ~inside & atoms.kept
        if not taught.any():
            raise InputError(
                f"fold {number} of {n_folds}: no atom of the other folds has a label; use fewer "
                "folds or another seed"
            )
        learned = clone(estimator)
        extra: dict[str, Any] = {} if counts is None else {"sample_weight": counts[taught]}
        if getattr(learned, "takes_responses", False):
            extra["responses"] = grouping.index[taught]
        try:
            learned.fit(column[taught], labels[taught], **extra)
        except InputError as error:
            raise InputError(
                f"fold {number} of {n_folds}: {error}; use fewer folds or another seed"
            ) from error
        recalibrated[inside] = learned.predict(column[inside])
        estimators.append(learned)
    return CrossFitted(recalibrated, fold, tuple(estimators), atoms.n_unlabeled)
