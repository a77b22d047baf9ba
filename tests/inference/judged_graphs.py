"""Ten kinds of small graphs, which `exact` solves, on which samplers are held to their word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr2, fr3, grid, random_graph

LOG_RANGES = (1.0, 5.0, 40.0, 1000.0)
"""Largest absolute value of a log potential, from weak relations to rules with few exceptions."""

Factors = list[tuple[Sequence[int], NDArray[np.float64]]]


def _of(cardinalities: Sequence[int] | NDArray[np.int64], factors: Factors) -> FactorGraph:
    return FactorGraph.from_factors(cardinalities, factors, log=True)


def scaled(graph: FactorGraph, log_range: float) -> FactorGraph:
    """The same graph with its log potentials multiplied so that the largest is `log_range`."""
    finite = np.isfinite(graph.log_values)
    largest = float(np.abs(graph.log_values[finite]).max(initial=1e-300))
    factors: Factors = [(scope, table * (log_range / largest)) for scope, table in graph.factors()]
    return _of(graph.cardinalities, factors)


def grids(seed: int, log_range: float) -> FactorGraph:
    """Grids of 4 by 5 that attract and repel."""
    return grid(4, 5, coupling=log_range, field=0.3 * log_range, seed=seed)


def complete(seed: int, log_range: float) -> FactorGraph:
    """Complete graphs of seven variables of up to three states."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 7)
    pairs = [(i, j) for i in range(7) for j in range(i)]
    return _of(
        cards, [(p, rng.uniform(-log_range, log_range, tuple(cards[list(p)]))) for p in pairs]
    )


def claims(seed: int, log_range: float) -> FactorGraph:
    """FR2 and FR3 graphs of five claims with three contexts each; FR1 graphs are forests."""
    made = (
        fr2(5, 3, density=0.4, seed=seed)
        if seed % 2
        else fr3(5, 3, density=0.3, context_density=0.2, seed=seed)
    )
    return scaled(made, log_range)


def noisy_or(seed: int, log_range: float) -> FactorGraph:
    """Two layers: eight rare causes, nine observed findings of four causes each."""
    rng = np.random.default_rng(seed)
    prior = -rng.uniform(0.0, log_range, 8)
    factors: Factors = [((v,), np.array([0.0, prior[v]])) for v in range(8)]
    for _ in range(9):
        scope = sorted(rng.choice(8, 4, replace=False).tolist())
        failing = -rng.uniform(0.0, min(log_range, 30.0), 4)
        on = np.indices((2,) * 4).reshape(4, -1)
        nothing = np.minimum(failing @ on - 0.05, -1e-12)
        table = np.log(-np.expm1(nothing)) if rng.random() < 0.6 else nothing
        factors.append((scope, table.reshape((2,) * 4)))
    return _of([2] * 8, factors)


def deterministic(seed: int, log_range: float) -> FactorGraph:
    """Random tables of up to three variables, of whose entries a third is zero."""
    return random_graph(
        9, 12, min_arity=2, max_arity=3, min_cardinality=2, max_cardinality=3,
        zero_probability=0.35, log_range=log_range, seed=seed,
    )  # fmt: skip


def second_order_chains(seed: int, log_range: float) -> FactorGraph:
    """Chains of 16 whose links reach one and two variables ahead."""
    rng = np.random.default_rng(seed)
    factors: Factors = [
        ((v, v + step), rng.uniform(-log_range, log_range, (2, 2)))
        for step in (1, 2, 3)
        for v in range(16 - step)
    ]
    return _of([2] * 16, factors)


def mixed(seed: int, log_range: float) -> FactorGraph:
    """Random tables of up to three variables of one to eight states."""
    return random_graph(7, 10, max_arity=3, max_cardinality=8, log_range=log_range, seed=seed)


def frustrated(seed: int, log_range: float) -> FactorGraph:
    """Twelve variables whose pairs attract or repel by one strength, without fields."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(12) for j in range(i) if rng.random() < 0.5]
    agree = 0.5 * log_range * (2.0 * np.eye(2) - 1.0)
    return _of([2] * 12, [(p, float(rng.choice([-1.0, 1.0])) * agree) for p in pairs])


def sparse(seed: int, log_range: float) -> FactorGraph:
    """Thirty variables with 42 random pairs and fields."""
    rng = np.random.default_rng(seed)
    factors: Factors = [((v,), rng.uniform(-log_range, log_range, 2)) for v in range(30)]
    factors += [
        (rng.choice(30, 2, replace=False).tolist(), rng.uniform(-log_range, log_range, (2, 2)))
        for _ in range(42)
    ]
    return _of([2] * 30, factors)


def planted(seed: int, log_range: float) -> FactorGraph:
    """A mode that few assignments lead to: parts that agree with it pay only all together."""
    rng = np.random.default_rng(seed)
    n, hidden = 12, rng.integers(0, 2, 12)
    factors: Factors = [((v,), rng.uniform(-0.5, 0.5, 2)) for v in range(n)]
    for _ in range(8):
        scope = rng.choice(n, 4, replace=False)
        table = rng.uniform(-0.5, 0.5, (2,) * 4)
        table[tuple(hidden[scope])] += rng.uniform(0.5, 1.0) * log_range
        # What comes near is put off, so that no path of single moves leads there.
        for slot in range(4):
            near = hidden[scope].copy()
            near[slot] = 1 - near[slot]
            table[tuple(near)] -= 0.5 * log_range
        factors.append((scope.tolist(), table))
    return _of([2] * n, factors)


KINDS: dict[str, Callable[[int, float], FactorGraph]] = {
    made.__name__.replace("_", " "): made
    for made in (
        grids, complete, claims, noisy_or, deterministic, second_order_chains, mixed, frustrated,
        sparse, planted,
    )
}  # fmt: skip
"""By name: the graph of a seed and a log range."""
