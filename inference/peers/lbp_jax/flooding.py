"""Belief propagation by flooding as JAX functions, with derivatives of the fixed point.

The settings of a graph are the last axis of every array: what is summed over the states of a
variable, or the entries of a factor, are whole rows then, which is many times as fast as a batch of
sums over single numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.ops import segment_max, segment_min, segment_sum

from inference.messages.kernels.schedules import EASE, MOST, PATIENCE, STEP
from inference.peers.lbp_jax.structure import Structure

_ADJOINT_DAMPING = 0.5
"""Half of each step: this converges wherever propagation with any damping does."""


class Options(NamedTuple):
    """Damping (below 0: adaptive), tolerance and largest number of iterations."""

    damping: Any
    tolerance: Any
    max_iterations: Any


def solve(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    """Propagate in one structure under many settings.

    Args:
        values, unary: (n_entries, n_settings) and (n_states, n_settings), padded log tables.
        structure: padded index arrays.
        options: the settings of the algorithm.

    Returns:
        marginals: (n_states, n_settings), of the possible states.
        log_z, residual, iterations: (n_settings,), the Bethe log Z, and how the iteration ended.
    """
    messages, residual, iterations = _fixed_point(values, unary, structure, options)
    beliefs, cavities = _beliefs(messages, unary, structure)
    n_states, n_entries = len(unary), len(values)
    log_zs = _log_sums(beliefs, structure.state_variable, n_states, structure.real_variables)
    marginals = jnp.exp(beliefs - log_zs[structure.state_variable])
    local = _log_sums(
        _totals(cavities, values, structure),
        structure.entry_factor,
        n_entries,
        structure.real_factors,
    )
    # Once per slot: the sum of a message times what its variable sends is that of the variable.
    firsts = structure.real_messages & (
        structure.message_first == jnp.arange(len(structure.message_first))
    )
    of_slots = log_zs[structure.state_variable[structure.message_state]]
    log_z = jnp.sum(_where(structure.real_variables, log_zs), axis=0)
    log_z += jnp.sum(_where(structure.real_factors, local), axis=0)
    log_z -= jnp.sum(_where(firsts, of_slots), axis=0)
    return marginals, log_z, residual, iterations


def solve_one(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    """What `solve` returns for one setting: log tables (n_entries,) and (n_states,)."""
    found = solve(values[:, None], unary[:, None], structure, options)
    return tuple(one[..., 0] for one in found)


@jax.jit
def solve_settings(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    """What `solve` returns for rows of log tables, (n_settings, ...), with marginals as rows."""
    marginals, *numbers = solve(values.T, unary.T, structure, options)
    return marginals.T, *numbers


solve_each = jax.jit(jax.vmap(solve_one, in_axes=(0, 0, 0, None)))


def _where(real: Any, values: Any, padding: float = 0.0) -> Any:
    """Rows of values, those of padding replaced."""
    return jnp.where(real[:, None], values, padding)


def _beliefs(messages: Any, unary: Any, structure: Structure) -> tuple[Any, Any]:
    """Log beliefs of states, and those less the messages that they hold."""
    beliefs = unary + segment_sum(messages, structure.message_state, len(unary))
    return beliefs, beliefs[structure.message_state] - messages


def _totals(cavities: Any, values: Any, structure: Structure) -> Any:
    """Log of every entry times what its variables send."""
    extended = jnp.concatenate([cavities, jnp.zeros_like(cavities[:1])])
    return values + extended[structure.entry_messages].sum(axis=1)


def _log_sums(values: Any, groups: Any, n_groups: int, real: Any) -> Any:
    """Log of the sum of exponentials in each group, 0 for padding; groups ascend."""
    largest = segment_max(jax.lax.stop_gradient(values), groups, n_groups, indices_are_sorted=True)
    largest = _where(real, largest)
    sums = segment_sum(jnp.exp(values - largest[groups]), groups, n_groups, indices_are_sorted=True)
    return largest + jnp.log(_where(real, sums, 1.0))


def _flood(messages: Any, values: Any, unary: Any, structure: Structure) -> Any:
    """All messages anew, from those given."""
    _, cavities = _beliefs(messages, unary, structure)
    totals = _totals(cavities, values, structure)
    fresh = _log_sums(
        totals[structure.term_entry], structure.term_message, len(messages), structure.real_messages
    )
    fresh -= cavities
    return _where(structure.real_messages, fresh - fresh[structure.message_first])


def _iterate(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    """(messages, residual, iterations); damping and residuals are those of `lbp`."""

    n_settings = values.shape[1]

    def going(state: Any) -> Any:
        return (state[1] > options.tolerance) & (state[2] < options.max_iterations)

    def step(state: Any) -> Any:
        messages, _, iterations, damping, smallest, waited = state
        change = _flood(messages, values, unary, structure) - messages
        # The first entry of a message never changes, so 0 is among the changes of each.
        highest = segment_max(change, structure.message_first, len(messages))
        lowest = segment_min(change, structure.message_first, len(messages))
        ranges = _where(structure.real_messages, (highest - lowest)[structure.message_first])
        residual = jnp.max(ranges, axis=0)
        messages = messages + (1.0 - damping) * change
        fresh = _adapted(damping, residual, smallest, waited)
        adapted = [
            jnp.where(options.damping < 0.0, new, old)
            for new, old in zip(fresh, (damping, smallest, waited), strict=True)
        ]
        moved = (messages, residual, iterations + 1, *adapted)
        # Settings that have converged, or were given up, wait for the others.
        on = going(state)
        return tuple(jnp.where(on, new, old) for new, old in zip(moved, state, strict=True))

    start = (
        jnp.zeros((len(structure.message_state), n_settings), values.dtype),
        jnp.full(n_settings, jnp.inf, values.dtype),
        jnp.zeros(n_settings, int),
        jnp.full(n_settings, jnp.maximum(options.damping, 0.0), values.dtype),
        jnp.full(n_settings, jnp.inf, values.dtype),
        jnp.zeros(n_settings, int),
    )
    return jax.lax.while_loop(lambda state: jnp.any(going(state)), step, start)[:3]


def _adapted(damping: Any, residual: Any, smallest: Any, waited: Any) -> tuple[Any, Any, Any]:
    better, patient = residual < smallest, waited + 1 < PATIENCE
    return (
        jnp.where(
            better, EASE * damping, jnp.where(patient, damping, jnp.minimum(damping + STEP, MOST))
        ),
        jnp.where(~better & patient, smallest, residual),
        jnp.where(~better & patient, waited + 1, 0),
    )


@jax.custom_vjp
def _fixed_point(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    return _iterate(values, unary, structure, options)


def _fixed_point_forward(
    values: Any, unary: Any, structure: Structure, options: Options
) -> tuple[Any, Any]:
    messages, residual, iterations = _iterate(values, unary, structure, options)
    return (messages, residual, iterations), (messages, values, unary, structure, options)


def _fixed_point_backward(kept: Any, cotangents: Any) -> tuple[Any, ...]:
    messages, values, unary, structure, options = kept
    wanted = cotangents[0]
    _, pull = jax.vjp(lambda m, v, u: _flood(m, v, u, structure), messages, values, unary)

    def going(state: Any) -> Any:
        weights, change, iterations = state
        largest = jnp.max(jnp.abs(weights), axis=0)
        return (change > options.tolerance * (1.0 + largest)) & (
            iterations < options.max_iterations
        )

    def step(state: Any) -> Any:
        weights, _, iterations = state
        change = wanted + pull(weights)[0] - weights
        moved = (
            weights + (1.0 - _ADJOINT_DAMPING) * change,
            jnp.max(jnp.abs(change), axis=0),
            iterations + 1,
        )
        on = going(state)
        return tuple(jnp.where(on, new, old) for new, old in zip(moved, state, strict=True))

    n_settings = values.shape[1]
    start = (wanted, jnp.full(n_settings, jnp.inf, wanted.dtype), jnp.zeros(n_settings, int))
    weights, _, _ = jax.lax.while_loop(lambda state: jnp.any(going(state)), step, start)
    _, to_values, to_unary = pull(weights)
    return to_values, to_unary, None, None


_fixed_point.defvjp(_fixed_point_forward, _fixed_point_backward)
