"""Processor time of each walk over a cluster tree, beside what the general walk would take for it.

The general walk is `inference.exact.kernels.log_walk`, or runs of `exact` in graphs that
give the same numbers: with evidence, without factors, or with more variables. Both sides of a row
are timed in turns. Their answers are compared, but for messages and single draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import chain, fr2, grid
from inference.batch import infer_settings
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.log_walk import propagate_log
from inference.exact.kernels.program import TreeProgram
from inference.exact.kernels.propagation import (
    Workspace,
    new_workspace,
    propagate,
)
from inference.exact.parallel import run_in_chunks
from inference.tasks.counts import count_distribution
from inference.tasks.kernels.assignments import assign
from inference.tasks.kernels.log_messages import log_messages
from inference.tasks.kernels.subtrees import subtrees
from inference.tasks.pairs import pairwise_joints
from inference.tasks.removals import without_variables
from inference.warm_up import warm_up
from tests.endurance import Row
from tests.endurance.marginals import deterministic, noisy_or
from tests.inference.answers import given

GRAPHS: Mapping[str, Callable[[], FactorGraph]] = {
    "31 claims, 93 passages": lambda: fr2(31, 3, density=0.02, seed=0),
    "chain of 500, 8 states": lambda: chain(500, coupling=1.0, field=1.0, cardinality=8, seed=0),
    "grid of 5 by 5, 4 states": lambda: grid(5, 5, coupling=1.0, field=1.0, cardinality=4, seed=0),
    "grid of 10 by 10": lambda: grid(10, 10, coupling=1.0, field=1.0, seed=0),
    "26 claims, 130 passages": lambda: fr2(26, 5, density=0.05, seed=0),
    "noisy-or of 22 causes": lambda: noisy_or(0, 5.0),
    "deterministic, 26 variables": lambda: deterministic(0, 5.0),
}
"""The graphs whose times the walks are chosen by."""

LARGE: Mapping[str, Callable[[], FactorGraph]] = {
    "grid of 18 by 18": lambda: grid(18, 18, coupling=1.0, field=1.0, seed=0),
    "26 claims, 130 dense passages": lambda: fr2(26, 5, density=0.15, seed=0),
}
"""Graphs whose tables threads share; only walks that write all marginals are timed."""

_MOST_TARGETS = 31
"""Maximum number of variables of which counts and pairs are computed."""

_CLAIMS_OF = {124: 31, 156: 26}
"""Number of claims, which come before the passages, by the number of variables of a response."""


class Model(NamedTuple):
    """A graph with its cluster tree, as kernels take them."""

    graph: FactorGraph
    tree: ClusterTree
    program: TreeProgram
    tables: NDArray[np.float64]
    marginals: NDArray[np.float64]
    log_z: float


def model_of(graph: FactorGraph) -> Model:
    """Return the calibrated cluster tree of a graph."""
    calibrated = Exact().calibrate(graph)
    return Model(
        calibrated.graph,
        calibrated.tree,
        calibrated.program,
        calibrated.tables,
        calibrated.marginals,
        calibrated.log_z,
    )


def walks(seconds: float = 0.3, large: bool = True) -> Iterator[Row]:
    """Processor seconds of each walk and of the general walk in its place, and their ratio.

    Args:
        seconds: processor time for which each side of a row is repeated; the fastest run counts.
        large: whether tables that threads share are measured too.
    """
    warm_up(Exact())
    for name, make in GRAPHS.items():
        model = model_of(make())
        for walk, (apart, general) in _pairs_of(model).items():
            yield {"graph": name, "walk": walk, **_compared(apart, general, seconds)}
    for name, make in LARGE.items() if large else ():
        model = model_of(make())
        for walk, (apart, general) in _marginals(model).items():
            yield {"graph": name, "walk": walk, **_compared(apart, general, seconds)}


Side = Callable[[], NDArray[np.float64]]


def _marginals(model: Model) -> dict[str, tuple[Side, Side]]:
    """Return both sides of the rows of all marginals, by the name of the walk."""
    return {
        "scaled sums": (_in_one_thread(model), _in_log_space(model)),
        "chunks, one thread": (_in_one_thread(model), _in_chunks(model)),
    }


def _pairs_of(model: Model) -> dict[str, tuple[Side, Side]]:
    """Return both sides of the rows of a graph by the name of the walk."""
    pairs = _marginals(model) | {
        "division": (_in_log_space(model), _without_division(model)),
        "assignments": (_one_draw(model), _in_one_thread(model)),
        "rows: pairs": (_pairs(model), _pairs_by_evidence(model)),
        "removal": (_removals(model), _removals_by_runs(model)),
    }
    if (model.graph.cardinalities == 2).all():
        counted = _by_running_sums(model.graph)
        # Each variable of a running sum has a state more than the one before.
        if Exact().predict(counted).seconds < 1.0:
            pairs["rows: counts"] = (_counts(model), _counts_by_sums(counted))
    return pairs


def _compared(apart: Side, general: Side, seconds: float) -> Row:
    """Return the times of two sides in turns, and whether their answers agree."""
    np.testing.assert_allclose(apart(), general(), rtol=0.0, atol=1e-9)
    best = [np.inf, np.inf]
    spent = [0.0, 0.0]
    while min(spent) < seconds:
        for side, run in enumerate((apart, general)):
            if spent[side] < max(seconds, 3.0 * spent[1 - side]):
                # Of the process, since runs of many tables share their work between threads.
                start = time.process_time()
                run()
                took = time.process_time() - start
                best[side] = min(best[side], took)
                spent[side] += took
    return {
        "this walk, µs": 1e6 * best[0],
        "general walk, µs": 1e6 * best[1],
        "ratio": best[1] / best[0],
    }


def _space(model: Model) -> tuple[Workspace, NDArray[np.float64]]:
    return new_workspace(model.program, model.graph.table_starts), np.empty(len(model.marginals))


def _in_one_thread(model: Model) -> Side:
    """Return marginals by scaled sums in one call."""
    work, marginals = _space(model)

    def run() -> NDArray[np.float64]:
        arrays = model.program, model.graph.table_starts, model.graph.log_values
        propagate(*arrays, work, marginals)
        return marginals

    return run


def _in_log_space(model: Model) -> Side:
    work, marginals = _space(model)
    constants = model.tree.constant_factors

    def run() -> NDArray[np.float64]:
        arrays = model.program, model.graph.table_starts, model.graph.log_values
        propagate_log(*arrays, constants, work, marginals)
        return marginals

    return run


def _in_chunks(model: Model) -> Side:
    """Return marginals by the walk that threads share, with one thread."""
    work, marginals = _space(model)

    def run() -> NDArray[np.float64]:
        graph = model.graph
        run_in_chunks(
            model.program, model.tree, graph.cardinalities, graph.table_starts, graph.log_values,
            work, marginals, 1,
        )  # fmt: skip
        return marginals

    return run


def _without_division(model: Model) -> Side:
    """Return marginals by messages of which nothing is divided out.

    The marginals are those of `propagate_log`, so that answers are compared in the test alone.
    """
    messages = model.program, model.graph.table_starts, model.graph.log_values, 0

    def run() -> NDArray[np.float64]:
        log_messages(*messages)
        return model.marginals

    return run


def _one_draw(model: Model) -> Side:
    """Return marginals, after a draw from the joint distribution by the beliefs of clusters."""
    graph = model.graph
    uniforms = np.random.default_rng(0).random((1, len(model.tree.parents)))
    states = np.zeros((1, graph.n_variables), dtype=np.int32)
    nothing = np.empty(0, dtype=np.int32)

    def run() -> NDArray[np.float64]:
        assign(graph.cardinalities, model.tree, model.tables, uniforms, nothing, states)
        return model.marginals

    return run


def _targets(graph: FactorGraph) -> list[int]:
    n = graph.n_variables
    return list(range(_CLAIMS_OF.get(n, min(_MOST_TARGETS, n))))


def _pairs(model: Model) -> Side:
    wanted = _targets(model.graph)
    return lambda: pairwise_joints(model.graph, wanted).ravel()


def _pairs_by_evidence(model: Model) -> Side:
    """Return joint distributions of pairs from a run for each state of each target."""
    graph, wanted = model.graph, _targets(model.graph)
    counts = graph.cardinalities
    starts = np.cumsum(counts) - counts
    most = int(counts[wanted].max())
    # Evidence of an impossible state has no posterior, and its joint probabilities are 0.
    possible = [
        (i, state)
        for i, variable in enumerate(wanted)
        for state in range(counts[variable])
        if model.marginals[starts[variable] + state] > 0.0
    ]

    def run() -> NDArray[np.float64]:
        tables = [_observed(graph, wanted[i], state) for i, state in possible]
        joints = np.zeros((len(wanted), len(wanted), most, most))
        answers = infer_settings(graph, np.array(tables), Exact())
        for (i, state), posterior in zip(possible, answers, strict=True):
            share = np.exp(given(posterior) - model.log_z)
            for j, other in enumerate(wanted):
                flat = posterior.marginals.flat
                joints[i, j, state, : counts[other]] = (
                    share * flat[starts[other] : starts[other] + counts[other]]
                )
        return joints.ravel()

    return run


def _observed(graph: FactorGraph, variable: int, state: int) -> NDArray[np.float64]:
    """Return the log tables of a graph in which a variable has a state."""
    values = graph.log_values.copy()
    factor = next(f for f in range(graph.n_factors) if variable in graph.scope(f))
    table = values[graph.table_starts[factor] : graph.table_starts[factor + 1]]
    shaped = np.moveaxis(
        table.reshape(graph.cardinalities[list(graph.scope(factor))]),
        graph.scope(factor).index(variable),
        0,
    )
    shaped[np.arange(len(shaped)) != state] = -np.inf
    return values


def _removed(model: Model) -> list[int]:
    """Return the variables to remove: the passages of a response, or all."""
    n = model.graph.n_variables
    return list(range(_CLAIMS_OF.get(n, 0), n))


def _removals(model: Model) -> Side:
    wanted = _removed(model)
    return lambda: without_variables(model.graph, wanted).without


def _removals_by_runs(model: Model) -> Side:
    """Return the same posteriors from a run of each graph without a variable's factors."""
    graph, wanted = model.graph, _removed(model)
    near = without_variables(graph, wanted)

    def run() -> NDArray[np.float64]:
        every = without_variables(graph, wanted, list(range(graph.n_variables))).without
        table = every.reshape(len(wanted), graph.n_variables)
        rows = np.searchsorted(wanted, near.removed)
        return np.asarray(table[rows, near.targets])

    return run


