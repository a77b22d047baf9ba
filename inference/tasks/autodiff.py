"""log Z for JAX and torch: a function of the log tables that the library can differentiate.

from inference.tasks import differentiable_log_partition
jax.grad(differentiable_log_partition(graph, "jax"))(log_values)
differentiable_log_partition(graph, "torch")(log_values).backward()
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import MissingDependencyError
from factormodels.factor_graph import FactorGraph

if TYPE_CHECKING:
    import jax
    import torch

    from inference.exact.backend import Exact

Library = Literal["jax", "torch"]

Compute = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
"""From float64 (n,) to a number and its derivatives (n,), on the processor."""

_TITLES = {"jax": "JAX", "torch": "torch"}
_EXTRAS = {"jax": "jax", "torch": "pyro"}


@overload
def differentiable_log_partition(
    graph: FactorGraph, library: Literal["jax"], exact: Exact | None = None
) -> Callable[[jax.Array], jax.Array]: ...
@overload
def differentiable_log_partition(
    graph: FactorGraph, library: Literal["torch"], exact: Exact | None = None
) -> Callable[[torch.Tensor], torch.Tensor]: ...
def differentiable_log_partition(
    graph: FactorGraph, library: Library, exact: Exact | None = None
) -> Callable[[Any], Any]:
    """Log Z of a graph as a function of its log tables that a library can differentiate.

    log P(a = y | evidence) is the difference of two such functions, one of the graph with a = y
    observed. Entries of -inf get gradient 0.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        library: "jax" or "torch".
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function from an array or tensor (n_entries,) of log tables, laid out as
        `graph.log_values`, to log Z, as `differentiable` describes it.

    Raises:
        MissingDependencyError: if the library is not installed.
    """
    from inference.tasks.gradients import log_partition_function

    return differentiable(log_partition_function(graph, exact), library)


@overload
def differentiable(
    compute: Compute, library: Literal["jax"]
) -> Callable[[jax.Array], jax.Array]: ...
@overload
def differentiable(
    compute: Compute, library: Literal["torch"]
) -> Callable[[torch.Tensor], torch.Tensor]: ...
@overload
def differentiable(compute: Compute, library: Library) -> Callable[[Any], Any]: ...
def differentiable(compute: Compute, library: Library) -> Callable[[Any], Any]:
    """Function that computes a number and its derivatives as a function of a library.

    It computes in double precision on the processor, answers in the type of its argument (and on
    its device, in torch), and has first derivatives in reverse mode only. With JAX it takes an
    array (n,) and works under jit, grad and vmap, one row after another; with torch it takes a
    tensor (..., n) and returns one of shape (...).

    Args:
        compute: the number and its derivatives.
        library: "jax" or "torch".

    Raises:
        MissingDependencyError: if the library is not installed.
    """
    return _in_jax(compute) if library == "jax" else _in_torch(compute)


def _imported(library: Library) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingDependencyError(
            f"gradients for {_TITLES[library]} need {library}, which is not installed; "
            f"run: pip install 'factorfacts[{_EXTRAS[library]}]'"
        ) from error


def _in_jax(compute: Compute) -> Callable[[jax.Array], jax.Array]:
    library = _imported("jax")

    def on_processor(arguments: Any) -> tuple[Any, Any]:
        row = np.asarray(arguments)
        value, gradient = compute(row.astype(np.float64))
        return row.dtype.type(value), gradient.astype(row.dtype)

    def forward(arguments: jax.Array) -> tuple[jax.Array, jax.Array]:
        shapes = (
            library.ShapeDtypeStruct((), arguments.dtype),
            library.ShapeDtypeStruct(arguments.shape, arguments.dtype),
        )
        value, gradient = library.pure_callback(
            on_processor, shapes, arguments, vmap_method="sequential"
        )
        return value, gradient

    def backward(gradient: jax.Array, upstream: jax.Array) -> tuple[jax.Array]:
        return (upstream * gradient,)

    function = library.custom_vjp(lambda arguments: forward(arguments)[0])
    function.defvjp(forward, backward)
    result: Callable[[jax.Array], jax.Array] = function
    return result


def _in_torch(compute: Compute) -> Callable[[torch.Tensor], torch.Tensor]:
    function = _torch_function()

    def value(arguments: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function.apply(arguments, compute)
        return result

    return value


@cache
def _torch_function() -> Any:
    """Differentiable function, whose class only torch can define."""
    library = _imported("torch")
    once_differentiable = library.autograd.function.once_differentiable

    class Computed(library.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, arguments: torch.Tensor, compute: Compute) -> torch.Tensor:
            tables = arguments.detach().to("cpu", library.float64).numpy()
            rows = tables.reshape(-1, tables.shape[-1]) if tables.ndim > 1 else [tables]
            found = [compute(row) for row in rows]
            gradients = np.array([gradient for _, gradient in found]).reshape(tables.shape)
            ctx.save_for_backward(library.from_numpy(gradients).to(arguments))
            values = np.array([value for value, _ in found]).reshape(tables.shape[:-1])
            result: torch.Tensor = library.from_numpy(values).to(arguments)
            return result

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
            (gradients,) = ctx.saved_tensors
            return upstream[..., None] * gradients, None

    return Computed
