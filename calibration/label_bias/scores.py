"""Scores of probabilities of several labels, and comparison of corrections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference, Estimate, ScoreStatus
from calibration.grouping import group_by_response
from calibration.intervals import IntervalMethod, IntervalSettings, RatioSums, Scale, estimate_all
from calibration.label_bias.arrays import label_columns, label_probabilities
from calibration.significance.bootstrap import paired_bootstrap
from calibration.validation import Floats, Integers, open_interval, whole_number
from factormodels.errors import InputError

LEAST_SHARE = 1e-9
"""Smallest probability of a true label in comparisons of corrections, which need finite losses.
Reported losses are not bounded."""


@dataclass(frozen=True)
class LabelScores:
    """Scores of probabilities of k labels over n answers.

    Attributes:
        n: number of answers.
        accuracy: share of answers whose most likely label is the true label; ties go to the first
            label.
        confusion: number of answers by true label and most likely label, (k, k).
        log_loss: mean of -ln of the probability of the true label, in nats; inf if one is 0.
        brier: mean over answers of the sum over labels of (p - y)^2, from 0 to 2 (Brier 1950).
    """

    n: int
    accuracy: float
    confusion: Integers
    log_loss: float
    brier: float


def label_scores(p: ArrayLike, y: Any) -> LabelScores:
    """Score probabilities of several labels.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        y: the column of the true label of each, (n,).

    Raises:
        InputError: as `label_probabilities` and `label_columns`.
    """
    array = label_probabilities(p)
    n, k = array.shape
    columns = label_columns(y, n, k)
    confusion = np.zeros((k, k), dtype=np.int64)
    np.add.at(confusion, (columns, array.argmax(axis=1)), 1)
    losses = _log_losses(array, columns, 0.0)
    return LabelScores(
        n,
        float(np.trace(confusion) / n),
        confusion,
        float(losses.mean()),
        float(((array - np.eye(k)[columns]) ** 2).sum(axis=1).mean()),
    )


def estimate_label_scores(
    p: ArrayLike, y: Any, groups: Any, *, level: float = 0.95
) -> dict[str, Estimate]:
    """`accuracy`, `log_loss` and `brier` of `label_scores`, with intervals over groups.

    Answers of a group, such as a response, are dependent. Standard errors are linearized and
    clustered by group, and intervals use Student's t. An infinite log loss has no interval.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        y: the column of the true label of each, (n,).
        groups: group of each answer, (n,).
        level: nominal coverage of the intervals.

    Raises:
        InputError: as `label_probabilities` and `label_columns`, or for different lengths.
    """
    array = label_probabilities(p)
    n, k = array.shape
    columns = label_columns(y, n, k)
    grouping = group_by_response(groups, "groups")
    if grouping.index.size != n:
        raise InputError(f"groups has {grouping.index.size} entries for {n} rows; give one each")
    sizes = grouping.sizes.astype(np.float64)[:, np.newaxis]
    values = {
        "accuracy": ((array.argmax(axis=1) == columns).astype(float), Scale.PROBABILITY),
        "log_loss": (_log_losses(array, columns, 0.0), Scale.POSITIVE),
        # The score is at most 2, and so are all means over groups and the interval.
        "brier": (((array - np.eye(k)[columns]) ** 2).sum(axis=1), Scale.POSITIVE),
    }
    settings = IntervalSettings(IntervalMethod.DELTA, level=level)
    estimates = {}
    for name, (value, scale) in values.items():
        if not np.isfinite(value).all():
            estimates[name] = Estimate(
                name, float(value.mean()), status=ScoreStatus.INFINITE, n=len(sizes)
            )
            continue
        sums = grouping.sums(value)[:, np.newaxis]
        mean = estimate_all([RatioSums(sums, sizes, name, scale)], settings)[0]
        estimates[name] = Estimate(
            name,
            float(mean.estimate[0]),
            float(mean.lower[0]),
            float(mean.upper[0]),
            float(mean.standard_error[0]),
            n=len(sizes),
        )
    return estimates


def beats_constant(correct: int, n: int, chance: float, *, level: float = 0.95) -> bool:
    """Return whether an accuracy is significantly above the accuracy of the best constant answer.

    The criterion is that the exact one-sided lower bound of the accuracy (Clopper and Pearson 1934)
    is above `chance`. Equivalently, at least `correct` correct answers have a probability of at
    most 1 - `level` if each answer is correct with probability `chance`.

    Args:
        correct: number of correct answers.
        n: number of answers, at least 1.
        chance: accuracy of the best constant answer, the share of the most common true label.
        level: level of the bound.

    Raises:
        InputError: if `correct` exceeds `n`, or `chance` or `level` is outside (0, 1).
    """
    n = whole_number(n, "n", 1)
    correct = whole_number(correct, "correct", 0)
    if correct > n:
        raise InputError(f"correct is {correct} of {n}; give no more than n")
    chance = open_interval(chance, "chance", 0, 1)
    level = open_interval(level, "level", 0, 1)
    from scipy.stats import binom

    return bool(binom.sf(correct - 1, n, chance) <= 1 - level)


def compare_corrections(
    first: ArrayLike, second: ArrayLike, y: Any, groups: Any, *, seed: int = 0, level: float = 0.95
) -> Difference:
    """Difference in mean log loss between two sets of probabilities, with a paired interval.

    Groups of answers are resampled together (`paired_bootstrap`), because answers about the same
    texts are correlated. Probabilities of the true label are at least `LEAST_SHARE`.

    Args:
        first: probabilities of k labels in n answers, (n, k), such as corrected probabilities.
        second: probabilities for the same questions, (n, k), such as uncorrected probabilities.
        y: the column of the true label of each, (n,).
        groups: group of each answer, (n,).
        seed: seed of the bootstrap.
        level: nominal coverage of the interval.

    Raises:
        InputError: as `label_probabilities` and `label_columns`, or for different lengths.
    """
    of_first, of_second = label_probabilities(first, "first"), label_probabilities(second, "second")
    if of_first.shape != of_second.shape:
        raise InputError(
            f"first has the shape {of_first.shape} and second {of_second.shape}; give both for the "
            "same answers and labels"
        )
    columns = label_columns(y, *of_first.shape)
    return paired_bootstrap(
        _log_losses(of_first, columns, LEAST_SHARE),
        _log_losses(of_second, columns, LEAST_SHARE),
        groups,
        seed=seed,
        level=level,
    )


def _log_losses(p: Floats, columns: Integers, least: float) -> Floats:
    """-ln of the probability of each true label, (n,)."""
    true = np.maximum(p[np.arange(len(p)), columns], least)
    with np.errstate(divide="ignore"):
        losses: Floats = np.abs(np.log(true))
    return losses
