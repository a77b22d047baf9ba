"""How good probabilities of several labels are, and whether a correction makes them better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.estimate import Difference, Estimate, ScoreStatus
from calibration.grouping import group_by_response
from calibration.intervals import IntervalMethod, IntervalSettings, RatioSums, Scale, estimate_all
from calibration.label_bias.arrays import label_columns, label_probabilities
from calibration.significance.paired import paired_bootstrap
from calibration.validation import Floats, Integers, open_interval, whole_number
from factormodels.errors import InputError

LEAST_SHARE = 1e-9
"""Where two corrections are compared, a true label counts as no less probable: an infinite loss
would leave no difference. Losses that are reported are not bounded."""


@dataclass(frozen=True)
class LabelScores:
    """Scores of probabilities of k labels over n answers.

    Attributes:
        n: number of answers.
        accuracy: share of answers whose likeliest label is the true one; of labels that are equally
            likely the first counts.
        confusion: number of answers by true label and likeliest label, (k, k).
        log_loss: mean of -ln of the probability of the true label, in nats; inf where one has 0.
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
    """`accuracy`, `log_loss` and `brier` of `label_scores` with intervals over groups.

    Answers of one group, such as those of a response, are dependent: standard errors are
    linearised and clustered by group, and intervals take Student's t. A log loss that is infinite
    has none.

    Args:
        p: probabilities of k labels in n answers, (n, k).
        y: the column of the true label of each, (n,).
        groups: group of each answer, (n,).
        level: nominal coverage of the intervals.

    Raises:
        InputError: as `label_probabilities` and `label_columns`, or for lengths that differ.
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
        # At most 2, which the interval cannot leave: no mean of groups does.
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
    """Whether an accuracy is above that of the best constant answer.

    It is where the exact one-sided lower bound of the accuracy (Clopper and Pearson 1934) lies
    above `chance`, that is where so many correct answers or more would have a probability of at
    most 1 - `level` if each were correct with `chance`.

    Args:
        correct: number of correct answers.
        n: number of answers, from 1.
        chance: accuracy of the best constant answer: the share of the commonest true label.
        level: level of the bound.

    Raises:
        InputError: if the numbers do not fit each other, or `chance` or `level` is outside (0, 1).
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
    """Mean log loss of one set of probabilities less that of another, with a paired interval.

    Groups of answers are redrawn together (`paired_bootstrap`), since answers about the same
    texts are alike. A probability of the true label below `LEAST_SHARE` counts as that.

    Args:
        first: probabilities of k labels in n answers, (n, k), such as corrected ones.
        second: others for the same questions, (n, k), such as those before.
        y: the column of the true label of each, (n,).
        groups: group of each answer, (n,).
        seed: seed of the bootstrap.
        level: nominal coverage of the interval.

    Raises:
        InputError: as `label_probabilities` and `label_columns`, or for lengths that differ.
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
