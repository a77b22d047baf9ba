"""The distribution of the number of variables in a state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import chain, fr1_forest, fr2, grid
from inference import TooLargeError, infer
from inference.exact.backend import Exact
from inference.tasks import count_distribution
from tests.inference.tasks.cases import ROUNDING, case, some_variables
from tests.refusals import refused

pytestmark = pytest.mark.slow


def test_the_distribution_is_the_enumeration_s() -> None:
    for seed in range(200):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=9)
        rng = np.random.default_rng([seed, 3])
        states = rng.integers(graph.cardinalities[variables])
        expected = np.zeros(len(variables) + 1)
        for assignment, probability in zip(truth.states, truth.probabilities, strict=True):
            agree = [assignment[v] == s for v, s in zip(variables, states, strict=True)]
            expected[sum(agree)] += probability
        found = count_distribution(graph, variables, states.tolist())
        np.testing.assert_allclose(
            found.probabilities, expected, atol=ROUNDING, err_msg=f"seed {seed}"
        )


def test_independent_variables_give_the_binomial_distribution() -> None:
    graph = FactorGraph.from_factors([2] * 300, [([i], [0.7, 0.3]) for i in range(300)])
    found = count_distribution(graph, range(300))
    binomial = [math.comb(300, k) * 0.3**k * 0.7 ** (300 - k) for k in range(301)]
    # Every term is a sum of positive products: relative errors grow by 300 roundings at most.
    np.testing.assert_allclose(found.probabilities, binomial, rtol=1e-12)
    assert found.mean == pytest.approx(90.0, rel=1e-12)
    assert found.variance == pytest.approx(63.0, rel=1e-11)


def test_a_long_chain_agrees_with_the_forward_recursion() -> None:
    graph = chain(400, coupling=1.0, field=1.0, seed=0)
    found = count_distribution(graph, range(400))
    tables = dict(graph.factors())
    forward = np.zeros((2, 401))
    forward[0, 0] = forward[1, 1] = 1.0
    for i in range(400):
        unary = np.exp(tables.get((i,), np.zeros(2)))
        forward *= unary[:, None]
        if i < 399:
            moved = np.exp(tables[i, i + 1]).T @ forward
            forward = np.stack([moved[0], np.concatenate([[0.0], moved[1, :-1]])])
        forward /= forward.sum()
    np.testing.assert_allclose(found.probabilities, forward.sum(axis=0), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "graph",
    [
        fr1_forest(40, 4, seed=0),
        fr2(14, 3, density=0.1, seed=0),
        grid(11, 12, coupling=1.0, field=1.0, seed=0),
    ],
    ids=["forest", "fr2", "grid"],
)
def test_the_mean_is_the_sum_of_the_marginals(graph: FactorGraph) -> None:
    variables = list(range(0, graph.n_variables, 2))
    found = count_distribution(graph, variables)
    marginals = infer(graph, "exact").marginals.of_state(1)
    # Up to 160 variables, each marginal right to about 1e-14.
    assert found.mean == pytest.approx(marginals[variables].sum(), rel=1e-11)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_observed_variables_count_for_certain() -> None:
    graph = fr1_forest(3, 1, seed=0).with_evidence({"a1": 1, "a2": 0})
    found = count_distribution(graph, ["a1", "a2", "a3"])
    p = infer(graph, "exact").marginals["a3"][1]
    np.testing.assert_allclose(found.probabilities, [0.0, 1.0 - p, p, 0.0], atol=ROUNDING)


def test_what_does_not_fit_is_refused() -> None:
    # A hub of 100 states holds 100 distributions for each of the chains that hang on it.
    chains: list[tuple[list[int], NDArray[np.float64]]] = []
    for first in range(1, 3001, 300):
        chains.append(([0, first], np.ones((100, 2))))
        chains += [([i, i + 1], np.ones((2, 2))) for i in range(first, first + 299)]
    graph = FactorGraph.from_factors([100] + [2] * 3000, chains)
    assert count_distribution(graph, range(1, 3001)).mean == pytest.approx(1500.0, rel=1e-12)
    needed = infer(graph, "exact").stats["predicted_bytes"]
    with pytest.raises(TooLargeError, match="distribution of the count would take"):
        count_distribution(graph, range(1, 3001), exact=Exact(memory_limit=needed))


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0)
    count = count_distribution
    refused("'a1' has no state 2; its states are 0 to 1", count, graph, ["a1"], 2)
    refused("neither one whole number nor one for", count, graph, ["a1"], [1, 0])
    refused("neither one whole number nor one for", count, graph, ["a1"], 0.5)
    refused("variables are empty", count, graph, [])
