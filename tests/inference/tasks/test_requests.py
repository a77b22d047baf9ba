"""Requests that tasks refuse: invalid ones, contradictions, tables that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks import (
    count_distribution,
    joint,
    log_partition,
    log_partition_hessian,
    log_probability,
    map_assignment,
    marginal_map,
    pairwise_joints,
    sample,
    without_variables,
)
from inference.tasks.gradients import hessian_function, log_partition_function
from tests.inference.graphs import CONTRADICTIONS
from tests.refusals import refused

FOREST = fr1_forest(2, 1, seed=0)
PAIR = FactorGraph.from_factors([2, 2], [([0], [1.0, 0.0])], names=["a1", "a2"])

BAD: tuple[tuple[Callable[..., object], tuple[Any, ...], str], ...] = (
    (joint, (PAIR, "a1"), "variables is the text 'a1'; give a list"),
    (joint, (PAIR, ["a1", "a3"]), "variables name 'a3', which is not a variable"),
    (joint, (PAIR, ["a2", 1]), "variables name 'a2' twice"),
    (joint, (PAIR, [2]), "variables hold the position 2, .* 0 to 1"),
    (joint, (PAIR, [True]), "variables hold True"),
    (joint, (PAIR, []), "variables are empty"),
    (pairwise_joints, (FOREST, ["b"]), "variables name 'b', which is not a variable"),
    (count_distribution, (FOREST, ["a1"], 2), "'a1' has no state 2; its states are 0 to 1"),
    (count_distribution, (FOREST, ["a1"], [1, 0]), "neither one whole number nor one for"),
    (count_distribution, (FOREST, ["a1"], 0.5), "neither one whole number nor one for"),
    (count_distribution, (FOREST, []), "variables are empty"),
    (sample, (FOREST, -1, 0), "-1 samples were requested"),
    (sample, (FOREST, 1, -1), "the seed -1 of the samples is negative"),
    (without_variables, (FOREST, [0], ["b"]), "targets name 'b', which is no"),
    (without_variables, (FOREST, [0], ["a1"], 2), "'a1' has no state 2; its"),
    (without_variables, (FOREST, [0], None, -1), "the state -1 is not a number of a state"),
    (without_variables, (FOREST, ["b"]), "variables name 'b', which is no"),
    (marginal_map, (FOREST, ["b"]), "max_variables name 'b', which is no"),
    (marginal_map, (FOREST, []), "max_variables are empty"),
    (log_probability, (FOREST.with_evidence({"a1": 1}), {"a1": 0}), "contradicts the state 1 obs"),
    (log_probability, (FOREST, {"b": 0}), "the variable 'b' is unknown"),
    (lambda row: log_partition_function(FOREST)(row), (np.zeros(3),), r"of shape \(3,\) .* has "),
    (lambda row: log_partition_function(FOREST)(row), (np.full(16, np.nan),), "is nan; a log pot"),
    (lambda row: hessian_function(FOREST)(row), (np.zeros(3),), r"log tables of shape \(3,\)"),
)
"""A task, what it is asked, and the sentence with which it refuses that."""


@pytest.mark.parametrize(("task", "asked", "message"), BAD)
def test_bad_requests_are_named(
    task: Callable[..., object], asked: tuple[Any, ...], message: str
) -> None:
    refused(message, task, *asked)


TASKS: dict[str, Callable[[FactorGraph], object]] = {
    "joint": lambda graph: joint(graph, [1]),
    "pairs": lambda graph: pairwise_joints(graph, [0, 1]),
    "counts": lambda graph: count_distribution(graph, [0, 1]),
    "samples": lambda graph: sample(graph, 1, 0),
    "removals": lambda graph: without_variables(graph, [0]),
    "removals and targets": lambda graph: without_variables(graph, [0], [0]),
    "maximum": map_assignment,
    "marginal maximum": lambda graph: marginal_map(graph, [0]),
    "log Z": log_partition,
    "second derivatives": log_partition_hessian,
}


@pytest.mark.parametrize("task", TASKS)
def test_contradictions_are_named_so(task: str) -> None:
    for graph in CONTRADICTIONS.values():
        with pytest.raises(ZeroPartitionError):
            TASKS[task](graph)
    with pytest.raises(ZeroPartitionError):
        TASKS[task](PAIR.with_evidence({"a1": 1}))


def test_an_impossible_assignment_has_no_gradient() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [1.0, 1.0]])])
    with pytest.raises(ZeroPartitionError, match=r"assignment \{0: 0, 1: 1\} has probability zero"):
        log_probability(graph, {0: 0, 1: 1})


def star() -> FactorGraph:
    """Sixty leaves: any maximum over them has the table that summing the center makes."""
    agree = [[1.0, 2.0], [2.0, 1.0]]
    return FactorGraph.from_factors([2] * 61, [([0, i], agree) for i in range(1, 61)])


def square(side: int) -> FactorGraph:
    return grid(side, side, coupling=1.0, field=1.0, seed=0)


def just_solved(graph: FactorGraph) -> Exact:
    """Settings that allow no more than marginals take."""
    return Exact(memory_limit=infer(graph, "exact").stats["predicted_bytes"])


WIDE = fr2(12, 3, density=0.12, seed=2)

SPARSE = fr2(31, 3, density=0.02, seed=0)
"""Graph whose variables are removed in small parts of its cluster tree."""

TOO_LARGE: tuple[tuple[Callable[[], object], str], ...] = (
    (
        lambda: joint(fr1_forest(100, 1, seed=0), range(50)),
        r"joint distribution of 'a1', .* \(50 in all\) would",
    ),
    (lambda: joint(fr1_forest(100, 1, seed=0), range(65)), "more than 64 axes"),
    # The table itself fits, the elimination with it does not.
    (
        lambda: joint(square(10), [0, 9, 90, 99], Exact(memory_limit=10_000)),
        "'0'.*needs a table over all of them, and the best elimination order",
    ),
    (
        lambda: pairwise_joints(
            fr1_forest(2000, 1, seed=0), range(2000), Exact(memory_limit=100_000_000)
        ),
        "joint distributions of all pairs would take",
    ),
    (lambda: sample(FOREST, 1_000_000, 0, Exact(memory_limit=10**6)), "1000000 samples would take"),
    (
        lambda: marginal_map(star(), range(1, 61)),
        "what connects the max_variables '1', .*60 in all",
    ),
    (lambda: map_assignment(square(40), Exact(restarts=0)), "elimination would take"),
    (
        lambda: without_variables(SPARSE, range(31, 124), exact=just_solved(SPARSE)),
        "under removal would take",
    ),
    (
        lambda: without_variables(WIDE, range(12), [0], exact=Exact(memory_limit=100)),
        "are allowed",
    ),
)
"""What is asked of a graph whose tables do not fit, and what is said."""


@pytest.mark.parametrize(("ask", "message"), TOO_LARGE)
def test_input_that_does_not_fit_is_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(TooLargeError, match=message):
        ask()
