"""Promises of `exact` beyond correctness: prediction, ordering, threads, references."""

from __future__ import annotations

import numpy as np
import pytest

import inference.exact.parallel
import inference.exact.plans
from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import TooLargeError, ZeroPartitionError, get_backend, infer
from inference.exact.backend import Exact
from tests.inference.answers import assert_agree, assert_right, given, worked_example
from tests.inference.graphs import (
    CONTRADICTIONS,
    graphs_of_many_states,
    long_chain,
    odd_graph,
    tangled_graph,
)


@pytest.mark.parametrize("backend", ["exact", "pgmpy"])
def test_worked_example_of_the_paper(backend: str) -> None:
    posterior = infer(worked_example(), backend)
    # FactReasoner prints 0.32 and 0.68; more digits by hand, from the eight assignments.
    assert posterior.marginals["a1"][1] == pytest.approx(0.317881, abs=5e-7)
    assert posterior.marginals["c1"][1] == pytest.approx(0.970331, abs=5e-7)
    assert posterior.marginals["c2"][1] == pytest.approx(0.966689, abs=5e-7)
    assert np.exp(posterior.log_z or 0.0) == pytest.approx(0.1359, abs=1e-12)


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (FactorGraph.from_factors([2, 2], []), 0),
        (long_chain(50, 0), 1),
        (grid(5, 9, coupling=1.0, field=1.0, seed=0), 5),
        (FactorGraph.from_factors([2] * 6, [([0, 1, 2, 3, 4, 5], np.ones(64))]), 5),
    ],
)
def test_induced_width_of_graphs_whose_treewidth_is_known(graph: FactorGraph, width: int) -> None:
    assert infer(graph, "exact").stats["induced_width"] == width


