"""log Z for torch: a function of the log tables that torch can differentiate.

from inference.tasks.gradients_torch import log_partition
log_z = log_partition(graph)
log_z(log_values).backward()
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import MissingDependencyError
from factormodels.factor_graph import FactorGraph

if TYPE_CHECKING:
    import torch

    from inference.exact.backend import Exact


def log_partition(
    graph: FactorGraph, exact: Exact | None = None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return log Z of a graph as a differentiable function of its log tables.

    Args:
        graph: the factor graph, with or without evidence; its own log tables play no part.
        exact: settings of `exact`: memory limit, seed and restarts of the order.

    Returns:
        A function from a tensor (..., n_entries) of log tables, laid out as `graph.log_values`,
        to a tensor (...) of log Z. It computes in double precision on the processor and answers
        in the type and on the device of its argument. Entries of -inf get gradient 0. It has
        first derivatives only. log P(a = y | evidence) is the difference of two such functions,
        one of the graph with a = y observed.

    Raises:
        MissingDependencyError: if torch is not installed.
    """
    from inference.exact.backend import Exact
    from inference.tasks.gradients import LogPartition

    return differentiable(LogPartition(graph, exact or Exact()))


def differentiable(
    compute: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that returns a number and its derivatives as a function of torch.

    Args:
        compute: from float64 (n,) to a number and its derivatives (n,); it runs on the processor.

    Returns:
        A function from a tensor (..., n) to a tensor (...), as `log_partition` describes it.

    Raises:
        MissingDependencyError: if torch is not installed.
    """
    function = _function()

    def value(arguments: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function.apply(arguments, compute)
        return result

    return value


@cache
def _function() -> Any:
    """Return the differentiable function, whose class only torch can define."""
    try:
        import torch
        from torch.autograd.function import once_differentiable
    except ImportError as error:
        raise MissingDependencyError(
            "gradients for torch need torch, which is not installed; "
            "run: pip install 'factormodels[pyro]'"
        ) from error

    class LogZ(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, log_values: torch.Tensor, compute: Any) -> torch.Tensor:
            tables = log_values.detach().to("cpu", torch.float64).numpy()
            rows = tables.reshape(-1, tables.shape[-1]) if tables.ndim > 1 else [tables]
            found = [compute(row) for row in rows]
            gradients = np.array([gradient for _, gradient in found]).reshape(tables.shape)
            ctx.save_for_backward(torch.from_numpy(gradients).to(log_values))
            values = np.array([value for value, _ in found]).reshape(tables.shape[:-1])
            return torch.from_numpy(values).to(log_values)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
            (gradients,) = ctx.saved_tensors
            return upstream[..., None] * gradients, None

    return LogZ
