"""Quantities that are ratios of sums over claims; some claims are labeled, and all are predicted.

A share of true claims is a sum over claims divided by another sum. Labels determine the terms of
some claims, and probabilities predict the terms of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.estimation.linear import Linear, Linearized
from calibration.grouping import Grouping, group_by_response
from calibration.scores.families.pointwise import brier_losses
from calibration.scores.measures import choose_k, f1_of_counts, verdicts
from calibration.validation import (
    Floats,
    check_lengths,
    label_array,
    probability_array,
    weight_array,
)
from factormodels.errors import InputError


@dataclass(frozen=True, eq=False)
class Quantity(Linearized):
    """A ratio of sums over items, which are claims or, for F1@K, responses.

    Attributes:
        title: name of the quantity.
        grouping: the response of every item.
        observed: float64 (n,), numerator of each item by its label; nan without a label.
        size: float64 (n,), denominator of each item; 0 if its label excludes it.
        predicted: float64 (n,), expected numerator of each item.
        variance: float64 (n,), variance of that numerator if probabilities are calibrated.
        predicted_size: float64 (n,), denominator if no item is excluded.
        weights: float64 (n,), number of items that each labeled one represents, up to a factor if
            all are equal; weights of unlabeled items are ignored.
        lowest: smallest possible value.
        highest: largest possible value.
        by_left_out: as in `Linearized`.
        training_variance: as in `Linear`.
        numerators: numerators of each claim if it is true, and if it is false, float64 (n,) each;
            None if items are not claims.
    """

    title: str
    grouping: Grouping
    observed: Floats
    size: Floats
    predicted: Floats
    variance: Floats
    predicted_size: Floats
    weights: Floats
    lowest: float = 0.0
    highest: float = 1.0
    by_left_out: bool = False
    training_variance: float = 0.0
    numerators: tuple[Floats, Floats] | None = None

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the labeled items, bool (n,)."""
        return ~np.isnan(self.observed)

    @property
    def sizes(self) -> Floats:
        """Denominators if no item is excluded."""
        return self.predicted_size

    def linear(self, power: float) -> Linear:
        """Contributions of the items, which do not depend on `power`.

        Raises:
            InputError: if all labeled claims are excluded.
        """
        del power
        weights = np.where(self.labeled, self.weights, 0.0)
        values = np.where(self.labeled, self.observed, 0.0)
        counted = float(weights @ self.size)
        if not counted > 0:
            raise InputError(
                f"{self.title}: every labeled claim is irrelevant; label more, as --choose says"
            )
        expected, total = float(weights @ self.predicted_size), float(self.predicted_size.sum())
        observed = float(weights @ values / counted)
        sampled = float(weights @ self.predicted / expected)
        predicted = float(self.predicted.sum() / total)
        return Linear(
            observed=observed,
            sampled=sampled,
            predicted=predicted,
            labels=weights * (values - observed * self.size) / counted,
            predictions=weights * (self.predicted - sampled * self.predicted_size) / expected,
            everywhere=(self.predicted - predicted * self.predicted_size) / total,
            shares=weights * self.size / counted,
            open_variance=float(weights**2 @ self.variance) / counted**2,
            training_variance=self.training_variance,
        )


def share(p: ArrayLike, y: Any, responses: Any, **given: Any) -> Quantity:
    """Share of true claims, over all claims.

    Args:
        p: probabilities (n,) that claims are true.
        y: labels (n,), True or False, None where unlabeled.
        responses: response ids (n,).
        given: `irrelevant`, bool (n,), claims that their label excludes; and `weights`, (n,),
            number of claims that each labeled one represents, as returned by `batch_weights`.

    Raises:
        InputError: for bad arrays, or lengths that differ.
    """
    claims = given_claims(p, y, responses, **given)
    return _of_claims("share of true claims", claims, np.ones_like(claims.p), claims.shares())


def mean_share(p: ArrayLike, y: Any, responses: Any, **given: Any) -> Quantity:
    """Mean over responses of the share of true claims; arguments as in `share`."""
    claims = given_claims(p, y, responses, **given)
    counted = claims.grouping.sums(~claims.irrelevant)
    part = 1.0 / np.maximum(counted, 1.0)[claims.grouping.index]
    return _of_claims("share, mean of responses", claims, part, claims.shares(part))


def brier(p: ArrayLike, y: Any, responses: Any, **given: Any) -> Quantity:
    """Brier score, the mean of (p - y)² over all claims; arguments as in `share`."""
    claims = given_claims(p, y, responses, **given)
    if_true, if_false = brier_losses(claims.p)
    score = _of_claims("Brier", claims, np.ones_like(claims.p), (if_true, if_false))
    return replace(score, by_left_out=True)


def accuracy(p: ArrayLike, y: Any, responses: Any, **given: Any) -> Quantity:
    """Share of claims whose verdict, true if P > 1/2, agrees with their label; as in `share`."""
    claims = given_claims(p, y, responses, **given)
    right = (verdicts(claims.p) > 0).astype(np.float64)
    return _of_claims("accuracy", claims, np.ones_like(claims.p), (right, 1.0 - right))


def kept_precision(
    p: ArrayLike, y: Any, responses: Any, *, threshold: float = 0.5, **given: Any
) -> Quantity:
    """Share of true claims among the claims with p of at least a threshold; as in `share`.

    Raises:
        InputError: for bad arrays, lengths that differ, a threshold that is not a probability, or
            if no claim is kept.
    """
    claims = given_claims(p, y, responses, **given)
    kept = claims.p >= _threshold(threshold)
    if not kept.any():
        raise InputError(
            f"threshold is {threshold:g}, but no claim has a probability that high; give a lower "
            "one"
        )
    kept_claims = GivenClaims(
        *(claims.p[kept], claims.y[kept], claims.irrelevant[kept]),
        *(claims.grouping.of(kept), claims.weights[kept]),
    )
    title = f"precision of p ≥ {threshold:g}"
    return _of_claims(title, kept_claims, np.ones_like(kept_claims.p), kept_claims.shares())


