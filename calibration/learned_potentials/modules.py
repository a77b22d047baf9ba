"""Batches of potentials, functions from columns to log odds: linear or any `torch.nn.Module`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factormodels.errors import InputError, unknown_name
from factormodels.extraction.optional_libraries import optional_module

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

MakeModule = Callable[[int], "Module"]
"""Function from a number of columns to a module (n, columns) -> (n, 1)."""

_UNITS = 8


def small(n_columns: int) -> Module:
    """Return a module that adds eight tanh units to a linear potential."""
    from torch import nn

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = linear(n_columns)
            self.units = nn.Sequential(
                nn.Linear(n_columns, _UNITS), nn.Tanh(), nn.Linear(_UNITS, 1, bias=False)
            )

        def forward(self, columns: Tensor) -> Tensor:
            result: Tensor = self.linear(columns) + self.units(columns)
            return result

    return Small()


def linear(n_columns: int) -> Module:
    """Return a linear module with an intercept, initialized to 0."""
    from torch import nn

    module = nn.Linear(n_columns, 1)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    return module


POTENTIALS: dict[str, MakeModule] = {"linear": linear, "small": small}
"""Potentials by name."""


@dataclass(frozen=True, eq=False)
class PotentialBatch:
    """Potentials of the same architecture, whose parameters are rows of a matrix.

    Attributes:
        make: function that makes a module.
        n_columns: number of columns.
        module: a module of this architecture, in double precision.
    """

    make: MakeModule
    n_columns: int
    module: Module

    @property
    def is_linear(self) -> bool:
        """True if the potential is linear in its columns, with an intercept."""
        from torch import nn

        return type(self.module) is nn.Linear and self.module.bias is not None

    @property
    def size(self) -> int:
        """Number of parameters, k."""
        return sum(value.numel() for value in self.module.parameters())

    def starts(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row per seed, (b, k)."""
        import torch

        rows = []
        for seed in seeds:
            with torch.random.fork_rng(devices=()):
                torch.manual_seed(seed)
                made = self.make(self.n_columns).double()
            rows.append(torch.cat([value.detach().reshape(-1) for value in made.parameters()]))
        return torch.stack(rows)

    def penalized(self) -> Tensor:
        """Factor of the penalty for each parameter, (k,): 0 for a bias, larger within layers."""
        import torch

        parts = []
        for name, value in self.module.named_parameters():
            share = 1.0 if self.is_linear or name.startswith("linear.") else _INNER
            share = 0.0 if name.endswith("bias") else share
            parts.append(torch.full((value.numel(),), share, dtype=torch.float64))
        return torch.cat(parts)

    def __call__(self, parameters: Tensor, columns: Tensor) -> Tensor:
        """Return the log odds of every claim under every row of parameters, (b, n)."""
        from torch.func import functional_call, vmap

        if self.is_linear:
            return parameters[:, :-1] @ columns.T + parameters[:, -1:]
        pieces, at = {}, 0
        for name, value in self.module.named_parameters():
            piece = parameters[:, at : at + value.numel()]
            pieces[name] = piece.reshape(len(parameters), *value.shape)
            at += value.numel()

        def of_row(weights: dict[str, Tensor]) -> Tensor:
            result: Tensor = functional_call(self.module, weights, (columns,))
            return result.squeeze(-1)

        odds: Tensor = vmap(of_row)(pieces)
        return odds


_INNER = 4.0
"""Factor of penalties within a module, relative to a linear potential."""


def batch_of(potential: str | MakeModule, n_columns: int) -> PotentialBatch:
    """Batch of a potential, given by its name or by a function that makes a module.

    Raises:
        InputError: for an unknown name, or if the module does not return one number per claim.
        MissingDependencyError: if PyTorch is not installed.
    """
    if isinstance(potential, str) and potential not in POTENTIALS:
        raise InputError(unknown_name(f"the potential {potential!r}", potential, POTENTIALS))
    torch = optional_module("torch", "learn")
    make = POTENTIALS[potential] if isinstance(potential, str) else potential
    module = make(n_columns).double()
    tried = module(torch.zeros(2, n_columns, dtype=torch.float64))
    if tuple(tried.shape) != (2, 1):
        raise InputError(
            f"the potential makes {tuple(tried.shape)} of two claims; give a module from "
            "(n, columns) to (n, 1)"
        )
    return PotentialBatch(make, n_columns, module)
