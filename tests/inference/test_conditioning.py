"""Conditioning on few variables: right where it applies, and chosen where it is cheaper."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import inference.exact.conditioning
import inference.exact.prediction
from factormodels import FactorGraph
from factormodels.synthetic import chain, fr2
from inference import TooLargeError, ZeroPartitionError, get_backend, infer
from inference.exact.backend import Exact
from inference.exact.conditioning import condition, conditioning
from tests.inference.answers import flat, given
from tests.inference.graphs import CONTRADICTIONS, odd_graph
from tests.oracle import oracle


@pytest.fixture
def at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference.exact.conditioning, "FEWEST_FACTORS", 0)


def binary_graph(seed: int) -> FactorGraph:
    """Return a few variables and many tied to them: zeros, wide tables, repeated scopes."""
    rng = np.random.default_rng(seed)
    few, many = int(rng.integers(1, 7)), int(rng.integers(0, 8))
    n = few + many
    order = rng.permutation(n)
    scale = float(rng.choice([1.0, 5.0, 40.0]))
    factors: list[tuple[list[int], NDArray[np.float64]]] = [([], np.array(2.5))]
    for _ in range(int(rng.integers(1, 30))):
        first = int(order[rng.integers(few)])
        other = int(order[rng.integers(n)])
        scope = (
            [first] if first == other else [[first, other], [other, first]][int(rng.integers(2))]
        )
        table = np.exp(rng.normal(scale=scale, size=(2,) * len(scope)))
        # State 0 of every variable stays possible.
        zeros = rng.random(table.shape) < (0.2 if seed % 3 == 0 else 0.0)
        zeros.flat[0] = False
        factors.append((scope, np.where(zeros, 0.0, table)))
    return FactorGraph.from_factors([2] * n, factors)


def agrees(graph: FactorGraph, log_z: float, marginals: NDArray[np.float64]) -> None:
    truth = oracle(graph)
    # Both sum at most 2**13 products of some dozens of doubles.
    np.testing.assert_allclose(marginals, flat(truth), rtol=1e-10, atol=1e-300)
    assert log_z == pytest.approx(truth.log_z, rel=1e-11, abs=1e-11)


@pytest.mark.usefixtures("at_any_size")
@pytest.mark.parametrize("parts", [(8, 8, 4), (1, 1, 1), (2, 0, 2), (0, 2, 1)])
def test_conditioning_agrees_with_the_oracle(
    parts: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in zip(("_INNER", "_MIDDLE", "_FEWEST_OUTER"), parts, strict=True):
        monkeypatch.setattr(inference.exact.conditioning, name, size)
    for seed in range(60):
        graph = binary_graph(seed)
        plan = conditioning(graph)
        assert plan is not None
        conditioned = condition(graph, plan, threads=1)
        assert conditioned is not None, f"seed {seed}"
        agrees(graph, *conditioned)


@pytest.mark.usefixtures("at_any_size")
def test_products_beyond_the_range_of_doubles_are_left_to_elimination() -> None:
    table = [[1.0, 1e-300], [1e-300, 1.0]]
    graph = FactorGraph.from_factors([2] * 4, [([0, leaf], table) for leaf in (1, 2, 3)] * 2)
    plan = conditioning(graph)
    assert plan is not None
    assert condition(graph, plan, threads=1) is None


@pytest.mark.usefixtures("at_any_size")
def test_many_products_within_the_range_do_not_underflow() -> None:
    # Each of 3,000 leaves halves every state of the pair, and pulls it to one side by e**3.
    table = 0.5 * np.exp([[-1.5, 0.0], [1.5, 0.0]])
    factors = [([leaf % 2, leaf], table) for leaf in range(2, 3002)]
    graph = FactorGraph.from_factors([2] * 3002, [*factors, ([0, 1], [[1.0, 2.0], [3.0, 1.0]])])
    plan = conditioning(graph)
    assert plan is not None
    assert plan.cover.tolist() == [0, 1]
    conditioned = condition(graph, plan, threads=1)
    assert conditioned is not None
    tree = infer(graph, "lbp")  # a tree: exact
    np.testing.assert_allclose(conditioned[1], tree.marginals.flat, atol=1e-10)
    # The sum of 3,000 logarithms of about 1 keeps 12 digits.
    assert conditioned[0] == pytest.approx(tree.log_z, rel=1e-12)


@pytest.mark.usefixtures("at_any_size")
@pytest.mark.parametrize("where", CONTRADICTIONS)
def test_contradictions_are_found(where: str) -> None:
    plan = conditioning(CONTRADICTIONS[where])
    assert plan is not None
    conditioned = condition(CONTRADICTIONS[where], plan, threads=1)
    assert conditioned is not None
    assert conditioned[0] == -np.inf


@pytest.mark.usefixtures("at_any_size")
def test_only_binary_pairwise_graphs_with_a_small_cover_are_taken() -> None:
    assert conditioning(FactorGraph.from_factors([2, 3], [([0, 1], np.ones((2, 3)))])) is None
    assert (
        conditioning(FactorGraph.from_factors([2] * 3, [([0, 1, 2], np.ones((2, 2, 2)))])) is None
    )
    assert conditioning(chain(200, coupling=1.0, field=1.0, seed=0)) is None


@pytest.mark.usefixtures("at_any_size")
def test_exact_is_the_same_whatever_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference.exact.prediction, "SECONDS_PER_OPERATION", 1e3)
    methods = set()
    for seed in range(150):
        graph = odd_graph(seed) if seed % 2 else binary_graph(seed)
        posterior = infer(graph, "exact")
        methods.add(posterior.stats["method"])
        agrees(graph, given(posterior), posterior.marginals.flat)
    assert methods == {"conditioning", "elimination"}


def test_few_atoms_with_much_evidence_are_conditioned_on() -> None:
    graph = fr2(12, 30, density=1.0, seed=0)
    quick = infer(graph, "exact")
    assert quick.stats["method"] == "conditioning"
    assert Exact().predict(graph).method == "conditioning"
    slow = Exact().calibrate(graph)
    np.testing.assert_allclose(quick.marginals.flat, slow.marginals, atol=1e-11)
    assert quick.log_z == pytest.approx(slow.log_z, rel=1e-12)


def test_threads_change_nothing() -> None:
    graph = fr2(14, 25, density=1.0, seed=1)
    single, three = (infer(graph, "exact", threads=threads) for threads in (1, 3))
    assert single.stats["method"] == "conditioning"
    assert single.marginals.flat.tobytes() == three.marginals.flat.tobytes()
    assert single.log_z == three.log_z


def test_memory_that_elimination_lacks_is_not_needed() -> None:
    graph = fr2(15, 15, density=1.0, seed=0)
    exact = get_backend("exact", memory_limit=2**21)
    with pytest.raises(TooLargeError):
        exact.calibrate(graph)  # type: ignore[attr-defined]
    posterior = exact.infer(graph)
    bounds = infer(graph, "auto", memory_limit=2**21)
    assert posterior.stats["method"] == "conditioning"
    assert bounds.log_z == posterior.log_z


def test_zero_partition_is_an_error() -> None:
    graph = fr2(12, 30, density=1.0, seed=0)
    impossible = [*graph.factors(), ([0], np.array([-np.inf, -np.inf]))]
    with pytest.raises(ZeroPartitionError):
        infer(FactorGraph.from_factors(graph.cardinalities, impossible, log=True), "exact")
