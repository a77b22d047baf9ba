"""Joint distributions of a few variables, of all pairs of a set, and of the number in a state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import chain, fr1_forest, fr2, grid
from inference import TooLargeError, infer
from inference.exact.backend import Exact
from inference.tasks import count_distribution, joint, pairwise_joints
from tests.inference.tasks.cases import ROUNDING, case, names_of, some_variables

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seeds", [40, pytest.param(200, marks=pytest.mark.nightly)])
def test_joints_pairs_and_counts_are_the_enumeration_s(seeds: int) -> None:
    for seed in range(seeds):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=9)
        names = names_of(graph, variables)
        few = variables[:4]
        table = joint(graph, names[:4] if seed % 2 else few)
        assert table.shape == tuple(graph.cardinalities[few])
        for states, probability in truth.joint(names[:4]).items():
            assert table[states] == pytest.approx(probability, abs=ROUNDING), f"seed {seed}"

        joints = pairwise_joints(graph, variables)
        most = int(graph.cardinalities[variables].max())
        assert joints.shape == (len(variables), len(variables), most, most)
        for i, first in enumerate(names):
            for j, second in enumerate(names):
                expected = np.zeros((most, most))
                if i == j:
                    marginal = truth.marginals[first]
                    np.fill_diagonal(expected[: len(marginal), : len(marginal)], marginal)
                else:
                    for states, probability in truth.joint([first, second]).items():
                        expected[states] = probability
                np.testing.assert_allclose(
                    joints[i, j], expected, atol=ROUNDING, err_msg=f"seed {seed}"
                )

        wanted = np.random.default_rng([seed, 3]).integers(graph.cardinalities[variables])
        counted = np.zeros(len(variables) + 1)
        for assignment, probability in zip(truth.states, truth.probabilities, strict=True):
            agree = [assignment[v] == s for v, s in zip(variables, wanted, strict=True)]
            counted[sum(agree)] += probability
        distribution = count_distribution(graph, variables, wanted.tolist())
        np.testing.assert_allclose(
            distribution.probabilities, counted, atol=ROUNDING, err_msg=f"seed {seed}"
        )


@pytest.mark.parametrize(
    "graph",
    [fr2(8, 2, density=0.2, seed=1), grid(12, 12, coupling=1.0, field=1.0, seed=0)],
    ids=["fr2", "tables of several blocks"],
)
def test_pairs_are_those_asked_for_one_by_one(graph: FactorGraph) -> None:
    rng = np.random.default_rng(0)
    variables = rng.choice(graph.n_variables, size=8, replace=False).tolist()
    joints = pairwise_joints(graph, variables)
    for i, j in zip(*np.tril_indices(8, -1), strict=True):
        np.testing.assert_allclose(
            joints[i, j], joint(graph, [variables[i], variables[j]]), atol=ROUNDING
        )


def test_independent_variables_give_the_binomial_distribution() -> None:
    graph = FactorGraph.from_factors([2] * 300, [([i], [0.7, 0.3]) for i in range(300)])
    distribution = count_distribution(graph, range(300))
    binomial = [math.comb(300, k) * 0.3**k * 0.7 ** (300 - k) for k in range(301)]
    # Every term is a sum of positive products: relative errors grow by 300 roundings at most.
    np.testing.assert_allclose(distribution.probabilities, binomial, rtol=1e-12)
    assert distribution.mean == pytest.approx(90.0, rel=1e-12)
    assert distribution.variance == pytest.approx(63.0, rel=1e-11)


def test_counts_of_a_long_chain_agree_with_the_forward_recursion() -> None:
    graph = chain(400, coupling=1.0, field=1.0, seed=0)
    distribution = count_distribution(graph, range(400))
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
    np.testing.assert_allclose(
        distribution.probabilities, forward.sum(axis=0), rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize(
    "graph",
    [
        fr1_forest(40, 4, seed=0),
        fr2(14, 3, density=0.1, seed=0),
        grid(11, 12, coupling=1.0, field=1.0, seed=0),
    ],
    ids=["forest", "fr2", "grid"],
)
def test_mean_and_variance_of_the_count_are_sums_over_pairs(graph: FactorGraph) -> None:
    variables = list(range(0, graph.n_variables, 2))
    joints = pairwise_joints(graph, variables)[:, :, 1, 1]
    marginals = infer(graph, "exact").marginals.of_state(1)[variables]
    # Up to 100 variables, each marginal right to about 1e-14.
    np.testing.assert_allclose(np.diag(joints), marginals, atol=1e-12)
    count = count_distribution(graph, variables)
    assert count.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert count.mean == pytest.approx(marginals.sum(), rel=1e-11)
    covariances = joints - np.outer(marginals, marginals)
    # Sums of 10,000 probabilities.
    assert count.variance == pytest.approx(covariances.sum(), abs=1e-9)


def test_a_distribution_of_a_count_that_does_not_fit_is_refused() -> None:
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
