"""What each factor or each variable contributes: posteriors with it removed, for all at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from inference.backend import TooLargeError
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import ClusterTree
from inference.kernels.interaction import factors_by_variable
from inference.possible_states import arrays_of
from inference.posterior import Status
from inference.tasks.kernels.log_messages import conditionals, log_messages
from inference.tasks.kernels.removal import posteriors_without
from inference.tasks.kernels.subtrees import subtrees
from inference.tasks.requests import Variables, positions, require_memory, wanted_states

if TYPE_CHECKING:
    from inference.sampling.annealing import AnnealedImportance


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior probabilities of a state of targets, with something in the model and without it.

    One entry per pair of what is removed and a target. If targets were given, every removal is
    paired with each of them in turn: ``without.reshape(-1, n_targets)`` is the matrix.

    Attributes:
        removed: int64 (n_pairs,), number of the factor, or position of the variable, removed.
        targets: int64 (n_pairs,), positions of the targets.
        present: float64 (n_pairs,), probability of the target's state in the whole model.
        without: float64 (n_pairs,), the same after the removal; NaN for a variable's effect on
            itself, and where draws of the whole model say too little of it.
        status: exact, or of estimates from draws whether these suffice: converged, or not.
        standard_errors: float64 (n_pairs, 2), of `without` and of `contribution`; None where they
            are exact.
    """

    removed: NDArray[np.int64]
    targets: NDArray[np.int64]
    present: NDArray[np.float64]
    without: NDArray[np.float64]
    status: Status = Status.EXACT
    standard_errors: NDArray[np.float64] | None = None

    @property
    def contribution(self) -> NDArray[np.float64]:
        """How much what is removed adds to the probability: positive where it supports."""
        return self.present - self.without


def without_factors(
    graph: FactorGraph,
    factors: Sequence[int] | NDArray[np.int64] | None = None,
    targets: Variables | None = None,
    state: int = 1,
    exact: Exact | None = None,
) -> Effects:
    """Posteriors of targets when each of some factors is removed by itself.

    The messages of the whole model are computed once. For each factor, the product of its cluster
    is taken anew without it, so a factor with zeros is removed exactly; that costs its cluster's
    table times the number of its inputs. Targets elsewhere cost one more propagation in which
    every message has a number for each target, and are read at the border of the cluster.

    Args:
        graph: the factor graph, with or without evidence.
        factors: numbers of factors; all by default.
        targets: names or positions of variables; by default, for each factor, the variables of
            its scope that have the state.
        state: the state of targets whose probability is wanted.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Raises:
        InputError: for an unknown factor or target, or a target without that state.
        TooLargeError: if the tables would not fit the memory limit.
        ZeroPartitionError: if no assignment has positive potential.

    Source: leaving one input out of a propagation, Cowell & Dawid 1992, "Fast retraction of
    evidence in a probabilistic expert system".
    """
    chosen = _factor_numbers(graph, factors)
    groups = _Groups(chosen, np.arange(len(chosen) + 1), chosen)
    near = _near(graph, groups, state) if targets is None else None
    return _effects(graph, groups, targets, near, state, exact or Exact())


def without_variables(
    graph: FactorGraph,
    variables: Variables,
    targets: Variables | None = None,
    state: int = 1,
    exact: Exact | None = None,
    otherwise: AnnealedImportance | Callable[[], AnnealedImportance] | None = None,
) -> Effects:
    """Posteriors of targets when each of some variables is removed by itself.

    A variable is removed with every factor on it, as if its context had not been retrieved. Its
    factors may be in several clusters; messages are sent anew in the smallest part of the cluster
    tree that holds them. A variable that is eliminated early has one such cluster, and all
    variables together cost at most the induced width times one propagation. Targets elsewhere
    are read as in `without_factors`.

    Where that does not fit, draws of the whole model can say it, with standard errors: a draw
    weighs as much more in the model without the variable as the variable's factors make it rarer.

    Args:
        graph: the factor graph, with or without evidence.
        variables: names or positions of the variables to be removed, each once.
        targets: names or positions of variables; by default, for each variable removed, those
            that share a factor with it and have the state.
        state: the state of targets whose probability is wanted.
        exact: settings of `exact`: memory limit, seed and restarts of the order.
        otherwise: settings of the draws that answer where tables would not fit, or a function that
            makes them; None: no draws are made.

    Raises:
        InputError: for an unknown or repeated variable, or a target without that state.
        TooLargeError: if the tables would not fit the memory limit, and no draws are allowed, or
            a variable has no state that all its factors allow, so that draws of the whole model do
            not reach all of the one without it.
        ZeroPartitionError: if no assignment has positive potential.
    """
    chosen = positions(graph, variables, "variables")
    owners = _owners(graph)
    by_variable = np.argsort(graph.scope_variables, kind="stable")
    ends = np.cumsum(np.bincount(graph.scope_variables, minlength=graph.n_variables))
    counts = np.diff(ends, prepend=0)[chosen]
    slots = by_variable[np.repeat(ends[chosen] - counts, counts) + _within(counts)]
    groups = _Groups(chosen, np.concatenate([[0], np.cumsum(counts)]), owners[slots])
    near = _near(graph, groups, state, leave_out=True) if targets is None else None
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
    """Factors that are removed together; `names` says by what number each group goes."""

    names: NDArray[np.int64]
    starts: NDArray[np.int64]
    factors: NDArray[np.int64]


