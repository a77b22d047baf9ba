"""Factor graphs go to pgmpy, pyAgrum and PGMax and come back; what these infer is right."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph, MissingDependencyError
from factormodels.interchange import (
    from_pgmax,
    from_pgmpy,
    from_pyagrum,
    to_pgmax,
    to_pgmpy,
    to_pyagrum,
)
from factormodels.interchange.factor_graphs import library, merged_tables
from tests.inference.graphs import forest, odd_graph
from tests.oracle import oracle
from tests.refusals import refused

WAYS: dict[str, tuple[Callable[[FactorGraph], Any], Callable[[Any], FactorGraph]]] = {
    "pgmpy": (to_pgmpy, from_pgmpy),
    "pyagrum": (to_pyagrum, from_pyagrum),
    "pgmax": (to_pgmax, from_pgmax),
}

SINGLE = 1e-6
"""Relative error of what was once in single precision, as PGMax holds it where JAX does."""


def example() -> FactorGraph:
    """Three variables of 2, 3 and 1 states; a zero, two factors of one scope, a constant."""
    return FactorGraph.from_factors(
        [2, 3, 1, 2],
        [
            ([0, 1], [[0.5, 2.0, 0.0], [1.0, 3.0, 0.25]]),
            ([1, 0], [[1.0, 2.0], [0.5, 4.0], [3.0, 1.0]]),
            ([2, 1], [[1.0, 2.0, 3.0]]),
            ([], 2.5),
        ],
        names=["a claim", "b", "c", "alone"],
    )


def assert_same(graph: FactorGraph, back: FactorGraph, tolerance: float = 1e-12) -> None:
    """Compare names and the potential of every assignment that the evidence allows."""
    assert back.names == graph.names
    assert back.cardinalities.tolist() == graph.cardinalities.tolist()
    whole = oracle(back)
    potential = dict(zip(whole.states, whole.log_potentials, strict=True))
    ours = oracle(graph)
    for states, expected in zip(ours.states, ours.log_potentials, strict=True):
        assert potential.pop(states) == pytest.approx(expected, rel=tolerance, abs=tolerance)
    # What the evidence excludes is impossible in the library's model.
    assert all(rest == -math.inf for rest in potential.values())


def leaves_doubles(graph: FactorGraph) -> bool:
    """Say whether a potential of a scope, all its factors multiplied, is no double."""
    logs = [value for table in merged_tables(graph).values() for value in table.ravel().tolist()]
    return any(abs(value) > 709 and value > -math.inf for value in logs)


@pytest.mark.parametrize("name", WAYS)
def test_a_graph_comes_back_with_every_potential(name: str) -> None:
    there, back = WAYS[name]
    tolerance = SINGLE if name == "pgmax" else 1e-12
    assert_same(example(), back(there(example())), tolerance)
    observed = example().with_evidence({"b": 1})
    assert_same(observed, back(there(observed)), tolerance)


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_odd_graphs_come_back(name: str, seed: int) -> None:
    graph = odd_graph(seed)
    there, back = WAYS[name]
    if name != "pgmax" and leaves_doubles(graph):
        refused("beyond the range of doubles", there, graph)
        return
    assert_same(graph, back(there(graph)), SINGLE if name == "pgmax" else 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_answers_of_pgmpy_and_pyagrum_are_right(seed: int) -> None:
    graph = forest(seed, zero_probability=0.0)
    expected = oracle(graph).marginals
    elimination = library("pgmpy.inference").VariableElimination(to_pgmpy(graph))
    engine = library("pyagrum").ShaferShenoyMRFInference(to_pyagrum(graph))
    engine.makeInference()
    for name in graph.names:
        values = elimination.query([name], show_progress=False).values
        # pgmpy normalizes the answers of Bayesian networks alone.
        assert values / values.sum() == pytest.approx(expected[name], abs=1e-10)
        # Variables of one state leave axes of length 1 behind.
        marginal = engine.posterior(name).toarray().ravel()
        assert marginal == pytest.approx(expected[name], abs=1e-10)


def test_answers_of_pgmax_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax
    from jax.extend.backend import get_backend
    from pgmax import infer

    # PGMax calls a function that JAX has moved.
    bridge = SimpleNamespace(get_backend=get_backend)
    monkeypatch.setattr(jax.lib, "xla_bridge", bridge, raising=False)
    graph = forest(0, zero_probability=0.0)
    model = to_pgmax(graph)
    propagation = infer.build_inferer(model.bp_state, backend="bp")
    arrays = propagation.run(propagation.init(), num_iters=50, damping=0.0, temperature=1.0)
    marginals = infer.get_marginals(propagation.get_beliefs(arrays))
    (variables,) = model.variable_groups
    expected = oracle(graph).marginals
    for name in graph.names:
        # Single precision, 50 iterations on a tree.
        assert np.asarray(marginals[variables][name]) == pytest.approx(expected[name], abs=1e-4)


def test_a_bayesian_network_of_each_library_is_read() -> None:
    tabular = library("pgmpy.factors.discrete").TabularCPD
    network = library("pgmpy.models").DiscreteBayesianNetwork([("rain", "wet"), ("hose", "wet")])
    wet = [[0.9, 0.4, 0.3, 0.05], [0.1, 0.6, 0.7, 0.95]]
    network.add_cpds(
        tabular("rain", 2, [[0.8], [0.2]]),
        tabular("hose", 2, [[0.7], [0.3]]),
        tabular("wet", 2, wet, evidence=["rain", "hose"], evidence_card=[2, 2]),
    )
    to_pyagrum(example())  # it makes the first network, which warns
    bayesian = library("pyagrum").fastBN("rain->wet<-hose")
    bayesian.cpt("rain").fillWith([0.8, 0.2])
    bayesian.cpt("hose").fillWith([0.7, 0.3])
    for rain in (0, 1):
        for hose in (0, 1):
            column = 2 * rain + hose
            bayesian.cpt("wet")[{"rain": rain, "hose": hose}] = [wet[0][column], wet[1][column]]
    for graph in (from_pgmpy(network), from_pyagrum(bayesian)):
        enumerated = oracle(graph)
        assert enumerated.log_z == pytest.approx(0.0, abs=1e-12)
        # 0.8 0.7 0.1 + 0.8 0.3 0.6 + 0.2 0.7 0.7 + 0.2 0.3 0.95
        assert enumerated.marginals["wet"][1] == pytest.approx(0.355, abs=1e-12)


def test_arrays_and_several_groups_of_pgmax_are_read() -> None:
    from pgmax import factor, fgraph, fgroup, vgroup

    array = vgroup.NDVarArray(num_states=2, shape=(2, 2))
    named = vgroup.VarDict(num_states=3, variable_names=("x",))
    model = fgraph.FactorGraph(variable_groups=[array, named])
    model.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=[[array[0, 0], array[1, 1]]],
            log_potential_matrix=np.array([[0.0, 1.0], [2.0, 3.0]]),
        )
    )
    model.add_factors(
        factor.EnumFactor(
            variables=[named["x"]],
            factor_configs=np.array([[0], [2]]),
            log_potentials=np.array([0.5, -0.5]),
        )
    )
    graph = from_pgmax(model)
    assert graph.names == ("0:0,0", "0:0,1", "0:1,0", "0:1,1", "1:x")
    assert graph.log_potential([1, 0, 0, 1, 2]) == pytest.approx(2.5, abs=SINGLE)
    assert graph.log_potential([0, 0, 0, 0, 1]) == -math.inf
    logical = fgraph.FactorGraph(variable_groups=array)
    logical.add_factors(factor.ORFactor(variables=[array[0, 0], array[0, 1], array[1, 0]]))
    refused("ORFactor", from_pgmax, logical)


def test_a_factor_that_nothing_satisfies_is_refused_by_pgmax_alone() -> None:
    graph = FactorGraph.from_factors([2], [([0], [0.0, 0.0])], names=["a"])
    refused("the factor over a is zero throughout", to_pgmax, graph)
    assert oracle(from_pgmpy(to_pgmpy(graph))).log_z == -math.inf


def test_a_graph_without_variables_is_refused() -> None:
    for write, _ in WAYS.values():
        refused("no variables", write, FactorGraph.from_factors([], []))


def test_invalid_models_are_refused() -> None:
    for read in (from_pgmpy, from_pyagrum, from_pgmax):
        refused("dict is no", read, {})


def test_potentials_beyond_doubles_are_refused() -> None:
    graph = FactorGraph.from_factors([2], [([0], [800.0, 0.0])], log=True)
    for write in (to_pgmpy, to_pyagrum):
        refused("beyond the range of doubles", write, graph)
    assert from_pgmax(to_pgmax(graph)).log_potential([0]) == pytest.approx(800.0, rel=SINGLE)


@pytest.mark.parametrize(("module", "write"), [("pyagrum", to_pyagrum), ("pgmax.fgraph", to_pgmax)])
def test_a_library_that_is_absent_is_named(
    module: str, write: Callable[[FactorGraph], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        write(example())
