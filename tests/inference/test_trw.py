"""Promises of `trw`: an upper bound on log Z at any stop, as good as its forests allow."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import Status, infer
from inference.messages.kernels.schedules import ADAPTIVE, SWEEP, Passing
from inference.messages.kernels.trees import solve_reweighted
from inference.messages.reduction import reduced
from inference.messages.trw import Forests, heaviest_forest
from tests.inference.answers import given, log_z_of
from tests.inference.graphs import has_cycle, odd_graph, signed_pairs


def test_a_run_stopped_early_says_so_and_bounds_less_tightly() -> None:
    grids = [grid(4, 4, coupling=2.0, field=1.0, seed=seed) for seed in range(10)]
    for graph in (*grids, *(fr2(12, 3, density=0.1, seed=seed) for seed in range(5))):
        early, late = infer(graph, "trw", max_iterations=1, weight_updates=0), infer(graph, "trw")
        assert early.status is Status.NOT_CONVERGED
        assert late.status is Status.CONVERGED
        assert late.stats["forests"] >= 16
        # The fixed point is the least bound of all splits into the same forests.
        assert given(late) <= given(early) + 1e-6


def test_the_bound_is_the_least_over_all_splits() -> None:
    # Minimized directly: every forest has fields of its own, whose mean is given.
    graph = signed_pairs(1, n=4, m=5)
    model = reduced(graph)
    drawn = Forests.drawn(model, 16, 0)
    starts, members = drawn.starts, drawn.members
    forests = [tuple(members[starts[k] : starts[k + 1]].tolist()) for k in range(len(starts) - 1)]
    kinds = sorted(set(forests))
    shares = np.array([forests.count(kind) for kind in kinds]) / len(forests)
    holds = np.array([[float(f in kind) for f in range(5)] for kind in kinds])
    # One row per assignment, so that log Z of a forest is a sum over sixteen.
    states = np.array(list(np.ndindex(2, 2, 2, 2)))
    ends = states[:, model.scope_variables.reshape(-1, 2)]
    entries = 4 * np.arange(5) + 2 * ends[:, :, 0] + ends[:, :, 1]
    tables = (model.log_values[entries] / (shares @ holds)) @ holds.T
    fields = model.unary.reshape(-1, 2)[np.arange(4), states].sum(axis=1)

    def bound(free: NDArray[np.float64]) -> float:
        parts = free.reshape(len(kinds), 4)
        # What a forest adds to its fields must cancel in the mean of all forests.
        parts = parts - shares @ parts
        scores = fields[:, None] + tables + states @ parts.T
        return float(shares @ np.logaddexp.reduce(scores, axis=0))

    optimum = minimize(bound, np.zeros(4 * len(kinds)), tol=1e-9)
    posterior = infer(graph, "trw", tolerance=1e-10, weight_updates=0)
    assert posterior.status is Status.CONVERGED
    # The minimizer's numerical gradient stops it about 1e-8 above the minimum.
    assert posterior.log_z == pytest.approx(optimum.fun, abs=1e-6)
    assert bound(np.zeros(4 * len(kinds))) > optimum.fun + 1e-3


def test_forests_hold_every_factor_and_no_cycle() -> None:
    for seed in range(60):
        model = reduced(odd_graph(seed).absorb_evidence())
        n_factors = len(model.scope_starts) - 1
        drawn = Forests.drawn(model, 4, seed)
        starts, members = drawn.starts, drawn.members
        assert set(members.tolist()) == set(range(n_factors))
        for k in range(len(starts) - 1):
            scopes = np.split(model.scope_variables, model.scope_starts[1:-1])
            chosen = [scopes[factor].tolist() for factor in members[starts[k] : starts[k + 1]]]
            assert not has_cycle(chosen, len(model.fixed))


def test_a_triangle_by_hand() -> None:
    # By symmetry every split is even: each tree of two of the three pairs has couplings 3/2 J, and
    # log Z = log(8 cosh(3/2 J)^2); the forests of the backend take turns to leave one pair out.
    coupling = 0.7
    table = np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    graph = FactorGraph.from_factors([2] * 3, [((i, (i + 1) % 3), table) for i in range(3)])
    posterior = infer(graph, "trw", forests=15, tolerance=1e-12)
    assert posterior.stats["least_probability"] == pytest.approx(2 / 3, abs=1e-12)
    assert posterior.log_z == pytest.approx(np.log(8 * np.cosh(1.5 * coupling) ** 2), abs=1e-10)
    np.testing.assert_allclose(posterior.marginals.flat, 0.5, atol=1e-12)


def test_the_same_seed_draws_the_same_forests() -> None:
    graph = grid(4, 4, coupling=1.0, field=1.0, seed=0)
    bounds = [infer(graph, "trw", seed=seed).log_z for seed in (1, 1, 2)]
    assert bounds[0] == bounds[1]
    assert bounds[0] != bounds[2]


def test_probabilities_of_factors_are_improved_and_the_bound_falls() -> None:
    gained = 0
    for seed in range(6):
        graph = grid(4, 4, coupling=3.0, field=1.0, seed=seed)
        even = infer(graph, "trw", weight_updates=0)
        better = infer(graph, "trw", weight_updates=20)
        assert given(better) >= log_z_of(graph) - 1e-9, f"seed {seed}"
        assert better.stats["bounds"][0] == even.log_z
        assert given(better) == min(better.stats["bounds"])
        gained += given(better) < given(even) - 1e-3
    assert gained == 6


def test_the_gradient_is_the_total_correlation() -> None:
    # Numerically: the bound with a little more of one forest, minus the bound without.
    graph = signed_pairs(3, n=5, m=8)
    model = reduced(graph)
    forests = Forests.drawn(model, 8, 0)
    passing = Passing(SWEEP, ADAPTIVE, tolerance=1e-12, max_iterations=5000, seed=0)

    def bound(forests: Forests) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        _, _, log_z, _, weights, correlations, _ = solve_reweighted(
            graph.cardinalities, model, forests.starts, forests.members, forests.shares,
            np.zeros(0), passing, np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        return log_z, weights, correlations

    log_z, weights, correlations = bound(forests)
    forest = heaviest_forest(model, correlations)
    inside = np.zeros(8)
    inside[forest] = 1.0
    moved, _, _ = bound(forests.with_one(forest, 1e-5))
    slope = -float((inside - weights) @ correlations)
    # The difference quotient's own error is of the order of the step.
    assert (moved - log_z) / 1e-5 == pytest.approx(slope, rel=1e-2, abs=1e-4)
    assert slope < 0.0
    assert not has_cycle([sorted(model.scope_variables[2 * f : 2 * f + 2]) for f in forest], 5)


@pytest.mark.slow
def test_fewer_forests_are_begun_with_where_time_is_short() -> None:
    graph = grid(40, 40, coupling=1.0, field=1.0, seed=0)
    short = infer(graph, "trw", seconds=0.01)
    assert (
        short.stats["forests"]
        < infer(graph, "trw", max_iterations=1, weight_updates=0).stats["forests"]
    )
    assert given(short) >= given(infer(graph, "cavi"))
