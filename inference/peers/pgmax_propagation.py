"""Backend of PGMax's loopy belief propagation.

PGMax 0.6.1 passes the messages; this module adapts it to any factor graph. PGMax does not support
impossible states and returns NaN for -inf, so that it receives only the possible states and
entries; it refuses two factors on the same variables, so that nested scopes are multiplied first;
it is max-product by default, has no stopping rule, and gives no log Z, which is computed here from
its last messages. The conversion of `factormodels.interchange.to_pgmax` is not used, since it
accepts only the graphs that PGMax accepts. PGMax computes every message; this module reduces the
graph before and sums the messages afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.backend import get_backend
from numpy.typing import NDArray
from pgmax import fgraph, fgroup, infer, vgroup
from pgmax.infer import BPArrays
from pgmax.utils import LOG_POTENTIAL_MAX_ABS

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, zero_partition
from inference.messages.kernels.readout import read_out
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.state import initial_messages, refresh_beliefs
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting

_AT_A_TIME = 20
"""Iterations between checks of convergence, since PGMax compiles for a number of iterations."""


@dataclass(frozen=True)
class PgmaxBeliefPropagation(Backend):
    """PGMax's belief propagation with flooding at temperature 1, in double precision.

    Attributes:
        damping: weight of the old message in the new one, in [0, 1); PGMax's default is 0.5.
        tolerance: maximum change of a log message, without damping, at convergence.
        max_iterations: number of iterations, rounded up to a multiple of 20, after which the run
            ends as not converged.
    """

    name: ClassVar[str] = "pgmax"

    damping: float = setting(0.5, least=0.0, below=1.0)
    tolerance: float = setting(1e-9, least=0.0)
    max_iterations: int = setting(1000, least=1)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
            InferenceError: if potentials of a table differ by more than a factor of exp(1e6), at
                which PGMax clips them.
        """
        model = reduced(graph)
        messages = initial_messages(
            graph.cardinalities, model, np.ones(len(model.table_starts) - 1)
        )
        possible = _possible_entries(graph.cardinalities, model)
        changes = [0.0]
        if len(possible):
            changes = self._run(model, possible, messages)
        refresh_beliefs(model, messages)
        marginals, log_z = read_out(graph.cardinalities, model, messages)
        if log_z == -np.inf:
            raise zero_partition()
        return Posterior(
            marginals=Marginals.of(graph, marginals),
            log_z=float(log_z),
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if changes[-1] <= self.tolerance else Status.NOT_CONVERGED,
            stats={
                "iterations": len(changes),
                "residual": changes[-1],
                "residual_trace": changes,
                "damping": self.damping,
            },
        )

    def _run(self, model: Reduced, possible: list[_Possible], messages: Any) -> list[float]:
        """Write the last messages into `messages`; return the changes on the way."""
        spread = max(float(np.ptp(factor.log_values)) for factor in possible)
        if spread > LOG_POTENTIAL_MAX_ABS:
            raise InferenceError(
                f"potentials of one table differ by a factor of exp({spread:.3g}), and "
                f"PGMax clips at exp({LOG_POTENTIAL_MAX_ABS:.0e}); use backend 'lbp'"
            )
        groups = _groups(possible)
        order = [factor for group in groups for factor in group]
        alive = model.unary > -np.inf
        states = [
            np.flatnonzero(alive[start:stop])
            for start, stop in zip(model.state_starts[:-1], model.state_starts[1:], strict=True)
        ]
        free = np.flatnonzero(model.fixed < 0).tolist()
        # Positions of PGMax's messages, which cover the possible states of each place, in ours.
        places = [
            messages.slot_starts[factor.first_slot + axis] + states[variable]
            for factor in order
            for axis, variable in enumerate(factor.scope)
        ]
        tables = [factor.log_values - factor.log_values.max() for factor in order]
        unary = [model.unary[model.state_starts[v] + states[v]] for v in free]
        counts = np.array([len(states[v]) for v in free])
        with jax.enable_x64(True), _as_pgmax_expects():
            inferer = infer.build_inferer(_factor_graph(free, counts, groups).bp_state, "bp")
            arrays = BPArrays(
                log_potentials=jnp.asarray(np.concatenate(tables)),
                ftov_msgs=jnp.zeros(sum(map(len, places))),
                evidence=jnp.asarray(np.concatenate(unary)),
            )
            advance = jax.jit(
                lambda state: inferer.run_with_diffs(
                    state, num_iters=_AT_A_TIME, damping=self.damping, temperature=1.0
                )
            )
            changes: list[float] = []
            while len(changes) < self.max_iterations:
                arrays, step_changes = advance(arrays)
                changes += (np.asarray(step_changes) / (1.0 - self.damping)).tolist()
                if changes[-1] <= self.tolerance:
                    break
            messages.log_messages[:] = -np.inf
            messages.log_messages[np.concatenate(places)] = np.asarray(arrays.ftov_msgs)
        return changes


