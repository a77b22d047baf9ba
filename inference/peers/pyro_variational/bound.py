"""The evidence lower bound of any factor graph in Pyro, enumerated exactly, and its ascent.

For a guide q the bound is a sum of local terms: the expected log table of every factor, and the
entropy of q, split over its own parts. Each term needs q on a few variables alone. So each gets
copies of its own of those variables, drawn from q's joint distribution on them, which
`TraceEnum_ELBO` enumerates: the number of tensor dimensions does not grow with the graph, and
neither the bound nor its gradient has Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyro
import torch
from pyro import distributions
from pyro.infer import TraceEnum_ELBO

_STEPS_AT_ONCE = 10
_HISTORY = 20
"""Pairs of steps and gradients from which L-BFGS knows the curvature."""


@dataclass(frozen=True, eq=False)
class Term:
    """Local terms of equal size.

    Attributes:
        probabilities: (restarts, terms, entries), the guide's joint distribution on the variables
            of every term.
        values: (restarts or 1, terms, entries), what every entry adds to the bound.
    """

    probabilities: torch.Tensor
    values: torch.Tensor


@dataclass(frozen=True, eq=False)
class Ascent:
    """How an ascent ended.

    Attributes:
        parameters: those of the best iterate of every restart.
        bounds: (restarts,), their lower bounds.
        converged: whether `gradient` is within the tolerance.
        gradient: the largest derivative of the best bound, at its iterate.
        iterations: steps taken.
    """

    parameters: list[torch.Tensor]
    bounds: torch.Tensor
    converged: bool
    gradient: float
    iterations: int


def guide(terms: list[Term]) -> None:
    """Draw the variables of every term from the guide."""
    for number, term in enumerate(terms):
        restarts, count, _ = term.probabilities.shape
        with (
            pyro.plate(f"restarts_{number}", restarts, dim=-2),
            pyro.plate(f"terms_{number}", count, dim=-1),
        ):
            pyro.sample(
                f"entry_{number}",
                distributions.Categorical(term.probabilities),
                infer={"enumerate": "parallel"},
            )


def model(terms: list[Term]) -> None:
    """Score the variables of every term.

    They are drawn from the distribution that the guide draws them from, so that the two cancel,
    and what is left of the bound is the expectation of `values`.
    """
    for number, term in enumerate(terms):
        restarts, count, entries = term.probabilities.shape
        values = term.values.expand(restarts, count, entries)
        with (
            pyro.plate(f"restarts_{number}", restarts, dim=-2),
            pyro.plate(f"terms_{number}", count, dim=-1),
        ):
            entry = pyro.sample(
                f"entry_{number}",
                distributions.Categorical(term.probabilities),
                infer={"enumerate": "parallel"},
            )
            rows = torch.arange(restarts)[:, None]
            columns = torch.arange(count)
            pyro.factor(f"value_{number}", values[rows, columns, entry])


def bounds(terms: list[Term]) -> torch.Tensor:
    """Return, (restarts,), the bound of every restart: the loss of Pyro is minus their sum."""
    parts = [(term.probabilities * term.values).sum(dim=(1, 2)) for term in terms]
    return torch.stack(parts).sum(dim=0)


def ascend(
    terms_of: Callable[[list[torch.Tensor]], list[Term]],
    start: list[torch.Tensor],
    tolerance: float,
    max_iterations: int,
) -> Ascent:
    """Raise the bound of every restart by quasi-Newton steps.

    The bound is smooth and known exactly, so that L-BFGS with a line search applies. The restarts
    are independent but share the steps, of which each keeps the best. The ascent ends when no
    derivative of a bound with respect to a parameter exceeds `tolerance` in absolute value, and
    has converged if that holds for the restart with the best bound.

    Args:
        terms_of: the terms for given parameters.
        start: parameters, each with the restarts as first dimension.
        tolerance: see above.
        max_iterations: steps of L-BFGS; each evaluates the bound about once.
    """
    elbo: Any = TraceEnum_ELBO(max_plate_nesting=2)  # type: ignore[no-untyped-call]
    parameters = [value.clone().requires_grad_() for value in start]
    optimizer = torch.optim.LBFGS(
        parameters,
        max_iter=_STEPS_AT_ONCE,
        max_eval=2 * _STEPS_AT_ONCE,
        history_size=_HISTORY,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value: torch.Tensor = elbo.differentiable_loss(model, guide, terms_of(parameters))
        value.backward()  # type: ignore[no-untyped-call]
        return value

    def slopes() -> torch.Tensor:
        loss()
        largest = [
            value.grad.abs().flatten(start_dim=1).max(dim=1).values
            for value in parameters
            if value.grad is not None
        ]
        return torch.stack(largest).max(dim=0).values

    with torch.no_grad():
        best = bounds(terms_of(parameters))
    kept = [value.detach().clone() for value in parameters]
    steps = 0
    while steps < max_iterations and float(slopes().max()) > tolerance:
        optimizer.step(loss)  # type: ignore[no-untyped-call]
        steps += _STEPS_AT_ONCE
        with torch.no_grad():
            fresh = bounds(terms_of(parameters))
            better = fresh > best
            best = torch.where(better, fresh, best)
            for old, new in zip(kept, parameters, strict=True):
                old[better] = new[better]
    with torch.no_grad():
        for old, new in zip(kept, parameters, strict=True):
            new.copy_(old)
    gradient = float(slopes()[best.argmax()])
    return Ascent(kept, best, gradient <= tolerance, gradient, steps)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: operations on small tensors only wait for a second one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
