"""Belief propagation in JAX: the fixed points of `lbp`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2
from inference import (
    Posterior,
    Status,
    infer,
    infer_batch,
    infer_settings,
)
from inference.messages.reduction import reduced
from inference.peers.jax_backends import _laid_out
from tests.inference.answers import assert_agree
from tests.inference.graphs import odd_graph

pytestmark = pytest.mark.slow

SAME_STEPS = 1e-10
"""Both take the same steps in doubles; after a hundred of them roundings differ by less."""


def assert_same(one: Posterior, other: Posterior, where: str, allowed: float = SAME_STEPS) -> None:
    assert_agree(one, other, allowed, rel=allowed, where=where)
    assert one.status is other.status, where


def test_on_odd_graphs_it_takes_the_steps_of_lbp() -> None:
    # Each shape is compiled; twenty have evidence, zeros, cycles and scopes of every size.
    graphs = [odd_graph(seed) for seed in range(20)]
    ours = infer_batch(graphs, "lbp", schedule="flooding")
    for seed, (one, other) in enumerate(zip(infer_batch(graphs, "lbp_jax"), ours, strict=True)):
        assert_same(one, other, f"seed {seed}")
        assert one.stats["iterations"] == other.stats["iterations"], f"seed {seed}"


@pytest.mark.parametrize("damping", ["adaptive", 0.4])
def test_on_responses_it_takes_the_steps_of_lbp(damping: Any) -> None:
    graphs = [fr2(12, 3, density=0.15, seed=seed) for seed in range(8)]
    settings = {"damping": damping, "max_iterations": 300}
    ours = infer_batch(graphs, "lbp", schedule="flooding", **settings)
    theirs = infer_batch(graphs, "lbp_jax", **settings)
    assert sum(posterior.status is Status.CONVERGED for posterior in ours) >= 6
    for seed, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        if other.status is Status.CONVERGED:
            # Roundings that the first steps amplify are small again once messages settle to 1e-9.
            assert_same(one, other, f"seed {seed}", 1e-8)


def test_settings_with_zeros_in_different_places_and_evidence() -> None:
    graph = fr2(4, 2, density=0.3, seed=1)
    rng = np.random.default_rng(0)
    rows = graph.log_values + rng.normal(size=(6, len(graph.log_values)))
    rows[1, 0] = rows[2, 3] = rows[4, 3] = -np.inf
    rows[5, -1] = -np.inf
    for observed in (graph, graph.with_evidence({2: 1, 5: 0})):
        ours = infer_settings(observed, rows, "lbp", schedule="flooding")
        theirs = infer_settings(observed, rows, "lbp_jax")
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            assert_same(one, other, f"setting {number}")


def test_graphs_of_about_one_size_share_compiled_code() -> None:
    graphs = [fr2(31, 3, density=0.05, own=False, seed=seed) for seed in range(40)]
    assert len({tuple(map(np.shape, _laid_out(graph, reduced(graph))[0])) for graph in graphs}) <= 4


def test_the_constant_of_each_setting_is_its_own() -> None:
    # Every variable is fixed in one part of the graph, and constants stand in an empty scope.
    graph = FactorGraph.from_factors(
        [2, 2, 2], [([], 3.0), ([0], [0.0, 2.0]), ([0, 1], np.ones((2, 2))), ([1, 2], np.eye(2))]
    )
    rng = np.random.default_rng(0)
    rows = graph.log_values + rng.normal(size=(3, len(graph.log_values)))
    for row, one in zip(rows, infer_settings(graph, rows, "lbp_jax"), strict=True):
        assert_same(one, infer(replace(graph, log_values=row), "lbp", schedule="flooding"), "")
