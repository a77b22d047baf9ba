"""Most probable assignments, of all variables and of some."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks import log_probability, map_assignment, marginal_map
from tests.inference.tasks.cases import case, names_of, some_variables
from tests.oracle import Oracle
from tests.refusals import refused

pytestmark = pytest.mark.slow


def log_sum(terms: list[float]) -> float:
    largest = max(terms)
    if largest == -math.inf:
        return largest
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


def log_potential(truth: Oracle, variables: list[int], states: list[int]) -> float:
    """Return the log potential of some states, summed over the other variables."""
    return log_sum(
        [
            value
            for assignment, value in zip(truth.states, truth.log_potentials, strict=True)
            if all(assignment[v] == s for v, s in zip(variables, states, strict=True))
        ]
        + [-math.inf]
    )


def test_the_most_probable_assignment_is_the_enumeration_s() -> None:
    for seed in range(300):
        graph, truth = case(seed)
        found = map_assignment(graph)
        best = max(truth.log_potentials)
        # Sums of a dozen logarithms up to 300 carry errors of 1e-13 of their size.
        assert found.log_potential == pytest.approx(best, rel=1e-12, abs=1e-12), f"seed {seed}"
        assert graph.log_potential(found.states) == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert found.names == graph.names
        assert list(found.by_name().values()) == found.states.tolist()


def test_the_marginal_maximum_is_the_enumeration_s() -> None:
    for seed in range(300):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=5)
        found = marginal_map(graph, variables)
        choices = product(*[range(graph.cardinalities[v]) for v in variables])
        best = max(log_potential(truth, variables, list(states)) for states in choices)
        value = log_potential(truth, variables, found.states.tolist())
        assert found.log_potential == pytest.approx(best, rel=1e-11, abs=1e-11), f"seed {seed}"
        assert value == pytest.approx(best, rel=1e-11, abs=1e-11), f"seed {seed}"
        assert found.names == tuple(names_of(graph, variables))


def test_maximum_of_the_marginal_is_not_the_marginal_of_the_maximum() -> None:
    # The most probable pair has x = 0, the most probable x is 1.
    graph = FactorGraph.from_factors([2, 3], [([0, 1], [[0.4, 0.0, 0.0], [0.2, 0.2, 0.2]])])
    assert map_assignment(graph).states.tolist() == [0, 0]
    found = marginal_map(graph, [0])
    assert found.states.tolist() == [1]
    assert found.log_potential == pytest.approx(math.log(0.6), abs=1e-15)


def test_all_variables_maximised_is_the_most_probable_assignment() -> None:
    graph = grid(6, 7, coupling=1.0, field=1.0, seed=0)
    whole = map_assignment(graph)
    same = marginal_map(graph, range(42))
    assert same.states.tolist() == whole.states.tolist()
    assert same.log_potential == pytest.approx(whole.log_potential, rel=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_connected_sums_keep_the_width_of_the_graph_with_its_border(seed: int) -> None:
    # Atoms of a loopy graph are summed; every context is in the border of their one component.
    graph = fr2(9, 1, density=0.25, seed=seed)
    rng = np.random.default_rng(seed)
    variables = rng.choice(18, size=6, replace=False).tolist()
    found = marginal_map(graph, variables)
    log_z = infer(graph, "exact").log_z or 0.0
    value = log_probability(graph, dict(zip(variables, found.states.tolist(), strict=True))).value
    assert found.log_potential - log_z == pytest.approx(value, abs=1e-10)
    best = max(
        infer(graph.with_evidence(dict(zip(variables, states, strict=True))), "exact").log_z or 0.0
        for states in product(range(2), repeat=6)
    )
    assert found.log_potential == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("column", [0, 4], ids=["one side", "both sides"])
def test_what_is_summed_first_is_swept_towards_its_border(column: int) -> None:
    # Column by column, no table has more than 2**11 entries; an order that ate into the border
    # from within would need many times the memory.
    graph = grid(10, 10, coupling=1.0, field=1.0, seed=0)
    variables = list(range(column, 100, 10))
    found = marginal_map(graph, variables, Exact(memory_limit=2_000_000))
    log_z = infer(graph, "exact").log_z or 0.0
    states = found.states.tolist()
    value = log_probability(graph, dict(zip(variables, states, strict=True))).value
    assert found.log_potential - log_z == pytest.approx(value, abs=1e-10)
    for at in range(10):
        flipped = [1 - s if k == at else s for k, s in enumerate(states)]
        other = log_probability(graph, dict(zip(variables, flipped, strict=True))).value
        assert other < value


def test_ties_go_to_the_lowest_state() -> None:
    graph = FactorGraph.from_factors([3, 2, 2], [([0, 1], np.ones((3, 2))), ([2], [0.0, 1.0])])
    assert map_assignment(graph).states.tolist() == [0, 0, 1]
    assert marginal_map(graph, [1, 0]).states.tolist() == [0, 0]


def test_observed_variables_keep_their_states() -> None:
    graph = fr1_forest(3, 2, seed=0).with_evidence({"a1": 0, "c4": 1})
    assert map_assignment(graph).by_name()["a1"] == 0
    found = marginal_map(graph, ["c4", "a2", "a1"])
    assert found.by_name()["c4"] == 1
    assert found.by_name()["a1"] == 0


def test_a_large_forest() -> None:
    graph = fr1_forest(20_000, 3, seed=0)
    found = map_assignment(graph)
    assert graph.log_potential(found.states) == pytest.approx(found.log_potential, rel=1e-11)
    # On a forest of stars, the atoms' maximum is found star by star.
    atoms = marginal_map(graph, range(20_000))
    marginals = infer(graph, "exact").marginals.of_state(1)[:20_000]
    decided = np.abs(marginals - 0.5) > 1e-9
    assert (atoms.states[decided] == (marginals[decided] > 0.5)).all()


def test_a_graph_without_variables() -> None:
    found = map_assignment(FactorGraph.from_factors([], [([], 3.0)]))
    assert found.states.shape == (0,)
    assert found.log_potential == pytest.approx(math.log(3.0), abs=1e-15)


def test_what_does_not_fit_is_refused() -> None:
    # Any maximum over the leaves of a star has the table that summing its centre makes.
    star = FactorGraph.from_factors(
        [2] * 61, [([0, i], [[1.0, 2.0], [2.0, 1.0]]) for i in range(1, 61)]
    )
    assert map_assignment(star).log_potential == pytest.approx(60.0 * math.log(2.0), abs=1e-12)
    with pytest.raises(TooLargeError, match=r"what connects the max_variables '1', .*60 in all"):
        marginal_map(star, range(1, 61))
    with pytest.raises(TooLargeError, match="elimination would take"):
        map_assignment(grid(40, 40, coupling=1.0, field=1.0, seed=0), Exact(restarts=0))


def test_contradictions_are_named_so() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]]), ([1], [0, 1])])
    with pytest.raises(ZeroPartitionError):
        map_assignment(graph)
    with pytest.raises(ZeroPartitionError):
        marginal_map(graph, [0])


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0)
    refused("max_variables name 'b', which is no", marginal_map, graph, ["b"])
    refused("max_variables are empty", marginal_map, graph, [])
