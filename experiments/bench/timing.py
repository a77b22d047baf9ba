"""Timing: algorithms in turn on the same graphs, and intervals of their ratios."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.bench.algorithms import ALGORITHMS
from experiments.bench.families import Family


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios with an interval that assumes nothing of their distribution.

    Attributes:
        median: median over pairs of (seconds of the peer) / (seconds of the subject).
        lower: lower end of the interval of the median, an order statistic.
        upper: upper end.
        level: coverage of the interval, at least 0.95 where there are pairs enough (6), else that
            of the whole range.
        n_pairs: number of pairs.
    """

    median: float
    lower: float
    upper: float
    level: float
    n_pairs: int


@dataclass(frozen=True)
class FamilyResult:
    """What was measured on a family.

    Attributes:
        family: the family.
        variables: number of variables of each graph.
        factors: number of factors of each graph.
        seconds: timings by algorithm, (n_graphs * repeats,), paired across algorithms.
        differences: largest |Δp| of every peer against the subject.
        ratios: ratio of every peer to the subject.
        absent: algorithms that were not timed, and why.
    """

    family: Family
    variables: tuple[int, ...]
    factors: tuple[int, ...]
    seconds: dict[str, NDArray[np.float64]]
    differences: dict[str, float]
    ratios: dict[str, Ratio]
    absent: dict[str, str]


def measure(
    family: Family,
    *,
    repeats: int | None = None,
    report: Callable[[str], None] | None = None,
) -> FamilyResult:
    """Time the algorithms of a family in turn, warm, on every graph.

    On every graph each algorithm runs once untimed; then rounds follow, in which every algorithm
    runs once, in an order that turns round from round to round. An algorithm whose
    library is not installed is left out, and the result says so.

    Args:
        family: what to time.
        repeats: rounds per graph; those of the family if None.
        report: called with a line of progress before each graph.
    """
    names = [family.subject, *family.peers]
    absent = {
        name: f"{', '.join(ALGORITHMS[name].missing)} is not installed"
        for name in names
        if ALGORITHMS[name].missing
    }
    seconds: dict[str, list[float]] = {name: [] for name in names if name not in absent}
    differences = {name: 0.0 for name in seconds if name != family.subject}
    sizes = []
    for seed in range(family.n_graphs):
        if report is not None:
            report(f"{family.name}: graph {seed + 1} of {family.n_graphs}")
        graph = family.graph(seed)
        sizes.append((graph.n_variables, graph.n_factors))
        runs = {name: ALGORITHMS[name].prepare(graph) for name in seconds}
        answers = {name: run() for name, run in runs.items()}
        for name in differences:
            difference = np.abs(answers[name] - answers[family.subject]).max()
            differences[name] = max(differences[name], float(difference))
        for turn in range(repeats or family.repeats):
            order = list(runs) if turn % 2 == 0 else list(runs)[::-1]
            for name in order:
                seconds[name].append(_timed(runs[name]))
    timed = {name: np.array(values) for name, values in seconds.items()}
    return FamilyResult(
        family=family,
        variables=tuple(size[0] for size in sizes),
        factors=tuple(size[1] for size in sizes),
        seconds=timed,
        differences=differences,
        ratios={name: ratio(timed[name], timed[family.subject]) for name in differences},
        absent=absent,
    )


def ratio(
    peer: NDArray[np.float64] | Sequence[float],
    subject: NDArray[np.float64] | Sequence[float],
    level: float = 0.95,
) -> Ratio:
    """Return the median of paired ratios peer / subject with an order-statistic interval.

    The interval runs from the j-th smallest to the j-th largest ratio; its coverage is
    1 - 2 P(Binomial(n, 1/2) < j), and j is the largest that keeps `level`.
    """
    from scipy.stats import binom

    ratios = np.sort(np.asarray(peer) / np.asarray(subject))
    n = len(ratios)
    cut = 1
    while cut + 1 <= n // 2 and 1 - 2 * binom.cdf(cut, n, 0.5) >= level:
        cut += 1
    return Ratio(
        median=float(np.median(ratios)),
        lower=float(ratios[cut - 1]),
        upper=float(ratios[n - cut]),
        level=float(max(0.0, 1 - 2 * binom.cdf(cut - 1, n, 0.5))),
        n_pairs=n,
    )


def _timed(run: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
