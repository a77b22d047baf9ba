"""Batches: what `infer` gives for each graph, whatever the threads, in order, within bounds."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import inference.batch
from factormodels import FactorGraph, InputError
from factormodels.synthetic import fr2, grid
from inference import (
    Backend,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    get_backend,
    infer,
    infer_batch,
    infer_settings,
    infer_stream,
)
from inference.backend import Result
from inference.batch import settings_results
from inference.evidence import WithoutEvidence
from inference.exact.backend import Exact
from inference.messages.lbp import LoopyBeliefPropagation
from tests.inference.answers import assert_agree
from tests.inference.graphs import forest, odd_graph
from tests.refusals import refused

CONTRADICTION = FactorGraph.from_factors([2], [([0], [1.0, 0.0]), ([0], [0.0, 1.0])])


def assert_same_numbers(first: Posterior, other: Posterior, where: str = "") -> None:
    """Check that two posteriors hold the same numbers, to the last bit, and their status."""
    assert first.marginals.flat.tobytes() == other.marginals.flat.tobytes(), where
    assert (first.log_z, first.status) == (other.log_z, other.status), where


def assert_same(first: Posterior, other: Posterior, where: str = "") -> None:
    """Check that two posteriors are the same but for their times."""
    assert_same_numbers(first, other, where)
    assert first.marginals.names == other.marginals.names, where
    assert (first.log_z_kind, first.backend) == (other.log_z_kind, other.backend), where
    # Batches leave out the trace of residuals, and share their time among graphs.
    left_out = {"seconds", "residual_trace"}
    assert {k: v for k, v in first.stats.items() if k not in left_out} == {
        k: v for k, v in other.stats.items() if k not in left_out
    }, where


def mixed_graphs() -> list[FactorGraph]:
    """Return graphs of many sizes: odd ones, one variable, none, some structures repeated."""
    graphs = [odd_graph(seed) for seed in range(60)]
    tables = np.random.default_rng(0).random((6, 2, 2))
    same = [FactorGraph.from_factors([2, 2], [([0, 1], table)]) for table in tables]
    observed = [graph.with_evidence({1: k % 2}) for k, graph in enumerate(same)]
    lone = [FactorGraph.from_factors([k], [([0], np.arange(1.0, k + 1.0))]) for k in (1, 2, 3)]
    empty = FactorGraph.from_factors([], [])
    large = [fr2(31, 3, density=0.05, always_related=False, seed=seed) for seed in range(3)]
    graphs += [*same, empty, *observed, *lone, *large, empty]
    order = np.random.default_rng(1).permutation(len(graphs))
    return [graphs[k] for k in order]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "backend",
    [
        Exact(),
        LoopyBeliefPropagation(),
        LoopyBeliefPropagation(schedule="random", seed=3, max_iterations=20),
        LoopyBeliefPropagation(schedule="flooding", damping=0.3, diagnostics=True),
    ],
    ids=["exact", "lbp", "lbp-random", "lbp-diagnostics"],
)
def test_a_batch_is_one_run_for_each_graph_to_the_last_bit(backend: Backend, threads: int) -> None:
    graphs = mixed_graphs()
    posteriors = infer_batch(graphs, backend, threads=threads)
    assert len(posteriors) == len(graphs)
    for number, (graph, posterior) in enumerate(zip(graphs, posteriors, strict=True)):
        assert_same(posterior, infer(graph, backend), f"graph {number}")
        assert posterior.stats["seconds"] > 0.0


@pytest.mark.parametrize("backend", ["wmb", "cavi", "gibbs", "enumeration", "auto"])
def test_other_backends_run_side_by_side(backend: str) -> None:
    graphs = [forest(seed) for seed in range(12)]
    for posterior, graph in zip(infer_batch(graphs, backend, threads=3), graphs, strict=True):
        assert_same_numbers(posterior, infer(graph, backend))


@pytest.mark.parametrize("backend", ["exact", "lbp", "wmb"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seeds", [5, pytest.param(25, marks=pytest.mark.nightly)])
def test_settings_of_a_graph_are_graphs_of_their_own(
    backend: str, threads: int, seeds: int
) -> None:
    rng = np.random.default_rng(5)
    for seed in range(seeds):
        graph = odd_graph(seed)
        rows = np.where(
            graph.log_values == -np.inf, -np.inf, rng.normal(size=(5, len(graph.log_values)))
        )
        posteriors = infer_settings(graph, rows, backend, threads=threads)
        for row, posterior in zip(rows, posteriors, strict=True):
            assert_same_numbers(posterior, infer(replace(graph, log_values=row), backend))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "alone", "settings"),
    [
        ("exact", "exact", {}),
        ("lbp", "lbp", {}),
        ("exact_jax", "exact", {}),
        ("lbp_jax", "lbp", {"schedule": "flooding"}),
    ],
)
def test_settings_may_have_zeros_in_different_places(
    backend: str, alone: str, settings: dict[str, str]
) -> None:
    graph = fr2(4, 2, density=0.3, seed=1)
    rows = graph.log_values + np.random.default_rng(0).normal(size=(7, len(graph.log_values)))
    # Atoms 0 and 1 certain in turn, in one setting both.
    rows[1, 0] = rows[2, 3] = rows[3, 0] = rows[3, 3] = -np.inf
    # As every graph's tables are: kernels would be compiled anew for others.
    rows.flags.writeable = False
    for observed in (graph, graph.with_evidence({2: 1, 5: 0})):
        for number, posterior in enumerate(infer_settings(observed, rows, backend)):
            other = infer(observed.with_log_values(rows[number]), alone, **settings)
            if backend == alone:
                assert_same(posterior, other, f"setting {number}")
            # JAX sums the same terms in another order, or takes the same steps.
            assert_agree(posterior, other, 1e-10, rel=1e-10, where=f"setting {number}")
            assert posterior.status is other.status
    assert infer_settings(graph, rows, backend)[3].marginals.of_state(1)[:2].tolist() == [1.0, 0.0]
    rows = rows.copy()
    rows[5, :2] = -np.inf
    results = settings_results(graph, rows, get_backend(backend))
    assert [isinstance(result, Posterior) for result in results] == [True] * 5 + [False, True]
    assert isinstance(results[5], ZeroPartitionError)


def test_nothing_in_nothing_out() -> None:
    for backend in ("exact", "lbp", "cavi", "lbp_jax"):
        assert infer_batch([], backend) == []
        graph = forest(1)
        assert infer_settings(graph, np.empty((0, len(graph.log_values))), backend) == []


@pytest.mark.parametrize("backend", ["exact", "lbp", "lbp_jax", "cavi"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.slow
def test_a_graph_without_an_answer_is_named_by_its_number(backend: str, threads: int) -> None:
    # JAX compiles each of five once.
    graphs = [forest(seed % 5) for seed in range(40)]
    graphs[17] = graphs[30] = CONTRADICTION
    with pytest.raises(ZeroPartitionError, match=r"^graph 17: the partition function is zero"):
        infer_batch(graphs, backend, threads=threads)
    stream = infer_stream(graphs, backend, threads=threads)
    assert len([next(stream) for _ in range(17)]) == 17
    with pytest.raises(ZeroPartitionError, match=r"^graph 17: "):
        next(stream)
    rows = np.log([[1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.3, 1.0], [1.0, 0.5, 0.3, 1.0]])
    rows[1] = CONTRADICTION.log_values
    with pytest.raises(ZeroPartitionError, match=r"^setting 1: "):
        infer_settings(CONTRADICTION, rows, backend, threads=threads)


@pytest.mark.parametrize("given", [list, iter])
def test_a_graph_of_a_stream_is_named_beyond_the_first_window(
    given: Callable[[list[FactorGraph]], Iterable[FactorGraph]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference.batch, "_WINDOW", 4)
    monkeypatch.setattr(inference.batch, "_SLICE", 4)
    graphs = [*(forest(seed) for seed in range(9)), CONTRADICTION, forest(9)]
    stream = infer_stream(given(graphs), "exact")
    assert len([next(stream) for _ in range(9)]) == 9
    with pytest.raises(ZeroPartitionError, match=r"^graph 9: "):
        next(stream)
    with pytest.raises(ZeroPartitionError, match=r"^graph 9: "):
        infer_batch(given(graphs), "exact")


def test_too_large_graphs_are_refused_by_number_and_the_others_answered() -> None:
    small, large = forest(3), grid(9, 9, coupling=1.0, field=1.0, seed=0)
    needed = round(Exact().predict(large).bytes)
    # One such graph fits, two at once do not: each has the memory for itself.
    limit = Exact(memory_limit=needed + needed // 2)
    graphs = [small, large, large.with_evidence({0: 1}), large.with_evidence({8: 0}), small]
    for posterior, graph in zip(infer_batch(graphs, limit, threads=2), graphs, strict=True):
        assert_same(posterior, infer(graph, limit))
    rows = np.stack([large.log_values] * 3)
    for posterior in infer_settings(large, rows, limit, threads=2):
        assert_same(posterior, infer(large, limit))
    with pytest.raises(TooLargeError, match=r"^graph 1: the best elimination order found"):
        infer_batch(graphs, Exact(memory_limit=needed // 100), threads=2)
    with pytest.raises(TooLargeError, match=r"^setting 0: the best elimination order found"):
        infer_settings(large, rows, Exact(memory_limit=needed // 100))


def test_tables_that_threads_share_are_answered_as_alone() -> None:
    table = np.random.default_rng(2).random(2**18)
    graph = FactorGraph.from_factors([2] * 18, [(range(18), table)])
    expected = infer(graph)
    assert expected.stats["largest_table"] == 2**18
    for posterior in infer_batch([graph, forest(0)], threads=2)[:1]:
        assert_same(posterior, expected)
    for posterior in infer_settings(graph, graph.log_values[None], threads=2):
        assert_same(posterior, expected)


def test_graphs_that_are_conditioned_on_few_variables_are_answered_as_alone() -> None:
    # Few atoms and much evidence; besides, one of as many factors that elimination is cheaper for.
    graphs = [fr2(12, 30, density=1.0, seed=seed) for seed in range(2)]
    graphs += [fr2(60, 3, density=0.0, seed=0), fr2(4, 2, density=0.3, seed=1)]
    methods = []
    for posterior, graph in zip(infer_batch(graphs, threads=2), graphs, strict=True):
        assert_same(posterior, infer(graph))
        methods.append(posterior.stats["method"])
    assert methods == ["conditioning", "conditioning", "elimination", "elimination"]
    rows = np.stack([graphs[0].log_values, 0.5 * graphs[0].log_values])
    for row, posterior in zip(rows, infer_settings(graphs[0], rows, threads=2), strict=True):
        assert_same(posterior, infer(replace(graphs[0], log_values=row)))


def test_a_stream_takes_a_window_of_graphs_when_it_is_needed_and_lets_go_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inference.batch, "_WINDOW", 8)
    living: weakref.WeakSet[FactorGraph] = weakref.WeakSet()
    taken = most = 0

    def made() -> Iterator[FactorGraph]:
        nonlocal taken, most
        for taken in range(1, 101):
            graph = forest(taken)
            living.add(graph)
            most = max(most, len(living))
            yield graph

    stream = infer_stream(made(), threads=1)
    assert taken == 0
    for count, posterior in enumerate(stream, start=1):
        assert posterior.status is Status.EXACT
        assert taken == min(8 * -(-count // 8), 100)
    assert count == 100
    # The window at work, the one before it as its last name is rebound, and the next to come.
    assert most <= 3 * 8
    gc.collect()


def test_a_list_is_answered_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    solve_batch = Exact.solve_batch

    def noted(exact: Exact, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        sizes.append(len(graphs))
        return solve_batch(exact, graphs, threads)

    monkeypatch.setattr(Exact, "solve_batch", noted)
    monkeypatch.setattr(inference.batch, "_SLICE", 4)
    graphs = [forest(seed) for seed in range(11)]
    expected = [infer(graph) for graph in graphs]
    for posterior, other in zip(infer_batch(graphs), expected, strict=True):
        assert_same(posterior, other)
    assert sizes == [4, 4, 3]
    sizes.clear()
    monkeypatch.setattr(inference.batch, "_WINDOW_ENTRIES", 2 * len(graphs[0].log_values))
    for posterior, other in zip(infer_stream(tuple(graphs)), expected, strict=True):
        assert_same(posterior, other)
    assert sum(sizes) == 11
    assert max(sizes) <= 3
    with pytest.raises(InputError, match="a factor graph, not a str"):
        infer_batch([*graphs[:9], "no graph"])  # type: ignore[list-item]
    with pytest.raises(ZeroPartitionError, match=r"^graph 9: "):
        infer_batch([*graphs[:9], CONTRADICTION])


def test_evidence_is_absorbed_when_graphs_are_taken() -> None:
    plain = odd_graph(3).absorb_evidence()
    seen = plain.with_evidence({0: 0})
    # Settings of one graph share the array of their evidence, observed or not.
    graphs = [plain, seen, plain.with_log_values(plain.log_values), seen, odd_graph(4), seen]
    taken = WithoutEvidence(graphs)
    assert len(taken) == 6
    assert taken[0] is plain
    assert taken[1] is taken[1:2][0]
    assert taken[-1].cardinalities[0] == 1
    for part in (slice(0, 3), slice(4, 1, -2), slice(-2, None), slice(9, 12)):
        one_by_one = [graph.absorb_evidence() for graph in graphs[part]]
        assert [graph.structure for graph in taken[part]] == [
            graph.structure for graph in one_by_one
        ]
    assert not any(graph.has_evidence for graph in taken)
    assert set(taken.observed) == {n for n, graph in enumerate(graphs) if graph.has_evidence}
    with pytest.raises(IndexError):
        taken[6]


@pytest.mark.parametrize("backend", ["exact", "lbp", "enumeration"])
def test_graphs_that_share_their_evidence_are_all_observed(backend: str) -> None:
    tables = np.random.default_rng(7).random((4, 2, 3))
    first = FactorGraph.from_factors([2, 3], [([0, 1], tables[0])]).with_evidence({0: 1})
    graphs = [first, *(first.with_log_values(np.log(table.ravel())) for table in tables[1:])]
    assert all(graph.evidence is first.evidence for graph in graphs)
    for posterior, table in zip(infer_batch(graphs, backend), tables, strict=True):
        assert posterior.log_z is not None
        # Rounding of a sum of three numbers near one.
        np.testing.assert_allclose(posterior.log_z, np.log(table[1].sum()), atol=1e-12)
        np.testing.assert_allclose(posterior.marginals["0"], [0.0, 1.0])
        np.testing.assert_allclose(posterior.marginals["1"], table[1] / table[1].sum(), atol=1e-12)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (np.zeros((2, 3)), r"settings of shape \(2, 3\) do not fit this graph; give .* 4\)"),
        (np.zeros(4), r"settings of shape \(4,\)"),
        ([[0.0] * 4, [0.0, np.nan, 0.0, 0.0]], "setting 1: entry 1 is nan"),
        ([[0.0, 0.0, 0.0, np.inf]], "setting 0: entry 3 is inf"),
        ([["a"] * 4], "not an array of numbers"),
    ],
)
def test_bad_settings_are_named(rows: object, match: str) -> None:
    refused(match, infer_settings, CONTRADICTION, rows)


def test_bad_requests_are_named_before_anything_runs() -> None:
    refused("0 threads were requested; give 1 or more", infer_batch, [forest(0)], threads=0)
    refused("0 threads", infer_stream, [forest(0)], threads=0)
    refused("the backend 'no' is unknown", infer_stream, [forest(0)], "no")
    with pytest.raises(InputError, match="no setting 'damp'; did you mean 'damping'"):
        infer_settings(forest(0), [forest(0).log_values], "lbp", damp=0.5)


_ENDLESS = """
import itertools, signal, sys
import numpy as np
# A test run in the background of a shell ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
from factormodels.synthetic import fr2
from inference import infer_batch, infer_settings
graph = fr2(31, 3, density=0.05, always_related=False, seed=0)
infer_batch([graph], {backend!r})
infer_settings(graph, graph.log_values[None], {backend!r})
print("ready", flush=True)
try:
    if {settings}:
        infer_settings(graph, np.tile(graph.log_values, (20_000, 1)), {backend!r}, threads=2)
    else:
        infer_batch(itertools.repeat(graph), {backend!r}, threads=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("backend", "settings"),
    [("exact", False), ("exact", True), pytest.param("wmb", False, marks=pytest.mark.nightly)],
)
def test_an_interrupt_ends_a_batch(backend: str, settings: bool) -> None:
    code = _ENDLESS.format(backend=backend, settings=settings)
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        # It would run for seconds or for ever; a part of the work takes 50 ms.
        assert process.communicate(timeout=120)[0] == "interrupted\n"
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
