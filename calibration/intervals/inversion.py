"""Intervals of scores that chance alone raises, by inverting bootstrap tests.

A calibration error is a distance from perfect calibration. Estimated from few atoms it is too
large, and a redrawn sample, which is the farther from calibration, is too large twice: percentiles
of replicates lie above the truth, the more so the better the forecasts.

Each value that the score may have in the population is tested instead (Garthwaite and Buckland
1992, Applied Statistics 41; Carpenter 1999, Journal of the Royal Statistical Society B 61).
Populations between perfect calibration and the data are those whose deviations are a share of the
data's; what redrawing responses adds to the deviations of each is what it adds to those of the
data, recentered (Hall and Wilson 1991, Biometrics 47). A population is in the interval if the score
of the data is no rarer among its replicates than the level allows. Ends are scores of populations:
they stay in the score's range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.intervals.methods import effective_number, student_quantile
from calibration.validation import Floats

DEVIATIONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.6, 2.2, 3.0)
"""Deviations of the populations that are tested, as multiples of the data's; between them the
quantiles of replicates are interpolated. Where the largest is not refused, more are tested."""

MOST_DEVIATIONS = 100

Functional = Callable[[Floats], Floats]
"""Deviations (..., n_cells) to scores (...)."""


@dataclass(frozen=True, eq=False)
class DeviationScores:
    """A score as a function of deviations in cells (of p, say), which are means over atoms.

    Attributes:
        deviation: float64 (n_cells,), deviations of the data.
        direction: float64 (n_cells,), those of the population that is like the data: the same, or
            smoothed where the score smooths.
        sums: (n_responses, n_cells), sums over the atoms of each response: of deviations, or
            of residuals of a fit;
            sparse or not.
        weight: float64 (n_responses,), weight of the atoms of each response.
        statistic: the score that a sample of the size of the data has.
        population: that which a population has; the same but for corrections of bias.
        size: float64 (n_responses,), sums over the atoms of each response of what each adds to the
            size of the direction, relative to it; None where `sums` have it already.
    """

    deviation: Floats
    direction: Floats
    sums: Any
    weight: Floats
    statistic: Functional
    population: Functional
    size: Floats | None = None

    @property
    def effective(self) -> float:
        """Number of responses of equal size that say as much, at least 2."""
        return max(2.0, float(effective_number(self.weight)))


def inverted_intervals(
    scores: DeviationScores, weights: Iterable[Floats], level: float
) -> tuple[float, float, float]:
    """Lower end, upper end and standard error of a score.

    Args:
        scores: the score.
        weights: blocks of how often each response is drawn, as `response_weights` yields.
        level: nominal coverage.
    """
    from scipy.special import ndtr

    noise = redraw_noise(scores, weights)
    tail = float(ndtr(-student_quantile(level, scores.effective - 1)))
    score = float(scores.statistic(scores.deviation))
    shares, quantiles, error = list(DEVIATIONS), [], np.nan
    for share in shares:
        drawn = scores.statistic(share * scores.direction + noise)
        quantiles.append(np.quantile(drawn, (tail, 1 - tail)))
        if share == 1:
            error = float(drawn.std())
        # Data of hardly any deviation may come of populations with many times as much.
        if share == shares[-1] < MOST_DEVIATIONS and quantiles[-1][0] < score:
            shares.append(1.4 * share)
    # Noise of the quantiles aside, all of this ascends with the deviations.
    fewest, most = np.maximum.accumulate(np.stack(quantiles), axis=0).T
    multiples = np.array(shares)[:, np.newaxis] * scores.direction
    populations = np.maximum.accumulate(scores.population(multiples))
    # The least and the largest population whose replicates are as large, and as small.
    lower, upper = (float(np.interp(score, end, populations)) for end in (most, fewest))
    # Data that are nearer to none than chance allows do not speak against their own score.
    return lower, upper if score > fewest[0] else max(score, lower), error


def redraw_noise(
    scores: DeviationScores, weights: Iterable[Floats], *, leverage: bool = True
) -> Floats:
    """Contribution of resampling responses to the deviations, (n_replicates, n_cells).

    A response that is a share h of the weight pulls the mean towards itself: its residual is too
    small by a factor of the root of 1 - h on average (Bell and McCaffrey 2002), which is corrected.

    Args:
        scores: the scores.
        weights: as in `inverted_intervals`.
        leverage: whether to correct that, or to leave what a sample of redrawn responses has.
    """
    total = scores.weight.sum()
    mean = np.asarray(scores.sums.sum(axis=0)) / total
    share = scores.weight / total
    factor = 1 / np.sqrt(np.maximum(1 - share, share)) if leverage else np.ones_like(share)
    noise = []
    for block in weights:
        drawn = (block - 1) * factor
        excess = drawn @ scores.sums - (drawn @ scores.weight)[:, np.newaxis] * mean
        if scores.size is not None:
            excess = excess + np.outer(drawn @ scores.size, scores.direction)
        noise.append(np.asarray(excess) / (block @ scores.weight)[:, np.newaxis])
    return np.concatenate(noise)
