"""Choice of claims or responses to label next, and the weights of their labels.

Source: active statistical inference, Zrnic and Candès 2024. Inclusion probabilities are
proportional to the expected standard deviation of a label's residual, divided by the square root of
its cost (Neyman's allocation). Every unit has a positive probability, so that weights 1/probability
are unbiased. Labels come in batches, each drawn from the unlabeled units, with probabilities that
may depend on earlier labels. The estimates of the batches, averaged by their sizes, form a
martingale, so that the interval is valid after the last batch. It is not valid if the number of
batches depends on the estimates, unless the level is divided among all looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping
from calibration.intervals import MOST_LEVERAGE
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError


class Unit(StrEnum):
    """Unit of the draw for labeling."""

    CLAIM = "claim"
    RESPONSE = "response"


EXPLORED = 0.5
"""Weight of the mean over all units in the expected squared residual of each unit, since
probabilities do not know exactly where they err."""

ALIKE = 0.1
"""Default correlation of the residuals of two claims of a response."""


def spread(p: Floats, grouping: Grouping, unit: Unit, alike: float = ALIKE) -> Floats:
    """Expected squared residual of every unit, (n_units,), if probabilities are calibrated.

    Args:
        p: probabilities (n,) that claims are true.
        grouping: grouping of the claims by response.
        unit: claims, (n,), or responses, (n_responses,).
        alike: correlation of the residuals of two claims of a response.
    """
    each: Floats = p * (1 - p)
    each = (1 - EXPLORED) * each + EXPLORED * each.mean()
    if unit is Unit.CLAIM:
        return each
    independent = grouping.sums(each)
    together = grouping.sums(np.sqrt(each)) ** 2
    mixed: Floats = (1 - alike) * independent + alike * together
    return mixed


class ResidualLaw(NamedTuple):
    """Deviations of labels from weighted probabilities.

    Attributes:
        scale: factor on the squared residuals that `spread` expects.
        alike: correlation of the residuals of two claims of a response.
        power: weight of the probabilities in the estimate.
    """

    scale: float = 1.0
    alike: float = ALIKE
    power: float = 1.0


CALIBRATED = ResidualLaw()
"""Law of the residuals of calibrated probabilities."""


LEAST_ALIKE = 0.05
"""Least correlation of observed residuals, since few responses often show none by chance."""


def observed_residuals(
    p: Floats, y: Floats, weights: Floats, grouping: Grouping, power: float
) -> ResidualLaw:
    """Law of the residuals y - power * p of labeled claims, minus their mean.

    A residual is divided by the square root of 1 minus its response's share of the labels, since a
    response pulls the mean toward itself.

    Args:
        p: probabilities (n,) that claims are true.
        y: labels (n,), nan for claims without one that counts.
        weights: float64 (n,), number of claims that each labeled claim represents.
        grouping: grouping of the claims by response.
        power: weight of the probabilities, as `estimate` chose it.
    """
    known = ~np.isnan(y)
    expected = spread(p, grouping, Unit.CLAIM)[known]
    stands, part = weights[known], grouping.of(known)
    residuals = y[known] - power * p[known]
    residuals -= (stands @ residuals) / stands.sum()
    shares = np.minimum(part.sums(stands) / stands.sum(), MOST_LEVERAGE)
    residuals /= np.sqrt(1 - shares)[part.index]
    scale = float(stands @ residuals**2 / (stands @ expected))
    by_response = part.means(stands)
    together = part.sums(residuals) ** 2 - part.sums(residuals**2)
    most = part.sums(np.sqrt(expected)) ** 2 - part.sums(expected)
    alike = ALIKE
    if scale > 0 and by_response @ most > 0:
        alike = float(by_response @ together / (scale * (by_response @ most)))
    return ResidualLaw(scale, min(max(alike, LEAST_ALIKE), 1.0), power)


def inclusion_probabilities(
    expected: Floats, minutes: Floats, n: int, available: NDArray[np.bool_]
) -> Floats:
    """Inclusion probability of every unit, (n_units,), at most 1 each, summing to `n`.

    Args:
        expected: expected squared residual of each unit, as returned by `spread`.
        minutes: cost of a label of each unit, above 0.
        n: number of units to draw.
        available: mask of the unlabeled units, bool (n_units,).

    Raises:
        InputError: if fewer than `n` are unlabeled.
    """
    n = whole_number(n, "n", 1)
    if n > available.sum():
        raise InputError(
            f"{n} are to be chosen, but only {int(available.sum())} have no label; choose fewer"
        )
    wanted = np.where(available, np.sqrt(np.maximum(expected, 1e-12) / minutes), 0.0)
    probabilities = np.zeros_like(wanted)
    certain = np.zeros(wanted.size, dtype=np.bool_)
    # Probabilities above 1 are set to 1, and the others share the remainder.
    while True:
        rest = available & ~certain
        left = n - int(certain.sum())
        if left == 0 or not rest.any():
            break
        probabilities[rest] = left * wanted[rest] / wanted[rest].sum()
        over = rest & (probabilities >= 1)
        if not over.any():
            break
        certain |= over
    probabilities[certain] = 1.0
    return probabilities


def planned_error(
    expected: Floats,
    probabilities: Floats,
    p: Floats,
    grouping: Grouping,
    law: ResidualLaw = CALIBRATED,
    *,
    at_hand: NDArray[np.bool_] | None = None,
) -> float:
    """Expected standard error of a share of true claims from labels drawn with given probabilities.

    Responses are assumed to be a sample of responses like them, and probabilities to be calibrated
    unless `law` states how labels differ from them. If all claims are labeled, the result is the
    same for draws of claims and of responses.

    With m existing labels, the estimate is the mean of two batches weighted by their sizes m and n,
    as in `batch_weights`. The first batch is assumed to be m units drawn in proportion to the
    square root of `expected`; the second uses the labels of the first.

    Args:
        expected: expected squared residual of every unit, as returned by `spread`.
        probabilities: inclusion probability of every unit, above 0 for units without a label.
        p: probabilities (n,) that claims are true.
        grouping: grouping of the claims by response.
        law: law of the residuals, with the same `alike` as for `spread`.
        at_hand: mask of the units that have a label and are not drawn again, (n_units,).
    """
    expected = law.scale * expected
    if at_hand is None or not at_hand.any():
        labels = float((expected / probabilities).sum())
    else:
        m = int(at_hand.sum())
        n = float(probabilities[~at_hand].sum())
        everywhere = np.ones_like(at_hand)
        before = inclusion_probabilities(expected, np.ones_like(expected), m, everywhere)
        first = float((expected / before).sum())
        second = float(
            np.where(at_hand, expected, expected / np.where(at_hand, 1, probabilities)).sum()
        )
        # An existing label counts in both batches, with weight 1 in the second.
        both = float(expected.sum())
        labels = (m**2 * first + n**2 * second + 2 * m * n * both) / (m + n) ** 2
    if expected.size == p.size:
        # For draws of claims, add the covariances of residuals within responses.
        together = grouping.sums(np.sqrt(expected)) ** 2
        labels += law.alike * float((together - grouping.sums(expected)).sum())
    predictions = law.power**2 * float((grouping.sums(p - p.mean()) ** 2).sum())
    return math.sqrt(labels + predictions) / p.size


def planned_freedom(probabilities: Floats, grouping: Grouping) -> float:
    """Expected degrees of freedom of an interval: the number of labeled responses minus two.

    Responses of unequal size count as fewer (Kish 1965): n of N responses of sizes s, drawn with
    probabilities π, count as (Σ s)²/Σ s²/π, which is n if sizes and probabilities are equal.

    Args:
        probabilities: inclusion probability of every claim, (n,), or of every response.
        grouping: grouping of the claims by response.
    """
    responses = probabilities
    if probabilities.size == grouping.index.size:
        missed = grouping.sums(np.log1p(-np.minimum(probabilities, 1 - 1e-12)))
        responses = -np.expm1(missed)
    sizes = grouping.sizes.astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2 / responses).sum()) - 2.0


def draw(probabilities: Floats, seed: int, order: Integers | None = None) -> NDArray[np.bool_]:
    """Draw units, bool (n_units,), as many as the probabilities sum to.

    Sampling is systematic: each unit has exactly its probability, in any order.

    Args:
        probabilities: inclusion probabilities, (n_units,).
        seed: seed of the draw.
        order: order of the units in the systematic sample, (n_units,), such as `stratified_order`;
            None for a random order.
    """
    generator = np.random.default_rng(seed)
    if order is None:
        order = generator.permutation(probabilities.size)
    ends = np.cumsum(probabilities[order])
    # Rounding must not drop or add a unit at the end.
    ends *= round(ends[-1]) / ends[-1]
    start = generator.random()
    hits = np.floor(ends - start)
    before = np.concatenate([[np.floor(-start)], hits[:-1]])
    drawn = np.zeros(probabilities.size, dtype=np.bool_)
    drawn[order] = hits > before
    return drawn


def stratified_order(sizes: Floats, p: Floats, n: int) -> Integers:
    """Order of units by size, and within √n strata of size by probability, alternately up and down.

    A systematic sample of n units in this order contains short and long responses in proportion,
    and probable and improbable ones among each (implicit stratification; Särndal, Swensson and
    Wretman 1992, section 3.4). Variances that assume independent units are conservative.

    Args:
        sizes: number of claims of each response, (n_units,), or of the response of each claim.
        p: mean probability of each, (n_units,).
        n: number of units to draw.
    """
    strata = np.array_split(np.lexsort((p, sizes)), max(1, round(math.sqrt(n))))
    ordered = [stratum[np.argsort(p[stratum], kind="stable")] for stratum in strata]
    return np.concatenate([each[:: (-1) ** index] for index, each in enumerate(ordered)])


class Balance(NamedTuple):
    """Difference between labeled units and all units in a known covariate.

    Attributes:
        labeled: mean of the labeled units.
        overall: mean of all units.
        p_value: probability of a difference at least as large in a random sample, by the normal
            approximation; nan if fewer than two units are labeled, all are labeled, or all values
            are equal.
    """

    labeled: float
    overall: float
    p_value: float


def balance(values: Floats, labeled: NDArray[np.bool_]) -> Balance:
    """Compare the mean of the labeled units with the mean of all units, under random sampling.

    Args:
        values: value of each unit, such as the size of a response, (n_units,).
        labeled: mask of the labeled units, (n_units,).
    """
    n, of_labeled, overall = int(labeled.sum()), math.nan, float(values.mean())
    if n:
        of_labeled = float(values[labeled].mean())
    variance = float(values.var(ddof=1)) if values.size > 1 else 0.0
    if not (2 <= n < values.size and variance > 0):
        return Balance(of_labeled, overall, math.nan)
    error = math.sqrt(variance * (1 / n - 1 / values.size))
    return Balance(of_labeled, overall, math.erfc(abs(of_labeled - overall) / error / math.sqrt(2)))


def batch_weights(probabilities: Floats, batch: Sequence[int] | NDArray[np.int64]) -> Floats:
    """Number of units that each labeled unit represents, (n,).

    A batch gives an unbiased estimate from the labels of earlier batches and its own labels divided
    by their probabilities. The weights correspond to the average of these estimates, weighted by
    the number of labels.

    Args:
        probabilities: inclusion probability of each labeled unit in its batch, among the units
            unlabeled before, (n,), in (0, 1].
        batch: number of the batch of each unit, (n,), ascending in the order of drawing.

    Raises:
        InputError: for a probability out of range.
    """
    inside = (probabilities > 0) & (probabilities <= 1)
    if not inside.all():
        bad = probabilities[int(np.argmin(inside))]
        raise InputError(
            f"a probability of being drawn is {bad:g}; give numbers above 0, at most 1"
        )
    numbers = np.asarray(batch)
    _, batch_number, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    parts = sizes / sizes.sum()
    later = 1 - np.cumsum(parts)
    weights: Floats = parts[batch_number] / probabilities + np.clip(later, 0, None)[batch_number]
    return weights
