"""Loopy belief propagation in JAX: for derivatives, and models on an accelerator.

    from inference.peers.lbp_jax import bethe
    jax.grad(lambda log_values: bethe(graph)(log_values)[1])(log_values)

Zeros are left out beforehand, so all that is computed with is finite. Messages are logarithms,
0 for the first possible state. Sizes are rounded up, so that graphs of about one size share the
code that JAX compiles.
"""

from __future__ import annotations

from inference.peers.lbp_jax.backend import JaxBeliefPropagation
from inference.peers.lbp_jax.bethe import bethe

__all__ = ["JaxBeliefPropagation", "bethe"]
