"""Scores of probabilities against labels, pooled over atoms.

Every function takes probabilities `p`, (n,) in [0, 1], and labels `y`, (n,) of True and False (or
1 and 0), None where unlabeled. `unlabeled` is the treatment of unlabeled atoms
(`calibration.labels.LabelPolicy`); by default they are excluded. All functions raise InputError for
bad probabilities, bad labels, no labeled atom, different lengths, and empty input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.forecasts import Forecasts, Sample, dot
from calibration.intervals import RatioSums, Scale
from calibration.labels import LabelPolicy, labeled_atoms
from calibration.scores.definition import (
    POSITIVE,
    JudgedClaims,
    ScoreDefinition,
    one_cell,
    per_claim,
)
from calibration.validation import Floats


def brier_losses(p: Floats) -> tuple[Floats, Floats]:
    """Squared error of each p if the atom is true, and if it is false."""
    return (1 - p) ** 2, p**2


def log_losses(p: Floats) -> tuple[Floats, Floats]:
    """-ln of the probability of the label, if true and if false; possibly infinite."""
    with np.errstate(divide="ignore"):
        # log1p avoids the rounding of 1 - p for p near 0; abs changes -0 to 0.
        return np.abs(np.log(p)), np.abs(np.log1p(-p))


LOSSES: Mapping[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "brier": brier_losses,
    "log_loss": log_losses,
}
"""Strictly proper losses by name: functions from p to its loss under a true and a false label."""


def point_losses(points: Forecasts, name: str) -> tuple[Floats, Floats]:
    """Losses of each distinct probability under a true and a false label, (m,) each."""
    return points.remember(("losses", name), lambda: LOSSES[name](points.p))


def mean_loss(sample: Sample, name: str) -> float:
    """Mean of a loss over a sample; possibly infinite."""
    if_true, if_false = point_losses(sample.forecasts, name)
    return (_weighted_sum(sample.true, if_true) + _weighted_sum(sample.false, if_false)) / (
        sample.total
    )


def _weighted_sum(weight: Floats, loss: Floats) -> float:
    """Sum of weight times loss, where a weight of 0 times an infinite loss is 0.

    Probabilities are ascending, so that only the first and the last loss can be infinite.
    """
    start, stop, ends = 0, loss.size, 0.0
    if np.isinf(loss[0]):
        start, ends = 1, np.inf if weight[0] > 0 else 0.0
    if stop > start and np.isinf(loss[-1]):
        stop -= 1
        ends = np.inf if weight[-1] > 0 else ends
    return dot(weight[start:stop], loss[start:stop]) + ends


def brier(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabeled: str = LabelPolicy.EXCLUDE
) -> float:
    """Brier score, the mean of (p - y)^2: 0 is perfect, and p = 1/2 for all atoms gives 1/4.

    It is half of the sum over both classes in Brier 1950, equation 2. `weights`, (n,), are the
    numbers of atoms that each represents.
    """
    return _mean_loss("brier", p, y, weights, unlabeled)


def log_loss(
    p: ArrayLike, y: Any, *, weights: ArrayLike | None = None, unlabeled: str = LabelPolicy.EXCLUDE
) -> float:
    """Mean of -ln of the probability of the label, in nats: 0 is perfect.

    Probabilities are not clipped: a certain and wrong forecast makes the loss infinite. `weights`,
    (n,), are the numbers of atoms that each represents.
    """
    return _mean_loss("log_loss", p, y, weights, unlabeled)


def _mean_loss(name: str, p: ArrayLike, y: Any, weights: ArrayLike | None, unlabeled: str) -> float:
    atoms = labeled_atoms(p, y, unlabeled)
    counts = atoms.weights(weights)
    # An infinite loss with weight 0 does not count.
    terms = np.where(counts > 0, _losses(name, atoms.p, atoms.y), 0.0)
    return float(np.dot(terms, counts) / counts.sum())


def _losses(name: str, p: Floats, y: Floats) -> Floats:
    """Loss of each atom under its label, (n,)."""
    return np.where(y == 1, *LOSSES[name](p))


def _f1(judged: JudgedClaims) -> RatioSums:
    true, supported = judged.y == 1, judged.supported
    sums = judged.sums
    return one_cell(2 * sums(true & supported), sums(true) + sums(supported))


FAMILY = (
    ScoreDefinition(
        name="f1",
        title="F1",
        meaning="F1 of the class of true atoms",
        higher_is_better=True,
        ratio=_f1,
    ),
    ScoreDefinition(
        name="brier",
        title="Brier",
        meaning="mean of (p - y)^2",
        higher_is_better=False,
        ratio=per_claim(lambda judged: _losses("brier", judged.p, judged.y)),
        usual=1,
    ),
    ScoreDefinition(
        name="log_loss",
        title="Log loss",
        meaning="mean of -ln of the probability of the label, in nats",
        higher_is_better=False,
        scale=Scale.POSITIVE,
        range=POSITIVE,
        ratio=per_claim(lambda judged: _losses("log_loss", judged.p, judged.y)),
        usual=5,
        column="log loss",
    ),
    ScoreDefinition(
        name="accuracy",
        title="Accuracy",
        meaning="share of atoms whose verdict agrees with their label",
        higher_is_better=True,
        scale=Scale.PROBABILITY,
        ratio=per_claim(lambda judged: judged.supported == (judged.y == 1)),
        usual=10,
        column="accuracy",
    ),
)
