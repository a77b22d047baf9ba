"""Sums in log space in JAX, and the device that JAX computes on."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def log_of_sum(table: Any, axes: tuple[int, ...]) -> Any:
    """Log of the sum of exponentials; -inf, with derivative 0, is the sum of zeros alone."""
    largest = lax.stop_gradient(jnp.max(table, axis=axes, keepdims=True))
    largest = jnp.where(largest == -jnp.inf, 0.0, largest)
    total = jnp.sum(jnp.exp(table - largest), axis=axes)
    logs = jnp.log(jnp.where(total > 0.0, total, 1.0)) + largest.reshape(total.shape)
    return jnp.where(total > 0.0, logs, -jnp.inf)


def where_computed() -> dict[str, str]:
    """Device and release of JAX, as statistics of a posterior have them."""
    return {"device": jax.default_backend(), "jax": jax.__version__}