def test_the_memory_limit_is_a_setting() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    needed = infer(graph, "exact").stats["predicted_bytes"]
    assert infer(graph, "exact", memory_limit=needed).stats["predicted_bytes"] == needed
    less = infer(graph, "exact", memory_limit=needed - 1).stats
    assert less["method"] == "clamping"
    assert less["predicted_bytes"] < needed
    with pytest.raises(TooLargeError):
        infer(graph, "exact", memory_limit=needed // 1000)


def test_restarts_never_make_the_plan_dearer_and_are_seeded() -> None:
    graph = grid(12, 12, coupling=1.0, field=1.0, seed=0)
    greedy = infer(graph, "exact", restarts=0)
    better = infer(graph, "exact", restarts=50, seed=3)
    again = infer(graph, "exact", restarts=50, seed=3)
    assert better.stats["predicted_seconds"] <= greedy.stats["predicted_seconds"]
    assert better.marginals.flat.tobytes() == again.marginals.flat.tobytes()
    # Two orders of elimination round differently: 2**13 terms of 1e-16 at most.
    np.testing.assert_allclose(better.marginals.flat, greedy.marginals.flat, atol=1e-11)


def test_blocks_of_large_tables_agree_with_the_oracle_of_small_ones() -> None:
    # Tables of more than one block, of many axes and of one axis longer than a block.
    rng = np.random.default_rng(0)
    cases = [
        ([2] * 12, [(list(range(12)), rng.random(4096)), ([11, 0], rng.random(4))]),
        ([1500, 2, 3], [([0, 1], rng.random(3000)), ([2, 0], rng.random(4500))]),
        ([4] * 6, [([0, 1, 2, 3, 4, 5], rng.random(4096)), ([5, 2], rng.random(16))]),
    ]
    for cardinalities, factors in cases:
        graph = FactorGraph.from_factors(cardinalities, factors)
        # Relative to log Z, some hundreds here.
        assert_right(graph, infer(graph, "exact"), 1e-12, rel=1e-12)


def test_products_that_would_underflow_are_taken_in_log_space() -> None:
    # Two factors favor state 0 by 1e-300 each; a third forbids it, so nothing may be lost.
    tiny = [1.0, 1e-300]
    graph = FactorGraph.from_factors(
        [2, 2], [([0], tiny), ([0], tiny), ([0, 1], [[0.0, 0.0], [0.2, 0.6]])]
    )
    posterior = infer(graph, "exact")
    assert posterior.stats["arithmetic"] == "log"
    assert posterior.log_z == pytest.approx(np.log(0.8) - 600.0 * np.log(10.0), abs=1e-9)
    assert posterior.marginals["0"].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(posterior.marginals["1"], [0.25, 0.75], atol=1e-12)


def test_a_large_forest_and_a_large_loop_are_solved_without_a_matrix_of_bits() -> None:
    forest = fr1_forest(20_000, 3, seed=0)
    assert infer(forest, "exact").stats["induced_width"] == 1
    rng = np.random.default_rng(0)
    n = 20_000  # more than the bit matrix takes
    tables = rng.random((n, 2, 2)) + 0.1
    loop = FactorGraph.from_factors([2] * n, [([i, (i + 1) % n], tables[i]) for i in range(n)])
    posterior = infer(loop, "exact")
    assert posterior.stats["induced_width"] == 2
    product, log_scale = np.eye(2), 0.0
    for table in tables:
        product = product @ table
        log_scale += np.log(product.sum())
        product /= product.sum()
    # The trace of the product of transfer matrices is Z; 2e4 roundings on either side.
    assert posterior.log_z == pytest.approx(np.log(np.trace(product)) + log_scale, rel=1e-11)
    np.testing.assert_allclose(
        posterior.marginals["0"], np.diag(product) / np.trace(product), atol=1e-10
    )


@pytest.mark.parametrize("seed", range(4))
def test_joins_of_small_inputs_change_nothing_but_the_time(seed: int) -> None:
    # One cluster of 2**13 entries with many small inputs: factors, and messages of five leaves.
    rng = np.random.default_rng(seed)
    factors = [(list(rng.permutation(13)), rng.random(2**13))]
    factors += [(list(rng.choice(13, size=3, replace=False)), rng.random(8)) for _ in range(20)]
    for leaf in range(13, 18):
        factors += [([leaf, int(v)], rng.random(4)) for v in rng.choice(13, size=3, replace=False)]
    graph = FactorGraph.from_factors([2] * 18, factors)
    truth = infer(graph, "enumeration")
    tree = get_backend("exact").calibrate(graph)  # type: ignore[attr-defined]
    assert (np.diff(tree.tree.starts) == tree.tree.separator_sizes).any()  # there are joins
    assert tree.log_z == pytest.approx(truth.log_z, abs=1e-10)
    np.testing.assert_allclose(tree.marginals, truth.marginals.flat, atol=1e-12)
    joint = np.zeros(2**18)
    for scope, table in graph.factors():
        order = np.argsort(scope)
        view = np.ones(18, dtype=int)
        view[np.array(scope)[order]] = 2
        joint = (joint.reshape([2] * 18) + table.transpose(order).reshape(view)).ravel()
    weights = np.exp(joint - given(truth)).reshape([2] * 18)
    beliefs = tree.factor_beliefs()
    for factor, (scope, table) in enumerate(graph.factors()):
        expected = weights.sum(axis=tuple(v for v in range(18) if v not in scope))
        back = np.argsort(np.argsort(scope))
        start = graph.table_starts[factor]
        np.testing.assert_allclose(
            beliefs[start : start + table.size], expected.transpose(back).ravel(), atol=1e-12
        )


@pytest.mark.parametrize("name", graphs_of_many_states())
def test_products_of_matrices_agree_with_the_oracle_and_with_written_tables(name: str) -> None:
    graph = graphs_of_many_states()[name]
    assert len(Exact().cluster_plan(graph).program.products) > 0
    posterior = infer(graph, "exact")
    # Sums of thousands of terms in doubles, on both sides.
    assert_right(graph, posterior, 1e-12, rel=1e-12)
    written = Exact().calibrate(graph)
    np.testing.assert_allclose(written.marginals, posterior.marginals.flat, rtol=0, atol=1e-13)


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


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.parametrize("where", CONTRADICTIONS)
def test_contradictions_are_found_in_chunks(where: str) -> None:
    with pytest.raises(ZeroPartitionError):
        infer(CONTRADICTIONS[where], "exact")
