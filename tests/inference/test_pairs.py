"""The fast path of `lbp`, one number a message, against its general path, on the same graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, fr3, grid
from inference import Status, infer
from inference.messages.kernels.schedules import CONVERGED, NOT_CONVERGED
from inference.messages.kernels.solve import NOT_PAIRS, reduce_and_solve_pairs, solve
from inference.messages.lbp import LoopyBeliefPropagation, Schedule
from inference.messages.reduction import reduced
from inference.possible_states import arrays_of
from tests.inference.answers import assert_agree, assert_near
from tests.inference.graphs import signed_pairs

SCHEDULES = get_args(Schedule)
Run = tuple[int, NDArray[np.float64], float, NDArray[np.float64]]


def fast(graph: FactorGraph, **settings: Any) -> Run:
    kernel_settings = LoopyBeliefPropagation(**settings).kernel_settings()
    result: Run = reduce_and_solve_pairs(*arrays_of(graph.absorb_evidence()), *kernel_settings)
    return result


def general(graph: FactorGraph, **settings: Any) -> Run:
    absorbed = graph.absorb_evidence()
    kernel_settings = LoopyBeliefPropagation(**settings).kernel_settings()
    never = np.zeros(1, dtype=np.int64)
    result: Run = solve(absorbed.cardinalities, reduced(absorbed), *kernel_settings, never)
    return result


def binary_forest(seed: int) -> FactorGraph:
    """Return a forest of binary variables with zeros, evidence and strengths up to e^60."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    scale = float(rng.choice([0.5, 3.0, 15.0]))
    factors = [([i], rng.normal(scale=scale, size=2)) for i in range(n) if rng.random() < 0.5]
    for i in range(1, n):
        table = rng.normal(scale=scale, size=(2, 2))
        if rng.random() < 0.2:
            table[tuple(rng.integers(2, size=2))] = -np.inf
        if rng.random() < 0.9:
            factors.append(([i, int(rng.integers(i))], table))
    graph = FactorGraph.from_factors([2] * n, factors, log=True)
    return graph.with_evidence({0: 0}) if rng.random() < 0.3 else graph


def attractive(seed: int) -> FactorGraph:
    return grid(4, 4, coupling=1.5, field=1.0, attractive=True, seed=seed)


def evidence(seed: int) -> FactorGraph:
    makers: list[Callable[[], FactorGraph]] = [
        lambda: fr1_forest(15, 3, seed=seed),
        lambda: fr2(15, 3, density=0.1, seed=seed),
        lambda: fr3(10, 3, density=0.1, context_density=0.05, seed=seed),
    ]
    return makers[seed % 3]()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("graphs", [binary_forest, attractive, evidence])
def test_both_paths_find_the_same_fixed_point(
    graphs: Callable[[int], FactorGraph], schedule: str
) -> None:
    for seed in range(60):
        graph = graphs(seed)
        one, other = (path(graph, schedule=schedule) for path in (fast, general))
        assert one[0] == other[0] == CONVERGED, f"seed {seed}"
        # Both stopped where log messages move by 1e-9, on the same way there.
        np.testing.assert_allclose(one[1], other[1], atol=1e-9, err_msg=f"seed {seed}")
        assert one[2] == pytest.approx(other[2], rel=1e-11, abs=1e-9), f"seed {seed}"


@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name != "residual"])
@pytest.mark.parametrize("damping", [0.0, 0.4, "adaptive"])
def test_both_paths_take_the_same_steps(schedule: str, damping: float | str) -> None:
    for seed in range(25):
        graph = signed_pairs(seed, n=8, m=14)
        one, other = (
            path(graph, schedule=schedule, damping=damping, max_iterations=12, seed=seed)
            for path in (fast, general)
        )
        assert one[0] == other[0]
        # Rounding grows by the strength of the couplings, up to e^2, in every iteration.
        np.testing.assert_allclose(one[3], other[3], rtol=1e-6, atol=1e-9, err_msg=f"seed {seed}")
        np.testing.assert_allclose(one[1], other[1], atol=1e-8, err_msg=f"seed {seed}")


def test_a_frustrated_graph_fails_on_both_paths() -> None:
    graph = grid(6, 6, coupling=8.0, field=0.5, seed=3)
    for path in (fast, general):
        code, _, _, residuals = path(graph, schedule="flooding", damping=0.0, max_iterations=50)
        assert code == NOT_CONVERGED
        assert len(residuals) == 50


def test_odds_beyond_doubles_are_left_to_logarithms() -> None:
    # Equal variables, each with evidence of e^100: the odds of messages grow past the doubles.
    equal = [[0.0, -np.inf], [-np.inf, 0.0]]
    for n in (2, 3, 12):
        graph = FactorGraph.from_factors(
            [2] * n,
            [([i, i + 1], equal) for i in range(n - 1)] + [([i], [0.0, 100.0]) for i in range(n)],
            log=True,
        )
        assert (fast(graph)[0] == NOT_PAIRS) == (n > 2)
        posterior = infer(graph, "lbp")
        assert posterior.status is Status.CONVERGED
        assert posterior.log_z == pytest.approx(100.0 * n, rel=1e-14)
        for marginal in posterior.marginals.values():
            assert marginal[0] == pytest.approx(np.exp(-100.0 * n), rel=1e-9)


def test_a_certain_variable_between_zeros() -> None:
    # The first variable's strong belief meets a zero at the second, whose own is the opposite:
    # what is left of their joint is in no product of two large odds.
    for strength in (5.0, 60.0, 400.0, 2000.0):
        graph = FactorGraph.from_factors(
            [2] * 3,
            [
                ([0], [0.0, strength]),
                ([0, 1], [[0.0, 0.0], [-np.inf, 0.0]]),
                ([1], [strength + 1.0, 0.0]),
                ([1, 2], [[0.0, -np.inf], [0.0, 0.0]]),
                ([2], [0.0, strength]),
            ],
            log=True,
        )
        assert_agree(infer(graph, "lbp"), infer(graph, "enumeration"), 1e-12, rel=1e-13)


def test_many_strong_factors_that_change_their_mind() -> None:
    # A hub whose leaves turn from one certainty to the other when the far end of each speaks.
    strong, n = 140.0, 30
    agree = [[0.0, -strong], [-strong, 0.0]]
    factors: list[tuple[list[int], ArrayLike]] = []
    for i in range(n):
        near, far = 2 * i + 1, 2 * i + 2
        factors += [([0, near], agree), ([near, far], agree), ([near], [0.0, 50.0])]
        factors += [([far], [130.0 if i % 2 else 140.0, 0.0])]
    graph = FactorGraph.from_factors([2] * (2 * n + 1), factors, log=True)
    truth = infer(graph, "exact")
    for schedule in SCHEDULES:
        one = fast(graph, schedule=schedule)
        assert one[0] == CONVERGED
        np.testing.assert_allclose(one[1], truth.marginals.flat, atol=1e-9)
        assert one[2] == pytest.approx(truth.log_z, rel=1e-12)


@pytest.mark.parametrize("size", [160.0, 1e5, 1e15, 1e300])
def test_potentials_of_any_size(size: float) -> None:
    factors = [([0], [0.0, -size]), ([0, 1], [0.0, -size, -size, 0.0]), ([1], [0.0, 1.0])]
    graph = FactorGraph.from_factors([2, 2], factors, log=True)
    assert_near(infer(graph, "lbp"), np.array([1.0, 0.0, 1.0, 0.0]), 0.0, 1e-12)
