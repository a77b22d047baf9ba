"""PGMax's loopy belief propagation behind this package's contract.

PGMax 0.6.1 passes the messages; this module makes it do so for any factor graph. It knows no
impossible states and answers NaN to -inf, so it is given the possible states and entries alone;
it refuses two factors on the same variables, so nested scopes are multiplied first; it is max-
product unless told otherwise, has no rule to stop, and gives no log Z, which is read off its last
messages here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.backend import get_backend
from numpy.typing import NDArray
from pgmax import fgraph, fgroup, infer, vgroup
from pgmax.infer import BPArrays
from pgmax.utils import LOG_POTENTIAL_MAX_ABS

from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference.backend import Backend, InferenceError, zero_partition
from inference.messages.kernels.entries import Entries, possible_entries
from inference.messages.kernels.readout import read_out
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.state import initial_messages, refresh_beliefs
from inference.messages.lbp import check_settings
from inference.messages.reduction import reduced
from inference.posterior import LogZKind, Marginals, Posterior, Status

_AT_A_TIME = 20
"""Iterations between looks at the changes: PGMax compiles for a number of iterations."""


@dataclass(frozen=True)
class PgmaxBeliefPropagation(Backend):
    """PGMax's flooding belief propagation at temperature 1, in double precision.

    Attributes:
        damping: weight of the old message in the new one, in [0, 1); 0.5 is PGMax's own default.
        tolerance: largest change of a log message, without the damping, at convergence.
        max_iterations: after this many iterations, rounded up to a multiple of 20, the run ends as
            not converged.
    """

    name: ClassVar[str] = "pgmax"

    damping: float = 0.5
    tolerance: float = 1e-9
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        if isinstance(self.damping, str):
            raise InputError(f"the damping {self.damping!r} of 'pgmax' is not a number; give one")
        check_settings(self.name, self.damping, self.tolerance, self.max_iterations)

    def solve(self, graph: FactorGraph) -> Posterior:
        """Posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
            InferenceError: if potentials of a table differ by more than a factor of exp(1e6),
                at which PGMax clips them.
        """
        model = reduced(graph)
        entries = possible_entries(graph.cardinalities, model)
        if len(entries.entries):
            values, changes = self._run(model, entries)
        else:
            values, changes = np.zeros(0), [0.0]
        marginals, log_z = _read_out(graph.cardinalities, model, entries, values)
        if log_z == -np.inf:
            raise zero_partition()
        return Posterior(
            marginals=Marginals(graph.names, graph.cardinalities, marginals, graph.index),
            log_z=log_z,
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if changes[-1] <= self.tolerance else Status.NOT_CONVERGED,
            stats={
                "iterations": len(changes),
                "residual": changes[-1],
                "residual_trace": changes,
                "damping": self.damping,
            },
        )

    def _run(self, model: Reduced, entries: Entries) -> tuple[NDArray[np.float64], list[float]]:
        """Last messages, laid out as `entries` says, and the changes on the way."""
        tables = model.log_values[entries.entries]
        per_factor = np.diff(entries.entry_starts)
        largest = np.maximum.reduceat(tables, entries.entry_starts[:-1])
        tables = tables - np.repeat(largest, per_factor)
        if tables.min() < -LOG_POTENTIAL_MAX_ABS:
            raise InferenceError(
                f"potentials of one table differ by a factor of exp({-tables.min():.3g}), and "
                f"PGMax clips at exp({LOG_POTENTIAL_MAX_ABS:.0e}); use backend 'lbp'"
            )
        groups = _groups(model, entries)
        order = [factor for factors in groups for factor in factors]
        slots = [
            slot
            for factor in order
            for slot in range(model.scope_starts[factor], model.scope_starts[factor + 1])
        ]
        place = _ranges(entries.message_starts, np.array(slots))
        with jax.enable_x64(True), _as_pgmax_expects():
            inferer = infer.build_inferer(_factor_graph(model, entries, groups).bp_state, "bp")
            arrays = BPArrays(
                log_potentials=jnp.asarray(tables[_ranges(entries.entry_starts, np.array(order))]),
                ftov_msgs=jnp.zeros(len(place)),
                evidence=jnp.asarray(model.unary[entries.states]),
            )
            advance = jax.jit(
                lambda state: inferer.run_with_diffs(
                    state, num_iters=_AT_A_TIME, damping=self.damping, temperature=1.0
                )
            )
            changes: list[float] = []
            while len(changes) < self.max_iterations:
                arrays, found = advance(arrays)
                changes += (np.asarray(found) / (1.0 - self.damping)).tolist()
                if changes[-1] <= self.tolerance:
                    break
            values = np.empty(len(place))
            values[place] = np.asarray(arrays.ftov_msgs)
        return values, changes


def _groups(model: Reduced, entries: Entries) -> list[list[int]]:
    """Factors by their possible entries: PGMax's groups share these."""
    starts = entries.message_starts
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for factor in range(len(entries.entry_starts) - 1):
        first = starts[model.scope_starts[factor]]
        rows = entries.entry_messages[
            entries.entry_starts[factor] : entries.entry_starts[factor + 1]
        ]
        states = np.diff(starts[model.scope_starts[factor] : model.scope_starts[factor + 1] + 1])
        key = (states.tobytes(), (rows[:, : len(states)] - first).tobytes())
        groups.setdefault(key, []).append(factor)
    return list(groups.values())


def _factor_graph(model: Reduced, entries: Entries, groups: list[list[int]]) -> Any:
    variables, counts = np.unique(entries.state_variables, return_counts=True)
    array = vgroup.NDVarArray(num_states=counts, shape=counts.shape)
    named = dict(zip(variables.tolist(), array[:], strict=True))
    result = fgraph.FactorGraph(variable_groups=array)
    for factors in groups:
        factor = factors[0]
        slots = range(model.scope_starts[factor], model.scope_starts[factor + 1])
        rows = entries.entry_messages[
            entries.entry_starts[factor] : entries.entry_starts[factor + 1]
        ]
        configurations = rows[:, : len(slots)] - entries.message_starts[slots.start : slots.stop]
        result.add_factors(
            fgroup.EnumFactorGroup(
                variables_for_factors=[
                    [named[v] for v in model.scope_variables[start:stop].tolist()]
                    for start, stop in (model.scope_starts[f : f + 2] for f in factors)
                ],
                factor_configs=configurations,
            )
        )
    return result


def _ranges(starts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of ranges ``starts[i]:starts[i + 1]``, one after another."""
    lengths = starts[numbers + 1] - starts[numbers]
    ends = np.cumsum(lengths)
    return np.repeat(starts[numbers] - ends + lengths, lengths) + np.arange(lengths.sum())


def _read_out(
    cardinalities: NDArray[np.int64],
    model: Reduced,
    entries: Entries,
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Marginals and Bethe log Z of messages that are laid out as `entries` says."""
    messages = initial_messages(cardinalities, model, np.ones(len(model.scope_starts) - 1))
    messages.log_messages[:] = -np.inf
    slots = np.repeat(np.arange(len(model.scope_variables)), np.diff(entries.message_starts))
    states = entries.states[entries.message_states]
    firsts = model.state_starts[model.scope_variables[slots]]
    messages.log_messages[messages.slot_starts[slots] + states - firsts] = values
    refresh_beliefs(model, messages)
    marginals, log_z = read_out(cardinalities, model, messages)
    return marginals, float(log_z)


@contextmanager
def _as_pgmax_expects() -> Iterator[None]:
    """Lend PGMax a function that JAX has dropped; empty its caches, which keep every graph."""
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
