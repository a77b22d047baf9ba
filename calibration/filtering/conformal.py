"""Conformal filtering of a response's claims by score, with a guarantee: one threshold.

Source: Mohri and Hashimoto 2024, "Language Models with Conformal Factuality Guarantees"; for the
guarantee in the mean, Angelopoulos et al. 2024, "Conformal Risk Control".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.labels import LabelPolicy, labeled_atoms
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

STATISTICS = ("mean probability", "number of claims", "share above 1/2")
"""Names of the statistics of `response_statistics`."""

_SLACK = 1e-12
"""Relative tolerance: shares and ranks that are closer differ by rounding."""


class Guarantee(StrEnum):
    """Guarantee for a new response that is exchangeable with the calibration responses."""

    PROBABILITY = "probability"
    """With probability `confidence`, the kept claims have at least the target precision, or none
    is kept."""
    MEAN = "mean"
    """The expected precision of a response, 1 if none of its claims is kept, is at least the
    target. The expectation is over the calibration responses too."""
    COHERENT = "coherent"
    """With probability `confidence`, every kept claim is true. Together with scores that respect
    dependencies, as `supported_scores` returns them, the kept set is then coherently factual."""


class ConformalStatus(StrEnum):
    """Status of a threshold."""

    OK = "ok"
    KEEPS_ALL = "keeps_all"
    """The target is met without filtering."""
    KEEPS_NONE = "keeps_none"
    """No threshold meets the target, or there are too few responses to find one. No claim is kept,
    which counts as precision 1."""


@dataclass(frozen=True)
class Promise:
    """A guarantee for the kept claims of a new response.

    Attributes:
        precision: target share of true claims among kept claims, in (0, 1]; below 1 for ``mean``,
            1 for ``coherent``.
        confidence: probability of reaching the target, in (0, 1); nan for ``mean``.
        guarantee: ``probability``, ``mean`` or ``coherent``.
    """

    precision: float
    confidence: float
    guarantee: Guarantee

    @classmethod
    def of(
        cls,
        precision: float = 1.0,
        confidence: float = 0.9,
        guarantee: str = Guarantee.PROBABILITY,
    ) -> Promise:
        """Return the checked guarantee.

        Raises:
            InputError: for a setting outside its range.
        """
        kind = member_named(Guarantee, guarantee, "guarantee")
        if not is_number(precision) or not 0 < precision <= 1:
            raise InputError(f"precision is {precision!r}; give a number above 0 and up to 1")
        if kind is Guarantee.MEAN and precision == 1:
            raise InputError(
                "precision is 1, which cannot be promised in the mean; give one below 1"
            )
        if kind is Guarantee.COHERENT and precision != 1:
            raise InputError(
                f"precision is {precision!r}, but a coherent set holds no false claim; give 1"
            )
        confidence = open_interval(confidence, "confidence", 0, 1)
        return cls(float(precision), math.nan if kind is Guarantee.MEAN else confidence, kind)

    @property
    def fewest_responses(self) -> int:
        """Minimum number of calibration responses with which any claim can be kept."""
        if self.guarantee is Guarantee.MEAN:
            # The added loss of 1 must not exceed the allowed loss.
            return max(1, math.ceil((1 / (1 - self.precision)) * (1 - _SLACK)) - 1)
        return max(1, math.ceil(self.confidence / (1 - self.confidence) * (1 - 1e-9)))

    def is_met(self, precisions: Floats) -> NDArray[np.bool_]:
        """Mask of the precisions that reach the target up to rounding."""
        return precisions >= self.precision * (1 - _SLACK)


@dataclass(frozen=True)
class ConformalFilter:
    """A threshold with a guarantee.

    Attributes:
        threshold: claims with a probability above it are kept; -inf keeps all claims, inf none.
        precision: target precision of the kept claims of a response.
        confidence: probability of reaching the target; nan for a guarantee in the mean.
        guarantee: ``probability``, ``mean`` or ``coherent``.
        n_responses: number of calibration responses.
        status: status of the threshold.
    """

    threshold: float
    precision: float
    confidence: float
    guarantee: Guarantee
    n_responses: int
    status: ConformalStatus

    @property
    def promise(self) -> Promise:
        """Statement of the guarantee."""
        return Promise(self.precision, self.confidence, self.guarantee)

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
    unlabeled: str = LabelPolicy.EXCLUDE,
) -> ConformalFilter:
    """Lowest threshold that guarantees a precision, calibrated on labeled responses.

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
        y: labels (n_claims,), True or False, None where unlabeled.
        responses: response ids (n_claims,).
        precision: target share of true claims among kept claims, in (0, 1]; below 1 for ``mean``.
        confidence: probability of reaching the target, in (0, 1); ignored for ``mean``.
        guarantee: ``probability``, ``mean`` or ``coherent``.
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Raises:
        InputError: for bad arrays, different lengths, or settings outside these ranges.
    """
    promise = Promise.of(precision, confidence, guarantee)
    atoms = labeled_atoms(p, y, unlabeled)
    return filter_of(atoms.p, atoms.y, atoms.grouping(responses), promise)


def filter_of(p: Floats, y: Floats, grouping: Grouping, promise: Promise) -> ConformalFilter:
    """Lowest threshold with a guarantee, as `conformal_filter` returns it, for checked arrays.

    Args:
        p: scores (n,).
        y: labels (n,), 1 or 0.
        grouping: the response of each claim.
        promise: the guarantee.
    """
    if promise.guarantee is Guarantee.MEAN:
        threshold = _mean_threshold(p, y, grouping, 1 - promise.precision)
    else:
        scores = conformity_scores(p, y, grouping, promise.precision)
        threshold = _rank(scores, promise.confidence)
    status = {KEEP_ALL: ConformalStatus.KEEPS_ALL, KEEP_NONE: ConformalStatus.KEEPS_NONE}
    return ConformalFilter(
        threshold=threshold,
        precision=promise.precision,
        confidence=promise.confidence,
        guarantee=promise.guarantee,
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
    keep: Any, y: Any, responses: Any, *, unlabeled: str = LabelPolicy.EXCLUDE
) -> Floats:
    """Share of true claims among the kept claims of each response; 1 if none is kept.

    Args:
        keep: mask of the kept claims, (n_claims,).
        y: labels (n_claims,), True or False, None where unlabeled.
        responses: response ids (n_claims,).
        unlabeled: treatment of atoms without a label, as in `apply_policy`; excluded by default.

    Returns:
        float64 (n_responses,), in order of first appearance.

    Raises:
        InputError: for bad arrays, or different lengths.
    """
    atoms = labeled_atoms(np.asarray(keep, dtype=np.float64), y, unlabeled)
    return _precisions(atoms.p, atoms.y, atoms.grouping(responses))[0]


def _precisions(keep: Floats, y: Floats, grouping: Grouping) -> tuple[Floats, Floats]:
    """Precision of the kept claims of each response, 1 if none is kept, and their number."""
    sizes = grouping.sums(keep)
    true = grouping.sums(keep * y)
    return np.divide(true, sizes, out=np.ones_like(sizes), where=sizes > 0), sizes


@dataclass(frozen=True)
class HeldOut:
    """Performance of a filter on held-out responses, in the mean over random splits.

    Attributes:
        reached: share of held-out responses whose kept claims have the target precision.
        faultless: share of held-out responses without a false claim among the kept ones.
        precision: mean precision of held-out responses, counted as 1 if no claim is kept.
        kept: share of the claims of held-out responses that are kept.
        empty: share of held-out responses without a kept claim.
        n_splits: number of random halves.
    """

    reached: float
    faultless: float
    precision: float
    kept: float
    empty: float
    n_splits: int

    @property
    def reached_nonempty(self) -> float:
        """Share of the responses with a kept claim that have the target precision; nan if none.

        An empty response counts as having any precision, so it is subtracted from both counts.
        """
        return _without_empty(self.reached, self.empty)

    @property
    def faultless_nonempty(self) -> float:
        """Share of the responses with a kept claim that have no false one; nan if none."""
        return _without_empty(self.faultless, self.empty)

    @property
    def precision_nonempty(self) -> float:
        """Mean precision of the responses with a kept claim; nan if none."""
        return _without_empty(self.precision, self.empty)


def _without_empty(mean: float, empty: float) -> float:
    """Mean over nonempty responses, given the mean over all, in which empty ones count 1."""
    left = 1 - empty
    return math.nan if left < _SLACK else min(1.0, max(0.0, (mean - empty) / left))


def held_out(
    p: ArrayLike, y: Any, responses: Any, *, n_splits: int = 200, seed: int = 0, **filtering: Any
) -> HeldOut:
    """Evaluate a filter in random splits: calibrate on half of the responses, filter the rest.

    Args:
        p: probabilities (n_claims,).
        y: labels (n_claims,), None where unlabeled; unlabeled claims are left out.
        responses: response ids (n_claims,).
        n_splits: number of random halves.
        seed: seed of the halves.
        filtering: `precision`, `confidence` and `guarantee`, as in `conformal_filter`.

    Raises:
        InputError: as `conformal_filter`, or if there are fewer than two responses.
    """
    promise = Promise.of(**filtering)
    atoms = labeled_atoms(p, y)
    grouping = atoms.grouping(responses)
    n = len(grouping.responses)
    if n < 2:
        raise InputError("there is one labeled response; a split takes two or more")
    generator = np.random.default_rng(whole_number(seed, "seed", 0))
    outcomes = np.empty((whole_number(n_splits, "n_splits", 1), 5))
    for split in range(len(outcomes)):
        first = np.isin(grouping.index, generator.permutation(n)[: n // 2])
        outcomes[split] = _tried(atoms.p, atoms.y, grouping, first, promise)
    reached, faultless, precise, kept, empty = map(float, outcomes.mean(axis=0))
    return HeldOut(reached, faultless, precise, kept, empty, len(outcomes))


def _tried(
    p: Floats, y: Floats, grouping: Grouping, first: NDArray[np.bool_], promise: Promise
) -> tuple[float, ...]:
    """Outcomes of a filter calibrated on the first part, on the responses outside that part."""
    chosen = filter_of(p[first], y[first], grouping.of(first), promise)
    keep = (p[~first] > chosen.threshold).astype(np.float64)
    precisions, sizes = _precisions(keep, y[~first], grouping.of(~first))
    return (
        float(promise.is_met(precisions).mean()),
        float((precisions == 1).mean()),
        float(precisions.mean()),
        float(keep.mean()),
        float((sizes == 0).mean()),
    )


def exchangeability(
    p: ArrayLike, responses: Any, new_p: ArrayLike, new_responses: Any
) -> dict[str, float]:
    """P-values of tests that new responses have the distribution of the calibration responses.

    Two-sample Kolmogorov-Smirnov tests compare three statistics of responses that need no labels,
    with Bonferroni correction. A small p-value is evidence that the responses are not exchangeable,
    in which case the guarantee may not hold. A large p-value is no evidence that it holds.

    Returns:
        By name: mean probability, number of claims, and share of claims above 1/2.

    Raises:
        InputError: for bad arrays, or different lengths.
    """
    return compared(response_statistics(p, responses), response_statistics(new_p, new_responses))


def response_statistics(p: ArrayLike, responses: Any) -> dict[str, Floats]:
    """Statistics of each response that need no labels, by name, each (n_responses,).

    Args:
        p: probabilities (n_claims,).
        responses: response ids (n_claims,).

    Raises:
        InputError: for bad arrays, or different lengths.
    """
    probabilities, grouping = probability_array(p), group_by_response(responses)
    check_lengths(p=probabilities.size, responses=grouping.index.size)
    values = (
        grouping.means(probabilities),
        grouping.sizes.astype(np.float64),
        grouping.means(probabilities > 0.5),
    )
    return dict(zip(STATISTICS, values, strict=True))


def compared(before: Mapping[str, Floats], after: Mapping[str, Floats]) -> dict[str, float]:
    """P-values of `exchangeability`, from the statistics of old and new responses."""
    from scipy.stats import ks_2samp

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
