"""Searches for many optima at once: L-BFGS whose every row is a problem of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_MEMORY = 12
"""Pairs of steps and changes of the gradient that are kept."""

_SUFFICIENT = 1e-4
"""Share of the promised decrease that a step must bring (Armijo)."""

_HALVINGS = 25


def minimise(
    cost: Callable[[Tensor], Tensor], start: Tensor, *, max_iterations: int, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Minima of b separate costs (b, k), and the largest entry of each gradient there (b,).

    Nocedal and Wright 2006, algorithm 7.4, one row each.

    Args:
        cost: costs (b,) of parameters (b, k); each may depend on its own row alone.
        start: where the searches begin, (b, k).
        max_iterations: after so many they end.
        tolerance: they end where no entry of a gradient is larger.
    """
    import torch

    def at(values: Tensor) -> tuple[Tensor, Tensor]:
        asked = values.detach().requires_grad_()
        costs = cost(asked)
        (gradient,) = torch.autograd.grad(costs.sum(), asked)
        return costs.detach(), gradient

    values = start.detach().clone()
    costs, gradient = at(values)
    kept: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)
    for _ in range(max_iterations):
        if float(gradient.abs().max()) <= tolerance:
            break
        step = _direction(gradient, kept)
        slope = (step * gradient).sum(1)
        # A row whose memory misleads it goes straight down.
        step = torch.where((slope < 0)[:, None], step, -gradient)
        slope = (step * gradient).sum(1)
        if not kept:
            step = step / step.norm(dim=1, keepdim=True).clamp(min=1.0)
            slope = (step * gradient).sum(1)
        length = torch.ones_like(costs)
        for _ in range(_HALVINGS):
            new = values + length[:, None] * step
            new_costs, new_gradient = at(new)
            poor = ~(new_costs <= costs + _SUFFICIENT * length * slope)
            if not bool(poor.any()):
                break
            length = torch.where(poor, length / 2, length)
        good = new_costs <= costs
        new = torch.where(good[:, None], new, values)
        new_gradient = torch.where(good[:, None], new_gradient, gradient)
        moved, change = new - values, new_gradient - gradient
        product = (moved * change).sum(1)
        kept.append((moved, change, torch.where(product > 1e-12, 1.0 / product, 0.0)))
        stuck = bool((~good | (moved.abs().amax(1) < 1e-12)).all())
        values, costs, gradient = new, torch.where(good, new_costs, costs), new_gradient
        if stuck:
            break
    return values, gradient.abs().amax(1)


def _direction(gradient: Tensor, kept: deque[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Minus the gradient by the inverse of the Hessian that the kept pairs suggest."""
    import torch

    if not kept:
        return -gradient
    step, shares = gradient, []
    for moved, change, inverse in reversed(kept):
        share = inverse * (moved * step).sum(1)
        step = step - share[:, None] * change
        shares.append(share)
    moved, change, inverse = kept[-1]
    size = (change * change).sum(1)
    scale = torch.where(inverse > 0, 1.0 / (inverse * size).clamp(min=1e-12), 1.0)
    step = step * scale[:, None]
    for (moved, change, inverse), share in zip(kept, reversed(shares), strict=True):
        step = step + (share - inverse * (change * step).sum(1))[:, None] * moved
    return -step
