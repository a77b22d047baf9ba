"""Test of unlabeled evidence as a mixture of the training evidence of true and false claims.

A judge applies to other responses if their evidence has the same distribution given truth as the
evidence of the training claims. The distribution of evidence among new claims is then a mixture of
the distributions among true and among false training claims, weighted by the share of true claims
(Saerens, Latinne and Decaestecker 2002; Gonzalez-Castro, Alaiz-Rodriguez and Alegre 2013). If
retrieval or the relation model changed, there may be no such weight. The test comes before any
estimate of the share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibration.intervals import drawn_weights
from calibration.validation import Floats, Integers, whole_number

MOST_THRESHOLDS = 32
"""Largest number of quantiles at which the distributions of a kind of evidence are compared."""

LEAST_TAIL = 0.05
"""Smallest share of a tail that is compared; the noise of rarer evidence would hide the rest."""

ALARM = 0.05
"""Significance level of the test: probability that a true mixture is rejected."""

FEWEST = 8
"""Smallest number of new responses for an estimate; with fewer, the test has almost no power."""

_EDGE = 0.01
"""A share is not determined if its interval comes this close to 0 or 1."""


class ShiftStatus(StrEnum):
    """Conclusion from the evidence of new responses on their share of true claims."""

    REPRODUCED = "reproduced"
    """The evidence is a mixture of the training evidence, with another weight, which is
    determined."""
    OTHER_EVIDENCE = "other_evidence"
    """The evidence is not a mixture of the training evidence of true and of false claims."""
    TOO_FEW = "too_few_responses"
    """There are too few new responses or training responses to estimate their variation."""
    UNDETERMINED = "undetermined"
    """The evidence is compatible with any share, or with a share at the end of the range."""
    CONTRADICTED = "contradicted"
    """The weight and the judge's mean posterior are on different sides of the training share."""
    SAME_SHARE = "same_share"
    """The evidence is a mixture of the training evidence, and its weight is compatible with the
    training share."""


@dataclass(frozen=True, eq=False)
class LawOfEvidence:
    """Evidence for and against the n claims of r responses.

    Attributes:
        values: float64 (n, k), k kinds of evidence for each claim, such as its log odds.
        owners: int64 (n,), the response of each claim.
        n_responses: number of responses, r.
    """

    values: Floats
    owners: Integers
    n_responses: int

    def of(self, kept: Integers) -> LawOfEvidence:
        """Evidence of some of the claims, with the same numbering of responses."""
        return LawOfEvidence(self.values[kept], self.owners[kept], self.n_responses)


@dataclass(frozen=True)
class Shift:
    """Distance of the evidence of new responses from the training evidence.

    Attributes:
        distance: largest difference between the distribution functions of the first kind of
            evidence among new claims and under the best mixture, at the compared quantiles; 0 for a
            mixture, nan if unknown.
        lower: lower end of its interval over responses of both data sets; 0 if a mixture is not
            rejected; nan without an interval.
        upper: upper end.
        p_value: p-value of the hypothesis that the evidence is a mixture; nan if not testable.
        share: weight of the best mixture: the share of true claims, if the hypothesis holds.
        share_lower: lower end of its interval.
        share_upper: upper end.
        old_share: share of true claims among the training claims.
        n_responses: number of new responses.
        status: the conclusion.
    """

    distance: float
    lower: float
    upper: float
    p_value: float
    share: float
    share_lower: float
    share_upper: float
    old_share: float
    n_responses: int
    status: ShiftStatus

    @property
    def determined(self) -> bool:
        """True if the share is known to differ, so that posteriors may be adjusted to it."""
        return self.status is ShiftStatus.REPRODUCED


