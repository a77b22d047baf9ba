"""Intervals of scores that chance alone raises, by inverting bootstrap tests.

A calibration error is a distance from perfect calibration. Its estimate from few atoms is too
large, and the estimate from a redrawn sample, which is farther from calibration, is too large
twice. Percentiles of replicates are therefore above the truth, the more so the better the
forecasts.

Instead, each possible value of the score in the population is tested (Garthwaite and Buckland 1992,
Applied Statistics 41; Carpenter 1999, Journal of the Royal Statistical Society B 61). The tested
populations have the deviations of the data times a factor, which is 0 for perfect calibration.
Redrawing responses adds the same noise to the deviations of each population as to those of the
data, recentered (Hall and Wilson 1991, Biometrics 47). A population is in the interval if the score
of the data is not too rare among its replicates for the level. The ends are scores of populations,
and therefore in the score's range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.intervals.methods import effective_number, student_quantile
from calibration.validation import Floats

DEVIATIONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.6, 2.2, 3.0)
"""Factors of the deviations of the tested populations; between them, quantiles of replicates are
interpolated. If the population with the largest factor is not rejected, more are tested."""

MOST_DEVIATIONS = 100

Functional = Callable[[Floats], Floats]
"""Function from deviations (..., n_cells) to scores (...)."""


@dataclass(frozen=True, eq=False)
class DeviationScores:
    """A score as a function of deviations in cells, such as cells of p; deviations are means over
    atoms.

    Attributes:
        deviation: float64 (n_cells,), deviations of the data.
        direction: float64 (n_cells,), deviations of the population that corresponds to the data:
            the same, or smoothed if the score smooths.
        sums: (n_responses, n_cells), sums over the atoms of each response: of deviations, or of
            residuals of a fit; may be sparse.
        weight: float64 (n_responses,), weight of the atoms of each response.
        statistic: score of a sample of the size of the data.
        population: score of a population; the same, except for corrections of bias.
        size: float64 (n_responses,), relative contribution of each response to the size of
            `direction`, summed over its atoms; None if `sums` include it.
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
        """Number of responses of equal size with the same information, at least 2."""
        return max(2.0, float(effective_number(self.weight)))


def inverted_intervals(
    scores: DeviationScores, weights: Iterable[Floats], level: float
) -> tuple[float, float, float]:
    """Lower end, upper end and standard error of a score.

    Args:
        scores: the score.
        weights: blocks of numbers of draws of each response, as from `response_weights`.
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
        # Data with a small deviation may come from populations with a much larger one.
        if share == shares[-1] < MOST_DEVIATIONS and quantiles[-1][0] < score:
            shares.append(1.4 * share)
    # Except for noise in the quantiles, all of these increase with the deviations.
    fewest, most = np.maximum.accumulate(np.stack(quantiles), axis=0).T
    multiples = np.array(shares)[:, np.newaxis] * scores.direction
    populations = np.maximum.accumulate(scores.population(multiples))
    # The smallest population with replicates as large as the score, and the largest with replicates
    # as small.
    lower, upper = (float(np.interp(score, end, populations)) for end in (most, fewest))
    # A score that is smaller than chance allows without deviations is no evidence against its own
    # value.
    return lower, upper if score > fewest[0] else max(score, lower), error


def redraw_noise(
    scores: DeviationScores, weights: Iterable[Floats], *, leverage: bool = True
) -> Floats:
    """Contribution of resampling responses to the deviations, (n_replicates, n_cells).

    A response with a share h of the weight pulls the mean toward itself. On average, its residual
    is too small by the square root of 1 - h (Bell and McCaffrey 2002); this is corrected.

    Args:
        scores: the scores.
        weights: as in `inverted_intervals`.
        leverage: whether to correct the residuals; otherwise the result is the noise of redrawn
            samples.
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
