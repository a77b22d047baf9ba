"""Bounds on the share of true claims and on the Brier score under a shift of evidence.

The test of `shift_of` does not measure harm: with many responses it detects any difference. This
module bounds the effect of the difference. Claims are binned by their log odds. Let Q, T and F be
the shares of new claims, of true training claims and of false training claims in each bin, and w
the weight of the nearest mixture. Then the training claims explain a part
min(1, (wT + (1 - w)F)/Q) of the new claims in a bin; nothing is known of the rest. For explained
claims there are two hypotheses. Under label shift, the share of true claims changed and the
distribution of evidence given truth did not, so that wT/(wT + (1 - w)F) of a bin are true. Under
covariate shift, the probability of truth given evidence did not change, so that posteriors are
right. The bounds are valid under both, and for any truth values of unexplained claims. Neither
hypothesis can be tested without labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.intervals import drawn_weights
from calibration.learned_potentials.shift import FEWEST, LawOfEvidence
from calibration.validation import Floats, Integers, whole_number

TOLERANCE = 0.05
"""Largest change of the Brier score that counts as harmless."""

_BINS = 6
"""Number of bins of log odds, with equal numbers of claims. With more bins, chance alone lowers the
explained part."""

_NORMAL = 1.959963984540054

_SCORES = 101
"""Brier scores between the bounds at which the largest deviation is looked for."""


class Harm(NamedTuple):
    """Bounds (95%) under a shift of evidence, over responses of both data sets.

    Attributes:
        unexplained: share of new claims that no mixture of the training claims explains.
        share_lower: lower bound on the share of true claims.
        share_upper: upper bound.
        brier: Brier score of calibrated posteriors, the mean of p (1 - p).
        brier_lower: lower bound on the Brier score.
        brier_upper: upper bound.
        deviation: standard deviation over training responses of a response's contribution to the
            Brier score, times the number of responses.
        most_deviation: largest such deviation over the new responses that any labels within the
            bounds of the Brier score give.
        n_responses: number of new responses.
    """

    unexplained: float
    share_lower: float
    share_upper: float
    brier: float
    brier_lower: float
    brier_upper: float
    deviation: float
    most_deviation: float
    n_responses: int

    @property
    def largest_rise(self) -> float:
        """Largest possible excess of the Brier score over `brier`."""
        return self.brier_upper - self.brier

    @property
    def bounded(self) -> bool:
        """True if `largest_rise` is at most `TOLERANCE`."""
        return self.largest_rise <= TOLERANCE

    @property
    def n_to_label(self) -> int:
        """Number of responses to label for an estimate of the Brier score to within `TOLERANCE`.

        The variance of losses over responses is assumed to be the same as in the training
        responses. A shift may violate this assumption, which `n_in_any_case` does not make. The
        number is at least `FEWEST`, the minimum for a variance, and at most the number of new
        responses.
        """
        return self._n_of(self.deviation)

    @property
    def n_in_any_case(self) -> int:
        """The same number for the largest variance that labels within the bounds can give."""
        return self._n_of(max(self.deviation, self.most_deviation))

    def _n_of(self, deviation: float) -> int:
        wanted = math.ceil((_NORMAL * deviation / TOLERANCE) ** 2) + 1
        return min(max(wanted, FEWEST), self.n_responses)


def harm_of(
    law: LawOfEvidence,
    labels: Floats,
    new: LawOfEvidence,
    p: Floats,
    *,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> Harm:
    """Bound the share of true claims and the Brier score among new claims.

    Args:
        law: evidence of the n training claims, log odds first.
        labels: labels of the training claims, 1 or 0, (n,).
        new: evidence of the m new claims.
        p: posteriors of the new claims, (m,).
        n_bootstrap: number of replicates, which resample the responses of both data sets.
        seed: seed of the replicates.
    """
    n_bootstrap, seed = whole_number(n_bootstrap, "n_bootstrap", 1), whole_number(seed, "seed", 0)
    log_odds, learned = new.values[:, 0], law.values[:, 0]
    both = np.concatenate([learned, log_odds])
    cuts = np.quantile(both, np.linspace(0, 1, _BINS + 1)[1:-1])
    known_bins, new_bins = (np.searchsorted(cuts, each) for each in (learned, log_odds))
    known_values = np.stack([labels, 1 - labels])
    new_values = np.stack([np.ones_like(p), p, p**2, (1 - p) ** 2, np.minimum(p, 1 - p) ** 2,
                           np.maximum(p, 1 - p) ** 2, p * (1 - p)])  # fmt: skip
    known = _sums(known_values, law.owners, known_bins, law.n_responses)
    here = _sums(new_values, new.owners, new_bins, new.n_responses)
    generator = np.random.default_rng(seed)

    def redrawn(n: int) -> Floats:
        return drawn_weights(generator, n_bootstrap, n, n)

    everybody = np.ones((1, law.n_responses)), np.ones((1, new.n_responses))
    value = _bounds(*(np.tensordot(w, s, 1) for w, s in zip(everybody, (known, here), strict=True)))
    drawn = _bounds(
        np.tensordot(redrawn(law.n_responses), known, 1),
        np.tensordot(redrawn(new.n_responses), here, 1),
    )
    least = np.nanquantile(drawn.lower, 0.025, axis=1)
    most = np.nanquantile(drawn.upper, 0.975, axis=1)
    return Harm(
        unexplained=float(value.unexplained[0]),
        share_lower=float(least[0]),
        share_upper=float(most[0]),
        brier=float((p * (1 - p)).mean()),
        brier_lower=float(least[1]),
        brier_upper=float(most[1]),
        deviation=_deviation(learned, labels, law),
        most_deviation=_most_deviation(p, new, float(least[1]), float(most[1])),
        n_responses=new.n_responses,
    )


class _Bounds(NamedTuple):
    """Bounds on the share and on the Brier score, (2, b) each, for b replicates."""

    unexplained: Floats
    lower: Floats
    upper: Floats


def _sums(values: Floats, owners: Integers, bins: Integers, n_responses: int) -> Floats:
    """Sums of values (k, n) by response and bin, (n_responses, k, bins)."""
    places = owners * _BINS + bins
    sums = [np.bincount(places, each, n_responses * _BINS) for each in values]
    by_place: Floats = np.stack(sums, axis=1).astype(np.float64)
    return by_place.reshape(n_responses, _BINS, len(values)).swapaxes(1, 2)


def _bounds(known: Floats, here: Floats) -> _Bounds:
    """Bounds from sums by bin over training claims, (b, 2, bins), and new claims, (b, 7, bins)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        true, false = (
            known[:, each] / known[:, each].sum(axis=1, keepdims=True) for each in (0, 1)
        )
        size = here[:, 0].sum(axis=1)
        each_bin = here / size[:, None, None]
        count, p, if_false, if_true, best, worst, claimed = each_bin.swapaxes(0, 1)
        # The nearest mixture in the distance between distribution functions.
        apart, ahead = np.cumsum(true - false, axis=1), np.cumsum(count - false, axis=1)
        along = (apart * ahead).sum(axis=1) / np.square(apart).sum(axis=1)
        # If evidence does not depend on truth, all weights are equally near.
        weight = np.clip(np.where(np.square(apart).sum(axis=1) == 0, 0.5, along), 0.0, 1.0)
        of_true = weight[:, None] * true
        mixture = of_true + (1 - weight[:, None]) * false
        explained = np.minimum(1.0, np.nan_to_num(mixture / count, nan=1.0, posinf=1.0))
        truth = np.nan_to_num(of_true / mixture)
    losses = truth * if_true + (1 - truth) * if_false
    open_part = 1 - explained

    def total(of_explained: Floats, of_others: Floats) -> Floats:
        return np.asarray((explained * of_explained + open_part * of_others).sum(axis=1))

    shares, briers = (truth * count, p), (losses, claimed)
    lower = [(shares, np.zeros_like(count)), (briers, best)]
    upper = [(shares, count), (briers, worst)]
    return _Bounds(
        (open_part * count).sum(axis=1),
        np.stack([np.minimum(*(total(law, rest) for law in laws)) for laws, rest in lower]),
        np.stack([np.maximum(*(total(law, rest) for law in laws)) for laws, rest in upper]),
    )


