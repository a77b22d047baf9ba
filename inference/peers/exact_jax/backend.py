"""Variable elimination in JAX as a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, Result, TooLargeError, zero_partition
from inference.exact.backend import Exact
from inference.exact.plans import Plan, by_structure
from inference.exact.prediction import Prediction
from inference.memory import SHARE, MemoryAllowance, allowance, check_limit, require
from inference.peers.exact_jax.upward import Elimination
from inference.posterior import LogZKind, Marginals, Posterior, Status

_COPIES = 4
"""Copies of the tables at a time: products, their exponentials, and both of them going back."""

_MOST_BYTES_AT_A_TIME = 2**31
"""Memory of the settings that are answered side by side; more are run in parts."""


@dataclass(frozen=True)
class JaxElimination(Backend):
    """All marginals and log Z by the elimination of `exact`, in JAX and in double precision.

    It is for an accelerator with many settings of one structure, which it answers side by side:
    the responses of a simulation, replicates, a learner's steps. Every structure is compiled, for
    some seconds at a hundred variables, and refused beyond 1,000 clusters; on a processor, and for
    graphs that all differ, `exact` is faster. Arithmetic is in log space throughout.

    Attributes:
        seed: of the search for an elimination order, as for `exact`.
        memory_limit: bytes that the tables of one graph may take; None: three quarters of what the
            machine, or the accelerator that JAX computes on, has available.
    """

    name: ClassVar[str] = "exact_jax"

    seed: int = 0
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} of 'exact_jax' is negative; give one from 0 up")
        check_limit(self.name, self.memory_limit)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Exact posterior of a graph without evidence.

        Raises:
            TooLargeError: if the tables would not fit the memory limit.
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
        """Exact posteriors of many graphs, those of one structure side by side, or the errors."""
        results: dict[int, Result] = {}
        for numbers in by_structure(graphs):
            rows = np.stack([graphs[number].log_values for number in numbers])
            found = self.solve_settings(graphs[numbers[0]], rows)
            results.update(zip(numbers, found, strict=True))
        return [results[number] for number in range(len(graphs))]

    def solve_settings(
        self,
        graph: FactorGraph,
        log_values: NDArray[np.float64],
        threads: int = 1,  # noqa: ARG002
    ) -> list[Result]:
        """Exact posteriors of a graph under many log tables, side by side, or the errors."""
        try:
            log_z, marginals, prediction = self.answers(graph, log_values)
        except TooLargeError as error:
            return [error] * len(log_values)
        stats = {
            **prediction.stats(self.seed),
            "arithmetic": "log",
            "device": jax.default_backend(),
            "jax": jax.__version__,
        }
        return [
            zero_partition()
            if total == -np.inf
            else Posterior(
                marginals=Marginals.of(graph, flat),
                log_z=total,
                log_z_kind=LogZKind.EXACT,
                status=Status.EXACT,
                stats=stats,
                backend=self.name,
            )
            for total, flat in zip(log_z.tolist(), marginals, strict=True)
        ]

    def answers(
        self, graph: FactorGraph, log_values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Prediction]:
        """Log Z and marginals of a graph under many log tables, as arrays.

        Args:
            graph: a graph without evidence, whose own log tables play no part.
            log_values: float64 (n_settings, n_entries).

        Returns:
            Log Z, float64 (n_settings,), -inf where no assignment has positive potential;
            marginals, float64 (n_settings, n_states), one probability vector after another, NaN
            where log Z is -inf; and what one setting costs.

        Raises:
            TooLargeError: if the tables would not fit the memory limit, or there are too many of
                them to be compiled.
        """
        plan = self._plan(graph)
        needed = _COPIES * plan.prediction.bytes
        if not plan.fits:
            instead = "use backend 'wmb' for certified bounds or 'lbp' for an estimate"
            require(needed, self._allowance(), "the tables of one graph", instead)
        elimination = Elimination.of(graph, plan.tree)
        # Powers of two, so that few numbers of settings are compiled for.
        most = max(1, int(_MOST_BYTES_AT_A_TIME / max(needed, 1)))
        size = min(1 << (most.bit_length() - 1), 1 << (len(log_values) - 1).bit_length())
        log_z = np.empty(len(log_values))
        marginals = np.empty((len(log_values), int(graph.cardinalities.sum())))
        for first in range(0, len(log_values), size):
            rows = log_values[first : first + size]
            filled = np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge")
            with jax.enable_x64(True):
                totals, flat = _answers(elimination, filled)
                log_z[first : first + size] = np.asarray(totals)[: len(rows)]
                marginals[first : first + size] = np.asarray(flat)[: len(rows)]
        if graph.n_variables:
            starts = np.concatenate([[0], np.cumsum(graph.cardinalities)[:-1]])
            with np.errstate(invalid="ignore"):
                # Rounding keeps the sums from one, and without an assignment there is none.
                sums = np.add.reduceat(marginals, starts, axis=1)
                marginals /= np.repeat(sums, graph.cardinalities, axis=1)
        return log_z, marginals, plan.prediction

    def predict(self, graph: FactorGraph) -> Prediction:
        """What `infer` would cost on a processor, but for compiling."""
        return self._plan(graph.absorb_evidence()).prediction

    def _plan(self, graph: FactorGraph) -> Plan:
        limit = self._allowance().bytes // _COPIES
        return Exact(self.seed, memory_limit=max(limit, 1)).cluster_plan(graph, refuse=False)

    def _allowance(self) -> MemoryAllowance:
        """What the tables may take where JAX computes."""
        stats = jax.devices()[0].memory_stats()
        if self.memory_limit is None and stats and "bytes_limit" in stats:
            return MemoryAllowance(
                int(SHARE * stats["bytes_limit"]),
                "three quarters of the memory that JAX has on the accelerator",
            )
        return allowance(self.memory_limit)


@partial(jax.jit, static_argnums=0)
def _answers(elimination: Elimination, log_values: jax.Array) -> tuple[jax.Array, jax.Array]:
    return elimination.answers(log_values)
