"""Contributions of variables: posteriors without each variable, for all variables at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import TooLargeError
from inference.batch import infer_settings
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.exact.kernels.program import INPUTS, TABLE, TreeProgram
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import arrays_of
from inference.posterior import Marginals, Status
from inference.tasks.kernels.log_messages import log_messages
from inference.tasks.kernels.removal import Removals, posteriors_without, work_of_parts
from inference.tasks.requests import Variables, positions, require_memory, wanted_states
from inference.thread_team import map_in_threads, thread_count

if TYPE_CHECKING:
    from inference.sampling.annealing import AnnealedImportance


_ENTRIES_AT_ONCE = 2**22
"""Maximum total size of tables that are propagated in one call."""

_SECONDS_PER_ENTRY = 4e-9
"""Seconds of `posteriors_without` for an entry of a cluster in a part and one input, on the
reference processor of `inference.exact.prediction`; 3.2 to 5 ns on grids, chains, noisy-or and
deterministic networks."""

_LEAST_SECONDS_OF_A_RUN = 1e-5
"""Seconds below which no run of `exact` in a batch falls."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior probabilities of a state of targets, with and without a part of the model.

    There is one entry per pair of a removed variable and a target. If targets are given, every
    removal is paired with each of them in turn: ``without.reshape(-1, n_targets)`` is the matrix.

    Attributes:
        removed: int64 (n_pairs,), positions of the removed variables.
        targets: int64 (n_pairs,), positions of the targets.
        present: float64 (n_pairs,), probability of the target's state in the whole model.
        without: float64 (n_pairs,), the same after the removal; NaN for a variable's effect on
            itself, and if there are too few effective draws.
        status: exact; for estimates from draws, whether these suffice: converged, or not.
        standard_errors: float64 (n_pairs, 2), of `without` and of `contribution`; None if they are
            exact.
    """

    removed: NDArray[np.int64]
    targets: NDArray[np.int64]
    present: NDArray[np.float64]
    without: NDArray[np.float64]
    status: Status = Status.EXACT
    standard_errors: NDArray[np.float64] | None = None

    @property
    def contribution(self) -> NDArray[np.float64]:
        """Increase of the probability due to the removed variable: positive if it supports."""
        return self.present - self.without


def without_variables(
    graph: FactorGraph,
    variables: Variables,
    targets: Variables | None = None,
    state: int = 1,
    exact: Exact | None = None,
    otherwise: AnnealedImportance | Callable[[], AnnealedImportance] | None = None,
) -> Effects:
    """Return posteriors of targets when each of some variables is removed by itself.

    A variable is removed with all its factors, as if its context had not been retrieved. The
    messages of the whole model are computed once. For each variable, the product of its factors'
    clusters is recomputed without the factors, so that factors with zeros are removed exactly, and
    messages are sent again in the smallest part of the cluster tree that contains these clusters. A
    variable that is eliminated early has one such cluster. Where parts are large, as on grids, each
    variable takes one propagation of the graph without its factors, if that is predicted to take
    less time; it always does if targets are given.

    If that does not fit, draws of the whole model can estimate the result, with standard errors:
    the weight of a draw in the model without the variable is the inverse of the variable's factors.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions of the variables to be removed, each once.
        targets: names or positions of variables; by default, for each removed variable, the
            variables that share a factor with it and have the state.
        state: the state of targets whose probability is computed.
        exact: settings of `exact`: memory limit, seed and restarts of the order.
        otherwise: settings of draws that replace tables that would not fit, or a function that
            makes them; None: no draws are made.

    Raises:
        InputError: for an unknown or repeated variable, or a target without that state.
        TooLargeError: if the tables would exceed the memory limit, and either no draws are allowed,
            or a variable has no state that all its factors allow, so that draws of the whole model
            do not cover the model without it.
        ZeroPartitionError: if no assignment has positive potential.

    Source: leaving one input out of a propagation, Cowell & Dawid 1992, "Fast retraction of
    evidence in a probabilistic expert system".
    """
    chosen = positions(graph, variables, "variables")
    owners = _owners(graph)
    by_variable = np.argsort(graph.scope_variables, kind="stable")
    ends = np.cumsum(np.bincount(graph.scope_variables, minlength=graph.n_variables))
    counts = np.diff(ends, prepend=0)[chosen]
    slots = by_variable[np.repeat(ends[chosen] - counts, counts) + _within(counts)]
    groups = _Groups(chosen, np.concatenate([[0], np.cumsum(counts)]), owners[slots])
    near = _near(graph, groups, state) if targets is None else None
    try:
        effects = _effects(graph, groups, targets, near, state, exact or Exact())
    except TooLargeError:
        if otherwise is None or not _reached(graph, groups):
            raise
        draws = otherwise() if callable(otherwise) else otherwise
        effects = _estimated(graph, groups, targets, near, state, draws)
    effects.without[effects.removed == effects.targets] = np.nan
    return effects


class _Groups(NamedTuple):
    """Factors that are removed together, and the numbers of their groups, `names`."""

    names: NDArray[np.int64]
    starts: NDArray[np.int64]
    factors: NDArray[np.int64]


class _Near(NamedTuple):
    """Targets that share a factor with each group."""

    starts: NDArray[np.int64]
    targets: NDArray[np.int64]


class _Model(NamedTuple):
    """A propagated model: the first arguments of the kernels, and its messages."""

    cardinalities: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    values: NDArray[np.float64]
    tree: ClusterTree
    program: TreeProgram


def _owners(graph: FactorGraph) -> NDArray[np.int64]:
    """Return the factor of every entry of `graph.scope_variables`."""
    return np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_starts))


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, ... below each count, concatenated."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _near(graph: FactorGraph, groups: _Groups, state: int) -> _Near:
    """Return the distinct variables in the scopes of each group."""
    _check_state(state)
    arities = np.diff(graph.scope_starts)[groups.factors]
    slots = np.repeat(graph.scope_starts[groups.factors], arities) + _within(arities)
    group = np.repeat(np.repeat(np.arange(len(groups.names)), np.diff(groups.starts)), arities)
    variables = graph.scope_variables[slots]
    kept = (graph.cardinalities[variables] > state) & (variables != groups.names[group])
    keys = np.unique(group[kept] * graph.n_variables + variables[kept])
    group, variables = np.divmod(keys, max(1, graph.n_variables))
    return _Near(np.searchsorted(group, np.arange(len(groups.names) + 1)), variables)


def _check_state(state: int) -> None:
    if isinstance(state, bool | np.bool_) or not isinstance(state, int | np.integer) or state < 0:
        raise InputError(f"the state {state!r} is not a number of a state; give one from 0 up")


def _effects(
    graph: FactorGraph,
    groups: _Groups,
    targets: Variables | None,
    near: _Near | None,
    state: int,
    exact: Exact,
) -> Effects:
    if near is None:
        _check_state(state)
        wanted = positions(graph, targets or (), "targets")
        wanted_states(graph, wanted, state)
        return _effects_anywhere(graph, groups, wanted, state, exact)
    calibrated = exact.calibrate(graph)
    absorbed, marginals = calibrated.graph, calibrated.marginals
    tree, program = calibrated.tree, calibrated.program
    del calibrated  # and its tables
    starts = np.cumsum(absorbed.cardinalities) - absorbed.cardinalities
    # Removals do not change the state of an observed variable.
    present = (graph.evidence == state).astype(np.float64)
    free = np.flatnonzero((graph.evidence == UNOBSERVED) & (graph.cardinalities > state))
    present[free] = marginals[starts[free] + state]
    if _runs_are_cheaper(graph, tree, program, groups, exact):
        without = _near_posteriors_by_runs(graph, groups, near, state, exact)
    else:
        model = _propagated(absorbed, tree, program, exact)
        without = _near_posteriors(model, groups, near, present, graph, state)
    removed = np.repeat(groups.names, np.diff(near.starts))
    return Effects(removed, near.targets, present[near.targets], without)


def _effects_anywhere(
    graph: FactorGraph, groups: _Groups, wanted: NDArray[np.int64], state: int, exact: Exact
) -> Effects:
    """Return effects by propagating a separate model per group, with its tables set to 1."""
    every = range(-1, len(groups.names))
    rows = [
        marginals.flat[marginals.starts[wanted] + state]
        for marginals in _marginals_without(graph, groups, every, exact)
    ]
    present, without = rows[0], np.array(rows[1:])
    removed, targets = np.repeat(groups.names, len(wanted)), np.tile(wanted, len(groups.names))
    return Effects(removed, targets, np.tile(present, len(groups.names)), without.ravel())


def _marginals_without(
    graph: FactorGraph, groups: _Groups, numbers: Sequence[int], exact: Exact
) -> Iterator[Marginals]:
    """Yield the marginals of the graph without each of some groups; -1 is the whole graph."""
    at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(graph.log_values)))
    for first in range(0, len(numbers), at_once):
        chosen = numbers[first : first + at_once]
        tables = np.tile(graph.log_values, (len(chosen), 1))
        for row, group in zip(tables, chosen, strict=True):
            for factor in groups.factors[groups.starts[max(group, 0)] : groups.starts[group + 1]]:
                row[graph.table_starts[factor] : graph.table_starts[factor + 1]] = 0.0
        for posterior in infer_settings(graph, tables, exact):
            yield posterior.marginals


def _runs_are_cheaper(
    graph: FactorGraph, tree: ClusterTree, program: TreeProgram, groups: _Groups, exact: Exact
) -> bool:
    """Return whether a run for each group is predicted to take less time than its part."""
    steps = program.steps
    inputs = np.diff(steps[:, INPUTS])
    # Each cluster of a part multiplies its inputs twice, and sums to its parent, to children in the
    # part and to targets.
    weights = np.diff(steps[:, TABLE]) * (2.0 * inputs + 8.0)
    no_targets = np.zeros(len(groups.starts), dtype=np.int64), np.zeros(0, dtype=np.int64)
    removals = Removals(groups.starts, groups.factors, *no_targets, 0)
    seconds = _SECONDS_PER_ENTRY * work_of_parts(tree, graph.n_factors, weights, removals)
    runs = len(groups.names)
    if seconds < _LEAST_SECONDS_OF_A_RUN * runs:
        return False
    return bool(runs * exact.predict(graph).seconds < seconds)


def _reached(graph: FactorGraph, groups: _Groups) -> bool:
    """Return whether each variable has a state to which none of its factors gives zero."""
    if np.isfinite(graph.log_values).all():
        return True
    for number, variable in enumerate(groups.names.tolist()):
        observed = int(graph.evidence[variable])
        possible = np.ones(graph.cardinalities[variable], dtype=np.bool_)
        for factor in groups.factors[groups.starts[number] : groups.starts[number + 1]].tolist():
            axis = graph.scope(factor).index(variable)
            table = np.moveaxis(graph.log_table(factor), axis, 0)
            possible &= np.isfinite(table).reshape(len(possible), -1).all(axis=1)
        if not (possible.any() if observed == UNOBSERVED else possible[observed]):
            return False
    return True


def _estimated(
    graph: FactorGraph,
    groups: _Groups,
    targets: Variables | None,
    near: _Near | None,
    state: int,
    settings: AnnealedImportance,
) -> Effects:
    # Imported on demand, since loading takes longer than solving most graphs.
    from inference.sampling.estimates import jackknife
    from inference.tasks.kernels.reweighing import AskedPairs, WeightedStates, add_without

    if near is not None:
        pairs, removed = near.targets, np.repeat(groups.names, np.diff(near.starts))
    else:
        wanted = positions(graph, targets or (), "targets")
        pairs, removed = np.tile(wanted, len(groups.names)), np.repeat(groups.names, len(wanted))
    draws = settings.weighted_draws(graph)
    by_variable = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    asked = AskedPairs(removed, pairs, state)
    units = np.full(len(pairs), np.inf)
    sums = np.zeros((len(draws.weights), len(pairs), 4))

    def add(group: int) -> None:
        drawn = WeightedStates(draws.states[group], draws.weights[group])
        add_without(
            arrays_of(graph), *by_variable, graph.evidence, drawn, asked, units, sums[group]
        )

    heaviest = int(draws.weights.sum(axis=1).argmax())
    add(heaviest)  # which sets the units
    others = [group for group in range(len(sums)) if group != heaviest]
    map_in_threads(lambda number: add(others[number]), range(len(others)), thread_count())

    def ratios(total: NDArray[np.float64]) -> NDArray[np.float64]:
        present, rarer, without, _, weight = total.T
        return np.stack([present / weight, without / rarer, present / weight - without / rarer])

    whole = np.broadcast_to(draws.weights.sum(axis=1)[:, None, None], (*sums.shape[:2], 1))
    parts = np.concatenate([sums, whole], axis=2)
    (present, without, _), errors = jackknife(ratios, parts, draws.effective)
    _, rarer, _, squares, weight = parts.sum(axis=0).T
    few = draws.effective * rarer**2 / (squares * weight) < settings.min_effective
    without[few] = np.nan
    errors[1:, few] = np.inf
    return Effects(removed, pairs, present, without, draws.status, errors[1:].T)


def _propagated(
    graph: FactorGraph, tree: ClusterTree, program: TreeProgram, exact: Exact
) -> _Model:
    n_messages = int(tree.message_starts[-1])
    longest = int(
        max(np.diff(tree.message_starts).max(initial=1), graph.cardinalities.max(initial=1))
    )
    largest = int(np.diff(tree.table_starts).max(initial=1))
    needed = 8.0 * (len(graph.log_values) + 4 * n_messages + 3 * longest) + 12.0 * largest
    require_memory(needed, exact.allowance(), "the posteriors under removal")
    room = 2 * n_messages + longest
    values = log_messages(program, graph.table_starts, graph.log_values, room)
    return _Model(graph.cardinalities, graph.table_starts, values, tree, program)


def _near_posteriors_by_runs(
    graph: FactorGraph, groups: _Groups, near: _Near, state: int, exact: Exact
) -> NDArray[np.float64]:
    """Return the posteriors of targets near each group from a run of the graph without it."""
    result = np.empty(len(near.targets))
    numbers = range(len(groups.names))
    for group, marginals in enumerate(_marginals_without(graph, groups, numbers, exact)):
        begin, end = near.starts[group], near.starts[group + 1]
        result[begin:end] = marginals.flat[marginals.starts[near.targets[begin:end]] + state]
    return result


def _near_posteriors(
    model: _Model,
    groups: _Groups,
    near: _Near,
    present: NDArray[np.float64],
    graph: FactorGraph,
    state: int,
) -> NDArray[np.float64]:
    result = present[near.targets]
    # Observed targets have a single state, whose probability does not change.
    asked = graph.evidence[near.targets] == UNOBSERVED
    asked_starts = np.concatenate([[0], np.cumsum(asked)])[near.starts]
    posteriors = result[asked]
    removals = Removals(groups.starts, groups.factors, asked_starts, near.targets[asked], state)
    posteriors_without(*model, removals, posteriors)
    result[asked] = posteriors
    return result