def shift_of(
    true: LawOfEvidence,
    false: LawOfEvidence,
    new: LawOfEvidence,
    mean_posterior: float,
    *,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> Shift:
    """Test the evidence of new claims against mixtures of the evidence of true and false claims.

    The test statistic is of the Cramer-von Mises type: the squared distance of the distribution
    functions from their best mixture, summed over the kinds of evidence, each in units of its
    expected value under chance. The weight of the mixture is the minimum-distance estimate. The
    null distribution comes from two bootstraps over responses, both with redrawn training
    responses. One redraws the new responses and recenters at the distance of the data (Hall and
    Horowitz 1996, Econometrica 64). The other draws an equal number of training responses, whose
    claims are weighted to the mixture. The larger p-value is used, because few new responses show
    too little of the variation between responses, and training responses may vary less. Claims of
    a response stay together.

    With few new responses, such as 8, the power is small, and a test that does not reject means
    little. With fewer than `FEWEST` no share is estimated.

    Args:
        true: evidence of the true training claims, among r responses.
        false: evidence of the false training claims, among the same responses.
        new: evidence of all claims of s other responses.
        mean_posterior: mean posterior of the new claims under the learned prior.
        n_bootstrap: number of replicates.
        seed: seed of the replicates.
    """
    n_bootstrap, seed = whole_number(n_bootstrap, "n_bootstrap", 1), whole_number(seed, "seed", 0)
    old = len(true.values) / max(len(true.values) + len(false.values), 1)
    nan = np.nan
    counts = (old, new.n_responses, ShiftStatus.TOO_FEW)
    nothing = Shift(nan, nan, nan, nan, nan, nan, nan, *counts)
    parts = (true, false, new)
    if min(true.n_responses, new.n_responses) < 2 or not all(len(side.values) for side in parts):
        return nothing
    thresholds = _thresholds(np.concatenate([side.values for side in parts]))
    kinds = np.repeat(np.arange(len(thresholds)), [len(kind) for kind in thresholds])
    if not kinds.size:
        return replace(nothing, p_value=1.0, status=ShiftStatus.UNDETERMINED)
    of_true, of_false, of_new = (_below(side, thresholds) for side in parts)
    totals = [below.sum(axis=0) for below in (of_true, of_false, of_new)]
    own_true, own_false, own_new = map(_divided, totals)
    generator = np.random.default_rng(seed)

    def draws(size: int, of: int) -> Floats:
        return drawn_weights(generator, n_bootstrap, of, size)

    def moves(weights: Floats, sums: Floats) -> Floats:
        # The variance of a redrawn mean is too small by a factor of 1 - 1/R.
        factor = np.sqrt(len(sums) / (len(sums) - 1))
        return np.asarray(factor * (_divided(weights @ sums) - _divided(sums.sum(axis=0))))

    known = draws(true.n_responses, true.n_responses)
    like_new = draws(new.n_responses, true.n_responses)
    moved_true, moved_false = moves(known, of_true), moves(known, of_false)
    moved_new = moves(draws(new.n_responses, new.n_responses), of_new)
    scale = 1.0 / np.bincount(kinds)[kinds]
    laws: list[tuple[Floats, Floats, Floats]] = []
    # Weight each kind of evidence by its noise; the first pass weights all kinds equally.
    for _ in range(2):
        weight = float(_nearest(own_true, own_false, own_new, scale)[0][0])
        mixed = weight / totals[0][-1] * of_true + (1.0 - weight) / totals[1][-1] * of_false
        center = weight * own_true + (1.0 - weight) * own_false
        laws, noise = [], []
        for moved in (moved_new, _divided(like_new @ mixed) - center):
            law = own_true + moved_true, own_false + moved_false, center + moved
            kept = np.isfinite(np.sum(law, axis=(0, 2)))
            drawn_true, drawn_false, drawn_new = (drawn[kept] for drawn in law)
            laws.append((drawn_true, drawn_false, drawn_new))
            mixture = weight * drawn_true + (1.0 - weight) * drawn_false
            noise.append(np.square(drawn_new - mixture).mean(axis=0))
        of_kind = np.bincount(kinds, np.max(noise, axis=0))
        scale = 1.0 / np.maximum(of_kind, _LEAST_NOISE)[kinds]
    observed = (scale * _nearest(own_true, own_false, own_new, scale)[1] ** 2).sum()
    p_values = []
    for law in laws:
        sizes = (scale * _nearest(*law, scale)[1] ** 2).sum(axis=-1)
        p_values.append((int((sizes >= observed).sum()) + 1) / (len(sizes) + 1))
    weights = _nearest(own_true + moved_true, own_false + moved_false, own_new + moved_new, scale)
    first = kinds == 0
    gap = np.abs(_nearest(own_true, own_false, own_new, scale)[1][first]).max(initial=0.0)
    # Redrawn data are farther from any mixture than the data, so their distances do not give an
    # interval. By the triangle inequality, a distance is wrong by at most the noise of both sides.
    apart = moved_new - weight * moved_true - (1.0 - weight) * moved_false
    moved_gaps = np.abs(apart[:, first]).max(axis=1, initial=0.0)
    shares = weights[0][:, 0][np.isfinite(weights[0][:, 0])]
    off = np.quantile(moved_gaps[np.isfinite(moved_gaps)], 0.95) if len(shares) else np.nan
    low, high = np.quantile(shares, [0.025, 0.975]) if len(shares) else (np.nan,) * 2
    bounds = np.clip([gap - off, gap + off], 0.0, 1.0)
    shift = Shift(
        float(gap), float(bounds[0]), float(bounds[1]), max(p_values),
        weight, float(low), float(high),
        old, new.n_responses, ShiftStatus.REPRODUCED,
    )  # fmt: skip
    return replace(shift, status=_status(shift, mean_posterior))


def _status(shift: Shift, mean_posterior: float) -> ShiftStatus:
    if shift.n_responses < FEWEST:
        return ShiftStatus.TOO_FEW
    if shift.p_value < ALARM:
        return ShiftStatus.OTHER_EVIDENCE
    if shift.share_lower <= _EDGE or shift.share_upper >= 1.0 - _EDGE:
        return ShiftStatus.UNDETERMINED
    # A share that is compatible with the old share is noise, and adjusting to it would do harm.
    if shift.share_lower <= shift.old_share <= shift.share_upper:
        return ShiftStatus.SAME_SHARE
    # Under the hypothesis the mean posterior moves in the direction of the share, by less.
    same = (mean_posterior - shift.old_share) * (shift.share - shift.old_share) >= 0.0
    return ShiftStatus.REPRODUCED if same else ShiftStatus.CONTRADICTED


_LEAST_NOISE = 1e-12


def _nearest(true: Floats, false: Floats, new: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Weight in [0, 1] of the nearest mixture, (..., 1), and the distances from it, (..., c)."""
    apart, ahead = true - false, new - false
    size = (scale * apart**2).sum(axis=-1, keepdims=True)
    along = (scale * ahead * apart).sum(axis=-1, keepdims=True)
    weight = np.clip(np.divide(along, size, out=np.zeros_like(along), where=size > 0.0), 0.0, 1.0)
    return weight, ahead - weight * apart


def _thresholds(values: Floats) -> list[Floats]:
    """Quantiles of each kind of evidence at which distributions are compared, without tails."""
    thresholds = []
    for column in np.sort(values, axis=0).T:
        at = np.linspace(0, len(column) - 1, MOST_THRESHOLDS + 1).astype(np.int64)
        quantiles = np.unique(column[at])
        share = np.searchsorted(column, quantiles, side="right") / len(column)
        thresholds.append(quantiles[(share >= LEAST_TAIL) & (share <= 1.0 - LEAST_TAIL)])
    return thresholds


def _below(evidence: LawOfEvidence, thresholds: Sequence[Floats]) -> Floats:
    """Number of claims of each response up to each threshold, and in total, (r, c + 1)."""
    columns = [
        values[:, np.newaxis] <= bounds
        for values, bounds in zip(evidence.values.T, thresholds, strict=True)
    ]
    reached = np.concatenate([*columns, np.ones((len(evidence.values), 1), bool)], axis=1)
    sums = np.zeros((evidence.n_responses, reached.shape[1]))
    np.add.at(sums, evidence.owners, reached)
    return sums


def _divided(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[..., :-1] / sums[..., -1:])
