"""Division by a bias: contextual calibration and batch calibration.

A model's preference for labels is estimated from its answers to questions without content, or from
its mean answer to many questions. With p the probabilities of k labels and b the preference, the
corrected probabilities are p'_j = (p_j / b_j) / sum over i of p_i / b_i. This subtracts a constant
from the log-probability of each label, and keeps the order of answers by the odds of two labels.

Sources: Zhao et al. 2021, "Calibrate Before Use", section 5, with W = diag(b)^-1 (b from questions
without content: contextual calibration); Zhou et al. 2024, "Batch Calibration", section 3, equation
4 (b the mean over a batch of questions).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration.label_bias.arrays import label_probabilities
from calibration.validation import Floats
from factormodels.errors import InputError


def mean_answer(p: ArrayLike) -> Floats:
    """Mean probability of each label over answers, (k,).

    Args:
        p: probabilities of k labels in n answers, (n, k).

    Raises:
        InputError: as `label_probabilities`.
    """
    mean: Floats = label_probabilities(p).mean(axis=0)
    return mean


def smoothed_mean(p: ArrayLike) -> Floats:
    """Mean probability of each label over n answers and a uniform answer, (k,).

    The uniform answer limits the correction: division by the mean multiplies the odds of two labels
    by at most k n + 1.

    Args:
        p: probabilities of k labels in n answers, (n, k).

    Raises:
        InputError: as `label_probabilities`.
    """
    array = label_probabilities(p)
    n, k = array.shape
    smoothed: Floats = (array.sum(axis=0) + 1 / k) / (n + 1)
    return smoothed


def left_out_means(p: ArrayLike, groups: ArrayLike | None = None) -> Floats:
    """`smoothed_mean` for each answer, over the answers of other groups, (n, k).

    Args:
        p: probabilities of k labels in n answers, (n, k).
        groups: group of each answer, (n,); None for a separate group per answer.

    Raises:
        InputError: as `label_probabilities`, or if `groups` has another length.
    """
    array = label_probabilities(p)
    n, k = array.shape
    names = np.arange(n) if groups is None else np.asarray(groups)
    if names.shape != (n,):
        raise InputError(f"groups has the shape {names.shape}; give one for each of the {n} rows")
    _, index = np.unique(names, return_inverse=True)
    sums, sizes = np.zeros((index.max() + 1, k)), np.bincount(index)
    np.add.at(sums, index, array)
    others = array.sum(axis=0) - sums[index]
    means: Floats = (np.maximum(others, 0.0) + 1 / k) / (n - sizes[index] + 1)[:, np.newaxis]
    return means


def without_bias(p: ArrayLike, bias: ArrayLike) -> Floats:
    """Probabilities divided by a bias and normalized, (n, k).

    The computation uses logarithms to avoid overflow. A probability of 0 stays 0. If all labels
    with positive probability in an answer have a bias of 0, the answer stays unchanged. If only
    some of them have, they would receive all probability, and the function raises an error.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        bias: preference for each label, at least 0: (k,) for all answers, or (n, k).

    Raises:
        InputError: as `label_probabilities`, for a bias of another shape, a negative or non-finite
            bias, or a bias of 0 for only some of the labels with positive probability.
    """
    array = label_probabilities(p)
    preference = np.asarray(bias, dtype=np.float64)
    if preference.shape not in (array.shape, array.shape[1:]):
        raise InputError(
            f"bias has the shape {preference.shape}; give one number for each of the "
            f"{array.shape[1]} labels"
        )
    if not (np.isfinite(preference) & (preference >= 0)).all():
        raise InputError("bias has a number that is negative or not finite; give mean answers")
    preference = np.broadcast_to(preference, array.shape)
    given = array > 0
    unknown = given & (preference == 0)
    free = ~(given & (preference > 0)).any(axis=1)
    if (beside := unknown.any(axis=1) & ~free).any():
        row = int(np.argmax(beside))
        column = int(np.argmax(unknown[row]))
        raise InputError(
            f"bias is 0 for label {column}, which p[{row}] gives {float(array[row, column]):g}; "
            "take the mean with smoothed_mean"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        logits = np.where(given, np.log(array) - np.log(preference), -np.inf)
    logits[free] = np.where(given[free], 0.0, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    corrected: Floats = weights / weights.sum(axis=1, keepdims=True)
    corrected[free] = array[free]
    return corrected
