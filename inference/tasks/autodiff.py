"""Log Z for JAX and torch, as a differentiable function of the log tables.

Differentiate log Z:

    from inference.tasks import differentiable_log_partition
    jax.grad(differentiable_log_partition(graph, "jax"))(log_values)
    differentiable_log_partition(graph, "torch")(log_values).backward()
    torch.autograd.functional.hessian(differentiable_log_partition(graph, "torch"), log_values)
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
"""Function from float64 (n,) to a number and its derivatives (n,), on the processor."""

Second = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function from float64 (n,) to the second derivatives (n, n) of the number."""

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
    """Return log Z of a graph as a function of its log tables that a library can differentiate.

    log P(a = y | evidence) is the difference of two such functions, one of them for the graph with
    a = y observed. First derivatives are the beliefs of the factors, second ones the covariance of
    their entries, both exact; entries of -inf get 0. Second derivatives take about as many passes
    as the largest component has entries, and are computed once per point. Third derivatives are not
    available.

    Args:
        graph: the factor graph, with or without evidence; its own log tables are ignored.
        library: "jax" or "torch".
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function from an array or tensor (n_entries,) of log tables, laid out as
        `graph.log_values`, to log Z, as described in `differentiable`.

    Raises:
        MissingDependencyError: if the library is not installed.
    """
    from inference.tasks.gradients import hessian_function, log_partition_function

    second = hessian_function(graph, exact)
    return differentiable(log_partition_function(graph, exact), library, second)


@overload
def differentiable(
    compute: Compute, library: Literal["jax"], second: Second | None = None
) -> Callable[[jax.Array], jax.Array]: ...
@overload
def differentiable(
    compute: Compute, library: Literal["torch"], second: Second | None = None
) -> Callable[[torch.Tensor], torch.Tensor]: ...
@overload
def differentiable(
    compute: Compute, library: Library, second: Second | None = None
) -> Callable[[Any], Any]: ...
def differentiable(
    compute: Compute, library: Library, second: Second | None = None
) -> Callable[[Any], Any]:
    """Return a library's function for a number with known derivatives.

    It computes in double precision on the processor, and returns the type of its argument (and, in
    torch, its device). With JAX it takes an array (n,) and supports jit, grad, hessian, jvp and
    vmap, one row after another; with torch it takes a tensor (..., n) and returns one of shape
    (...). Derivatives beyond the given ones raise an error of the library and are never 0.

    Args:
        compute: the number and its derivatives.
        library: "jax" or "torch".
        second: its second derivatives; None: there are none.

    Raises:
        MissingDependencyError: if the library is not installed.
    """
    kept = None if second is None else _last_kept(second)
    return _in_jax(compute, kept) if library == "jax" else _in_torch(compute, kept)


def _last_kept(second: Second) -> Second:
    """Return second derivatives with a cache of the last point, since libraries ask row by row."""
    last: list[tuple[bytes, NDArray[np.float64]]] = []

    def evaluate(row: NDArray[np.float64]) -> NDArray[np.float64]:
        point = row.tobytes()
        for known, kept in last:
            if known == point:
                return kept
        last[:] = [(point, second(row))]
        return last[0][1]

    return evaluate


def _imported(library: Library) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingDependencyError(
            f"gradients for {_TITLES[library]} need {library}, which is not installed; "
            f"run: pip install 'factorfacts[{_EXTRAS[library]}]'"
        ) from error


