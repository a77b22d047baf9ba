"""The upward pass over a cluster tree in JAX, and its derivative by the states of variables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import TooLargeError
from inference.evidence import without_evidence
from inference.exact.backend import Exact
from inference.exact.kernels.cluster_tree import ClusterTree

_MOST_CLUSTERS = 1_000
"""More would be compiled for minutes, and take gigabytes meanwhile."""


@dataclass(frozen=True)
class Input:
    """What is multiplied into a cluster's table, as a view of it.

    Attributes:
        firsts: where the log tables of the factors with this scope begin, or the states of a
            variable; of a message, the number of the cluster that sends it.
        shape: number of states along each axis of the cluster's table, 1 where it does not vary.
        axes: how the input's own axes are permuted into the order of the cluster's.
        own: number of states along each of its own axes.
    """

    firsts: tuple[int, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    own: tuple[int, ...]

    def of(self, rows: Any) -> Any:
        """The logarithms of this input among rows (n, n_settings), those of one scope added."""
        size = math.prod(self.own)
        if len(self.firsts) == 1:
            values = rows[self.firsts[0] : self.firsts[0] + size]
        else:
            places = np.add.outer(np.arange(size), self.firsts)
            values = rows[places].sum(axis=1)
        return self.view(values)

    def view(self, values: Any) -> Any:
        """Values of all its entries, (n_entries, n_settings), as a view of the cluster's table."""
        own = values.reshape(*self.own, -1).transpose(*self.axes, len(self.axes))
        return own.reshape(*self.shape, values.shape[-1])


@dataclass(frozen=True)
class Cluster:
    """A cluster of the tree: its inputs, and how many of its last axes are summed over."""

    factors: tuple[Input, ...]
    states: tuple[Input, ...]
    children: tuple[Input, ...]
    summed: int
    root: bool


