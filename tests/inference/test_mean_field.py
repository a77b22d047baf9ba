"""Mean field: the optimum of coordinate ascent, and Pyro's gradients held against it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import Posterior, Status, infer
from tests.inference.answers import given, worked_example
from tests.inference.graphs import frustrated, odd_graph
from tests.oracle import oracle

pytestmark = pytest.mark.slow


def bound_of(graph: FactorGraph, posterior: Posterior) -> float:
    """Return the sum over all assignments of q log(potential / q), q the product of marginals."""
    truth = oracle(graph)
    total = 0.0
    for states, log_potential in zip(truth.states, truth.log_potentials, strict=True):
        weights = [posterior.marginals[n][s] for n, s in zip(graph.names, states, strict=True)]
        weight = math.prod(weights)
        if weight > 0.0:
            total += weight * (log_potential - math.fsum(map(math.log, weights)))
    return total


@pytest.mark.parametrize("backend", ["cavi", "mean_field"])
def test_the_optimum_of_the_worked_example(backend: str) -> None:
    posterior = infer(worked_example(), backend)
    assert posterior.status is Status.CONVERGED
    # Four digits of an independent run in Pyro with a per-variable guide and Adam.
    for name, probability in (("a1", 0.3093), ("c1", 0.9744), ("c2", 0.9805)):
        assert posterior.marginals[name][1] == pytest.approx(probability, abs=5e-5)


@pytest.mark.parametrize(
    ("backend", "settings", "step"),
    [
        ("cavi", {}, 5),
        # The bound is that of the marginals wherever an ascent ends.
        ("mean_field", {"restarts": 1}, 100),
        pytest.param("cavi", {}, 1, marks=pytest.mark.nightly),
        pytest.param("mean_field", {}, 40, marks=pytest.mark.nightly),
    ],
)
def test_the_bound_is_that_of_the_marginals(
    backend: str, settings: dict[str, int], step: int
) -> None:
    for seed in range(0, 200, step):
        graph = odd_graph(seed)
        posterior = infer(graph, backend, **settings)
        # A sum of at most some thousand terms; those of a wide graph are as large as 1e3.
        expected = pytest.approx(bound_of(graph, posterior), rel=1e-10, abs=1e-8)
        assert posterior.log_z == expected, f"seed {seed}"


def test_coordinate_ascent_ends_at_a_fixed_point() -> None:
    for seed in range(1, 40, 3):
        graph = frustrated(seed)  # those without zeros
        posterior = infer(graph, "cavi")
        assert posterior.status is Status.CONVERGED
        for variable, name in enumerate(graph.names):
            scores = _expected_scores(graph, posterior, variable)
            fresh = np.exp(scores - scores.max())
            # No probability changed by more than 1e-9 in the last sweep.
            np.testing.assert_allclose(
                posterior.marginals[name], fresh / fresh.sum(), atol=1e-7, err_msg=f"seed {seed}"
            )


def _expected_scores(
    graph: FactorGraph, posterior: Posterior, variable: int
) -> NDArray[np.float64]:
    scores = np.zeros(graph.cardinalities[variable])
    for scope, table in graph.factors():
        if variable not in scope:
            continue
        others = [v for v in scope if v != variable]
        for states in product(*(range(graph.cardinalities[v]) for v in scope)):
            at = dict(zip(scope, states, strict=True))
            weight = math.prod(posterior.marginals[graph.names[v]][at[v]] for v in others)
            scores[at[variable]] += weight * table[states]
    return scores


@pytest.mark.parametrize(
    ("claims", "seeds", "settings"),
    [
        (3, (2,), {"restarts": 3}),
        pytest.param(8, (0, 2, 4), {}, marks=pytest.mark.nightly),
    ],
)
def test_pyro_finds_the_optimum_of_coordinate_ascent(
    claims: int, seeds: tuple[int, ...], settings: dict[str, int]
) -> None:
    graphs = [fr2(claims, 2, density=0.1, seed=0), *map(odd_graph, seeds)]
    for graph in graphs:
        ascent, pyro = (infer(graph, name, **settings) for name in ("cavi", "mean_field"))
        # The first start is the same; others may find either's better optimum first.
        scale = max(1.0, abs(given(ascent)))
        assert pyro.stats["bounds"][0] == pytest.approx(ascent.stats["bounds"][0], abs=1e-3 * scale)
        assert pyro.log_z == pytest.approx(ascent.log_z, abs=1e-3 * scale)


def test_bound_is_the_best_assignment_if_zeros_leave_only_assignments() -> None:
    # Two variables that are equal: a box without a zero is one assignment.
    potentials = [0.2, 0.5, 0.3]
    graph = FactorGraph.from_factors([3, 3], [([0, 1], np.diag(potentials))])
    for backend in ("cavi", "mean_field"):
        posterior = infer(graph, backend, restarts=20)
        assert posterior.log_z == pytest.approx(math.log(0.5), abs=1e-12)
        assert posterior.marginals["0"].tolist() == [0.0, 1.0, 0.0]


def test_more_restarts_never_loosen_the_bound() -> None:
    graph = grid(5, 5, coupling=2.0, field=0.3, seed=1)
    bounds = [infer(graph, "cavi", restarts=n).stats["bounds"] for n in (1, 4, 16)]
    assert bounds[2][:4] == bounds[1]
    assert bounds[1][:1] == bounds[0]
    assert max(bounds[2]) > max(bounds[1]) > bounds[0][0]


def test_pyro_leaves_no_trace_behind() -> None:
    import pyro
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    pyro.clear_param_store()
    try:
        infer(worked_example(), "mean_field", restarts=1)
        assert torch.get_num_threads() == 2
        assert not list(pyro.get_param_store())
    finally:
        torch.set_num_threads(threads)
