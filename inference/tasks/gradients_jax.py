"""log Z for JAX: a function of the log tables that JAX can differentiate, compile and map.

from inference.tasks.gradients_jax import log_partition
jax.grad(log_partition(graph))(log_values)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import MissingDependencyError
from factormodels.factor_graph import FactorGraph

if TYPE_CHECKING:
    import jax

    from inference.exact.backend import Exact


def log_partition(
    graph: FactorGraph, exact: Exact | None = None
) -> Callable[[jax.Array], jax.Array]:
    """Return log Z of a graph as a differentiable function of its log tables.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function from an array (n_entries,) of log tables, laid out as `graph.log_values`, to
        log Z. It works under jit, grad and vmap (one graph after another), computes in double
        precision on the processor and answers in the type of its argument. Entries of -inf get
        gradient 0. It has first derivatives in reverse mode only. log P(a = y | evidence) is the
        difference of two such functions, one of the graph with a = y observed.

    Raises:
        MissingDependencyError: if JAX is not installed.
    """
    from inference.exact.backend import Exact
    from inference.tasks.gradients import LogPartition

    return differentiable(LogPartition(graph, exact or Exact()))


def differentiable(
    compute: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
) -> Callable[[jax.Array], jax.Array]:
    """Return a function that returns a number and its derivatives as a function of JAX.

    Args:
        compute: from float64 (n,) to a number and its derivatives (n,); it runs on the processor.

    Returns:
        A function from an array (n,) to the number, as `log_partition` describes it.

    Raises:
        MissingDependencyError: if JAX is not installed.
    """
    try:
        import jax
    except ImportError as error:
        raise MissingDependencyError(
            "gradients for JAX need jax, which is not installed; "
            "run: pip install 'factormodels[jax]'"
        ) from error

    def on_processor(log_values: Any) -> tuple[Any, Any]:
        tables = np.asarray(log_values)
        value, gradient = compute(tables.astype(np.float64))
        return tables.dtype.type(value), gradient.astype(tables.dtype)

    def forward(log_values: jax.Array) -> tuple[jax.Array, jax.Array]:
        shapes = (
            jax.ShapeDtypeStruct((), log_values.dtype),  # type: ignore[no-untyped-call]
            jax.ShapeDtypeStruct(log_values.shape, log_values.dtype),  # type: ignore[no-untyped-call]
        )
        value, gradient = jax.pure_callback(
            on_processor, shapes, log_values, vmap_method="sequential"
        )
        return value, gradient

    def backward(gradient: jax.Array, upstream: jax.Array) -> tuple[jax.Array]:
        return (upstream * gradient,)

    @jax.custom_vjp
    def log_z(log_values: jax.Array) -> jax.Array:
        return forward(log_values)[0]

    log_z.defvjp(forward, backward)
    return log_z