def _in_jax(compute: Compute, second: Second | None) -> Callable[[jax.Array], jax.Array]:
    library = _imported("jax")

    def called(
        function: Callable[[NDArray[np.float64]], Any],
        arguments: jax.Array,
        *shapes: tuple[int, ...],
    ) -> list[jax.Array]:
        dtype = np.dtype(arguments.dtype)
        # The callback may run in another thread, without this thread's `jax.enable_x64`, where
        # doubles are narrowed. Doubles are therefore passed as pairs of words.
        pair = (2,) if dtype.itemsize == 8 else ()

        def on_processor(words: Any) -> list[Any]:
            row = np.asarray(words).reshape(-1)
            computed = function(row.view(dtype).astype(np.float64))
            made = [np.atleast_1d(np.asarray(array, dtype=dtype)) for array in computed]
            if not pair:
                return [array.reshape(shape) for array, shape in zip(made, shapes, strict=True)]
            return [
                array.view(np.uint32).reshape(shape + pair)
                for array, shape in zip(made, shapes, strict=True)
            ]

        kind = np.uint32 if pair else dtype
        results = [library.ShapeDtypeStruct(shape + pair, kind) for shape in shapes]
        passed = library.lax.bitcast_convert_type(arguments, kind) if pair else arguments
        returned = library.pure_callback(on_processor, results, passed, vmap_method="sequential")
        return [
            library.lax.bitcast_convert_type(array, dtype) if pair else array for array in returned
        ]

    def evaluated(arguments: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, gradient = called(compute, arguments, (), arguments.shape)
        return value, gradient

    def second_at(arguments: jax.Array) -> jax.Array:
        if second is None:
            raise _beyond("second")
        (hessian,) = called(lambda row: [second(row)], arguments, 2 * arguments.shape)
        return hessian

    def refused(*_: Any) -> Any:
        raise _beyond("third")

    curvature = library.custom_jvp(second_at)
    curvature.defjvp(refused)

    def evaluated_tangents(primals: Any, tangents: Any) -> Any:
        (arguments,), (moved,) = primals, tangents
        value, gradient = with_gradient(arguments)
        return (value, gradient), (gradient @ moved, curvature(arguments) @ moved)

    with_gradient = library.custom_jvp(evaluated)
    with_gradient.defjvp(evaluated_tangents)

    def tangents_of(primals: Any, tangents: Any) -> Any:
        # JAX differentiates this function too; the derivative of the gradient is the curvature.
        value, gradient = with_gradient(*primals)
        return value, gradient @ tangents[0]

    function = library.custom_jvp(lambda arguments: with_gradient(arguments)[0])
    function.defjvp(tangents_of)
    result: Callable[[jax.Array], jax.Array] = function
    return result


def _in_torch(compute: Compute, second: Second | None) -> Callable[[torch.Tensor], torch.Tensor]:
    function = _torch_function()

    def value(arguments: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function.apply(arguments, compute, second)
        return result

    return value


def _beyond(which: str) -> NotImplementedError:
    return NotImplementedError(f"there are no {which} derivatives of this function")


@cache
def _torch_function() -> Any:
    """Return the differentiable function, whose class only torch can define.

    Each derivative is a separate function, so that torch can differentiate it in turn.
    """
    library = _imported("torch")
    function: Any = library.autograd.Function

    def rows_of(arguments: torch.Tensor) -> list[NDArray[np.float64]]:
        tables = arguments.detach().to("cpu", library.float64).numpy()
        return list(tables.reshape(-1, tables.shape[-1])) if tables.ndim > 1 else [tables]

    class Computed(function):  # type: ignore[misc]
        @staticmethod
        def forward(
            ctx: Any, arguments: torch.Tensor, compute: Compute, second: Second | None
        ) -> torch.Tensor:
            computed = [compute(row) for row in rows_of(arguments)]
            gradients = np.array([gradient for _, gradient in computed]).reshape(arguments.shape)
            ctx.save_for_backward(arguments)
            ctx.gradients, ctx.second = library.from_numpy(gradients).to(arguments), second
            values = np.array([value for value, _ in computed]).reshape(arguments.shape[:-1])
            result: torch.Tensor = library.from_numpy(values).to(arguments)
            return result

        @staticmethod
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
            (arguments,) = ctx.saved_tensors
            gradients = Gradient.apply(arguments, ctx.gradients, ctx.second)
            return upstream[..., None] * gradients, None, None

    class Gradient(function):  # type: ignore[misc]
        @staticmethod
        def forward(
            ctx: Any, arguments: torch.Tensor, gradients: torch.Tensor, second: Second | None
        ) -> torch.Tensor:
            ctx.save_for_backward(arguments)
            ctx.second = second
            return gradients.clone()

        @staticmethod
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
            if ctx.second is None:
                raise _beyond("second")
            (arguments,) = ctx.saved_tensors
            curvature = Curvature.apply(arguments, ctx.second)
            return (curvature @ upstream[..., None])[..., 0], None, None

    class Curvature(function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, arguments: torch.Tensor, second: Second) -> torch.Tensor:  # noqa: ARG004
            rows = [second(row) for row in rows_of(arguments)]
            shape = (*arguments.shape, arguments.shape[-1])
            result: torch.Tensor = library.from_numpy(np.array(rows).reshape(shape)).to(arguments)
            return result

        @staticmethod
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[None, None]:  # noqa: ARG004
            raise _beyond("third")

    return Computed
