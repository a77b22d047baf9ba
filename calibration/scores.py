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
from calibration.measures import DECISION_TOLERANCE, verdicts
from calibration.validation import Floats, check_lengths, decision_tolerance, labelled_pairs


def brier(p: ArrayLike, y: Any) -> float:
    """Return the Brier score, the mean of (p - y)^2: 0 is perfect, 1/4 is p = 1/2 throughout.

    Half of the sum over both classes in Brier 1950, equation 2.
    """
    probabilities, labels = labelled_pairs(p, y)
    difference = probabilities - labels
    return float(np.dot(difference, difference) / difference.size)


def log_loss(p: ArrayLike, y: Any) -> float:
    """Return the mean of -ln of the probability given to the label, in nats: 0 is perfect.

    Nothing is clipped: one certain and wrong forecast makes the loss infinite.
    """
    probabilities, labels = labelled_pairs(p, y)
    true = labels == 1
    with np.errstate(divide="ignore"):
        # log1p keeps what 1 - p would round away for p near 0.
        terms = np.where(true, np.log(probabilities), np.log1p(-probabilities))
    return float(np.abs(terms).mean())


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