class _Near(NamedTuple):
    """For each group, the targets that share a factor with it."""

    starts: NDArray[np.int64]
    targets: NDArray[np.int64]


class _Model(NamedTuple):
    """A propagated model: the kernels' first arguments, and its messages."""

    arrays: tuple[NDArray[np.int64], ...]
    values: NDArray[np.float64]
    tree: ClusterTree


def _factor_numbers(
    graph: FactorGraph, factors: Sequence[int] | NDArray[np.int64] | None
) -> NDArray[np.int64]:
    if factors is None:
        return np.arange(graph.n_factors)
    chosen = np.asarray(factors)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InputError(f"factors is {factors!r}; give a list of numbers of factors")
    outside = (chosen < 0) | (chosen >= graph.n_factors)
    if outside.any():
        raise InputError(
            f"there is no factor number {chosen[np.argmax(outside)]}; "
            f"they run from 0 to {graph.n_factors - 1}"
        )
    return chosen.astype(np.int64)


def _owners(graph: FactorGraph) -> NDArray[np.int64]:
    """Factor of every entry of `graph.scope_variables`."""
    return np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_starts))


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... up to each count, one after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _near(graph: FactorGraph, groups: _Groups, state: int, leave_out: bool = False) -> _Near:
    """Variables in the scopes of each group, without repetition."""
    _check_state(state)
    arities = np.diff(graph.scope_starts)[groups.factors]
    slots = np.repeat(graph.scope_starts[groups.factors], arities) + _within(arities)
    group = np.repeat(np.repeat(np.arange(len(groups.names)), np.diff(groups.starts)), arities)
    variables = graph.scope_variables[slots]
    kept = graph.cardinalities[variables] > state
    if leave_out:
        kept &= variables != groups.names[group]
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
    _check_state(state)
    wanted = np.zeros(0, dtype=np.int64)
    if targets is not None:
        wanted = positions(graph, targets, "targets")
        wanted_states(graph, wanted, state)
    calibrated = exact.calibrate(graph)
    absorbed, tree, marginals = calibrated.graph, calibrated.tree, calibrated.marginals
    del calibrated  # and its tables
    starts = np.cumsum(absorbed.cardinalities) - absorbed.cardinalities
    # An observed variable keeps its one state, whatever is removed.
    present = (graph.evidence == state).astype(np.float64)
    free = np.flatnonzero((graph.evidence == UNOBSERVED) & (graph.cardinalities > state))
    present[free] = marginals[starts[free] + state]
    model = _propagated(absorbed, tree, exact)
    if near is not None:
        pairs = near.targets
        without = _near_posteriors(model, groups, near, present, graph, state)
        removed = np.repeat(groups.names, np.diff(near.starts))
    else:
        pairs = np.tile(wanted, len(groups.names))
        without = _far_posteriors(model, groups, wanted, present, graph, state, exact).ravel()
        removed = np.repeat(groups.names, len(wanted))
    return Effects(removed, pairs, present[pairs], without)