def _deviation(log_odds: Floats, labels: Floats, law: LawOfEvidence) -> float:
    """Standard deviation of the losses of training responses, as in `Harm.deviation`."""
    losses = (1 / (1 + np.exp(-log_odds)) - labels) ** 2
    surplus = np.bincount(law.owners, losses - losses.mean(), law.n_responses)
    influences = surplus * law.n_responses / losses.size
    return float(influences.std(ddof=1)) if law.n_responses > 1 else math.nan


def _most_deviation(p: Floats, new: LawOfEvidence, lower: float, upper: float) -> float:
    """Largest deviation over responses, for any labels whose Brier score is within bounds.

    Response i has m_i claims, and losses that sum to between L_i and H_i. With a Brier score B its
    influence is (S_i - B m_i) N / M, for N responses of M claims. The variance is convex in the
    sums S_i, so it is largest if each is at an end of its range: H_i in a share q of the responses,
    L_i in the others, with q such that the Brier score is B.
    """
    n_responses = new.n_responses
    sizes, least, most = (
        np.bincount(new.owners, each, n_responses)
        for each in (np.ones_like(p), np.minimum(p, 1 - p) ** 2, np.maximum(p, 1 - p) ** 2)
    )
    score = np.linspace(lower, upper, _SCORES)[:, np.newaxis]
    room = most.sum() - least.sum()
    high = np.clip((score * p.size - least.sum()) / room if room > 0 else 0.0, 0.0, 1.0)
    squares = high * (most - score * sizes) ** 2 + (1 - high) * (least - score * sizes) ** 2
    return float(np.sqrt(squares.mean(axis=1).max()) * n_responses / p.size)
