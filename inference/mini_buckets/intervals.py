"""Certified intervals: bounds on marginals that hold for any error of the algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError, unknown_name
from factormodels.factor_graph import FactorGraph
from inference.backend import zero_partition


@dataclass(frozen=True)
class Interval:
    """An interval that is certain to contain a probability.

    Attributes:
        lower, upper: its ends, in [0, 1].
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The length of the interval: 0 if the probability is known, 1 if nothing is known."""
        return self.upper - self.lower


def certified_intervals(
    graph: FactorGraph,
    variables: Sequence[str] | None = None,
    *,
    state: int = 1,
    i_bound: int = 6,
    iterations: int = 20,
) -> Mapping[str, Interval]:
    """Return intervals that certainly contain P(variable = state), by clamping.

    The variable is observed in the state and in each other state, and weighted mini-buckets bound
    every partition function from both sides. P is in [L/(L + U'), U/(U + L')], where L and U bound
    the partition function of the state, and L' and U' the sum over the other states. Bounds that
    coincide up to rounding are widened by the rounding error.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names; by default, all unobserved variables that have the state.
        state: the state in question.
        i_bound, iterations: settings of the mini-buckets; larger values of either tighten the
            intervals.

    Raises:
        InputError: for an unknown variable or one without that state.
        ZeroPartitionError: if no assignment has positive potential.
    """
    if variables is None:
        variables = [
            name
            for name, count, observed in zip(
                graph.names, graph.cardinalities, graph.evidence, strict=True
            )
            if observed < 0 and count > state
        ]
    # The kernels are loaded here, so that importing this module takes little time.
    from inference.mini_buckets.wmb import WeightedMiniBuckets

    upper = WeightedMiniBuckets(i_bound=i_bound, iterations=iterations, bound="upper", gap=False)
    lower = replace(upper, bound="lower")
    result: dict[str, Interval] = {}
    for name in variables:
        if name not in graph.index:
            raise InputError(unknown_name(f"the variable {name!r}", name, graph.names))
        count = int(graph.cardinalities[graph.index[name]])
        if not 0 <= state < count:
            raise InputError(
                f"variable {name!r} has no state {state}; its states are 0 to {count - 1}"
            )
        observed = int(graph.evidence[graph.index[name]])
        if observed >= 0:
            certain = float(observed == state)
            result[name] = Interval(certain, certain)
            continue
        ceilings, floors = [], []
        for clamped in range(count):
            restricted = graph.with_evidence({graph.index[name]: clamped}).absorb_evidence()
            ceilings.append(upper.log_bound(restricted))
            floors.append(lower.log_bound(restricted))
        result[name] = _interval(np.array(ceilings), np.array(floors), state)
    return result


_ROUNDING = 1e-10
"""Relative slack for the rounding of log bounds: thousands of sums in doubles stay well below."""


def _interval(ceilings: NDArray[np.float64], floors: NDArray[np.float64], state: int) -> Interval:
    size = np.where(np.isfinite(ceilings), np.abs(ceilings), 0.0)
    slack = _ROUNDING * np.maximum(1.0, size)
    ceilings = ceilings + slack
    floors = np.minimum(floors, ceilings) - slack
    others = np.arange(len(ceilings)) != state
    if np.all(ceilings == -np.inf):
        raise zero_partition()
    lower = _share(floors[state], np.logaddexp.reduce(ceilings[others], initial=-np.inf))
    upper = _share(ceilings[state], np.logaddexp.reduce(floors[others], initial=-np.inf))
    return Interval(lower, upper)


def _share(log_part: float, log_rest: float) -> float:
    """Return exp(log_part) / (exp(log_part) + exp(log_rest)); 0 or 1 if one of them is zero."""
    if log_part == -math.inf:
        return 0.0
    if log_rest == -math.inf:
        return 1.0
    difference = log_rest - log_part
    if difference > 0.0:
        return math.exp(-difference) / (1.0 + math.exp(-difference))
    return 1.0 / (1.0 + math.exp(difference))