class _Possible(NamedTuple):
    """The possible entries of a factor of a reduced graph.

    Attributes:
        scope: its variables.
        first_slot: start of its scope among all scopes.
        configurations: int64 (n_entries, n_variables), its possible entries as numbers of states
            among the possible ones.
        log_values: float64 (n_entries,), log potentials of these entries.
    """

    scope: list[int]
    first_slot: int
    configurations: NDArray[np.int64]
    log_values: NDArray[np.float64]


def _possible_entries(cardinalities: NDArray[np.int64], model: Reduced) -> list[_Possible]:
    alive = model.unary > -np.inf
    # Number of each state among the possible ones of its variable.
    before = np.concatenate([[0], np.cumsum(alive)])
    numbers = before[:-1] - np.repeat(before[model.state_starts[:-1]], cardinalities)
    entries = []
    for factor in range(len(model.table_starts) - 1):
        slots = slice(*model.scope_starts[factor : factor + 2])
        scope = model.scope_variables[slots]
        table = model.log_values[slice(*model.table_starts[factor : factor + 2])]
        local = np.indices(tuple(cardinalities[scope])).reshape(len(scope), -1).T
        states = model.state_starts[scope] + local
        possible = (table > -np.inf) & alive[states].all(axis=1)
        entries.append(
            _Possible(scope.tolist(), int(slots.start), numbers[states[possible]], table[possible])
        )
    return entries


def _groups(possible: list[_Possible]) -> list[list[_Possible]]:
    """Return factors grouped by their possible entries, which PGMax's groups share."""
    groups: dict[tuple[int, bytes], list[_Possible]] = {}
    for factor in possible:
        key = (len(factor.scope), factor.configurations.tobytes())
        groups.setdefault(key, []).append(factor)
    return list(groups.values())


def _factor_graph(
    variables: list[int], counts: NDArray[np.int64], groups: list[list[_Possible]]
) -> Any:
    """Return PGMax's graph of variables with given numbers of possible states."""
    array = vgroup.NDVarArray(num_states=counts, shape=counts.shape)
    named = dict(zip(variables, array[:], strict=True))
    result = fgraph.FactorGraph(variable_groups=array)
    for factors in groups:
        scopes = [[named[v] for v in factor.scope] for factor in factors]
        result.add_factors(
            fgroup.EnumFactorGroup(
                variables_for_factors=scopes, factor_configs=factors[0].configurations
            )
        )
    return result


@contextmanager
def _as_pgmax_expects() -> Iterator[None]:
    """Restore a function that JAX removed; clear PGMax's caches, which keep every graph."""
    library: Any = jax.lib
    lacking = not hasattr(library, "xla_bridge")
    if lacking:
        library.xla_bridge = SimpleNamespace(get_backend=get_backend)
    try:
        yield
    finally:
        if lacking:
            del library.xla_bridge
        for cls in (fgraph.FactorGraph, fgroup.FactorGroup, vgroup.NDVarArray):
            for attribute in vars(cls).values():
                cached: Any = attribute.fget if isinstance(attribute, property) else attribute
                if hasattr(cached, "cache_clear"):
                    cached.cache_clear()
