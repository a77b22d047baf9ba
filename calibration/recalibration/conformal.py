"""Conformal filtering of a response's claims by probability, with a guaranteed precision.

Source: Mohri and Hashimoto 2024, "Language Models with Conformal Factuality Guarantees"; for the
guarantee in the mean, Angelopoulos et al. 2024, "Conformal Risk Control".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.labels import LabelPolicy, labelled_atoms
from calibration.validation import (
    Floats,
    check_lengths,
    is_number,
    member_named,
    open_interval,
    probability_array,
    whole_number,
)
from factormodels.errors import InputError

KEEP_ALL, KEEP_NONE = -math.inf, math.inf

_SLACK = 1e-12
"""Relative tolerance: shares and ranks that are closer differ by rounding."""


class Guarantee(StrEnum):
    """Guarantee for a new response that is exchangeable with the calibration responses."""

    PROBABILITY = "probability"
    """With probability `confidence`, the kept claims have at least the target precision."""
    MEAN = "mean"
    """The expected precision of the kept claims is at least the target."""


class ConformalStatus(StrEnum):
    """Status of a threshold."""

    OK = "ok"
    KEEPS_ALL = "keeps_all"
    """The target is met without filtering."""
    KEEPS_NONE = "keeps_none"
    """No threshold meets the target, or there are too few responses to find one. No claim is kept,
    which counts as precision 1."""


@dataclass(frozen=True)
class ConformalFilter:
    """A threshold with a guarantee.

    Attributes:
        threshold: claims with a probability above it are kept; -inf keeps all claims, inf none.
        precision: target precision of the kept claims of a response.
        confidence: probability of reaching the target; nan for a guarantee in the mean.
        guarantee: ``probability`` or ``mean``.
        n_responses: number of calibration responses.
        status: status of the threshold.
    """

    threshold: float
    precision: float
    confidence: float
    guarantee: Guarantee
    n_responses: int
    status: ConformalStatus

    def keep(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Mask of the kept claims, (n,), for probabilities `p` (n,) in [0, 1].

        Raises:
            InputError: for bad probabilities.
        """
        return probability_array(p) > self.threshold


def conformal_filter(
    p: ArrayLike,
    y: Any,
    responses: Any,
    *,
    precision: float = 1.0,
    confidence: float = 0.9,
    guarantee: str = Guarantee.PROBABILITY,
    unlabelled: str = LabelPolicy.EXCLUDE,
) -> ConformalFilter:
    """Lowest threshold that guarantees a precision, calibrated on labelled responses.

    For ``probability``, the score of a response is the smallest t such that the kept claims have
    the target precision at every threshold from t on. The threshold is the
    ceil((R + 1) confidence)-th smallest of the R scores. A new response then has the target
    precision with probability at least `confidence` and, without ties, at most 1/(R + 1) above
    that. This does not depend on the quality of the probabilities; with poor probabilities fewer
    claims are kept. For ``mean``, the loss of a response at t is its largest 1 - precision over
    thresholds from t on, and the threshold is the smallest t at which (sum of losses + 1)/(R + 1)
    is at most 1 - precision.

    The calibration responses must be exchangeable with the filtered responses: with another subject
    or model the guarantee does not apply. Claims of a response may be dependent.

    Args:
        p: probabilities (n_claims,) that claims are true, or any scores in [0, 1].
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        precision: target share of true claims among kept claims, in (0, 1]; below 1 for ``mean``.
        confidence: probability of reaching the target, in (0, 1); ignored for ``mean``.
        guarantee: ``probability`` or ``mean``.
        unlabelled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, or settings outside these ranges.
    """
    kind = member_named(Guarantee, guarantee, "guarantee")
    if not is_number(precision) or not 0 < precision <= 1:
        raise InputError(f"precision is {precision!r}; give a number above 0 and up to 1")
    if kind is Guarantee.MEAN and precision == 1:
        raise InputError("precision is 1, which cannot be promised in the mean; give one below 1")
    confidence = open_interval(confidence, "confidence", 0, 1)
    atoms = labelled_atoms(p, y, unlabelled)
    grouping = atoms.grouping(responses)
    if kind is Guarantee.PROBABILITY:
        scores = conformity_scores(atoms.p, atoms.y, grouping, precision)
        threshold = _rank(scores, confidence)
    else:
        threshold = _mean_threshold(atoms.p, atoms.y, grouping, 1 - precision)
    status = {KEEP_ALL: ConformalStatus.KEEPS_ALL, KEEP_NONE: ConformalStatus.KEEPS_NONE}
    return ConformalFilter(
        threshold=threshold,
        precision=float(precision),
        confidence=confidence if kind is Guarantee.PROBABILITY else math.nan,
        guarantee=kind,
        n_responses=len(grouping.responses),
        status=status.get(threshold, ConformalStatus.OK),
    )


