"""Loopy belief propagation in JAX, for accelerators and automatic differentiation.

It floods the reduced graph of `lbp`. The index arrays are padded, so that graphs of similar size
share the code that JAX compiles: padding refers to an additional last variable, message, entry and
factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ops import segment_max, segment_sum
from numpy.typing import NDArray

from factormodels.factor_graph import FactorGraph
from inference.backend import Backend
from inference.messages.kernels.reduction import Reduced
from inference.messages.kernels.schedules import EASE, MOST, PATIENCE, STEP
from inference.messages.lbp import Damping, damping_code
from inference.messages.reduction import reduced
from inference.peers.jax_sums import log_of_sum, where_computed
from inference.posterior import LogZKind, Marginals, Posterior, Status
from inference.settings import setting

_SMALLEST_SIZES = (16, 32, 64)
"""Variables, messages and table entries of the smallest size, which fits 15 pairs of 15 binary
variables. All are doubled together, so that code is compiled for few sizes."""


@dataclass(frozen=True)
class JaxBeliefPropagation(Backend):
    """Sum-product belief propagation with flooding, in JAX and in double precision.

    It finds the fixed point of `lbp` with the schedule "flooding", in the same number of
    iterations. Use it on accelerators; on a processor `lbp` is faster.

    Attributes:
        damping, tolerance, max_iterations: as for `lbp`.
    """

    name: ClassVar[str] = "lbp_jax"

    damping: Damping = setting("adaptive", least=0.0, below=1.0, names=("adaptive",))
    tolerance: float = setting(1e-9, least=0.0)
    max_iterations: int = setting(1000, least=1)

    @property
    def options(self) -> tuple[float, float, int]:
        """Damping (below 0: adaptive), tolerance and maximum number of iterations."""
        return damping_code(self.damping), self.tolerance, self.max_iterations

    def solve(self, graph: FactorGraph) -> Posterior:
        """Return the posterior of a graph without evidence.

        Raises:
            ZeroPartitionError: if zeros leave some variable without a state.
        """
        model = reduced(graph)
        layout, values, unary = _laid_out(graph, model)
        with jax.enable_x64(True):
            beliefs, log_z, *ended = _propagated(layout, values, unary, self.options)
        residual, iterations = float(ended[0]), int(ended[1])
        states = np.arange(unary.shape[1]) < graph.cardinalities[:, None]
        return Posterior(
            marginals=Marginals.of(graph, np.asarray(beliefs)[: graph.n_variables][states]),
            log_z=float(log_z) + model.constant,
            log_z_kind=LogZKind.BETHE,
            status=Status.CONVERGED if residual <= self.tolerance else Status.NOT_CONVERGED,
            stats={
                "iterations": iterations,
                "residual": residual,
                "schedule": "flooding",
                "damping": self.damping,
                **where_computed(),
            },
        )


class _Layout(NamedTuple):
    """Index arrays of a reduced graph; the last element of each is padding.

    Attributes:
        variables: (n_slots,), the variable of every place in a scope.
        slots, states: (n_entries, widest scope), the places in scopes for which a table entry has a
            state, and these states.
        factors: (n_entries,), the factor of every entry.
    """

    variables: Any
    slots: Any
    states: Any
    factors: Any


def _laid_out(
    graph: FactorGraph, model: Reduced
) -> tuple[_Layout, NDArray[np.float64], NDArray[np.float64]]:
    """Return the layout of a reduced graph, its log tables and the log weights of states.

    The log tables are (n_entries,), the weights (n_variables, n_states). Impossible entries and
    states, and padding, are -inf.
    """
    counts = (graph.n_variables, len(model.scope_variables), len(model.log_values))
    doublings = max(
        (count // least).bit_length() for count, least in zip(counts, _SMALLEST_SIZES, strict=True)
    )
    n_variables, n_slots, n_entries = (least << doublings for least in _SMALLEST_SIZES)
    arities = np.diff(model.scope_starts)
    widest, most_states = int(arities.max(initial=1)), int(graph.cardinalities.max(initial=1))
    unary = np.full((n_variables, most_states), -np.inf)
    unary[: graph.n_variables][np.arange(most_states) < graph.cardinalities[:, None]] = model.unary
    values = np.full(n_entries, -np.inf)
    values[: counts[2]] = model.log_values
    variables = np.full(n_slots, n_variables - 1, dtype=np.int32)
    variables[: counts[1]] = model.scope_variables
    factors = np.full(n_entries, n_entries - 1, dtype=np.int32)
    factors[: counts[2]] = np.repeat(np.arange(len(arities)), np.diff(model.table_starts))
    slots = np.full((n_entries, widest), n_slots - 1, dtype=np.int32)
    states = np.zeros((n_entries, widest), dtype=np.int32)
    for factor, arity in enumerate(arities.tolist()):
        first, entries = model.scope_starts[factor], slice(*model.table_starts[factor : factor + 2])
        shape = graph.cardinalities[variables[first : first + arity]]
        slots[entries, :arity] = np.arange(first, first + arity)
        states[entries, :arity] = np.indices(tuple(shape)).reshape(arity, -1).T
    possible = unary[variables[slots], states] > -np.inf
    values[~(possible | (slots == n_slots - 1)).all(axis=1)] = -np.inf
    return _Layout(variables, slots, states, factors), values, unary


@jax.jit
def _propagated(layout: _Layout, values: Any, unary: Any, options: Any) -> Any:
    """Return marginals (n_variables, n_states), the Bethe log Z, and how the iteration ended.

    Args:
        layout: index arrays of the graph.
        values, unary: log tables of factors and of variables.
        options: damping (below 0: adaptive), tolerance and maximum number of iterations.
    """
    messages, residual, iterations = _fixed_point(layout, values, unary, options)
    beliefs, totals = _products(layout, messages, values, unary)[::2]
    log_zs = jnp.where((unary > -jnp.inf).any(axis=1), log_of_sum(beliefs, (1,)), 0.0)
    # Once per slot: the sum of a message times the variable's reply is the variable's sum.
    log_z = log_zs.sum() - log_zs[layout.variables].sum()
    log_z += _log_sums(totals, layout.factors, len(values)).sum()
    return jnp.exp(beliefs - log_zs[:, None]), log_z, residual, iterations


def _log_sums(values: Any, groups: Any, count: int) -> Any:
    """Return the log of the sum of exponentials in each group, 0 for groups of zeros only."""
    largest = segment_max(values, groups, count)
    largest = jnp.where(largest == -jnp.inf, 0.0, largest)
    sums = segment_sum(jnp.exp(values - largest[groups]), groups, count)
    return largest + jnp.log(jnp.where(sums > 0.0, sums, 1.0))


def _products(layout: _Layout, messages: Any, values: Any, unary: Any) -> Any:
    """Return log beliefs of states, the same without each message, and log beliefs of entries."""
    beliefs = unary + segment_sum(messages, layout.variables, len(unary))
    possible = (unary > -jnp.inf)[layout.variables]
    cavities = jnp.where(possible, beliefs[layout.variables] - messages, 0.0)
    return beliefs, cavities, values + cavities[layout.slots, layout.states].sum(axis=1)


def _fixed_point(layout: _Layout, values: Any, unary: Any, options: Any) -> Any:
    """Return messages (n_slots, n_states), residual and iterations; damping as in `lbp`."""
    asked, tolerance, most = options
    shape = (len(layout.variables), unary.shape[1])
    groups = (layout.slots * shape[1] + layout.states).ravel()
    possible = (unary > -jnp.inf)[layout.variables]

    def step(state: Any) -> Any:
        messages, _, iterations, damping, smallest, waited = state
        _, cavities, totals = _products(layout, messages, values, unary)
        terms = jnp.repeat(totals, layout.slots.shape[1])
        fresh = _log_sums(terms, groups, math.prod(shape)).reshape(shape) - cavities
        fresh -= jnp.max(fresh, axis=1, keepdims=True, where=possible, initial=-jnp.inf)
        change = jnp.where(possible, fresh - messages, 0.0)
        highest = jnp.max(change, axis=1, where=possible, initial=-jnp.inf)
        lowest = jnp.min(change, axis=1, where=possible, initial=jnp.inf)
        residual = jnp.max(jnp.maximum(highest - lowest, 0.0))
        messages = messages + (1.0 - damping) * change
        better, patient = residual < smallest, waited + 1 < PATIENCE
        risen = jnp.where(patient, damping, jnp.minimum(damping + STEP, MOST))
        adapted = jnp.where(better, EASE * damping, risen)
        waits = ~better & patient
        return (
            messages,
            residual,
            iterations + 1,
            jnp.where(asked < 0.0, adapted, damping),
            jnp.where(waits, smallest, residual),
            jnp.where(waits, waited + 1, 0),
        )

    infinite = jnp.asarray(jnp.inf, values.dtype)
    damping = jnp.maximum(asked, 0.0).astype(values.dtype)
    start = (jnp.zeros(shape, values.dtype), infinite, 0, damping, infinite, 0)
    going = lambda state: (state[1] > tolerance) & (state[2] < most)  # noqa: E731
    return lax.while_loop(going, step, start)[:3]
