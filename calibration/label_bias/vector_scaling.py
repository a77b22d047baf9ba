"""Vector scaling, with a weight and a constant for each label learned from labeled answers.

The logits of the corrected probabilities are w_j ln p_j + c_j. Weights of 1 with constants of 0
leave an answer unchanged; division by a bias b corresponds to w = 1 and c = -ln b.

Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.folds import response_folds
from calibration.label_bias.arrays import label_columns, label_probabilities
from calibration.label_bias.scores import LEAST_SHARE
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError
from factormodels.nouns import counted

PENALTY = 1.0
"""Weight of the squared distance from the identity; 1 is a prior of variance 1 on parameters."""

_MOST_STEPS = 100

_SMALL = 1e-10
"""Relative rounding of the loss, and the shortest part of a step that is tried."""

_LAST_STEP = 1e-8
"""Largest entry of the last step; the error after a step of Newton's method is about its square."""


@dataclass(frozen=True)
class VectorScaling:
    """A map of probabilities of k labels.

    Attributes:
        weights: weight of each label's log-probability, (k,).
        constants: constant of each label, (k,), summing to 0.
    """

    weights: tuple[float, ...]
    constants: tuple[float, ...]

    def apply(self, p: ArrayLike) -> Floats:
        """Corrected probabilities, (n, k).

        Args:
            p: probabilities of k labels in n answers, (n, k), raised to at least `LEAST_SHARE`.

        Raises:
            InputError: as `label_probabilities`, or for another number of labels.
        """
        array = label_probabilities(p)
        if array.shape[1] != len(self.weights):
            raise InputError(
                f"p has {counted(array.shape[1], 'label')} and the scaling "
                f"{counted(len(self.weights), 'label')}; give the labels that it was learned for"
            )
        return _softmax(_logs(array) * np.array(self.weights) + np.array(self.constants))


def fit_vector_scaling(p: ArrayLike, y: Any, *, penalty: float = PENALTY) -> VectorScaling:
    """Fit a scaling by maximum likelihood with a penalty toward the identity.

    Newton's method minimizes the convex sum of the log losses and penalty / 2 times the squared
    distance of weights from 1 and constants from 0. The penalty makes the solution unique even if a
    label never occurs.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        y: the column of the true label of each, (n,).
        penalty: weight of the penalty, above 0.

    Raises:
        InputError: as `label_probabilities` and `label_columns`, or for a penalty that is not
            above 0.
    """
    array = label_probabilities(p)
    n, k = array.shape
    columns = label_columns(y, n, k)
    if not (np.isfinite(penalty) and penalty > 0):
        raise InputError(f"penalty is {penalty!r}; give a number above 0")
    logs, true = _logs(array), np.eye(k)[columns]
    identity = np.concatenate([np.ones(k), np.zeros(k)])
    parameters = identity.copy()

    def loss(values: Floats) -> float:
        logits = logs * values[:k] + values[k:]
        top = logits.max(axis=1)
        totals = top + np.log(np.exp(logits - top[:, np.newaxis]).sum(axis=1))
        away = values - identity
        return float((totals - (logits * true).sum(axis=1)).sum() + penalty / 2 * away @ away)

    current = loss(parameters)
    for _ in range(_MOST_STEPS):
        q = _softmax(logs * parameters[:k] + parameters[k:])
        residual = q - true
        gradient = np.concatenate([(residual * logs).sum(axis=0), residual.sum(axis=0)])
        gradient += penalty * (parameters - identity)
        # The Hessian of an answer by logits is diag(q) - q q'; columns are (logs, 1) by label.
        design = np.concatenate([logs, np.ones((n, k))], axis=1)
        doubled = np.concatenate([q, q], axis=1)
        outer = -(doubled * design).T @ (doubled * design)
        for label in range(k):
            pair = design[:, [label, k + label]]
            at = np.ix_([label, k + label], [label, k + label])
            outer[at] += (pair * q[:, [label]]).T @ pair
        step = np.linalg.solve(outer + penalty * np.eye(2 * k), gradient)
        size = 1.0
        # Near the optimum the loss changes by its rounding alone, which must not shorten a step.
        rounding = _SMALL * max(1.0, abs(current))
        while (following := loss(parameters - size * step)) > current + rounding and size > _SMALL:
            size /= 2
        parameters = parameters - size * step
        current = following
        # The step decides and not the loss, which is flat at the optimum: parameters that are off
        # by 1e-5 change it by about 1e-10.
        if np.abs(step).max() <= _LAST_STEP:
            break
    constants = parameters[k:] - parameters[k:].mean()
    return VectorScaling(tuple(parameters[:k].tolist()), tuple(constants.tolist()))


@dataclass(frozen=True)
class CrossFittedScaling:
    """Cross-fitted corrected probabilities.

    Attributes:
        p: corrected probabilities, (n, k).
        folds: fold of each answer, int64 (n,).
        scalings: the scaling of each fold, learned from the other folds.
    """

    p: Floats
    folds: Integers
    scalings: Mapping[int, VectorScaling]


def cross_fit_scaling(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    n_folds: int = 10,
    penalty: float = PENALTY,
    seed: int = 0,
) -> CrossFittedScaling:
    """Correct each answer by a scaling learned from the responses of other folds.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        y: the column of the true label of each, (n,).
        responses: response of each answer, (n,); folds keep responses together.
        n_folds: number of folds, at most the number of responses.
        penalty: as `fit_vector_scaling`.
        seed: seed of the folds.

    Raises:
        InputError: as `fit_vector_scaling`, or with fewer than two responses.
    """
    array = label_probabilities(p)
    columns = label_columns(y, *array.shape)
    several = len(set(np.asarray(responses).tolist()))
    if several < 2:
        raise InputError("all answers are of one response; give those of two or more")
    folds = response_folds(responses, min(whole_number(n_folds, "n_folds", 2), several), seed)
    corrected, scalings = np.empty_like(array), {}
    for fold in np.unique(folds).tolist():
        out = folds == fold
        scalings[fold] = fit_vector_scaling(array[~out], columns[~out], penalty=penalty)
        corrected[out] = scalings[fold].apply(array[out])
    return CrossFittedScaling(corrected, folds, scalings)


def _logs(p: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(p, LEAST_SHARE))
    return logs


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax: Floats = weights / weights.sum(axis=1, keepdims=True)
    return softmax
