"""Scores of the ranking of true and false atoms by probability, regardless of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Estimate, ScoreStatus, undefined
from calibration.forecasts import Sample, dot, pooled, with_ties
from calibration.grouping import Grouping
from calibration.intervals import IntervalMethod
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.validation import Floats, Integers


def auroc(
    p: ArrayLike,
    y: Any,
    *,
    weights: ArrayLike | None = None,
    folds: Any = None,
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> float:
    """Area under the ROC curve: P(p of a true atom > p of a false atom), with ties counted half.

    The area is nan if all labels are equal, or all labels within every fold.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabeled.
        weights: weights (n,), the number of atoms that each represents; None for 1 each.
        folds: fold of each atom, (n,), if `p` is cross-fitted. Only atoms of the same fold are then
            compared. A fold with many true atoms leaves few to the other folds, so that the map
            learned from these gives it low probabilities. Pooled folds would therefore rank even
            uninformative probabilities below chance.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, or no labeled atom.
    """
    if folds is None:
        return _ranking_scores(pooled(p, y, weights, unlabeled))[0].value
    atoms = labeled_atoms(p, y, unlabeled)
    fold, counts = atoms.grouping(folds, "folds").index, atoms.weights(weights)
    ordered = pairs = 0.0
    for number in range(int(fold.max()) + 1):
        in_fold = fold == number
        if counts[in_fold].any():
            inside = concordance(pooled(atoms.p[in_fold], atoms.y[in_fold], counts[in_fold]))
            ordered, pairs = ordered + inside[0], pairs + inside[1]
    return ordered / pairs if pairs > 0 else float("nan")


def auprc(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabeled: str = LabelPolicy.EXCLUDE
) -> float:
    """Average precision, the area under the precision-recall curve as a step function.

    It is the sum over descending thresholds of precision times the increase in recall, as in
    scikit-learn's ``average_precision_score``; nan if no atom is true. Arguments and errors are as
    in `auroc`.
    """
    return _ranking_scores(pooled(p, y, weights, unlabeled))[1].value


def _ranking_scores(sample: Sample, _: SampleSettings | None = None) -> tuple[Estimate, Estimate]:
    """AUROC and average precision."""
    area = undefined("auroc", ScoreStatus.ONE_CLASS)
    if sample.total_true <= 0:
        return area, undefined("auprc", ScoreStatus.ONE_CLASS)
    true_from = sample.total_true - sample.true_below
    weight_from = sample.total - sample.weight_below
    gained = sample.true > 0
    precision = np.divide(true_from, weight_from, out=np.zeros_like(true_from), where=gained)
    if sample.total_false > 0:
        ordered, pairs = concordance(sample)
        area = Estimate("auroc", ordered / pairs)
    return area, Estimate("auprc", dot(sample.true, precision) / sample.total_true)


def clustered_auroc(
    methods: Sequence[Floats],
    y: Floats,
    grouping: Grouping,
    folds: Integers | None = None,
    weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """AUROC of methods on the same claims, with covariance over responses (Obuchowski 1997).

    If every response has a single claim, the covariance equals that of DeLong, DeLong and
    Clarke-Pearson 1988. With folds, pairs are compared within folds and summed; the same
    linearization applies.

    Args:
        methods: probabilities (n_claims,) of each method.
        y: float64 (n_claims,), labels 1 and 0.
        grouping: grouping of the claims by response.
        folds: int64 (n_claims,), fold of each claim, or None for one fold.
        weights: weights, float64 (n_claims,), or None for 1 each.

    Returns:
        AUROC, float64 (n_methods,), nan if all labels are equal; and its covariance, (n_methods,
        n_methods), nan if fewer than two responses have true claims or fewer than two false claims.
    """
    true = y == 1
    weight = np.ones(y.size) if weights is None else weights
    fold = np.zeros(y.size, dtype=np.int64) if folds is None else folds
    inside = [fold == number for number in np.unique(fold)]
    n_pairs = float(
        sum(weight[in_fold & true].sum() * weight[in_fold & ~true].sum() for in_fold in inside)
    )
    n_responses = len(grouping.responses)
    if n_pairs == 0:
        nothing = np.full(len(methods), np.nan)
        return nothing, np.outer(nothing, nothing)
    value, parts = [], []
    for p in map(with_ties, methods):
        # Weight of the claims of the other class with which each claim is correctly ordered.
        ordered, others = np.zeros(y.size), np.zeros(y.size)
        for in_fold in inside:
            for of_class, sign in ((true, 1.0), (~true, -1.0)):
                here, there = in_fold & of_class, in_fold & ~of_class
                order = np.argsort(sign * p[there])
                rivals = (sign * p[there])[order]
                reached = np.append(0.0, np.cumsum(weight[there][order]))
                below = np.searchsorted(rivals, sign * p[here], side="left")
                up_to = np.searchsorted(rivals, sign * p[here], side="right")
                ordered[here], others[here] = (reached[below] + reached[up_to]) / 2, reached[-1]
        value.append(float((weight * ordered)[true].sum()) / n_pairs)
        surplus = weight * (ordered - value[-1] * others) / n_pairs
        parts.append((grouping.sums(surplus * true), grouping.sums(surplus * ~true)))
    of_true, of_false = (np.stack(part) for part in zip(*parts, strict=True))
    with_true, with_false = (
        int((grouping.sums(weight * each) > 0).sum()) for each in (true, ~true)
    )
    if min(with_true, with_false, n_responses) < 2:
        return np.array(value), np.full((len(methods),) * 2, np.nan)
    crossed = of_true @ of_false.T
    covariance = (
        of_true @ of_true.T * (with_true / (with_true - 1))
        + of_false @ of_false.T * (with_false / (with_false - 1))
        + (crossed + crossed.T) * (n_responses / (n_responses - 1))
    )
    return np.array(value), covariance


def concordance(sample: Sample) -> tuple[float, float]:
    """Weight of the correctly ordered pairs of a true and a false atom, and of all such pairs."""
    false_below = sample.weight_below - sample.true_below
    ordered = dot(sample.true, false_below) + dot(sample.true, sample.false) / 2
    return ordered, sample.total_true * sample.total_false


FAMILY = (
    ScoreDefinition(
        name="auroc",
        title="AUROC",
        meaning="area under the ROC curve",
        higher_is_better=True,
        interval=IntervalMethod.OBUCHOWSKI,
        of_sample=_ranking_scores,
        within_folds=lambda judged: auroc(
            judged.p, judged.y, weights=judged.weights, folds=judged.folds
        ),
        usual=6,
    ),
    ScoreDefinition(
        name="auprc",
        title="AUPRC",
        meaning="average precision",
        higher_is_better=True,
        interval=IntervalMethod.JACKKNIFE,
        of_sample=_ranking_scores,
    ),
)
