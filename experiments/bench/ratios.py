"""Ratios of times with intervals: the bootstrap over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
"""Resamples of the rounds."""

LEVEL = 0.95
"""Coverage of an interval that is compared with no other."""


@dataclass(frozen=True)
class TimeRatio:
    """A ratio of times.

    Attributes:
        value: geometric mean over graphs of the ratio on each.
        lower, upper: ends of the percentile interval of the bootstrap over rounds; NaN where a
            graph had one round alone, from which nothing can be learned of the spread.
        level: the coverage that is aimed at.
        n_rounds: rounds per graph, the fewest of any.
        n_graphs: graphs.
    """

    value: float
    lower: float
    upper: float
    level: float
    n_rounds: int
    n_graphs: int


def paired_ratio(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> TimeRatio:
    """The ratio of the first times to the second, which were taken in the same rounds.

    On each graph it is the median over rounds of the ratio within the round, so that what slows
    the machine for a while slows both; rounds are resampled, graphs are not.

    Args:
        pairs: for every graph the times of both, round by round.
    """
    generator = np.random.default_rng(0)
    # Ratios are averaged as logs, so that twice as fast and twice as slow cancel.
    logs = [np.log(np.asarray(first) / np.asarray(second)) for first, second in pairs]
    value = float(np.mean([np.median(log) for log in logs]))
    # Draw i of every graph makes one draw of the mean.
    draws = np.mean([_medians(generator, log) for log in logs], axis=0)
    return _ratio(value, draws, LEVEL, [len(log) for log in logs])


def unpaired_ratio(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> TimeRatio:
    """The ratio of median times of two runs, whose rounds have nothing in common.

    Args:
        first: times of the numerator, graph by graph.
        second: times of the denominator on the same graphs.
        level: coverage of the interval.
        seed: seed of the resampling.
    """
    generator = np.random.default_rng(seed)
    tops = [np.log(np.asarray(times)) for times in first]
    bottoms = [np.log(np.asarray(times)) for times in second]
    both = list(zip(tops, bottoms, strict=True))
    value = float(np.mean([np.median(top) - np.median(bottom) for top, bottom in both]))
    draws = np.mean(
        [_medians(generator, top) - _medians(generator, bottom) for top, bottom in both], axis=0
    )
    return _ratio(value, draws, level, [min(len(top), len(bottom)) for top, bottom in both])


def _medians(generator: np.random.Generator, log: NDArray[np.float64]) -> NDArray[np.float64]:
    # Rounds are drawn with replacement, as many as there were.
    chosen = generator.integers(0, len(log), (DRAWS, len(log)))
    medians: NDArray[np.float64] = np.median(log[chosen], axis=1)
    return medians


def _ratio(value: float, draws: NDArray[np.float64], level: float, rounds: list[int]) -> TimeRatio:
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    # One round resamples to itself, and would pretend to be certain.
    lower, upper = np.quantile(draws, tails) if min(rounds) > 1 else (np.nan, np.nan)
    return TimeRatio(
        value=float(np.exp(value)),
        lower=float(np.exp(lower)),
        upper=float(np.exp(upper)),
        level=level,
        n_rounds=min(rounds),
        n_graphs=len(rounds),
    )