@dataclass(frozen=True)
class Elimination:
    """A cluster tree as JAX walks it.

    Attributes:
        clusters: children before parents.
        constants: entries of the log tables over variables of one state only.
        n_states: how many states all variables have together.
    """

    clusters: tuple[Cluster, ...]
    constants: tuple[int, ...]
    n_states: int

    @classmethod
    def of(cls, graph: FactorGraph, tree: ClusterTree) -> Elimination:
        """The tree of a graph without evidence.

        Raises:
            TooLargeError: if the tree has too many clusters to be compiled.
        """
        if len(tree.parents) > _MOST_CLUSTERS:
            raise TooLargeError(
                f"'exact_jax' compiles every cluster by itself, and this graph has "
                f"{len(tree.parents):,} of them (at most {_MOST_CLUSTERS:,}); use backend 'exact'"
            )
        cards = graph.cardinalities
        states_at = np.concatenate([[0], np.cumsum(cards)])
        bounds = graph.table_starts
        scopes = [
            [int(v) for v in graph.scope_variables[first:last] if cards[v] > 1]
            for first, last in zip(graph.scope_starts, graph.scope_starts[1:], strict=False)
        ]

        def within(variables: NDArray[np.int64], c: int) -> list[int]:
            return [int(v) for v in variables[tree.starts[c] : tree.starts[c + 1]]]

        clusters = []
        for c in range(len(tree.parents)):
            axes = within(tree.variables, c)
            kept = int(tree.separator_sizes[c])

            def place(firsts: list[int], scope: list[int], axes: list[int] = axes) -> Input:
                order = sorted(range(len(scope)), key=lambda slot: axes.index(scope[slot]))
                return Input(
                    tuple(firsts),
                    tuple(int(cards[v]) if v in scope else 1 for v in axes),
                    tuple(order),
                    tuple(int(cards[v]) for v in scope),
                )

            by_scope: dict[tuple[int, ...], list[int]] = defaultdict(list)
            for f in tree.factors[tree.factor_starts[c] : tree.factor_starts[c + 1]]:
                by_scope[tuple(scopes[f])].append(int(bounds[f]))
            children = tree.children[tree.child_starts[c] : tree.child_starts[c + 1]]
            clusters.append(
                Cluster(
                    tuple(place(firsts, list(scope)) for scope, firsts in by_scope.items()),
                    tuple(place([int(states_at[v])], [v]) for v in axes[kept:]),
                    tuple(
                        place([int(k)], within(tree.variables, k)[: tree.separator_sizes[k]])
                        for k in children
                    ),
                    len(axes) - kept,
                    bool(tree.parents[c] < 0),
                )
            )
        constants = tuple(int(bounds[f]) for f in tree.constant_factors)
        return cls(tuple(clusters), constants, int(states_at[-1]))

    def log_z(self, log_values: Any, states: Any) -> Any:
        """Natural logarithm of the partition function of every setting, (n_settings,).

        Args:
            log_values: (n_entries, n_settings), the log tables.
            states: (n_states, n_settings), what the states of the variables add; zeros, by which
                the derivatives are the marginals.
        """
        n_settings = log_values.shape[1]
        messages: list[Any] = []
        total = jnp.zeros(n_settings, log_values.dtype)
        for entry in self.constants:
            total = total + log_values[entry]
        for cluster in self.clusters:
            views = [
                *(one.of(log_values) for one in cluster.factors),
                *(one.of(states) for one in cluster.states),
                *(one.view(messages[one.firsts[0]]) for one in cluster.children),
            ]
            table: Any = sum(views[1:], start=views[0])
            last = table.ndim - 1
            message = _log_sum(table, tuple(range(last - cluster.summed, last)))
            messages.append(message)
            if cluster.root:
                total = total + message
        return total

    def answers(self, log_values: Any) -> tuple[Any, Any]:
        """Log Z (n_settings,) and marginals (n_settings, n_states) of rows of log tables."""
        columns = log_values.T
        states = jnp.zeros((self.n_states, columns.shape[1]), columns.dtype)
        log_z, pull = jax.vjp(lambda added: self.log_z(columns, added), states)
        (marginals,) = pull(jnp.ones_like(log_z))
        return log_z, marginals.T


def _log_sum(table: Any, axes: tuple[int, ...]) -> Any:
    """Logarithm of the sum of exponentials along axes; -inf, with derivative 0, of zeros alone."""
    largest = jax.lax.stop_gradient(jnp.max(table, axis=axes, keepdims=True))
    largest = jnp.where(largest == -jnp.inf, 0.0, largest)
    total = jnp.sum(jnp.exp(table - largest), axis=axes)
    some = total > 0.0
    sums = jnp.log(jnp.where(some, total, 1.0)) + largest.reshape(total.shape)
    return jnp.where(some, sums, -jnp.inf)


def log_partition(
    graph: FactorGraph, *, memory_limit: int | None = None
) -> Callable[[jax.Array], jax.Array]:
    """Log Z as a function of the log tables that JAX can differentiate.

    Its gradient is the belief of every factor (Darwiche 2003, "A differential approach to
    inference in Bayesian networks"). It works under jit, vmap and grad,
    and twice under grad: the second derivatives are the covariances of entries.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        memory_limit: bytes that the tables may take, as for `exact`.

    Returns:
        A function from an array (n_entries,), laid out as `graph.log_values`, to log Z, in the
        type of its argument.

    Raises:
        TooLargeError: if the tables would not fit the memory limit, or there are too many of them
            to be compiled.
    """
    _, columns = without_evidence(graph)
    absorbed = graph.absorb_evidence()
    elimination = Elimination.of(
        absorbed, Exact(memory_limit=memory_limit).cluster_plan(absorbed).tree
    )

    def evaluate(log_values: jax.Array) -> jax.Array:
        states = jnp.zeros((elimination.n_states, 1), log_values.dtype)
        found: jax.Array = elimination.log_z(log_values[columns][:, None], states)[0]
        return found

    return evaluate
