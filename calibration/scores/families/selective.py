"""Selective prediction: the risk among kept atoms, at every coverage.

A rule defines the order in which atoms are kept, and the errors. ``verdict`` keeps the most
confident verdicts (true if p > 1/2; confidence max(p, 1 - p)) and counts wrong verdicts. ``claim``
keeps the claims with the highest p, as a filter of a response does, and counts false claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.estimate import Estimate, ScoreStatus, undefined
from calibration.forecasts import Forecasts, Sample, dot
from calibration.intervals import IntervalMethod, Scale
from calibration.scores.definition import SampleSettings, ScoreDefinition
from calibration.scores.measures import DECISION_TOLERANCE
from calibration.validation import Floats, Integers
from factormodels.errors import InputError

RULES = ("verdict", "claim")

_EULER_GAMMA = 0.5772156649015329

_TIES_AT_ONCE = 1 << 15
"""Number of ties per block; temporary arrays of a block fit in a processor's cache."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Points in the order in which they are kept.

    Attributes:
        order: int64 (m,), the points in that order.
        last: int64 (k,), position of the last point of each tie.
        counts_false: bool (m,), whether the errors of a point are its false atoms, not its true
            atoms.
    """

    order: Integers
    last: Integers
    counts_false: Any


def risk_areas(sample: Sample, rule: str) -> tuple[float, float]:
    """AURC of a sample, and excess AURC (El-Yaniv and Wiener 2010; Geifman et al. 2019).

    AURC is the mean of the risk over the first 1, 2, ..., n atoms. Its excess is the difference
    from the smallest AURC with the same errors, which ranks all errors last. Atoms whose
    confidences differ by at most 1e-9 are tied, and the risk is averaged over their orders.

    Raises:
        InputError: for another rule.
    """
    if rule not in RULES:
        raise InputError(f"rule is {rule!r}; choose 'verdict' or 'claim'")
    return _areas(*_kept(sample, _ranking(sample.forecasts, rule)))


def risk_at(sample: Sample, rule: str, coverage: Floats) -> Floats:
    """Risk of a sample at coverages (k,) in (0, 1], averaged over the orders of ties, (k,)."""
    kept, wrong = _kept(sample, _ranking(sample.forecasts, rule))
    wanted = coverage * kept[-1]
    curve: Floats = np.interp(wanted, np.append(0.0, kept), np.append(0.0, wrong)) / wanted
    return curve


def verdict_ranking(points: Forecasts) -> Ranking:
    """Order in which the rule ``verdict`` keeps points."""
    return _ranking(points, "verdict")


def _ranking(points: Forecasts, rule: str) -> Ranking:
    def build() -> Ranking:
        supported = points.p > 0.5 + DECISION_TOLERANCE
        if rule == "claim":
            confidence, counts_false = points.p, np.ones(points.p.size, dtype=bool)
        else:
            confidence, counts_false = np.where(supported, points.p, 1 - points.p), supported
        order = np.argsort(-confidence, kind="stable")
        ordered = confidence[order]
        apart = ordered[:-1] - ordered[1:] > DECISION_TOLERANCE
        last = np.flatnonzero(np.append(apart, True))
        return Ranking(order, last, counts_false)

    return points.remember(("ranking", rule), build)


def _kept(sample: Sample, ranking: Ranking) -> tuple[Floats, Floats]:
    """Cumulative weight after each tie, and the part of it that is wrong."""
    kept, wrong = (
        sample.weight[ranking.order],
        np.where(ranking.counts_false, sample.false, sample.true)[ranking.order],
    )
    kept, wrong = np.cumsum(kept, out=kept), np.cumsum(wrong, out=wrong)
    if ranking.last.size < kept.size:
        kept, wrong = kept[ranking.last], wrong[ranking.last]
    return kept, wrong


def _areas(kept: Floats, wrong: Floats) -> tuple[float, float]:
    """AURC and its excess.

    Let a tie increase the weight from a to b, and let its errors start at e and increase at a rate
    r. The risk at i atoms is (e + r (i - a)) / i, and its sum over i is
    r (b - a) + (e - r a)(H(b) - H(a)), where H denotes harmonic numbers.
    """
    total, errors = float(kept[-1]), float(wrong[-1])
    area = errors
    for begin in range(0, kept.size, _TIES_AT_ONCE):
        after = slice(begin, begin + _TIES_AT_ONCE)
        a, e = _with_previous(kept, after), _with_previous(wrong, after)
        added = np.diff(a)
        rate = np.divide(np.diff(e), added, out=np.zeros_like(added), where=added > 0)
        area += dot(e[:-1] - rate * a[:-1], np.diff(harmonic_numbers(a)))
    right = total - errors
    ends = harmonic_numbers(np.array([right, total]))
    least = errors - right * float(ends[1] - ends[0])
    return area / total, (area - least) / total


def _with_previous(sums: Floats, rows: slice) -> Floats:
    """Sums of the given rows, preceded by the sum before them."""
    if rows.start:
        return sums[rows.start - 1 : rows.stop]
    return np.append(0.0, sums[rows])


def harmonic_numbers(x: Floats) -> Floats:
    """Harmonic numbers H(x) = digamma(x + 1) + gamma of x >= 0, elementwise."""
    from scipy.special import digamma

    result = np.empty_like(x)
    small = x < 40
    result[small] = digamma(x[small] + 1) + _EULER_GAMMA
    large = x[~small]
    # The asymptotic series; at 40 its next term is below 1e-15.
    inverse = 1 / large**2
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))
    result[~small] = np.log(large) + 0.5 / large - series + _EULER_GAMMA
    return result


def rejection_ratio(sample: Sample) -> float:
    """Prediction rejection ratio of a sample: 1 at best, 0 for a random order, nan for one class.

    Claims are rejected one by one, starting with the least probable. Let A be the area under the
    share of true claims among the remaining claims. Let R be the area of a random order, which is
    the share of true claims, and B the area of the best order, which rejects all false claims
    first. Then

        PRR = (A - R) / (B - R).

    Malinin and Gales 2021. The computation follows LM-Polygraph (`PredictionRejectionArea` with
    `normalize_metric`), with 1 - p as uncertainty and the label as quality. LM-Polygraph averages
    draws of random orders; this function uses their expectation, and averages over the orders of
    tied claims.
    """
    # The area of the risk is 1 minus the area of the share.
    area, excess = risk_areas(sample, "claim")
    if sample.has_one_class:
        return float("nan")
    at_random = sample.total_false / sample.total
    return (at_random - area) / (at_random - area + excess)


def _rejection_score(sample: Sample, _: SampleSettings) -> tuple[Estimate, ...]:
    if sample.has_one_class:
        return (undefined("prr", ScoreStatus.ONE_CLASS),)
    return (Estimate("prr", rejection_ratio(sample)),)


def _area_score(sample: Sample, _: SampleSettings) -> tuple[Estimate, ...]:
    return (Estimate("aurc", risk_areas(sample, "verdict")[0]),)


FAMILY = (
    ScoreDefinition(
        name="aurc",
        title="AURC",
        meaning="area under the risk-coverage curve of verdicts",
        higher_is_better=False,
        interval=IntervalMethod.JACKKNIFE,
        of_sample=_area_score,
        usual=11,
    ),
    ScoreDefinition(
        name="prr",
        title="PRR",
        meaning="prediction rejection ratio: gain of rejecting by p over the possible gain",
        higher_is_better=True,
        scale=Scale.NUMBER,
        interval=IntervalMethod.JACKKNIFE,
        range=(-np.inf, 1.0),
        of_sample=_rejection_score,
    ),
)
