"""The joint distribution of a few variables."""

from __future__ import annotations

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, grid
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks import joint
from tests.inference.tasks.cases import ROUNDING, case, names_of, some_variables
from tests.refusals import refused


@pytest.mark.parametrize("by_name", [True, False])
def test_the_joint_is_the_enumeration_s(by_name: bool) -> None:
    for seed in range(150):
        graph, truth = case(seed)
        variables = some_variables(graph, seed, most=4)
        names = names_of(graph, variables)
        table = joint(graph, names if by_name else variables)
        assert table.shape == tuple(graph.cardinalities[variables])
        for states, probability in truth.joint(names).items():
            assert table[states] == pytest.approx(probability, abs=ROUNDING), f"seed {seed}"


def test_variables_of_different_components_are_independent() -> None:
    graph = fr1_forest(4, 3, seed=0)
    apart = [graph.index["a1"], graph.index["a4"]]
    marginals = infer(graph, "exact").marginals
    expected = np.outer(marginals["a1"], marginals["a4"])
    np.testing.assert_allclose(joint(graph, apart), expected, atol=ROUNDING)


def test_the_axes_follow_the_order_given() -> None:
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=0)
    np.testing.assert_allclose(joint(graph, [2, 15]), joint(graph, [15, 2]).T, atol=ROUNDING)


def test_what_does_not_fit_is_refused() -> None:
    graph = fr1_forest(100, 1, seed=0)
    with pytest.raises(TooLargeError, match=r"joint distribution of 'a1', .* \(50 in all\) would"):
        joint(graph, list(range(50)))
    with pytest.raises(TooLargeError, match="more than 64 axes"):
        joint(graph, list(range(65)))
    # The table itself fits, the elimination with it does not.
    wide = grid(10, 10, coupling=1.0, field=1.0, seed=0)
    with pytest.raises(TooLargeError, match=r"'0'.*holds them all, and the best elimination order"):
        joint(wide, [0, 9, 90, 99], Exact(memory_limit=10_000))


def test_bad_requests_are_named() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0], [1.0, 0.0])], names=["a1", "a2"])
    refused("variables is the text 'a1'; give a list", joint, graph, "a1")
    refused("variables name 'a3', which is not a variable", joint, graph, ["a1", "a3"])
    refused("variables name 'a2' twice", joint, graph, ["a2", 1])
    refused("variables hold the position 2, .* 0 to 1", joint, graph, [2])
    refused("variables hold True", joint, graph, [True])
    refused("variables are empty", joint, graph, [])
    with pytest.raises(ZeroPartitionError):
        joint(graph.with_evidence({"a1": 1}), ["a2"])
