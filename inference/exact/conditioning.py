"""Exact inference by conditioning on few variables that make the others independent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.exact.kernels.conditioning_cover import may_have_a_cover, pairwise_cover
from inference.exact.kernels.conditioning_model import CoverModel, cover_model, potentials
from inference.exact.kernels.conditioning_states import Split, batches, inner_couplings, sum_states
from inference.kernels.interaction import interaction_graph
from inference.stop import NEVER, UnfinishedError
from inference.thread_team import map_in_threads

FEWEST_FACTORS = 300
"""Minimum number of factors. Smaller graphs are eliminated before costs could be compared."""

_SECONDS_PER_STATE = 2e-8
_SECONDS_PER_PRODUCT = 1.1e-9
"""Approximate reference seconds per state of the cover, and per other variable in such a state."""

_INNER = 8
_MIDDLE = 8
_FEWEST_OUTER = 4
"""Numbers of inner and outer variables. Tables of 2**8 states per other variable fit into a
processor's cache; threads share the states of the outer variables, so that the partition does not
depend on the number of threads."""

_SAFE_RANGE = 650.0
"""Maximum log range of a product in double precision: e**-650 is a normal number."""


@dataclass(frozen=True, eq=False)
class Conditioning:
    """A sum over the states of a cover.

    Attributes:
        cover: int64, variables that intersect every factor of two variables.
        seconds: predicted time on one core of the reference processor.
        bytes: memory of all tables.
    """

    cover: NDArray[np.int64]
    seconds: float
    bytes: float


def conditioning(graph: FactorGraph) -> Conditioning | None:
    """Return how to condition on few variables of a binary pairwise graph; None if impossible.

    In responses with few atoms and much evidence, the atoms are such variables: contexts are
    independent given the atoms, unless relations join them.

    Args:
        graph: a graph without evidence.

    Source: Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.3, with a cover
    in place of a loop cutset.
    """
    scopes = (graph.scope_starts, graph.scope_variables)
    # Checked here as well, so that nothing is compiled for a small graph.
    if graph.n_factors < FEWEST_FACTORS or not may_have_a_cover(
        graph.n_variables, *scopes, FEWEST_FACTORS
    ):
        return None
    starts, neighbors = interaction_graph(graph.cardinalities, *scopes)
    suits, cover = pairwise_cover(graph.cardinalities, graph.scope_starts, starts, neighbors)
    if not suits:
        return None
    rest = graph.n_variables - len(cover)
    states = 2.0 ** len(cover)
    _, middle, inner = _parts(len(cover))
    return Conditioning(
        cover,
        seconds=states * (_SECONDS_PER_STATE + _SECONDS_PER_PRODUCT * rest),
        bytes=16.0 * rest * (2**middle + 2**inner + 2 * len(cover)),
    )


def condition(
    graph: FactorGraph, plan: Conditioning, threads: int, stop: NDArray[np.int64] = NEVER
) -> tuple[float, NDArray[np.float64]] | None:
    """Return (log Z, marginals one after another); None if a product could underflow.

    A partition function of zero has log Z -inf. The answer is the same to the last bit for any
    number of threads.

    Args:
        graph: a graph without evidence.
        plan: the result of `conditioning` for it.
        threads: number of threads that share the states of the cover.
        stop: flag that is nonzero when the sum must end.

    Raises:
        UnfinishedError: if the flag `stop` was raised.
    """
    model = cover_model(
        graph.n_variables,
        graph.scope_starts,
        graph.scope_variables,
        graph.table_starts,
        graph.log_values,
        plan.cover,
    )
    split_and_scale = _split(model)
    if split_and_scale is None:
        return None
    split, log_scale = split_and_scale
    marginals = np.empty((graph.n_variables, 2))
    if log_scale == -np.inf:
        return -np.inf, marginals.ravel()
    log_largest, total = -np.inf, 0.0
    cover_sums, rest_sums = np.zeros((len(model.cover), 2)), np.zeros((len(model.rest), 2))
    for largest, part, part_cover, part_rest in _sums(model, split, threads, stop):
        if largest == -np.inf:
            continue
        unit = max(log_largest, largest)
        kept, added = np.exp(log_largest - unit), np.exp(largest - unit)
        log_largest = unit
        total = kept * total + added * part
        cover_sums = kept * cover_sums + added * part_cover
        rest_sums = kept * rest_sums + added * part_rest
    if log_largest == -np.inf:
        return -np.inf, marginals.ravel()
    marginals[model.cover], marginals[model.rest] = cover_sums, rest_sums
    marginals /= marginals.sum(axis=1, keepdims=True)
    log_z = float(log_largest + np.log(total) + log_scale + model.constant)
    return log_z, marginals.ravel()


def _parts(n_cover: int) -> tuple[int, int, int]:
    """Return the numbers of outer, middle and inner variables of a cover."""
    inner = min(_INNER, n_cover)
    middle = min(_MIDDLE, max(0, n_cover - inner - _FEWEST_OUTER))
    return n_cover - inner - middle, middle, inner


def _split(model: CoverModel) -> tuple[Split, float] | None:
    outer, middle, inner = _parts(len(model.cover))
    between = slice(inner, inner + middle)
    inner_values, inner_scale, inner_ranges = potentials(
        model.rest_fields, np.ascontiguousarray(model.ties[:, :inner])
    )
    middle_values, middle_scale, middle_ranges = potentials(
        np.zeros_like(model.rest_fields), np.ascontiguousarray(model.ties[:, between])
    )
    ranges = inner_ranges + middle_ranges + _spreads(model.ties[:, inner + middle :])
    if len(ranges) and ranges.max() + np.log(2.0) > _SAFE_RANGE:
        return None
    split = Split(
        outer,
        middle,
        inner,
        middle_values,
        inner_values,
        inner_couplings(model, inner),
        batches(ranges, _SAFE_RANGE),
    )
    return split, inner_scale + middle_scale


def _spreads(ties: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log range of each other variable's products with some cover variables."""
    largest = ties.max((2, 3))
    least = np.where(ties > -np.inf, ties, np.inf).min((2, 3))
    possible = largest > -np.inf
    ranges = np.where(possible, largest, 0.0) - np.where(possible, least, 0.0)
    spreads: NDArray[np.float64] = ranges.sum(1)
    return spreads


def _sums(
    model: CoverModel, split: Split, threads: int, stop: NDArray[np.int64]
) -> Iterator[tuple[float, float, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the results of `sum_states` for all states of the outer variables, in order."""
    states = range(2**split.outer)

    def run(state: int) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
        if stop[0]:
            raise UnfinishedError("conditioning was stopped")
        sums: tuple[float, float, NDArray[np.float64], NDArray[np.float64]]
        sums = sum_states(model, split, state)
        return sums

    if threads == 1:
        yield from map(run, states)
        return
    at_a_time = 64 * threads
    for first in range(0, len(states), at_a_time):
        yield from map_in_threads(run, states[first : first + at_a_time], threads)
