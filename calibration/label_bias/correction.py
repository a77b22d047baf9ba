"""Division by a bias: contextual calibration and batch calibration.

A model's answers to questions without content, or its mean answer to many, tell which labels it
prefers whatever it reads. With p the probabilities of k labels and b the preference, the corrected
ones are p'_j = (p_j / b_j) / sum over i of p_i / b_i. On the scale of log-probabilities that takes
away a constant from each label, so that the order of two answers by the odds of two labels stays.

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
    """Mean probability of each label over n answers and one that is spread evenly, (k,).

    The even answer bounds how far a few answers can move others: division by the mean of n answers
    multiplies the odds of two labels by at most k n + 1.

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
    """`smoothed_mean` for each answer over the answers of other groups, (n, k).

    Args:
        p: probabilities of k labels in n answers, (n, k).
        groups: group of each answer, (n,); None makes each answer its own.

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

    Computed from logarithms, so that nothing overflows. A label of probability 0 keeps it. Where
    every label that an answer gives a chance has a bias of 0, nothing is known of its preference,
    and the answer stays as it is; beside others such a label would take all, so that a bias of 0
    is refused there.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        bias: preference for each label, at least 0: (k,) for all answers, or (n, k).

    Raises:
        InputError: as `label_probabilities`, for a bias of another shape, that is negative or no
            number, or that is 0 for a label that an answer gives a chance beside others.
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
