"""Independent samples from the posterior, and what draws estimate where elimination is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import chi2

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid, random_graph
from inference import Status, TooLargeError
from inference.exact.backend import Exact
from inference.sampling.annealing import AnnealedImportance
from inference.tasks import (
    count_distribution,
    estimated_joint,
    joint,
    pairwise_joints,
    sample,
    without_variables,
)
from tests.inference.graphs import frustrated
from tests.inference.tasks.cases import case

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
        assert states.dtype == np.int32
        number_of = {assignment: number for number, assignment in enumerate(truth.states)}
        counts = np.zeros(len(number_of))
        for row, times in zip(*np.unique(states, axis=0, return_counts=True), strict=True):
            counts[number_of[tuple(row.tolist())]] = times
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


def test_no_samples_and_no_variables() -> None:
    assert sample(fr1_forest(2, 1, seed=0), 0, seed=0).shape == (0, 4)
    assert sample(FactorGraph.from_factors([], []), 3, seed=0).shape == (3, 0)


NOTHING_FITS = Exact(memory_limit=10)
DRAWS = AnnealedImportance(particles=32, min_effective=50.0)


def graphs(seeds: int) -> Iterator[FactorGraph]:
    """Yield loopy graphs, some with evidence, more states or zeros, and a forest."""
    for seed in range(seeds):
        yield fr2(5, 3, density=0.4, seed=seed)
        yield frustrated(3 * seed + 1).with_evidence({1: 0})
        yield random_graph(9, 14, max_arity=3, max_cardinality=3, seed=seed)
    yield fr1_forest(4, 2, seed=0)


def within(estimates: list[np.ndarray], truth: list[np.ndarray], errors: list[np.ndarray]) -> None:
    """Assert that two standard errors hold as often as they should, and that they are small."""
    off = np.abs(np.concatenate(estimates) - np.concatenate(truth))
    bounds = np.concatenate(errors)
    # Of 0.954 expected; few groups make their spread rough.
    assert (off <= 2.0 * bounds).mean() > 0.85
    assert off.mean() < 0.02
    assert (off <= 8.0 * bounds).all()


few_graphs = pytest.mark.parametrize("seeds", [2, pytest.param(4, marks=pytest.mark.nightly)])


@few_graphs
def test_counts_and_joints_agree_with_elimination_within_their_errors(seeds: int) -> None:
    estimates, truth, errors = [], [], []
    for graph in graphs(seeds):
        variables = [4, 0, 1, 3]
        states = (graph.cardinalities[variables] - 1).tolist()
        exact = count_distribution(graph, variables, states)
        assert exact.status is Status.EXACT
        assert exact.standard_errors is None
        with pytest.raises(TooLargeError):
            count_distribution(graph, variables, states, exact=NOTHING_FITS)
        count = count_distribution(graph, variables, states, NOTHING_FITS, DRAWS)
        table = estimated_joint(graph, [3, 1], DRAWS)
        assert {count.status, table.status} <= {Status.CONVERGED, Status.NOT_CONVERGED}
        assert count.probabilities.sum() == pytest.approx(1.0)
        assert table.table.sum() == pytest.approx(1.0)
        assert count.standard_errors is not None
        estimates += [count.probabilities, table.table.ravel()]
        truth += [exact.probabilities, joint(graph, [3, 1]).ravel()]
        errors += [count.standard_errors, table.standard_errors.ravel()]
    within(estimates, truth, errors)


@few_graphs
@pytest.mark.parametrize("far", [False, True])
def test_removals_agree_with_elimination_within_their_errors(far: bool, seeds: int) -> None:
    estimates, truth, errors, shares = [], [], [], []
    for graph in graphs(seeds):
        *most, first, other = np.flatnonzero(graph.cardinalities > 1).tolist()
        variables = most[-3:]
        targets = [first, other] if far else None
        exact = without_variables(graph, variables, targets)
        assert exact.status is Status.EXACT
        assert exact.standard_errors is None
        estimate = without_variables(graph, variables, targets, 1, NOTHING_FITS, DRAWS)
        assert (estimate.removed == exact.removed).all()
        assert (estimate.targets == exact.targets).all()
        assert estimate.standard_errors is not None
        np.testing.assert_allclose(estimate.present, exact.present, atol=0.15)
        known = np.isfinite(estimate.without)
        assert np.isinf(estimate.standard_errors[~known]).all()
        shares.append(known.mean())
        estimates += [estimate.without[known], estimate.contribution[known]]
        truth += [exact.without[known], exact.contribution[known]]
        errors += list(estimate.standard_errors[known].T)
    within(estimates, truth, errors)
    assert 0.4 < np.mean(shares) < 1.0  # what strong factors make rare is not told


def test_draws_are_not_asked_what_they_never_reach() -> None:
    # With the variable 0, 1 and 2 are always alike; without it they need not be.
    alike = np.array([[1.0, 0.0], [0.0, 1.0]])
    graph = FactorGraph.from_factors(
        [2, 2, 2, 2], [((0, 1), alike), ((0, 2), alike), ((2, 3), [[1, 2], [2, 1]])]
    )
    with pytest.raises(TooLargeError):
        without_variables(graph, [0], None, 1, NOTHING_FITS, DRAWS)
    # Variable 3 allows everything.
    effects = without_variables(graph, [3], [1], 1, NOTHING_FITS, DRAWS)
    np.testing.assert_allclose(effects.without, 0.5, atol=0.1)
