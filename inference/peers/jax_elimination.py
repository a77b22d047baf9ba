"""Elimination in JAX, for accelerators and automatic differentiation.

The sums follow the order of `exact`, unrolled and compiled once per structure; marginals are
derivatives of log Z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, Result, TooLargeError, zero_partition
from inference.exact.backend import Exact
from inference.exact.plans import Plan, by_structure
from inference.exact.prediction import Prediction
from inference.memory import SHARE, MemoryAllowance, allowance, require
from inference.peers.jax_sums import log_of_sum, where_computed
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting

_COPIES = 4
"""Copies of the tables in memory: products and exponentials, forward and backward."""

_MOST_BYTES_AT_A_TIME = 2**31
"""Maximum memory of settings that are solved together; more are solved in parts."""

_MOST_SUMS = 1_000
"""Maximum number of sums; compiling more takes minutes and gigabytes."""


@dataclass(frozen=True)
class JaxElimination(Backend):
    """All marginals and log Z by elimination, in JAX and in double precision.

    Use it on an accelerator for many settings of one structure, which it solves together: the
    responses of a simulation, replicates, the steps of a learner. Compilation takes some seconds
    per structure of a hundred variables, and more than 1,000 sums are refused; on a processor, and
    for graphs of different structures, `exact` is faster. All arithmetic is in log space.

    Attributes:
        seed: seed of the search for an elimination order, as for `exact`.
        memory_limit: bytes that the tables of one graph may take; None: three quarters of the
            memory available on the machine, or on the accelerator that JAX uses.
    """

    name: ClassVar[str] = "exact_jax"

    seed: int = setting(0, least=0)
    memory_limit: int | None = setting(None, above=0)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would exceed the memory limit.
            ZeroPartitionError: if no assignment has positive potential.
        """
        (result,) = self.solve_settings(graph, graph.log_values[None])
        if isinstance(result, Posterior):
            return result
        raise result

    def solve_batch(
        self,
        graphs: Sequence[FactorGraph],
        threads: int = 1,  # noqa: ARG002 - JAX has threads of its own
    ) -> list[Result]:
        """Return exact posteriors or errors, solving graphs of the same structure together."""
        results: dict[int, Result] = {}
        for numbers in by_structure(graphs):
            rows = np.stack([graphs[number].log_values for number in numbers])
            row_results = self.solve_settings(graphs[numbers[0]], rows)
            results.update(zip(numbers, row_results, strict=True))
        return [results[number] for number in range(len(graphs))]

    def solve_settings(
        self,
        graph: FactorGraph,
        log_values: NDArray[np.float64],
        threads: int = 1,  # noqa: ARG002
    ) -> list[Result]:
        """Return exact posteriors of a graph under many log tables together, or the errors."""
        try:
            log_z, marginals, prediction = self.answers(graph, log_values)
        except TooLargeError as error:
            return [error] * len(log_values)
        stats = {**prediction.stats(self.seed), "arithmetic": "log", **where_computed()}
        kind, status = LogZKind.EXACT, Status.EXACT
        return [
            zero_partition()
            if total == -np.inf
            else Posterior(Marginals.of(graph, flat), total, kind, status, stats, self.name)
            for total, flat in zip(log_z.tolist(), marginals, strict=True)
        ]

    def answers(
        self, graph: FactorGraph, log_values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Prediction]:
        """Return log Z and marginals of a graph under many log tables, as arrays.

        Args:
            graph: a graph without evidence, whose own log tables are ignored.
            log_values: float64 (n_settings, n_entries).

        Returns:
            Log Z, float64 (n_settings,), -inf if no assignment has positive potential; marginals,
            float64 (n_settings, n_states), one probability vector after another, NaN if log Z is
            -inf; and the cost of one setting.

        Raises:
            TooLargeError: if the tables would exceed the memory limit, or are too many to be
                compiled.
        """
        plan = self._plan(graph)
        needed = _COPIES * plan.cost.bytes
        if not plan.fits:
            instead = "use backend 'wmb' for certified bounds or 'lbp' for an estimate"
            require(needed, self._allowance(), "the tables of one graph", instead)
        sums = _Sums.of(graph, plan)
        # Powers of two, so that code is compiled for few numbers of settings.
        most = max(1, int(_MOST_BYTES_AT_A_TIME / max(needed, 1)))
        size = min(1 << (most.bit_length() - 1), 1 << (len(log_values) - 1).bit_length())
        rows = np.pad(log_values, ((0, -len(log_values) % size), (0, 0)), mode="edge")
        with jax.enable_x64(True):
            parts = _answers(sums, rows.reshape(len(rows) // size, size, rows.shape[1]))
        log_z, marginals = (
            np.array(part).reshape(len(rows), *part.shape[2:])[: len(log_values)] for part in parts
        )
        if graph.n_variables:
            starts = np.cumsum(graph.cardinalities) - graph.cardinalities
            with np.errstate(invalid="ignore"):
                # The sums deviate from one by rounding, and are zero without a possible assignment.
                totals = np.add.reduceat(marginals, starts, axis=1)
                marginals /= np.repeat(totals, graph.cardinalities, axis=1)
        return log_z, marginals, plan.cost

    def predict(self, graph: FactorGraph) -> Prediction:
        """Return the predicted cost of `infer` on a processor, without compilation."""
        return self._plan(graph.absorb_evidence()).cost

    def _plan(self, graph: FactorGraph) -> Plan:
        limit = self._allowance().bytes // _COPIES
        return Exact(self.seed, memory_limit=max(limit, 1)).cluster_plan(graph, refuse=False)

    def _allowance(self) -> MemoryAllowance:
        """Return the memory that the tables may take on JAX's device."""
        stats = jax.devices()[0].memory_stats()
        if self.memory_limit is None and stats and "bytes_limit" in stats:
            return MemoryAllowance(
                int(SHARE * stats["bytes_limit"]),
                "three quarters of the memory that JAX has on the accelerator",
            )
        return allowance(self.memory_limit)


class _Sums(NamedTuple):
    """The sums of a plan: the static arguments for which JAX compiles.

    Attributes:
        states: number of states of every variable.
        scopes: scope of every factor.
        order: the variables that are summed out together, one sum after another.
    """

    states: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]
    order: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, graph: FactorGraph, plan: Plan) -> _Sums:
        """Return the sums of a plan for a graph without evidence.

        Raises:
            TooLargeError: if they are too many to be compiled.
        """
        tree = plan.tree
        if len(tree.parents) > _MOST_SUMS:
            raise TooLargeError(
                f"'exact_jax' compiles every sum by itself, and this graph has "
                f"{len(tree.parents):,} of them (at most {_MOST_SUMS:,}); use backend 'exact'"
            )
        clusters = [tree.variables[start:end] for start, end in pairwise(tree.starts.tolist())]
        together = zip(clusters, tree.separator_sizes.tolist(), strict=True)
        return cls(
            tuple(graph.cardinalities.tolist()),
            tuple(graph.scope(factor) for factor in range(graph.n_factors)),
            tuple(tuple(members[kept:].tolist()) for members, kept in together),
        )


