"""Gradients of log Z and of log probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest
from inference import ZeroPartitionError
from inference.tasks import log_partition, log_probability
from inference.tasks.gradients import log_partition_function
from tests.inference.tasks.cases import ROUNDING, case, some_variables
from tests.oracle import oracle
from tests.refusals import refused


def beliefs(graph: FactorGraph) -> NDArray[np.float64]:
    """Return the joint distribution of every factor's scope by enumeration."""
    truth = oracle(graph)
    found = np.zeros(graph.log_values.size)
    for factor in range(graph.n_factors):
        scope = graph.scope(factor)
        table = np.zeros(graph.cardinalities[list(scope)])
        for states, probability in zip(truth.states, truth.probabilities, strict=True):
            table[tuple(states[v] for v in scope)] += probability
        found[graph.table_starts[factor] : graph.table_starts[factor + 1]] = table.ravel()
    return found


def test_log_z_and_its_gradient_are_the_enumeration_s() -> None:
    for seed in range(150):
        graph, truth = case(seed)
        value, gradient = log_partition(graph)
        assert value == pytest.approx(truth.log_z, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(gradient, beliefs(graph), atol=ROUNDING, err_msg=f"seed {seed}")
        assert (gradient[graph.log_values == -np.inf] == 0.0).all()


def test_log_probabilities_and_their_gradients_are_the_enumeration_s() -> None:
    tried = 0
    for seed in range(150):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=3)
        possible = np.flatnonzero(np.array(truth.probabilities) > 1e-12)
        drawn = truth.states[np.random.default_rng(seed).choice(possible)]
        assignment = {v: drawn[v] for v in variables}
        value, gradient = log_probability(graph, assignment)
        names = {graph.names[v]: s for v, s in assignment.items()}
        # The difference of two logarithms up to 1e3, each right to about 1e-13.
        assert value == pytest.approx(math.log(truth.probability(names)), abs=1e-9)
        expected = beliefs(graph.with_evidence(assignment)) - beliefs(graph)
        np.testing.assert_allclose(gradient, expected, atol=ROUNDING, err_msg=f"seed {seed}")
        tried += bool(np.abs(gradient).max(initial=0.0) > 1e-3)
    assert tried > 40


def test_an_impossible_assignment_has_no_gradient() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [1.0, 1.0]])])
    with pytest.raises(ZeroPartitionError, match=r"assignment \{0: 0, 1: 1\} has probability zero"):
        log_probability(graph, {0: 0, 1: 1})


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0).with_evidence({"a1": 1})
    refused("contradicts the state 1 observed", log_probability, graph, {"a1": 0})
    refused("no variable 'b'", log_probability, graph, {"b": 0})
    function = log_partition_function(graph)
    size = graph.log_values.size
    refused(rf"of shape \(3,\) .* has {size} entries", function, np.zeros(3))
    refused("is nan; a log potential is", function, np.full(size, np.nan))
