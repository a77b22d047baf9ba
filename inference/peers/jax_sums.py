"""Sums in log space in JAX, and the device that JAX uses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def log_of_sum(table: Any, axes: tuple[int, ...]) -> Any:
    """Return the log of a sum of exponentials; -inf, with derivative 0, for zeros only."""
    largest = lax.stop_gradient(jnp.max(table, axis=axes, keepdims=True))
    largest = jnp.where(largest == -jnp.inf, 0.0, largest)
    total = jnp.sum(jnp.exp(table - largest), axis=axes)
    logs = jnp.log(jnp.where(total > 0.0, total, 1.0)) + largest.reshape(total.shape)
    return jnp.where(total > 0.0, logs, -jnp.inf)


def where_computed() -> dict[str, str]:
    """Return device and release of JAX for the `stats` of a posterior."""
    return {"device": jax.default_backend(), "jax": jax.__version__}
