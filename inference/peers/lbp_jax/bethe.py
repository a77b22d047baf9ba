"""Belief propagation as a function of the log tables, with derivatives."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.ops import segment_sum

from factormodels.factor_graph import FactorGraph
from inference.evidence import with_observed, without_evidence
from inference.messages.lbp import Damping, check_settings, damping_code
from inference.peers.lbp_jax.flooding import Options, solve_one
from inference.peers.lbp_jax.structure import Model
from inference.posterior import Marginals


def bethe(
    graph: FactorGraph,
    *,
    damping: Damping = "adaptive",
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """Marginals and Bethe log Z as a function of the log tables that JAX can differentiate.

    Derivatives are those of the fixed point: at messages m = f(m, t) a cotangent g becomes
    (df/dt)' w, where w = g + (df/dm)' w is found by damped iteration (implicit differentiation;
    Pineda 1987, Almeida 1987). They are right where the messages have converged.

    Args:
        graph: the factor graph, with or without evidence. Entries that are -inf stay impossible,
            whatever the function is given for them, and have derivative 0.
        damping, tolerance, max_iterations: as for `lbp`. With numbers of single precision, ask
            for a tolerance that these can reach (1e-4).

    Returns:
        A function from an array (n_entries,), laid out as `graph.log_values`, to the marginals,
        one probability vector after another, and the Bethe log Z, in the type of its argument. It
        works under jit, vmap and grad.

    Raises:
        InputError: for a setting out of range.
        ZeroPartitionError: if zeros leave some variable without a state.
    """
    check_settings("lbp_jax", damping, tolerance, max_iterations)
    options = Options(damping_code(damping), tolerance, max_iterations)
    _, columns = without_evidence(graph)
    absorbed = graph.absorb_evidence()
    model = Model.of(absorbed)
    structure = model.structure()
    sources, targets, count = model.sums(absorbed)
    sources = columns[sources]
    n_entries, n_states = len(structure.entry_factor), len(structure.state_variable)
    known = model.known()
    names, cardinalities = absorbed.names, absorbed.cardinalities
    kept = np.arange(1.0, len(known) + 1.0)
    # Where each probability comes from; 0 for states that the evidence excludes.
    layout = with_observed(graph, Marginals(names, cardinalities, kept)).flat.copy()
    observed = np.repeat(graph.evidence, graph.cardinalities) >= 0
    certain = layout * observed
    layout = np.where(observed, 0, layout).astype(np.int64)

    def evaluate(log_values: jax.Array) -> tuple[jax.Array, jax.Array]:
        sums = segment_sum(log_values[sources], targets, count)
        values, unary = sums[:n_entries], sums[n_entries : n_entries + n_states]
        marginals, log_z, _, _ = solve_one(values, unary, structure, options)
        flat = jnp.asarray(known, log_values.dtype)
        flat = flat.at[model.entries.states].set(marginals[: len(model.entries.states)])
        flat = jnp.concatenate([jnp.zeros(1, flat.dtype), flat])
        return flat[layout] + jnp.asarray(certain, flat.dtype), log_z + sums[-1]

    return evaluate
