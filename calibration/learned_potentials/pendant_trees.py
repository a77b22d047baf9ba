"""Pendant trees summed out by closed formulas, all of them at once; a backend solves what is left.

A variable with one relation tells its neighbour one message, whatever the rest of the graph is.
Taken off leaf by leaf, forests, such as the stars of FR1, vanish, and of other graphs the part with
cycles stays. Exact inference and belief propagation agree on what is taken off (Pearl 1988, section
4.3), so that answers are those of the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.validation import Floats, Integers
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, BeliefFunction, FactorBeliefs, zero_partition
from inference.posterior import LogZKind, Marginals, Posterior, Status

AGREEING = frozenset({"auto", "exact", "lbp"})
"""Backends for which messages of trees are exact."""


@dataclass(frozen=True, eq=False)
class _Round:
    """Leaves that are taken off together, (l,) each: their relation, themselves, what they join."""

    relations: Integers
    leaves: Integers
    parents: Integers
    backward: NDArray[np.bool_]
    """Whether the leaf is the target of its relation."""


def beliefs_without_pendants(backend: Backend, graph: FactorGraph) -> BeliefFunction | None:
    """Factor beliefs of a graph, its pendant trees by closed formulas.

    Args:
        backend: one of `AGREEING`. None is returned where it has no beliefs of what is left.
        graph: binary variables with one prior each, in order, and after these factors over two.
    """
    n = graph.n_variables
    pairs = graph.scope_variables[n:].reshape(-1, 2)
    rounds, kept = _rounds(n, pairs)
    inside = np.unique(pairs[kept])
    solve: BeliefFunction | None = None
    if len(inside):
        solve = backend.prepare_beliefs(_core(graph, inside, pairs[kept]))
        if solve is None:
            return None
    alone = np.ones(n, dtype=np.bool_)
    alone[inside] = False
    for each in rounds:
        alone[each.leaves] = False

    def beliefs(log_values: Floats) -> FactorBeliefs:
        unary = log_values[: 2 * n].reshape(-1, 2).copy()
        tables = log_values[2 * n :].reshape(-1, 2, 2)
        sums: list[tuple[Floats, Floats]] = []
        for each in rounds:
            own = tables[each.relations]
            own = np.where(each.backward[:, None, None], own.transpose(0, 2, 1), own)
            joint = own + unary[each.leaves][:, :, None]  # [leaf, state of leaf, of parent]
            messages = np.logaddexp(joint[:, 0], joint[:, 1])
            for state in (0, 1):
                unary[:, state] += np.bincount(each.parents, messages[:, state], minlength=n)
            sums.append((joint, messages))
        totals = np.logaddexp(unary[alone, 0], unary[alone, 1])
        log_z = float(totals.sum())
        if log_z == -np.inf:
            raise zero_partition()
        true = np.zeros((n, 2))
        true[alone] = np.exp(unary[alone] - totals[:, None])
        entries = np.zeros_like(log_values)
        pairwise = entries[2 * n :].reshape(-1, 2, 2)
        status, kind = Status.EXACT, LogZKind.EXACT
        if solve is not None:
            core = np.concatenate([unary[inside].ravel(), tables[kept].ravel()])
            core.flags.writeable = False
            found = solve(core)
            log_z += float(found.posterior.log_z or 0.0)
            status, kind = found.posterior.status, found.posterior.log_z_kind
            true[inside] = found.posterior.marginals.flat.reshape(-1, 2)
            pairwise[kept] = found.entries[2 * len(inside) :].reshape(-1, 2, 2)
        for each, (joint, messages) in zip(reversed(rounds), reversed(sums), strict=True):
            # Where no state of the leaf is possible, the parent's is not either: no 0/0.
            finite = np.where(np.isfinite(messages), messages, 0.0)
            own = np.exp(joint - finite[:, None, :]) * true[each.parents][:, None, :]
            true[each.leaves] = own.sum(axis=2)
            pairwise[each.relations] = np.where(
                each.backward[:, None, None], own.transpose(0, 2, 1), own
            )
        entries[: 2 * n] = true.ravel()
        marginals = Marginals(graph.names, graph.cardinalities, true.ravel(), graph.index)
        posterior = Posterior(
            marginals=marginals,
            log_z=log_z,
            log_z_kind=kind,
            status=status,
            backend=backend.name,
        )
        return FactorBeliefs(posterior, entries)

    return beliefs


def _rounds(n: int, pairs: Integers) -> tuple[list[_Round], Integers]:
    """Leaves round by round, and the relations that no round takes off."""
    alive = np.arange(len(pairs))
    rounds: list[_Round] = []
    while len(alive):
        degree = np.bincount(pairs[alive].ravel(), minlength=n)
        single = degree[pairs[alive]] == 1
        taken = single.any(axis=1)
        if not taken.any():
            break
        # Of two that have each other alone, the source is the leaf.
        backward = ~single[taken, 0]
        ends = pairs[alive[taken]]
        leaves = np.where(backward, ends[:, 1], ends[:, 0])
        parents = np.where(backward, ends[:, 0], ends[:, 1])
        rounds.append(_Round(alive[taken], leaves, parents, backward))
        alive = alive[~taken]
    return rounds, alive


def _core(graph: FactorGraph, inside: Integers, pairs: Integers) -> FactorGraph:
    """The graph of some variables and the relations among them, its tables even."""
    place = np.full(graph.n_variables, -1, dtype=np.int64)
    place[inside] = np.arange(len(inside))
    scopes = [*([int(at)] for at in range(len(inside))), *place[pairs].tolist()]
    names = [graph.names[at] for at in inside.tolist()]
    tables = [np.zeros((2,) * len(scope)) for scope in scopes]
    return FactorGraph.from_factors(
        [2] * len(inside), zip(scopes, tables, strict=True), names=names, log=True
    )
