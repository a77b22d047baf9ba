"""Large tables in chunks: right, and the same to the last bit for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import inference.exact.parallel
import inference.exact.plans
from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import ZeroPartitionError, infer
from tests.inference.answers import assert_agree, assert_right
from tests.inference.graphs import graphs_of_many_states, odd_graph, tangled_graph


@pytest.fixture
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inference.exact.plans, inference.exact.parallel):
        monkeypatch.setattr(module, "LOG2_CHUNKED_TABLE", 1.0)


@pytest.mark.usefixtures("every_table_is_large")
def test_chunks_agree_with_the_oracle() -> None:
    for seed in range(120):
        graph = tangled_graph(seed) if seed % 2 else odd_graph(seed)
        # Both sum the same few thousand terms in doubles.
        assert_right(graph, infer(graph, "exact", threads=2), 1e-10, rel=1e-10)


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.parametrize("name", graphs_of_many_states())
def test_products_of_matrices_that_threads_share(name: str) -> None:
    graph = graphs_of_many_states()[name]
    assert_right(graph, infer(graph, "exact", threads=2), 1e-12, rel=1e-12)


@pytest.mark.usefixtures("every_table_is_large")
def test_contradictions_are_found_in_chunks() -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]]), ([1], [0, 1])])
    with pytest.raises(ZeroPartitionError):
        infer(graph, "exact")


@pytest.mark.usefixtures("every_table_is_large")
def test_many_small_and_few_large_answers() -> None:
    # One table of 2**14 entries: children that hold its leading axes, small ones, and large ones.
    rng = np.random.default_rng(0)
    factors = [(list(range(14)), rng.random(2**14))]
    for leaf, size in enumerate((2, 3, 11, 12, 13), start=14):
        scope = [leaf, *rng.choice(14, size=size, replace=False).tolist()]
        factors.append((scope, rng.random(2 ** len(scope))))
    graph = FactorGraph.from_factors([2] * 19, factors)
    chunked, truth = infer(graph, "exact", threads=3), infer(graph, "enumeration")
    assert_agree(chunked, truth, 1e-12, rel=1e-10)


@pytest.mark.parametrize(
    "graph",
    [
        grid(16, 16, coupling=2.0, field=1.0, seed=0),
        fr2(22, 4, density=0.3, seed=1),
        FactorGraph.from_factors(
            [7, 40, 1100], [([0, 1, 2], np.random.default_rng(0).random(7 * 40 * 1100))]
        ),
    ],
    ids=["grid", "fr2", "many states"],
)
def test_the_number_of_threads_changes_not_one_bit(
    graph: FactorGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    posteriors = [infer(graph, "exact", threads=threads) for threads in (1, 2, 5)]
    for posterior in posteriors:
        assert posterior.stats["largest_table"] >= 2**18
        assert posterior.log_z == posteriors[0].log_z
        assert posterior.marginals.flat.tobytes() == posteriors[0].marginals.flat.tobytes()
    monkeypatch.setattr(inference.exact.plans, "LOG2_CHUNKED_TABLE", 64.0)
    whole = infer(graph, "exact")
    # Sums of 2**20 terms in another order.
    assert_agree(posteriors[0], whole, 1e-11, rel=1e-12)