def _log_z(sums: _Sums, log_values: Any, states: Any) -> Any:
    """Return log Z of log tables (n_entries,) plus log weights of the states (n_states,)."""
    tables: list[tuple[list[int], Any]] = []
    of_variables = [(v,) for v in range(len(sums.states))]
    for values, scopes in (log_values, sums.scopes), (states, of_variables):
        start = 0
        for scope in scopes:
            shape = [sums.states[v] for v in scope]
            tables.append((list(scope), values[start : start + math.prod(shape)].reshape(shape)))
            start += math.prod(shape)
    for together in sums.order:
        used = [table for table in tables if not set(together).isdisjoint(table[0])]
        tables = [table for table in tables if set(together).isdisjoint(table[0])]
        kept = sorted({v for scope, _ in used for v in scope}.difference(together))
        axes = [*kept, *together]
        product = sum(_placed(table, scope, axes) for scope, table in used)
        tables.append((kept, log_of_sum(product, tuple(range(len(kept), len(axes))))))
    return sum((table for _, table in tables), jnp.zeros((), log_values.dtype))


def _placed(table: Any, scope: Sequence[int], axes: Sequence[int]) -> Any:
    """Return a table with one axis for each of `axes`, in their order."""
    slots = sorted(range(len(scope)), key=lambda slot: axes.index(scope[slot]))
    sizes = dict(zip(scope, table.shape, strict=True))
    return table.transpose(slots).reshape([sizes.get(v, 1) for v in axes])


@partial(jax.jit, static_argnums=0)
def _answers(sums: _Sums, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log Z (parts, settings) and marginals (parts, settings, n_states), computed part by
    part.

    Args:
        sums: the sums.
        rows: (parts, settings, n_entries), the log tables.
    """
    states = jnp.zeros(sum(sums.states), rows.dtype)
    evaluate = jax.value_and_grad(partial(_log_z, sums), argnums=1)
    answers: tuple[jax.Array, jax.Array] = lax.map(
        jax.vmap(lambda row: evaluate(row, states)), rows
    )
    return answers
