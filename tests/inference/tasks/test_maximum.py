"""Most probable assignments, of all variables and of some: by elimination, or by toulbar2."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.errors import InputError, MissingDependencyError
from factormodels.synthetic import fr1_forest, fr2, grid, random_graph
from inference import InferenceError, Status, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.peers.toulbar2_search import search_toulbar2
from inference.tasks import log_probability, map_assignment, marginal_map, search_map
from tests.inference.graphs import frustrated, odd_graph
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


@pytest.mark.parametrize("seeds", [60, pytest.param(300, marks=pytest.mark.nightly)])
def test_maxima_are_the_enumeration_s(seeds: int) -> None:
    for seed in range(seeds):
        graph, truth = case(seed)
        assignment = map_assignment(graph)
        best = max(truth.log_potentials)
        # Sums of a dozen logarithms up to 300 carry errors of 1e-13 of their size.
        assert assignment.log_potential == pytest.approx(best, rel=1e-12, abs=1e-12), f"seed {seed}"
        assert graph.log_potential(assignment.states) == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert assignment.names == graph.names
        assert list(assignment.by_name().values()) == assignment.states.tolist()

        variables = some_variables(graph, seed, most=5)
        assignment = marginal_map(graph, variables)
        choices = product(*[range(graph.cardinalities[v]) for v in variables])
        best = max(log_potential(truth, variables, list(states)) for states in choices)
        value = log_potential(truth, variables, assignment.states.tolist())
        assert assignment.log_potential == pytest.approx(best, rel=1e-11, abs=1e-11), f"seed {seed}"
        assert value == pytest.approx(best, rel=1e-11, abs=1e-11), f"seed {seed}"
        assert assignment.names == tuple(names_of(graph, variables))


def test_maximum_of_the_marginal_is_not_the_marginal_of_the_maximum() -> None:
    # The most probable pair has x = 0, the most probable x is 1.
    graph = FactorGraph.from_factors([2, 3], [([0, 1], [[0.4, 0.0, 0.0], [0.2, 0.2, 0.2]])])
    assert map_assignment(graph).states.tolist() == [0, 0]
    assignment = marginal_map(graph, [0])
    assert assignment.states.tolist() == [1]
    assert assignment.log_potential == pytest.approx(math.log(0.6), abs=1e-15)


def test_all_variables_maximized_is_the_most_probable_assignment() -> None:
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
    assignment = marginal_map(graph, variables)
    log_z = infer(graph, "exact").log_z or 0.0
    value = log_probability(
        graph, dict(zip(variables, assignment.states.tolist(), strict=True))
    ).value
    assert assignment.log_potential - log_z == pytest.approx(value, abs=1e-10)
    best = max(
        infer(graph.with_evidence(dict(zip(variables, states, strict=True))), "exact").log_z or 0.0
        for states in product(range(2), repeat=6)
    )
    assert assignment.log_potential == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("column", [0, 4], ids=["one side", "both sides"])
def test_columns_summed_first_are_swept_towards_their_border(column: int) -> None:
    # Column by column, no table has more than 2**11 entries; an order that ate into the border
    # from within would need many times the memory.
    graph = grid(10, 10, coupling=1.0, field=1.0, seed=0)
    variables = list(range(column, 100, 10))
    assignment = marginal_map(graph, variables, Exact(memory_limit=2_000_000))
    log_z = infer(graph, "exact").log_z or 0.0
    states = assignment.states.tolist()
    value = log_probability(graph, dict(zip(variables, states, strict=True))).value
    assert assignment.log_potential - log_z == pytest.approx(value, abs=1e-10)
    for at in range(10):
        flipped = [1 - s if k == at else s for k, s in enumerate(states)]
        other = log_probability(graph, dict(zip(variables, flipped, strict=True))).value
        assert other < value


def test_ties_go_to_the_lowest_state() -> None:
    graph = FactorGraph.from_factors([3, 2, 2], [([0, 1], np.ones((3, 2))), ([2], [0.0, 1.0])])
    assert map_assignment(graph).states.tolist() == [0, 0, 1]
    assert marginal_map(graph, [1, 0]).states.tolist() == [0, 0]


def test_a_large_forest() -> None:
    graph = fr1_forest(20_000, 3, seed=0)
    assignment = map_assignment(graph)
    assert graph.log_potential(assignment.states) == pytest.approx(
        assignment.log_potential, rel=1e-11
    )
    # On a forest of stars, the atoms' maximum is found star by star.
    atoms = marginal_map(graph, range(20_000))
    marginals = infer(graph, "exact").marginals.of_state(1)[:20_000]
    decided = np.abs(marginals - 0.5) > 1e-9
    assert (atoms.states[decided] == (marginals[decided] > 0.5)).all()


def test_a_graph_without_variables() -> None:
    assignment = map_assignment(FactorGraph.from_factors([], [([], 3.0)]))
    assert assignment.states.shape == (0,)
    assert assignment.log_potential == pytest.approx(math.log(3.0), abs=1e-15)


def test_graphs_that_do_not_fit_are_searched_by_toulbar2(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(4, 4, coupling=2.0, field=1.0, seed=3).with_evidence({0: 0})
    best = map_assignment(graph)
    narrow = Exact(memory_limit=100)
    for optimum in (search_map(graph), search_map(graph, narrow)):
        assert optimum.status is Status.EXACT
        assert optimum.assignment.states.tolist() == best.states.tolist()
        assert optimum.assignment.log_potential == pytest.approx(best.log_potential, abs=1e-9)
        # toulbar2 proves up to the sixth digit of each of 40 tables.
        assert -1e-9 <= optimum.gap <= 1e-4
    assert {"nodes", "backtracks"} <= optimum.stats.keys()
    refused("budget of 0.0 seconds", search_map, graph, seconds=0.0)
    monkeypatch.setattr("inference.peers.toulbar2_search.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"would take .*\[toulbar2\]"):
        search_map(graph, narrow)
    assert search_map(graph).status is Status.EXACT


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_toulbar2_finds_the_same_and_its_bounds_hold(seeds: int) -> None:
    graphs = [odd_graph(5), frustrated(7)]
    # Tables of five variables are given to it another way than those of three.
    graphs += [
        random_graph(8, 14, max_arity=5, max_cardinality=4, zero_probability=0.3, seed=seed)
        for seed in range(seeds)
    ]
    for graph in graphs:
        ours = map_assignment(graph)
        searched = search_toulbar2(graph)
        assert searched.status is Status.EXACT
        assert searched.log_potential == pytest.approx(ours.log_potential, abs=1e-4)
        assert graph.log_potential(searched.states) == pytest.approx(
            searched.log_potential, abs=1e-9
        )
        assert searched.upper >= ours.log_potential - 1e-9
    # Too wide to be finished: what there is, with a bound on the rest.
    graph = grid(14, 14, coupling=2.0, field=1.0, seed=3)
    searched = search_toulbar2(graph, seconds=0.3)
    best = map_assignment(graph).log_potential
    assert searched.log_potential - 1e-9 <= best <= searched.upper + 1e-9
    assert searched.upper > searched.log_potential


def test_toulbar2_refuses_what_it_cannot_search(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    refused("budget of 0.0 seconds", search_toulbar2, graph, seconds=0.0)
    refused("budget of 900000000.0 seconds", search_toulbar2, graph, seconds=9e8)
    refused("13 digits", search_toulbar2, graph, digits=13)
    refused("seed -1 of toulbar2", search_toulbar2, graph, seed=-1)
    refused("of toulbar2 is not from 0", search_toulbar2, graph, seed=10**23)
    far = FactorGraph.from_factors([2], [((0,), np.array([1e300, 1e-300]))])
    with pytest.raises(InputError, match="differ by 1381") as refusal:
        search_toulbar2(far, digits=12, seconds=1.0)
    assert "give fewer digits" in str(refusal.value)
    contradictory = FactorGraph.from_factors(
        [3, 3, 3],
        [((a, b), 1.0 - np.eye(3)) for a, b in ((0, 1), (1, 2), (0, 2))]
        + [((v,), np.array([1.0, 1.0, 0.0])) for v in range(3)],
    )
    with pytest.raises(ZeroPartitionError):
        search_toulbar2(contradictory)
    monkeypatch.setattr("sys.executable", "/bin/true")
    with pytest.raises(InferenceError, match="without an answer: nothing"):
        search_toulbar2(graph)
    monkeypatch.setattr("inference.peers.toulbar2_search.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'factorfacts\[toulbar2\]'"):
        search_toulbar2(graph)
