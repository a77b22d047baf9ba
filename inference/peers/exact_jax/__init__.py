"""Variable elimination in JAX: many settings of one graph on an accelerator, and derivatives.

    from inference.peers.exact_jax import log_partition
    jax.grad(log_partition(graph))(log_values)  # the beliefs of all factors

The cluster tree is that of `exact`. Its upward pass is written out cluster by cluster, with the
settings as the last axis of every table, and compiled once for each structure. Marginals are
derivatives of log Z, so the downward pass is JAX's own differentiation.
"""

from __future__ import annotations

from inference.peers.exact_jax.backend import JaxElimination
from inference.peers.exact_jax.upward import log_partition

__all__ = ["JaxElimination", "log_partition"]
