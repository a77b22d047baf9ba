"""The forest-structured guide: its joint distributions, its bound, where it is tight."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import Status, TooLargeError, infer
from tests.inference.answers import assert_agree, given, log_z_of
from tests.inference.graphs import forest, frustrated, has_cycle, odd_graph

torch = pytest.importorskip("torch")

from inference.peers.pyro_variational.bound import bounds, guide, model  # noqa: E402
from inference.peers.pyro_variational.forest import rooted, spanning_factors  # noqa: E402
from inference.peers.pyro_variational.forest_guide import ForestGuide, forest_guide  # noqa: E402

pytestmark = pytest.mark.slow


def many_scopes(seed: int) -> FactorGraph:
    """Return a graph of positive factors of one to four variables, then one for each variable."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    cardinalities = rng.integers(2, 4, size=n)
    scopes = [rng.choice(n, size=int(rng.integers(1, 5)), replace=False) for _ in range(9)]
    scopes += [np.array([v]) for v in range(n)]
    tables = [rng.normal(size=cardinalities[scope]) for scope in scopes]
    return FactorGraph.from_factors(
        cardinalities, list(zip(map(list, scopes), tables, strict=True)), log=True
    )


def joint_of(
    graph: FactorGraph, built: ForestGuide, parameters: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the guide's probability of every assignment, from its conditionals one by one."""
    conditionals = np.exp(built.log_conditionals(torch.as_tensor(parameters))[0].numpy())
    tree = rooted(graph, spanning_factors(graph))
    joint = np.ones(graph.cardinalities)
    for states in product(*map(range, graph.cardinalities)):
        for node in range(1, len(tree.parents)):
            row = 0 if tree.parent_variables[node] < 0 else states[tree.parent_variables[node]]
            column = 0
            for variable in tree.variables[node]:
                column = column * graph.cardinalities[variable] + states[variable]
            joint[states] *= conditionals[node, row, column]
    return joint


def test_the_joint_distribution_of_every_scope() -> None:
    for seed in range(15):
        graph = many_scopes(seed)
        tree = rooted(graph, spanning_factors(graph))
        built = forest_guide(graph, tree)
        rng = np.random.default_rng(seed)
        parameters = rng.normal(scale=2.0, size=(1, *built.allowed.shape))
        joint = joint_of(graph, built, parameters)
        assert joint.sum() == pytest.approx(1.0, abs=1e-12)
        seen = 0
        for group, term in zip(
            built.groups, built.terms([torch.as_tensor(parameters)]), strict=True
        ):
            found = term.probabilities[0].numpy()
            for factor, row in zip(group.factors.tolist(), found, strict=True):
                scope = graph.scope(factor)
                others = tuple(v for v in range(graph.n_variables) if v not in scope)
                expected = joint.sum(axis=others).transpose(np.argsort(np.argsort(scope)))
                np.testing.assert_allclose(row, expected.ravel(), atol=1e-12)
                seen += 1
        assert seen == graph.n_factors


def test_the_bound_is_expectation_plus_entropy_and_is_pyro_s() -> None:
    from pyro.infer import TraceEnum_ELBO

    for seed in range(5):
        graph = many_scopes(seed)
        built = forest_guide(graph, rooted(graph, spanning_factors(graph)))
        rng = np.random.default_rng(seed)
        parameters = rng.normal(size=(1, *built.allowed.shape))
        joint = joint_of(graph, built, parameters)
        log_potential = np.zeros(joint.shape)
        for states in product(*map(range, graph.cardinalities)):
            log_potential[states] = graph.log_potential(states)
        expected = float((joint * (log_potential - np.log(joint))).sum())
        terms = built.terms([torch.as_tensor(parameters)])
        # Sums of some thousand terms of order one.
        assert float(bounds(terms)[0]) == pytest.approx(expected, abs=1e-10)
        loss = TraceEnum_ELBO(max_plate_nesting=2).loss(model, guide, terms)  # type: ignore[no-untyped-call]
        assert -loss == pytest.approx(expected, abs=1e-10)


def test_the_forest_spans_and_prefers_strong_factors() -> None:
    weak, strong = np.full((2, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
    pairs = [((0, 1), strong), ((1, 2), strong), ((2, 3), weak), ((3, 0), strong)]
    cycle = FactorGraph.from_factors([2] * 4, [*pairs, ((0,), [1, 2])])
    assert spanning_factors(cycle).tolist() == [True, True, False, True, False]
    hard = FactorGraph.from_factors(
        [2] * 3, [([0, 1], strong), ([1, 2], strong), ([2, 0], [[1.0, 1.0], [1.0, 0.0]])]
    )
    assert spanning_factors(hard)[2]
    for seed in range(50):
        graph = odd_graph(seed).absorb_evidence()
        chosen = np.flatnonzero(spanning_factors(graph)).tolist()
        assert not has_cycle(map(graph.scope, chosen), graph.n_variables), f"seed {seed}"


def test_a_large_forest_is_exact_without_a_step() -> None:
    graph = fr1_forest(100, 3, seed=0)
    truth, posterior = infer(graph, "exact"), infer(graph, "structured")
    assert posterior.status is Status.CONVERGED
    assert posterior.stats["iterations"] == 0
    assert_agree(posterior, truth, 1e-10, rel=1e-12)


def test_zeros_of_the_forest_stay_in_the_guide() -> None:
    for seed in range(20):
        graph = forest(seed, zero_probability=0.4)
        truth, posterior = infer(graph, "exact"), infer(graph, "structured")
        assert ((posterior.marginals.flat == 0.0) == (truth.marginals.flat == 0.0)).all()
        np.testing.assert_allclose(posterior.marginals.flat, truth.marginals.flat, atol=1e-9)


def test_never_looser_than_mean_field_with_the_same_seed() -> None:
    for seed in range(20):
        graph = odd_graph(seed) if seed % 2 else frustrated(seed)
        product_bound = log_z_of(graph, "cavi")
        bound = log_z_of(graph, "structured", max_iterations=20)
        # The second start is mean field itself, up to the rounding of its logarithms.
        assert bound >= product_bound - 1e-9 * max(1.0, abs(product_bound)), f"seed {seed}"


@pytest.mark.parametrize(
    ("graph", "share"),
    [
        (grid(5, 5, coupling=1.0, field=0.3, seed=0), 0.5),
        (fr2(31, 3, density=0.05, seed=0), 0.25),
    ],
    ids=["grid", "fr2"],
)
def test_the_gap_of_mean_field_shrinks(graph: FactorGraph, share: float) -> None:
    exact, mean_field, structured = (log_z_of(graph, n) for n in ("exact", "cavi", "structured"))
    assert 0.0 <= exact - structured <= share * (exact - mean_field)


def test_wide_factors_stay_out_of_the_forest_and_in_the_bound() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_factors([2] * 8, [(list(range(8)), rng.random(256) + 0.1)])
    posterior = infer(graph, "structured")
    assert posterior.stats["forest_factors"] == 0
    # Without a factor in the forest the guide is mean field.
    assert posterior.log_z == pytest.approx(log_z_of(graph, "cavi"), abs=1e-4)
    assert given(posterior) < log_z_of(graph)


def test_what_does_not_fit_is_refused() -> None:
    graph = grid(30, 30, coupling=1.0, field=0.3, seed=0)
    with pytest.raises(TooLargeError, match=r"'structured'.*'cavi' or 'wmb'.*memory_limit"):
        infer(graph, "structured", memory_limit=2**20)


def test_every_start_has_a_bound() -> None:
    graph = frustrated(1)
    posterior = infer(graph, "structured", restarts=5, max_iterations=10)
    exact = log_z_of(graph)
    assert len(set(posterior.stats["bounds"])) == 5
    assert all(math.isfinite(bound) and bound <= exact for bound in posterior.stats["bounds"])
    assert posterior.log_z == max(posterior.stats["bounds"])