def conformity_scores(p: Floats, y: Floats, grouping: Grouping, precision: float) -> Floats:
    """Smallest threshold of each response from which on it has the target precision.

    Returns:
        float64 (n_responses,); -inf for a response that has the precision without filtering.
    """
    order, precisions, next_lower = _prefixes(p, y, grouping)
    short = precisions < precision * (1 - _SLACK)
    scores = np.full(len(grouping.responses), KEEP_ALL)
    # If the claims down to a given one have too low a precision, the threshold must be at that
    # claim or above. Tied claims are kept together, hence only the last of each run counts.
    fails = short & next_lower
    np.maximum.at(scores, grouping.index[order][fails], p[order][fails])
    return scores


def filtered_precision(
    keep: Any, y: Any, responses: Any, *, unlabelled: str = LabelPolicy.EXCLUDE
) -> Floats:
    """Share of true claims among the kept claims of each response; 1 if none is kept.

    Args:
        keep: mask of the kept claims, (n_claims,).
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        unlabelled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Returns:
        float64 (n_responses,), in order of first appearance.

    Raises:
        InputError: for bad arrays, or different lengths.
    """
    atoms = labelled_atoms(np.asarray(keep, dtype=np.float64), y, unlabelled)
    grouping = atoms.grouping(responses)
    sizes = grouping.sums(atoms.p)
    return np.divide(
        grouping.sums(atoms.p * atoms.y), sizes, out=np.ones_like(sizes), where=sizes > 0
    )


@dataclass(frozen=True)
class HeldOut:
    """Performance of a filter on held-out responses.

    Attributes:
        reached: share of held-out responses whose kept claims have the target precision.
        precision: mean precision of held-out responses, counted as 1 if no claim is kept.
        kept: share of the claims of held-out responses that are kept.
        n_splits: number of random halves.
    """

    reached: float
    precision: float
    kept: float
    n_splits: int


