"""The joint distributions of all pairs of a set of variables."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels.synthetic import fr1_forest, fr2, grid
from inference import TooLargeError
from inference.exact.backend import Exact
from inference.tasks import count_distribution, joint, pairwise_joints
from tests.inference.tasks.cases import ROUNDING, case, names_of, some_variables
from tests.refusals import refused


def test_every_pair_is_the_enumeration_s() -> None:
    for seed in range(200):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=7)
        names = names_of(graph, variables)
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


def test_pairs_of_a_loopy_graph_are_those_asked_for_one_by_one() -> None:
    graph = fr2(8, 2, density=0.2, seed=1)
    joints = pairwise_joints(graph, range(graph.n_variables))
    rng = np.random.default_rng(0)
    for _ in range(30):
        i, j = rng.choice(graph.n_variables, size=2, replace=False).tolist()
        np.testing.assert_allclose(joints[i, j], joint(graph, [i, j]), atol=ROUNDING)


def test_the_variance_of_the_count_is_the_sum_of_the_covariances() -> None:
    graph = fr2(12, 3, density=0.08, seed=0)
    atoms = list(range(12))
    joints = pairwise_joints(graph, atoms)[:, :, 1, 1]
    expected = np.diag(joints)
    count = count_distribution(graph, atoms)
    # Sums of 144 probabilities, each right to about 1e-14.
    assert count.mean == pytest.approx(expected.sum(), abs=1e-11)
    covariances = joints - np.outer(expected, expected)
    assert count.variance == pytest.approx(covariances.sum(), abs=1e-11)


def test_tables_of_several_blocks() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    corners = [0, 11, 132, 143, 60]
    joints = pairwise_joints(graph, corners)
    for i in range(5):
        for j in range(i):
            np.testing.assert_allclose(
                joints[i, j], joint(graph, [corners[i], corners[j]]), atol=ROUNDING
            )


def test_what_does_not_fit_is_refused() -> None:
    graph = fr1_forest(2000, 1, seed=0)
    with pytest.raises(TooLargeError, match="joint distributions of all pairs would take"):
        pairwise_joints(graph, range(2000), Exact(memory_limit=100_000_000))


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0)
    refused("variables name 'b', which is not a variable", pairwise_joints, graph, ["b"])