def _threshold(threshold: float) -> float:
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold!r}; give a probability")
    return threshold


def f1_at_k(
    p: ArrayLike, y: Any, responses: Any, *, k: str | float = "median", **given: Any
) -> Quantity:
    """Mean over responses of F1@K of the true claims.

    It is not linear in the claims, so that only fully labeled responses count as labeled. K is as
    in `calibration.scores.measures.choose_k`; other arguments as in `share`.

    Raises:
        InputError: for bad arrays, lengths that differ, or an unknown K.
    """
    claims = given_claims(p, y, responses, **given)
    grouping = claims.grouping
    n = len(grouping.responses)
    ks = choose_k(k, grouping.sizes)
    known = ~np.isnan(claims.y) | claims.irrelevant
    whole = grouping.sums(known) == grouping.sizes
    counted = grouping.sums(~claims.irrelevant)
    true = grouping.sums(np.nan_to_num(claims.y) * ~claims.irrelevant)
    has_score = whole & (counted > 0)
    observed = np.full(n, np.nan)
    observed[has_score] = f1_of_counts(true[has_score], counted[has_score], ks[has_score])
    # A response whose claims are all excluded has no F1@K, but counts as labeled.
    observed[whole & ~has_score] = 0.0
    return Quantity(
        title="F1@K",
        grouping=Grouping(grouping.responses, np.arange(n), np.ones(n, dtype=np.int64)),
        observed=observed,
        size=np.where(whole & ~has_score, 0.0, 1.0),
        predicted=f1_of_counts(grouping.sums(claims.p), grouping.sizes, ks),
        variance=np.zeros(n),
        predicted_size=np.ones(n),
        weights=grouping.means(claims.weights),
    )


def minus(quantity: Quantity, other: Quantity) -> Quantity:
    """Difference of two quantities of the same items, such as the Brier scores of two judges.

    Raises:
        InputError: if their items or denominators differ.
    """
    sames = (
        (quantity.grouping.index, other.grouping.index),
        (quantity.predicted_size, other.predicted_size),
        (quantity.labeled, other.labeled),
    )
    if not all(np.array_equal(first, second) for first, second in sames):
        raise InputError("the two quantities have different claims; give quantities of one table")
    ends = quantity.lowest - other.highest, quantity.highest - other.lowest
    numerators = None
    if quantity.numerators is not None and other.numerators is not None:
        if_true, if_false = zip(quantity.numerators, other.numerators, strict=True)
        numerators = if_true[0] - if_true[1], if_false[0] - if_false[1]
        if not any(each.any() for each in numerators):
            # The difference is 0 for any labels.
            ends = 0.0, 0.0
    # The largest variance of a difference with these two standard deviations.
    deviations = math.sqrt(quantity.training_variance) + math.sqrt(other.training_variance)
    return replace(
        quantity,
        title=f"difference of {quantity.title}",
        observed=quantity.observed - other.observed,
        predicted=quantity.predicted - other.predicted,
        lowest=ends[0],
        highest=ends[1],
        training_variance=deviations**2,
        numerators=numerators,
    )


@dataclass(frozen=True, eq=False)
class GivenClaims:
    """Validated arrays of claims.

    Attributes:
        p: float64 (n,), probabilities of being true.
        y: float64 (n,), labels; nan for unlabeled and excluded claims.
        irrelevant: bool (n,), whether a label excludes the claim.
        grouping: grouping of the claims by response.
        weights: float64 (n,), number of claims that each labeled one represents.
    """

    p: Floats
    y: Floats
    irrelevant: NDArray[np.bool_]
    grouping: Grouping
    weights: Floats

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask of the claims with a label that are not excluded, bool (n,)."""
        return ~np.isnan(self.y)

    def shares(self, part: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Numerators of a share for each claim if it is true, and if it is false."""
        return np.ones_like(self.p) * part, np.zeros_like(self.p)


def given_claims(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    irrelevant: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> GivenClaims:
    """Validate claims; arguments as in `share`.

    Raises:
        InputError: for bad arrays, or lengths that differ.
    """
    probabilities, labels = probability_array(p), label_array(y)
    grouping = group_by_response(responses)
    n = probabilities.size
    dropped = np.zeros(n, dtype=np.bool_) if irrelevant is None else np.asarray(irrelevant, bool)
    check_lengths(p=n, y=labels.size, responses=grouping.index.size, irrelevant=dropped.size)
    return GivenClaims(
        probabilities,
        np.where(dropped, np.nan, labels),
        dropped,
        grouping,
        np.ones(n) if weights is None else weight_array(weights, n),
    )


def _of_claims(
    title: str, claims: GivenClaims, size: Floats, numerators: tuple[Floats, Floats]
) -> Quantity:
    if_true, if_false = numerators
    by_label = np.where(np.nan_to_num(claims.y) > 0, if_true, if_false)
    return Quantity(
        title=title,
        grouping=claims.grouping,
        # Excluded claims are labeled: their terms are known to be 0.
        observed=np.where(claims.irrelevant, 0.0, np.where(np.isnan(claims.y), np.nan, by_label)),
        size=np.where(claims.irrelevant, 0.0, size),
        predicted=claims.p * if_true + (1 - claims.p) * if_false,
        variance=claims.p * (1 - claims.p) * (if_true - if_false) ** 2,
        predicted_size=size,
        weights=claims.weights,
        numerators=numerators,
    )
