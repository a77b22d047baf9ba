"""Synthetic grids, chains and random graphs: their shape, their numbers, their promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factormodels.synthetic import chain, grid, random_graph
from tests.chance import assert_share
from tests.oracle import oracle


def test_a_grid_joins_neighbours_and_no_others() -> None:
    graph = grid(2, 3, coupling=1.0, field=0.5, seed=0)
    scopes = [scope for scope, _ in graph.factors()]
    assert scopes[:6] == [(v,) for v in range(6)]
    across, down = [(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3), (1, 4), (2, 5)]
    assert scopes[6:] == across + down
    scopes = [scope for scope, _ in chain(4, coupling=1.0, field=0.5, seed=0).factors()]
    assert scopes[4:] == [(0, 1), (1, 2), (2, 3)]
    assert grid(1, 1, coupling=1.0, field=0.5, seed=0).n_factors == 1


@pytest.mark.parametrize("attractive", [False, True])
@pytest.mark.parametrize("cardinality", [2, 3])
def test_a_grid_is_an_ising_or_potts_model(attractive: bool, cardinality: int) -> None:
    graph = grid(
        9, 9, coupling=0.8, field=0.3, cardinality=cardinality, attractive=attractive, seed=1
    )
    couplings = []
    for scope, table in graph.factors():
        if len(scope) == 1:
            assert np.abs(table).max() <= 0.3
            if cardinality == 2:
                assert table[0] == -table[1]
        else:
            same, different = table[0, 0], table[0, 1]
            assert different == -same
            np.testing.assert_array_equal(
                table, np.where(np.eye(cardinality, dtype=bool), same, different)
            )
            couplings.append(same)
    assert max(couplings) <= 0.8
    assert min(couplings) >= (0.0 if attractive else -0.8)
    assert (min(couplings) < 0.0) is not attractive


def test_a_chain_without_field_has_the_partition_function_of_the_textbook() -> None:
    graph = chain(6, coupling=1.5, field=0.0, seed=0)
    couplings = [table[0, 0] for scope, table in graph.factors() if len(scope) == 2]
    expected = math.log(2.0) + math.fsum(math.log(2.0 * math.cosh(j)) for j in couplings)
    assert oracle(graph).log_z == pytest.approx(expected, rel=1e-13)


@settings(max_examples=60)
@given(
    n=st.integers(1, 6),
    m=st.integers(0, 8),
    arity=st.integers(0, 4),
    cardinality=st.integers(1, 4),
    zero=st.floats(0.0, 1.0),
    isolated=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_random_graphs_keep_their_promises(
    n: int, m: int, arity: int, cardinality: int, zero: float, isolated: int, seed: int
) -> None:
    graph = random_graph(
        n + isolated,
        m,
        min_arity=0,
        max_arity=arity,
        max_cardinality=cardinality,
        zero_probability=zero,
        isolated=isolated,
        seed=seed,
    )
    assert (graph.n_variables, graph.n_factors) == (n + isolated, m)
    assert ((graph.cardinalities >= 1) & (graph.cardinalities <= cardinality)).all()
    for scope, table in graph.factors():
        assert len(scope) <= min(arity, n)
        assert all(variable < n for variable in scope)
        finite = table[table > -np.inf]
        assert (np.abs(finite) <= 2.0).all()
    assert oracle(graph).log_z > -math.inf


def test_random_graphs_reach_every_arity_and_cardinality() -> None:
    graph = random_graph(
        400, 900, min_arity=0, max_arity=3, min_cardinality=2, zero_probability=0.3, seed=0
    )
    arities = np.bincount(np.diff(graph.scope_starts))
    counts = np.bincount(graph.cardinalities)
    for count in arities:
        assert_share(int(count), 900, 1 / 4)
    assert counts[:2].tolist() == [0, 0]
    for count in counts[2:]:
        assert_share(int(count), 400, 1 / 3)
    impossible = random_graph(3, 3, zero_probability=1.0, satisfiable=False, seed=0)
    assert (impossible.log_values == -np.inf).all()
    spared = random_graph(3, 3, zero_probability=1.0, satisfiable=True, seed=0)
    assert (spared.log_values > -np.inf).sum() == 3