def _counts(model: Model) -> Side:
    wanted = _targets(model.graph)
    return lambda: count_distribution(model.graph, wanted).probabilities


def _by_running_sums(graph: FactorGraph) -> FactorGraph:
    """Return the graph with a variable for the sum of the first 1, 2, ... targets."""
    wanted = _targets(graph)
    cardinalities = graph.cardinalities.tolist()
    factors = list(graph.factors())
    before = wanted[0]
    for variable in wanted[1:]:
        states = cardinalities[before]
        cardinalities.append(states + 1)
        table = np.full((states, 2, states + 1), -np.inf)
        for total in range(states):
            for true in range(2):
                table[total, true, total + true] = 0.0
        factors.append(((before, variable, len(cardinalities) - 1), table))
        before = len(cardinalities) - 1
    return FactorGraph.from_factors(cardinalities, factors, log=True)


def _counts_by_sums(counted: FactorGraph) -> Side:
    def run() -> NDArray[np.float64]:
        marginals = Exact().infer(counted).marginals
        return marginals[counted.names[-1]]

    return run


def memory_of_rows(graph: FactorGraph) -> tuple[float, float]:
    """Return the numbers that the stack of rows of counts holds, and those of all rows at once."""
    model = model_of(graph)
    weights = np.ones(graph.n_variables, dtype=np.int64)
    below = subtrees(model.tree, weights, 1)
    lengths = np.diff(model.tree.message_starts)
    return float(below.room), float((lengths * (below.sizes + 1)).sum())
