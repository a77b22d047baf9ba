"""What a benchmark shows on the terminal: one table per family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from experiments.bench.ratios import TimeRatio, paired_ratio
from experiments.bench.results import FamilyResult, Measurement
from experiments.findings.text import ABSENT


def ratio(result: FamilyResult, algorithm: str) -> tuple[str, TimeRatio] | None:
    """What an algorithm is compared with and the ratio of its time to that one's.

    Only rounds in which both were timed count; None where there is none.
    """
    other = result.against.get(algorithm)
    if other is None:
        return None
    pairs = []
    for graph, mine in result.of(algorithm):
        theirs = graph.of(other)
        if theirs is not None:
            first = dict(zip(mine.rounds, mine.seconds, strict=True))
            second = dict(zip(theirs.rounds, theirs.seconds, strict=True))
            common = sorted(first.keys() & second.keys())
            if common:
                pairs.append(([first[r] for r in common], [second[r] for r in common]))
    return (other, paired_ratio(pairs)) if pairs else None


def geometric(values: Sequence[float]) -> float | None:
    """The geometric mean; None if there is none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else None


def gather(
    result: FamilyResult, algorithm: str, read: Callable[[Measurement], float | None]
) -> list[float]:
    """A number of every graph on which an algorithm has it."""
    found = [read(one) for _, one in result.of(algorithm)]
    return [value for value in found if value is not None]


def interval(of: TimeRatio) -> str:
    """The interval of a ratio as a table shows it."""
    return ABSENT if math.isnan(of.lower) else f"{of.lower:.3g} to {of.upper:.3g}"
