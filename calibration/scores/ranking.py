"""Ranking: how well probabilities tell true atoms from false ones, whatever their calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import Estimate, Sample, ScoreStatus, dot, pooled, undefined
from calibration.labels import LabelPolicy


def auroc(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabelled: str = LabelPolicy.EXCLUDE
) -> float:
    """Area under the ROC curve: P(p of a true atom > p of a false one), ties half.

    Not defined, nan, if all labels agree.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, or no labelled atom.
    """
    return ranking_scores(pooled(p, y, weights, unlabelled))["auroc"].value


def auprc(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabelled: str = LabelPolicy.EXCLUDE
) -> float:
    """Average precision, the area under the precision-recall curve as a step function.

    The sum over thresholds, from the highest p down, of precision times the recall gained, as in
    scikit-learn's ``average_precision_score``. Not defined, nan, if no atom is true.

    Args:
        p: probabilities (n,) in [0, 1].
        y: labels (n,), True or False, None where unlabelled.
        weights: how many atoms each counts as, (n,), or None.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, or no labelled atom.
    """
    return ranking_scores(pooled(p, y, weights, unlabelled))["auprc"].value


def ranking_scores(sample: Sample) -> dict[str, Estimate]:
    """AUROC and AUPRC of a sample."""
    estimates = dict.fromkeys(("auroc", "auprc"), undefined(ScoreStatus.ONE_CLASS))
    if sample.total_true <= 0:
        return estimates
    true_from = sample.total_true - sample.true_below
    weight_from = sample.total - sample.weight_below
    gained = sample.true > 0
    precision = np.divide(true_from, weight_from, out=np.zeros_like(true_from), where=gained)
    estimates["auprc"] = Estimate(dot(sample.true, precision) / sample.total_true)
    if sample.total_false > 0:
        false_below = sample.weight_below - sample.true_below
        ordered = dot(sample.true, false_below) + dot(sample.true, sample.false) / 2
        estimates["auroc"] = Estimate(ordered / (sample.total_true * sample.total_false))
    return estimates
