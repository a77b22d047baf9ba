"""Independent samples from the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, grid
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks import pairwise_joints, sample
from tests.inference.tasks.cases import case
from tests.refusals import refused

FALSE_ALARM = 1e-4
"""Rate at which a sound sampler would be refused in one run of the chi-square test, over all its
graphs together; with the fixed seeds it either is or is not."""


def test_samples_follow_the_enumeration_s_law() -> None:
    n = 4000
    statistic, freedom = 0.0, 0
    for seed in range(60):
        graph, truth = case(seed)
        states = sample(graph, n, seed)
        assert states.shape == (n, graph.n_variables)
        place = {assignment: number for number, assignment in enumerate(truth.states)}
        counts = np.zeros(len(place))
        for row, times in zip(*np.unique(states, axis=0, return_counts=True), strict=True):
            counts[place[tuple(row.tolist())]] = times
        expected = n * np.array(truth.probabilities)
        assert counts[expected == 0.0].sum() == 0, f"seed {seed}: an impossible state was drawn"
        # Cells that expect fewer than 10 are pooled, so that the law is close to chi-square.
        frequent = expected >= 10.0
        observed = np.append(counts[frequent], counts[~frequent].sum())
        predicted = np.append(expected[frequent], expected[~frequent].sum())
        if predicted[-1] < 10.0:
            order = np.argmin(predicted[:-1])
            observed[order] += observed[-1]
            predicted[order] += predicted[-1]
            observed, predicted = observed[:-1], predicted[:-1]
        statistic += float(((observed - predicted) ** 2 / predicted).sum())
        freedom += len(predicted) - 1
    assert freedom > 200
    assert chi2.sf(statistic, freedom) > FALSE_ALARM
    # Samples that were too even would be as wrong.
    assert chi2.cdf(statistic, freedom) > FALSE_ALARM


def test_pairs_of_variables_far_apart_in_a_wide_graph() -> None:
    graph = grid(9, 9, coupling=1.0, field=0.5, seed=0)
    n = 20_000
    states = sample(graph, n, seed=7)
    joints = pairwise_joints(graph, range(81))[:, :, 1, 1]
    share = (states.T.astype(float) @ states) / n
    spread = np.sqrt(joints * (1.0 - joints) / n)
    # The largest of 3,321 standard deviations passes 5 for one seed in 500.
    assert np.abs((share - joints) / spread).max() < 5.0


def test_a_seed_gives_the_same_samples_and_a_longer_run_continues_a_shorter_one() -> None:
    graph = fr1_forest(50, 3, seed=0)
    long = sample(graph, 30_000, seed=3)
    assert (sample(graph, 20, seed=3) == long[:20]).all()
    assert (sample(graph, 30_000, seed=3) == long).all()
    assert (sample(graph, 20, seed=4) != long[:20]).any()


def test_observed_variables_have_their_states() -> None:
    graph = fr1_forest(3, 2, seed=0).with_evidence({"a1": 0, "c2": 1})
    states = sample(graph, 100, seed=0)
    assert (states[:, graph.index["a1"]] == 0).all()
    assert (states[:, graph.index["c2"]] == 1).all()
    assert states.dtype == np.int32


def test_tables_far_below_the_range_of_doubles() -> None:
    tiny = [1.0, 1e-300]
    graph = FactorGraph.from_factors(
        [2, 2], [([0], tiny), ([0], tiny), ([0, 1], [[0.0, 0.0], [0.2, 0.6]])]
    )
    states = sample(graph, 4000, seed=0)
    assert (states[:, 0] == 1).all()
    # P(1) = 3/4, four standard deviations of 0.0068.
    assert states[:, 1].mean() == pytest.approx(0.75, abs=0.028)


def test_no_samples_and_no_variables() -> None:
    assert sample(fr1_forest(2, 1, seed=0), 0, seed=0).shape == (0, 4)
    assert sample(FactorGraph.from_factors([], []), 3, seed=0).shape == (3, 0)


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0)
    refused("-1 samples were requested", sample, graph, -1, 0)
    refused("the seed -1 of the samples is negative", sample, graph, 1, -1)
    with pytest.raises(TooLargeError, match="1000000 samples would take"):
        sample(graph, 1_000_000, 0, Exact(memory_limit=1_000_000))
    contradictory = FactorGraph.from_factors([2], [([0], [0.0, 1.0]), ([0], [1.0, 0.0])])
    with pytest.raises(ZeroPartitionError):
        sample(contradictory, 1, 0)
    assert infer(graph, "exact").log_z is not None