def held_out(
    p: ArrayLike, y: Any, responses: Any, *, n_splits: int = 200, seed: int = 0, **filtering: Any
) -> HeldOut:
    """Evaluate a filter in random splits: calibrate on half of the responses, filter the rest.

    Args:
        p: probabilities (n_claims,).
        y: labels (n_claims,), None where unlabelled; unlabelled claims are left out.
        responses: response ids (n_claims,).
        n_splits: number of random halves.
        seed: seed of the halves.
        filtering: `precision`, `confidence` and `guarantee`, as in `conformal_filter`.

    Raises:
        InputError: as `conformal_filter`, or if there are fewer than two responses.
    """
    atoms = labelled_atoms(p, y)
    grouping = atoms.grouping(responses)
    n = len(grouping.responses)
    if n < 2:
        raise InputError("there is one labelled response; a split takes two or more")
    generator = np.random.default_rng(whole_number(seed, "seed", 0))
    outcomes = np.empty((whole_number(n_splits, "n_splits", 1), 3))
    for split in range(len(outcomes)):
        first = np.isin(grouping.index, generator.permutation(n)[: n // 2])
        chosen = conformal_filter(
            atoms.p[first], atoms.y[first], grouping.index[first], **filtering
        )
        keep = chosen.keep(atoms.p[~first])
        precisions = filtered_precision(keep, atoms.y[~first], grouping.index[~first])
        reached = precisions >= chosen.precision * (1 - _SLACK)
        outcomes[split] = reached.mean(), precisions.mean(), keep.mean()
    share, precise, kept = map(float, outcomes.mean(axis=0))
    return HeldOut(share, precise, kept, len(outcomes))


def exchangeability(
    p: ArrayLike, responses: Any, new_p: ArrayLike, new_responses: Any
) -> dict[str, float]:
    """P-values of tests that new responses have the distribution of the calibration responses.

    Two-sample Kolmogorov-Smirnov tests compare three statistics of responses that need no labels,
    with Bonferroni correction. A small p-value shows that the responses differ, so that the
    guarantee does not apply. A large p-value does not show that it applies.

    Returns:
        By name: mean probability, number of claims, and share of claims above 1/2.

    Raises:
        InputError: for bad arrays, or different lengths.
    """
    from scipy.stats import ks_2samp

    def seen(values: ArrayLike, ids: Any) -> dict[str, Floats]:
        probabilities, grouping = probability_array(values), group_by_response(ids)
        check_lengths(p=probabilities.size, responses=grouping.index.size)
        return {
            "mean probability": grouping.means(probabilities),
            "number of claims": grouping.sizes.astype(np.float64),
            "share above 1/2": grouping.means(probabilities > 0.5),
        }

    before, after = seen(p, responses), seen(new_p, new_responses)
    return {
        name: min(1.0, len(before) * float(ks_2samp(before[name], after[name]).pvalue))
        for name in before
    }


def _prefixes(
    p: Floats, y: Floats, grouping: Grouping
) -> tuple[NDArray[np.intp], Floats, NDArray[np.bool_]]:
    """Order of claims by response and descending p, precisions, and ends of ties.

    The precisions are those of keeping the claims of a response down to each claim. The last result
    marks the claims that are the last with their probability in their response.
    """
    order = np.lexsort((-p, grouping.index))
    response = grouping.index[order]
    starts = np.cumsum(grouping.sizes) - grouping.sizes
    true = np.cumsum(y[order])
    before = true[starts] - y[order][starts]
    rank = np.arange(p.size) - starts[response] + 1
    precisions = (true - before[response]) / rank
    last = np.ones(p.size, dtype=bool)
    last[:-1] = (response[1:] != response[:-1]) | (p[order][1:] != p[order][:-1])
    return order, precisions, last


def _rank(scores: Floats, confidence: float) -> float:
    rank = math.ceil((scores.size + 1) * confidence * (1 - _SLACK))
    if rank > scores.size:
        return KEEP_NONE
    return float(np.sort(scores)[rank - 1])


def _mean_threshold(p: Floats, y: Floats, grouping: Grouping, allowed: float) -> float:
    """Smallest threshold at which the mean loss, with an added loss of 1, is at most `allowed`."""
    order, precisions, last = _prefixes(p, y, grouping)
    response, level = grouping.index[order], p[order]
    # Each response's loss is a decreasing step function of the threshold: below a claim's
    # probability it is at least the loss of keeping claims down to it.
    steps: list[tuple[float, float]] = []
    worst = np.zeros(len(grouping.responses))
    for position in np.flatnonzero(last):
        loss = 1 - float(precisions[position])
        owner = int(response[position])
        if loss > worst[owner]:
            steps.append((float(level[position]), loss - float(worst[owner])))
            worst[owner] = loss
    budget = allowed * (len(grouping.responses) + 1) * (1 + _SLACK) - 1
    if budget < 0:
        return KEEP_NONE
    total = 0.0
    steps.sort(reverse=True)
    for threshold, increase in steps:
        total += increase
        # Claims strictly above the threshold are kept, so that a step takes effect below its place.
        if total > budget:
            return threshold
    return KEEP_ALL
