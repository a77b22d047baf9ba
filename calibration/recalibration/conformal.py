"""Conformal filtering: keep the claims of a response that are sure enough, with a guarantee.

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
"""Relative: shares and ranks that differ by less differ by rounding."""


class Guarantee(StrEnum):
    """What holds of a new response that is exchangeable with those of the calibration."""

    PROBABILITY = "probability"
    """With probability `confidence`, the kept claims have at least the target precision."""
    MEAN = "mean"
    """The expected precision of the kept claims is at least the target."""


class ConformalStatus(StrEnum):
    """What became of the threshold."""

    OK = "ok"
    KEEPS_ALL = "keeps_all"
    """Without any filtering the target is met."""
    KEEPS_NONE = "keeps_none"
    """No threshold meets the target, or there are too few responses to tell: nothing is kept,
    which counts as precision 1."""


@dataclass(frozen=True)
class ConformalFilter:
    """A threshold with a guarantee.

    Attributes:
        threshold: claims with a probability above it are kept; -inf keeps all, inf none.
        precision: the target precision of the kept claims of a response.
        confidence: the probability of reaching it; nan for a guarantee in the mean.
        guarantee: ``probability`` or ``mean``.
        n_responses: number of responses of the calibration.
        status: what became of the threshold.
    """

    threshold: float
    precision: float
    confidence: float
    guarantee: Guarantee
    n_responses: int
    status: ConformalStatus

    def keep(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Which claims are kept, (n,), of probabilities `p` (n,) in [0, 1].

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
    """Lowest threshold that holds a precision, calibrated on labelled responses.

    For ``probability``: the score of a response is the least t such that at every threshold from
    t on the kept claims have the target precision; the threshold is the ceil((R + 1) confidence)-th
    smallest of the R scores. A new response then has the precision with probability at least
    `confidence`, and without ties at most 1/(R + 1) above that, whatever the probabilities are
    worth: poor ones only cost claims. For ``mean``: the loss of a response at t is its largest
    1 - precision at any threshold from t on, and the threshold the least t at which
    (sum of losses + 1)/(R + 1) is at most 1 - precision.

    The responses must be exchangeable with those that are filtered: another subject or model
    voids the guarantee. Claims need not be independent within a response.

    Args:
        p: probabilities (n_claims,) that claims are true, or any scores in [0, 1].
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        precision: target share of true claims among those kept, in (0, 1]; below 1 for ``mean``.
        confidence: probability of reaching it, in (0, 1); not used for ``mean``.
        guarantee: ``probability`` or ``mean``.
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Raises:
        InputError: for bad arrays, lengths that differ, or settings outside these ranges.
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
    """Least threshold of each response from which on it has the precision.

    Returns:
        float64 (n_responses,); -inf for a response that has the precision unfiltered.
    """
    order, precisions, next_lower = _prefixes(p, y, grouping)
    short = precisions < precision * (1 - _SLACK)
    scores = np.full(len(grouping.responses), KEEP_ALL)
    # Keeping the claims down to one of them falls short: the threshold must be at that claim or
    # above. Only thresholds between distinct probabilities differ, hence the last of each run.
    fails = short & next_lower
    np.maximum.at(scores, grouping.index[order][fails], p[order][fails])
    return scores


def filtered_precision(
    keep: Any, y: Any, responses: Any, *, unlabelled: str = LabelPolicy.EXCLUDE
) -> Floats:
    """Share of true claims among those kept of each response, 1 where none is kept.

    Args:
        keep: which claims are kept, (n_claims,).
        y: labels (n_claims,), True or False, None where unlabelled.
        responses: response ids (n_claims,).
        unlabelled: what atoms without a label count as, as in `apply_policy`: left out by default.

    Returns:
        float64 (n_responses,), in order of first appearance.

    Raises:
        InputError: for bad arrays, or lengths that differ.
    """
    atoms = labelled_atoms(np.asarray(keep, dtype=np.float64), y, unlabelled)
    grouping = atoms.grouping(responses)
    sizes = grouping.sums(atoms.p)
    return np.divide(
        grouping.sums(atoms.p * atoms.y), sizes, out=np.ones_like(sizes), where=sizes > 0
    )


@dataclass(frozen=True)
class HeldOut:
    """What a filter's promise was worth on responses that it was not calibrated on.

    Attributes:
        reached: share of new responses whose kept claims have the target precision.
        precision: their mean precision, 1 where nothing is kept.
        kept: share of their claims that is kept.
        n_splits: number of random halves.
    """

    reached: float
    precision: float
    kept: float
    n_splits: int


def held_out(
    p: ArrayLike, y: Any, responses: Any, *, n_splits: int = 200, seed: int = 0, **filtering: Any
) -> HeldOut:
    """Calibrate on a random half of the responses, filter the other half, again and again.

    Args:
        p: probabilities (n_claims,).
        y: labels (n_claims,), None where unlabelled: these claims are left out.
        responses: response ids (n_claims,).
        n_splits: number of random halves.
        seed: seed of the halves.
        filtering: `precision`, `confidence` and `guarantee`, as in `conformal_filter`.

    Raises:
        InputError: as `conformal_filter` does, or if there are fewer than two responses.
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
    """P values of tests that new responses are like those of the calibration, as far as p tells.

    Kolmogorov and Smirnov's two-sample tests of what can be seen without labels, each response
    once, corrected for being three (Bonferroni). A small value says that they differ, and that the
    guarantee does not hold; a large one does not say that it does.

    Returns:
        By name: mean probability, number of claims, and share of claims above 1/2.

    Raises:
        InputError: for bad arrays, or lengths that differ.
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
    """Claims by response and falling p, the precision of keeping down to each, and which
    claims are the last of their probability in their response."""
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
    """Least threshold whose mean loss, and one loss of 1 more, is at most `allowed`."""
    order, precisions, last = _prefixes(p, y, grouping)
    response, level = grouping.index[order], p[order]
    # Each response's loss is a falling staircase in the threshold: below a claim's probability
    # the loss is at least that of keeping down to it.
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
        # Claims are kept above the threshold, so that at a step's own place it has no effect yet.
        if total > budget:
            return threshold
    return KEEP_ALL
