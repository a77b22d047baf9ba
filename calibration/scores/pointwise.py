"""Scores of probabilities against labels, pooled over atoms.

Every function takes probabilities `p`, (n,) in [0, 1], and labels `y`, (n,) of True and False (or
1 and 0), all of them labelled: `calibration.apply_policy` decides first what unlabelled atoms
count as. All raise InputError for bad probabilities, labels other than those, an unlabelled atom,
lengths that differ, and empty input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.grouping import group_by_response
from calibration.scores.measures import DECISION_TOLERANCE, verdicts
from calibration.scores.proper import LOSSES
from calibration.validation import (
    Floats,
    check_lengths,
    decision_tolerance,
    labelled_pairs,
    weight_array,
)


def brier(p: ArrayLike, y: Any, *, weights: ArrayLike | None = None) -> float:
    """Return the Brier score, the mean of (p - y)^2: 0 is perfect, 1/4 is p = 1/2 throughout.

    Half of the sum over both classes in Brier 1950, equation 2. `weights`, (n,), say how many atoms
    each counts as.
    """
    return _mean_loss("brier", p, y, weights)


def log_loss(p: ArrayLike, y: Any, *, weights: ArrayLike | None = None) -> float:
    """Return the mean of -ln of the probability given to the label, in nats: 0 is perfect.

    Nothing is clipped: one certain and wrong forecast makes the loss infinite. `weights`, (n,), say
    how many atoms each counts as.
    """
    return _mean_loss("log_loss", p, y, weights)


def spherical(p: ArrayLike, y: Any, *, weights: ArrayLike | None = None) -> float:
    """Return the mean of 1 - q/sqrt(p^2 + (1-p)^2), q the probability given to the label.

    One minus the spherical score, which is the cosine between forecast and label (Gneiting and
    Raftery 2007, example 2, with alpha = 2): 0 is perfect, 1 is certain and wrong throughout.
    `weights`, (n,), say how many atoms each counts as.
    """
    return _mean_loss("spherical", p, y, weights)


def _mean_loss(name: str, p: ArrayLike, y: Any, weights: ArrayLike | None) -> float:
    probabilities, labels = labelled_pairs(p, y)
    counts = weight_array(weights, probabilities.size)
    if_true, if_false = LOSSES[name](probabilities)
    # Where a weight is 0 an infinite loss counts nothing.
    terms = np.where(counts > 0, np.where(labels == 1, if_true, if_false), 0.0)
    return float(np.dot(terms, counts) / counts.sum())


def accuracy(p: ArrayLike, y: Any, *, tolerance: float = DECISION_TOLERANCE) -> float:
    """Return the share of atoms whose verdict is their label.

    The verdict is true if the atom is supported, P > 1/2; contradicted and undecided atoms
    (|P - 1/2| up to `tolerance`) are judged not supported, hence false.
    """
    probabilities, labels = labelled_pairs(p, y)
    supported = verdicts(probabilities, decision_tolerance(tolerance)) > 0
    return float((supported == (labels == 1)).mean())


def f1_true(p: ArrayLike, y: Any, *, tolerance: float = DECISION_TOLERANCE) -> float:
    """Return F1 of the class of true atoms, 2 TP/(2 TP + FP + FN) (FactReasoner, section 4).

    Verdicts are those of `accuracy`. Not defined, nan, if no atom is true and none supported.
    """
    probabilities, labels = labelled_pairs(p, y)
    supported = verdicts(probabilities, decision_tolerance(tolerance)) > 0
    true = labels == 1
    both = int((supported & true).sum())
    total = int(supported.sum()) + int(true.sum())
    return 2 * both / total if total else float("nan")


def precision_errors(
    p: ArrayLike, y: Any, responses: Any, *, tolerance: float = DECISION_TOLERANCE
) -> Floats:
    """Return |Pr - Pr*| of each response, (n_responses,), in order of first appearance.

    Pr is the share of a response's atoms that are supported and Pr* the share that is labelled
    true, both over the same, labelled, atoms.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False.
        responses: response ids (n,).
        tolerance: an atom with |P - 1/2| up to this is undecided, hence not supported.
    """
    probabilities, labels = labelled_pairs(p, y)
    grouping = group_by_response(responses)
    check_lengths(p=probabilities.size, responses=grouping.index.size)
    supported = verdicts(probabilities, decision_tolerance(tolerance)) > 0
    # Counts are subtracted before they are divided, so that equal precisions differ by 0 exactly.
    return np.abs(grouping.sums(supported) - grouping.sums(labels)) / grouping.sizes


def mean_absolute_error_of_precision(
    p: ArrayLike, y: Any, responses: Any, *, tolerance: float = DECISION_TOLERANCE
) -> float:
    """Return MAE, the mean over responses of |Pr - Pr*| (FactReasoner, section 4, equation 2).

    Arguments are those of `precision_errors`.
    """
    return float(precision_errors(p, y, responses, tolerance=tolerance).mean())