def _reached(graph: FactorGraph, groups: _Groups) -> bool:
    """Whether each variable has a state to which none of its factors gives zero."""
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
    # Loaded where draws are wanted: that takes longer than most graphs do.
    from inference.sampling.estimates import jackknife
    from inference.tasks.kernels.reweighing import add_without

    if near is not None:
        pairs, removed = near.targets, np.repeat(groups.names, np.diff(near.starts))
    else:
        wanted = positions(graph, targets or (), "targets")
        pairs, removed = np.tile(wanted, len(groups.names)), np.repeat(groups.names, len(wanted))
    draws = settings.weighted_draws(graph)
    by_variable = factors_by_variable(graph.n_variables, graph.scope_starts, graph.scope_variables)
    units = np.full(len(pairs), np.inf)
    sums = np.zeros((len(draws.weights), len(pairs), 4))

    def add(group: int) -> None:
        add_without(
            *arrays_of(graph), *by_variable, graph.evidence, draws.states[group],
            draws.weights[group], removed, pairs, state, units, sums[group],
        )  # fmt: skip

    heaviest = int(draws.weights.sum(axis=1).argmax())
    add(heaviest)  # which sets the units
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(add, (group for group in range(len(sums)) if group != heaviest)))

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


def _propagated(graph: FactorGraph, tree: ClusterTree, exact: Exact) -> _Model:
    arrays = (
        graph.cardinalities,
        graph.scope_starts,
        graph.scope_variables,
        graph.table_starts,
    )
    n_messages = int(tree.message_starts[-1])
    longest = int(
        max(np.diff(tree.message_starts).max(initial=1), graph.cardinalities.max(initial=1))
    )
    largest = int(np.diff(tree.table_starts).max(initial=1))
    needed = 8.0 * (len(graph.log_values) + 4 * n_messages + 3 * longest) + 12.0 * largest
    require_memory(needed, exact.allowance(), "the posteriors under removal")
    room = 2 * n_messages + longest
    return _Model(arrays, log_messages(*arrays, graph.log_values, tree, room), tree)


def _near_posteriors(
    model: _Model,
    groups: _Groups,
    near: _Near,
    present: NDArray[np.float64],
    graph: FactorGraph,
    state: int,
) -> NDArray[np.float64]:
    result = present[near.targets]
    # Observed targets have lost their other states; what is known of them stays.
    asked = graph.evidence[near.targets] == UNOBSERVED
    asked_starts = np.concatenate([[0], np.cumsum(asked)])[near.starts]
    found = result[asked]
    none = np.zeros(graph.n_variables, dtype=np.int64)
    posteriors_without(
        *model.arrays,
        model.values,
        model.tree,
        groups.starts,
        groups.factors,
        asked_starts,
        near.targets[asked],
        np.full(graph.n_variables, state, dtype=np.int64),
        np.zeros((0, 0)),
        subtrees(model.tree, none, 0),
        found,
        np.zeros((len(groups.names), 0)),
    )
    result[asked] = found
    return result


def _far_posteriors(
    model: _Model,
    groups: _Groups,
    wanted: NDArray[np.int64],
    present: NDArray[np.float64],
    graph: FactorGraph,
    state: int,
    exact: Exact,
) -> NDArray[np.float64]:
    result = np.tile(present[wanted], (len(groups.names), 1))
    asked = np.flatnonzero(graph.evidence[wanted] == UNOBSERVED)
    per_target = 8.0 * (float(model.tree.message_starts[-1]) + 2.0 * len(groups.names))
    allowed = exact.allowance()
    spare = replace(allowed, bytes=allowed.bytes - model.values.nbytes - result.nbytes)
    require_memory(per_target, spare, "the posteriors of a target under removal")
    at_once = int(min(len(wanted), spare.bytes // per_target))
    for start in range(0, len(asked), at_once):
        part = asked[start : start + at_once]
        weights = np.zeros(graph.n_variables, dtype=np.int64)
        weights[wanted[part]] = 1
        below = subtrees(model.tree, weights, 0)
        columns = below.begins[wanted[part]]
        states = np.where(weights > 0, state, -1)
        given = conditionals(*model.arrays, model.values, model.tree, states, below, len(part))
        found = np.empty((len(groups.names), len(part)))
        found[:, columns] = result[:, part]
        posteriors_without(
            *model.arrays,
            model.values,
            model.tree,
            groups.starts,
            groups.factors,
            np.zeros(len(groups.names) + 1, dtype=np.int64),
            np.zeros(0, dtype=np.int64),
            states,
            given,
            below,
            np.zeros(0),
            found,
        )
        result[:, part] = found[:, columns]
    return result
