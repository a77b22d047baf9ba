"""Gradients of log Z and of log probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest
from inference import TooLargeError
from inference.exact.backend import Exact
from inference.tasks import log_partition, log_partition_hessian, log_probability
from inference.tasks.gradients import factor_components
from tests.inference.tasks.cases import ROUNDING, case, some_variables
from tests.oracle import oracle


def beliefs(graph: FactorGraph) -> NDArray[np.float64]:
    """Return the joint distribution of every factor's scope by enumeration."""
    truth = oracle(graph)
    gradient = np.zeros(graph.log_values.size)
    for factor in range(graph.n_factors):
        scope = graph.scope(factor)
        table = np.zeros(graph.cardinalities[list(scope)])
        for states, probability in zip(truth.states, truth.probabilities, strict=True):
            table[tuple(states[v] for v in scope)] += probability
        gradient[graph.table_starts[factor] : graph.table_starts[factor + 1]] = table.ravel()
    return gradient


def test_log_z_and_its_gradient_are_the_enumeration_s() -> None:
    for seed in range(150):
        graph, truth = case(seed)
        value, gradient = log_partition(graph)
        assert value == pytest.approx(truth.log_z, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(gradient, beliefs(graph), atol=ROUNDING, err_msg=f"seed {seed}")
        assert (gradient[graph.log_values == -np.inf] == 0.0).all()


def covariance(graph: FactorGraph) -> NDArray[np.float64]:
    """Return the covariance of which entry of each factor applies, by enumeration."""
    truth = oracle(graph)
    size = graph.log_values.size
    together, mean = np.zeros((size, size)), np.zeros(size)
    for states, probability in zip(truth.states, truth.probabilities, strict=True):
        applies = np.zeros(size)
        for factor in range(graph.n_factors):
            scope = list(graph.scope(factor))
            shape = graph.cardinalities[scope]
            cell = np.ravel_multi_index([states[v] for v in scope], shape) if scope else 0
            applies[graph.table_starts[factor] + cell] = 1.0
        together += probability * np.outer(applies, applies)
        mean += probability * applies
    return together - np.outer(mean, mean)


def test_second_derivatives_are_the_covariance_by_enumeration() -> None:
    several = varied = 0
    for seed in range(120):
        graph, truth = case(seed)
        if len(truth.states) > 400 or graph.log_values.size > 120:
            continue
        hessian = log_partition_hessian(graph)
        expected = covariance(graph)
        # Products of probabilities, summed over the states; a fixed entry's row over the others'.
        np.testing.assert_allclose(hessian, expected, atol=1e-12, err_msg=f"seed {seed}")
        np.testing.assert_array_equal(hessian, hessian.T)
        varied += bool(np.abs(expected).max(initial=0.0) > 1e-3)
        several += len(set(factor_components(graph).tolist())) > 1
    assert varied > 30
    assert several > 10


def test_second_derivatives_refuse_what_does_not_fit() -> None:
    graph = fr1_forest(3, 3, seed=0)
    size = 8 * graph.log_values.size**2
    assert log_partition_hessian(graph, Exact(memory_limit=size)).shape[0] == 60
    with pytest.raises(TooLargeError, match="second derivatives by 60 entries"):
        log_partition_hessian(graph, Exact(memory_limit=size - 1))


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
