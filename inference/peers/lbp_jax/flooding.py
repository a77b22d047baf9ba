"""Belief propagation by flooding as JAX functions, with derivatives of the fixed point."""

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
    """(marginals of the possible states, Bethe log Z, residual, iterations)."""
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
    log_z = jnp.sum(jnp.where(structure.real_variables, log_zs, 0.0))
    log_z += jnp.sum(jnp.where(structure.real_factors, local, 0.0))
    log_z -= jnp.sum(jnp.where(firsts, of_slots, 0.0))
    return marginals, log_z, residual, iterations


solve_each = jax.jit(jax.vmap(solve, in_axes=(0, 0, 0, None)))
solve_settings = jax.jit(jax.vmap(solve, in_axes=(0, 0, None, None)))


def _beliefs(messages: Any, unary: Any, structure: Structure) -> tuple[Any, Any]:
    """Log beliefs of states, and those less the messages that they hold."""
    beliefs = unary + segment_sum(messages, structure.message_state, len(unary))
    return beliefs, beliefs[structure.message_state] - messages


def _totals(cavities: Any, values: Any, structure: Structure) -> Any:
    """Log of every entry times what its variables send."""
    extended = jnp.concatenate([cavities, jnp.zeros(1, cavities.dtype)])
    return values + extended[structure.entry_messages].sum(axis=1)


def _log_sums(values: Any, groups: Any, n_groups: int, real: Any) -> Any:
    """Log of the sum of exponentials in each group, 0 for padding; groups ascend."""
    largest = segment_max(jax.lax.stop_gradient(values), groups, n_groups, indices_are_sorted=True)
    largest = jnp.where(real, largest, 0.0)
    sums = segment_sum(jnp.exp(values - largest[groups]), groups, n_groups, indices_are_sorted=True)
    return largest + jnp.log(jnp.where(real, sums, 1.0))


def _flood(messages: Any, values: Any, unary: Any, structure: Structure) -> Any:
    """All messages anew, from those given."""
    _, cavities = _beliefs(messages, unary, structure)
    totals = _totals(cavities, values, structure)
    fresh = _log_sums(
        totals[structure.term_entry], structure.term_message, len(messages), structure.real_messages
    )
    fresh -= cavities
    return jnp.where(structure.real_messages, fresh - fresh[structure.message_first], 0.0)


def _iterate(values: Any, unary: Any, structure: Structure, options: Options) -> Any:
    """(messages, residual, iterations); damping and residuals are those of `lbp`."""

    def going(state: Any) -> Any:
        return (state[1] > options.tolerance) & (state[2] < options.max_iterations)

    def step(state: Any) -> Any:
        messages, _, iterations, damping, smallest, waited = state
        change = _flood(messages, values, unary, structure) - messages
        # The first entry of a message never changes, so 0 is among the changes of each.
        highest = segment_max(change, structure.message_first, len(messages))
        lowest = segment_min(change, structure.message_first, len(messages))
        ranges = jnp.where(
            structure.real_messages, (highest - lowest)[structure.message_first], 0.0
        )
        residual = jnp.max(ranges)
        messages = messages + (1.0 - damping) * change
        fresh = _adapted(damping, residual, smallest, waited)
        adapted = [
            jnp.where(options.damping < 0.0, new, old)
            for new, old in zip(fresh, (damping, smallest, waited), strict=True)
        ]
        return (messages, residual, iterations + 1, *adapted)

    start = (
        jnp.zeros(len(structure.message_state), values.dtype),
        jnp.asarray(jnp.inf, values.dtype),
        0,
        jnp.asarray(jnp.maximum(options.damping, 0.0), values.dtype),
        jnp.asarray(jnp.inf, values.dtype),
        0,
    )
    return jax.lax.while_loop(going, step, start)[:3]


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
        return (change > options.tolerance * (1.0 + jnp.max(jnp.abs(weights)))) & (
            iterations < options.max_iterations
        )

    def step(state: Any) -> Any:
        weights, _, iterations = state
        change = wanted + pull(weights)[0] - weights
        weights = weights + (1.0 - _ADJOINT_DAMPING) * change
        return weights, jnp.max(jnp.abs(change)), iterations + 1

    start = (wanted, jnp.asarray(jnp.inf, wanted.dtype), 0)
    weights, _, _ = jax.lax.while_loop(going, step, start)
    _, to_values, to_unary = pull(weights)
    return to_values, to_unary, None, None


_fixed_point.defvjp(_fixed_point_forward, _fixed_point_backward)
