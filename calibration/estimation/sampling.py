"""Choice of claims or responses to label next, and the weights of their labels.

Source: active statistical inference, Zrnic and Candès 2024. Probabilities of being drawn are in
proportion to what a label is expected to tell, the residual's standard deviation, by the root of
what it costs (Neyman's allocation); every unit keeps a chance, so that weights 1/probability leave
no bias. Labels come in batches, each drawn from what is not labeled yet, with probabilities that
may depend on the labels before: the batches' estimates, averaged by their sizes, are those of a
martingale, so that the interval holds after the last batch. To stop at whichever batch pleases
voids it, unless the level was shared out over the looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping
from calibration.validation import Floats, Integers, whole_number
from factormodels.errors import InputError


class Unit(StrEnum):
    """Unit of the draw for labeling."""

    CLAIM = "claim"
    RESPONSE = "response"


EXPLORED = 0.5
"""Share of a unit's expected squared residual that is taken to be everybody's mean: how far
probabilities are trusted to know where they err."""

ALIKE = 0.1
"""Correlation of residuals of two claims of one response, where none was estimated."""


def spread(p: Floats, grouping: Grouping, unit: Unit, alike: float = ALIKE) -> Floats:
    """Expected squared residual of every unit, (n_units,), if probabilities mean what they say.

    Args:
        p: probabilities (n,) that claims are true.
        grouping: their responses.
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


def inclusion_probabilities(
    expected: Floats, minutes: Floats, n: int, available: NDArray[np.bool_]
) -> Floats:
    """Probability of being drawn of every unit, (n_units,), summing to `n`; none above 1.

    Args:
        expected: expected squared residual of each, as `spread` gives it.
        minutes: what a label of each costs, above 0.
        n: how many are drawn.
        available: which are not labeled yet, bool (n_units,).

    Raises:
        InputError: if there are fewer than `n`.
    """
    n = whole_number(n, "n", 1)
    if n > available.sum():
        raise InputError(
            f"{n} are to be chosen, but {int(available.sum())} have no label; choose fewer"
        )
    wanted = np.where(available, np.sqrt(np.maximum(expected, 1e-12) / minutes), 0.0)
    probabilities = np.zeros_like(wanted)
    certain = np.zeros(wanted.size, dtype=np.bool_)
    # What would be drawn more than surely is drawn surely, and the others share the rest.
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
    alike: float = ALIKE,
    *,
    at_hand: NDArray[np.bool_] | None = None,
) -> float:
    """Standard error of a share of true claims that labels so drawn will give.

    It supposes that probabilities mean what they say. Responses are a sample of others like them.
    Labels of all claims leave the same, whether they were drawn one by one or by response.

    With m labels at hand, the estimate is the mean of two batches by their sizes m and n, as in
    `batch_weights`. The variance of the first is that of m units in proportion to the root of
    `expected`; the second knows the labels of the first.

    Args:
        expected: expected squared residual of every unit, as `spread` gives it.
        probabilities: of being drawn, above 0 for each unit without a label.
        p: probabilities (n,) that claims are true.
        grouping: their responses.
        alike: correlation of the residuals of two claims of a response, as `spread` took it.
        at_hand: mask of the units that have a label and are not drawn again, (n_units,).
    """
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
        # A label at hand counts in both batches, once with weight 1.
        both = float(expected.sum())
        labels = (m**2 * first + n**2 * second + 2 * m * n * both) / (m + n) ** 2
    if expected.size == p.size:
        # Single claims: what residuals of a response have in common, other responses do not share.
        together = grouping.sums(np.sqrt(expected)) ** 2
        labels += alike * float((together - grouping.sums(expected)).sum())
    predictions = float((grouping.sums(p - p.mean()) ** 2).sum())
    return math.sqrt(labels + predictions) / p.size


def planned_freedom(probabilities: Floats, grouping: Grouping) -> float:
    """Degrees of freedom that an interval of labels so drawn has: labeled responses less two.

    Args:
        probabilities: of being drawn, of every claim (n,) or of every response.
        grouping: responses of the claims.
    """
    responses = probabilities
    if probabilities.size == grouping.index.size:
        missed = grouping.sums(np.log1p(-np.minimum(probabilities, 1 - 1e-12)))
        responses = -np.expm1(missed)
    return float(responses.sum()) - 2.0


def draw(probabilities: Floats, seed: int, order: Integers | None = None) -> NDArray[np.bool_]:
    """Draw units, bool (n_units,), as many as the probabilities sum to.

    Systematic sampling: each unit has exactly its probability, in any order.

    Args:
        probabilities: of being drawn, (n_units,).
        seed: seed of the draw.
        order: the units in the order in which they are passed, (n_units,), as `stratified_order`
            gives it; None for a random order.
    """
    generator = np.random.default_rng(seed)
    if order is None:
        order = generator.permutation(probabilities.size)
    ends = np.cumsum(probabilities[order])
    # Rounding must not lose or win a unit at the end.
    ends *= round(ends[-1]) / ends[-1]
    start = generator.random()
    hits = np.floor(ends - start)
    before = np.concatenate([[np.floor(-start)], hits[:-1]])
    drawn = np.zeros(probabilities.size, dtype=np.bool_)
    drawn[order] = hits > before
    return drawn


def stratified_order(sizes: Floats, p: Floats, n: int) -> Integers:
    """Order of units by size, and by probability within √n strata of size, up and down in turn.

    A systematic sample of n units in this order has its share of short and long responses, and of
    probable and improbable ones among each (implicit stratification; Särndal, Swensson and Wretman
    1992, section 3.4). Variances that take its units for independent are too large, if anything.

    Args:
        sizes: number of claims of each response, (n_units,), or of the response of each claim.
        p: mean probability of each, (n_units,).
        n: number of units to be drawn.
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
            law; nan where fewer than two units are labeled, all are, or all are the same.
    """

    labeled: float
    overall: float
    p_value: float


def balance(values: Floats, labeled: NDArray[np.bool_]) -> Balance:
    """Compare the mean of labeled units with that of all, as if a random sample were labeled.

    Args:
        values: number of each unit, such as the size of a response, (n_units,).
        labeled: which units are labeled, (n_units,).
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
    """Number of units that each labeled one represents, (n,).

    A batch gives an unbiased estimate: labels of earlier batches as they are, its own divided by
    their probabilities. The average of these, by the number of labels, is what the weights make.

    Args:
        probabilities: with which each labeled unit was drawn in its batch, from what was not
            labeled before, (n,), in (0, 1].
        batch: the number of the batch of each, (n,), in the order of the batches.

    Raises:
        InputError: for a probability out of range.
    """
    inside = (probabilities > 0) & (probabilities <= 1)
    if not inside.all():
        bad = probabilities[int(np.argmin(inside))]
        raise InputError(f"a probability of being drawn is {bad:g}; it is above 0 and at most 1")
    numbers = np.asarray(batch)
    _, batch_number, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    parts = sizes / sizes.sum()
    later = 1 - np.cumsum(parts)
    weights: Floats = parts[batch_number] / probabilities + np.clip(later, 0, None)[batch_number]
    return weights
