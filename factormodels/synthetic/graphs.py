"""Synthetic factor graphs other than responses: grids, chains, random graphs of any arity."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.factor_graph import UNOBSERVED, FactorGraph, default_names
from factormodels.synthetic.laws import Seed, whole
from factormodels.validation import validated_probability


def grid(
    rows: int,
    columns: int,
    *,
    coupling: float,
    field: float,
    cardinality: int = 2,
    attractive: bool = False,
    seed: Seed,
) -> FactorGraph:
    """Return an Ising (or, with more states, Potts) model on a grid with random couplings.

    The log potential of two neighbors is J if their states agree and -J otherwise, with J uniform
    on [-coupling, coupling], or [0, coupling] if attractive. The field on a binary variable is (-h,
    h); with more states every state has its own h; h is uniform on [-field, field]. Variable (r, c)
    has number r * columns + c.

    Args:
        rows: number of rows, at least 1.
        columns: number of columns, at least 1.
        coupling: maximum strength of an interaction, at least 0.
        field: maximum strength of a field, at least 0.
        cardinality: number of states, at least 2.
        attractive: whether neighbors always prefer to agree.
        seed: seed of the random numbers, or a generator.

    Raises:
        InputError: if a number is out of range.
    """
    rows, columns = whole(rows, "rows", 1), whole(columns, "columns", 1)
    cardinality = whole(cardinality, "cardinality", 2)
    generator = np.random.default_rng(seed)
    numbers = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], axis=1)
    down = np.stack([numbers[:-1].ravel(), numbers[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    largest = _strength(coupling, "coupling")
    interactions = generator.uniform(0.0 if attractive else -largest, largest, len(pairs))
    agreement = 2.0 * np.eye(cardinality) - 1.0
    fields = _fields(generator, rows * columns, cardinality, _strength(field, "field"))
    return _pairwise(fields, pairs, interactions[:, None, None] * agreement)


def chain(
    n_variables: int,
    *,
    coupling: float,
    field: float,
    cardinality: int = 2,
    attractive: bool = False,
    seed: Seed,
) -> FactorGraph:
    """Return a chain: a grid of one row. Arguments are those of `grid`."""
    return grid(
        1,
        whole(n_variables, "n_variables", 1),
        coupling=coupling,
        field=field,
        cardinality=cardinality,
        attractive=attractive,
        seed=seed,
    )


def random_graph(
    n_variables: int,
    n_factors: int,
    *,
    max_arity: int = 4,
    max_cardinality: int = 4,
    min_arity: int = 1,
    min_cardinality: int = 1,
    zero_probability: float = 0.0,
    log_range: float = 2.0,
    isolated: int = 0,
    satisfiable: bool = True,
    seed: Seed,
) -> FactorGraph:
    """Return a graph of random factors over random scopes, which may be disconnected.

    Arities and cardinalities are uniform between their bounds, scopes uniform among the sets of
    that size, in random order, and log potentials uniform on [-log_range, log_range].

    Args:
        n_variables: number of variables.
        n_factors: number of factors.
        max_arity: maximum size of a scope, limited by the number of variables that are not
            isolated.
        max_cardinality: maximum number of states.
        min_arity: minimum size of a scope; 0 allows constants.
        min_cardinality: minimum number of states, at least 1.
        zero_probability: probability that an entry of a table is zero.
        log_range: maximum absolute value of a log potential.
        isolated: number of variables, the last ones, without factors.
        satisfiable: whether the entries of one random assignment are kept from being zero, so that
            the partition function is positive. If False, it may be zero.
        seed: seed of the random numbers, or a generator.

    Raises:
        InputError: if a number is out of range.
    """
    n_variables, n_factors = whole(n_variables, "n_variables", 0), whole(n_factors, "n_factors", 0)
    touched = n_variables - whole(isolated, "isolated", 0)
    min_arity = whole(min_arity, "min_arity", 0)
    max_arity = min(whole(max_arity, "max_arity", min_arity), max(touched, 0))
    if touched < 0 or (n_factors and min_arity > max_arity):
        raise InputError(
            f"{isolated} of {n_variables} variables are isolated, so scopes have at most "
            f"{max(touched, 0)} variables; give more variables, fewer isolated ones, or a lower "
            f"min_arity than {min_arity}"
        )
    min_cardinality = whole(min_cardinality, "min_cardinality", 1)
    max_cardinality = whole(max_cardinality, "max_cardinality", min_cardinality)
    zero = validated_probability(zero_probability, "zero_probability")
    largest = _strength(log_range, "log_range")
    generator = np.random.default_rng(seed)
    cards = generator.integers(min_cardinality, max_cardinality, n_variables, endpoint=True)
    spared = generator.integers(0, cards)
    factors = []
    for _ in range(n_factors):
        arity = int(generator.integers(min_arity, max_arity, endpoint=True))
        scope = generator.choice(touched, arity, replace=False)
        table = generator.uniform(-largest, largest, tuple(cards[scope]))
        zeros = np.asarray(generator.random(table.shape) < zero)
        if satisfiable:
            zeros[tuple(spared[scope])] = False
        factors.append((scope.tolist(), np.where(zeros, -np.inf, table)))
    return FactorGraph.from_factors(cards, factors, log=True)


def _strength(value: float, what: str) -> float:
    if not 0.0 <= value < math.inf:
        raise InputError(f"{what} is {value!r}; give a finite number, at least 0")
    return float(value)


def _fields(
    generator: np.random.Generator, count: int, cardinality: int, largest: float
) -> NDArray[np.float64]:
    if cardinality > 2:
        return generator.uniform(-largest, largest, (count, cardinality))
    binary: NDArray[np.float64] = generator.uniform(-largest, largest, (count, 1)) * [-1.0, 1.0]
    return binary


def _pairwise(
    fields: NDArray[np.float64], pairs: NDArray[np.int64], log_tables: NDArray[np.float64]
) -> FactorGraph:
    n, states = fields.shape
    m = len(pairs)
    return FactorGraph(
        names=default_names(n),
        cardinalities=np.full(n, states),
        scope_starts=np.concatenate([np.arange(n), n + 2 * np.arange(m + 1)]),
        scope_variables=np.concatenate([np.arange(n), pairs.ravel()]),
        table_starts=np.concatenate(
            [states * np.arange(n), states * n + states**2 * np.arange(m + 1)]
        ),
        log_values=np.concatenate([fields.ravel(), log_tables.ravel()]),
        evidence=np.full(n, UNOBSERVED),
    )
