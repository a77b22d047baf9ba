"""Each backend, on each class of graphs, keeps what the table of promises says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import (
    LogZKind,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    entries,
    infer,
)
from tests.inference.answers import flat, given, log_z_of
from tests.inference.exactness import EXACTNESS
from tests.inference.graphs import CONTRADICTIONS, chain_reference, long_chain
from tests.inference.promises import PROMISES, Promise
from tests.oracle import Oracle, oracle

pytestmark = pytest.mark.slow


@cache
def graph_and_truth(graphs: Callable[[int], FactorGraph], seed: int) -> tuple[FactorGraph, Oracle]:
    """A graph with what enumeration says of it, once for all the backends that are held to it."""
    graph = graphs(seed)
    return graph, oracle(graph)


def differences(truth: Oracle, posterior: Posterior) -> tuple[float, float]:
    """Return the largest error of a marginal and the error of log Z relative to max(1, |log Z|)."""
    marginal = float(np.abs(posterior.marginals.flat - flat(truth)).max())
    if posterior.log_z_kind is LogZKind.NONE:
        return marginal, 0.0
    return marginal, abs(given(posterior) - truth.log_z) / max(1.0, abs(truth.log_z))


FEW_SEEDS = 10
"""Of a row with no more graphs than these the suite takes all, of others a fifth; the night all."""

COMPILING = {"exact_jax", "lbp_jax", "mean_field", "numpyro", "pgmax"}
"""Backends that take a good part of a second for a graph: of a row of few the suite takes two."""


def _rows() -> Iterator[Any]:
    for promise in PROMISES:
        if len(promise.seeds) > FEW_SEEDS:
            part = replace(promise, seeds=promise.seeds[::5])
        elif promise.backend in COMPILING:
            part = replace(promise, seeds=promise.seeds[:2])
        else:
            yield pytest.param(promise, id=str(promise))
            continue
        yield pytest.param(part, id=f"{promise}-part")
        yield pytest.param(promise, id=f"{promise}-all", marks=pytest.mark.nightly)


@pytest.mark.parametrize("promise", list(_rows()))
def test_every_backend_keeps_its_promise(promise: Promise) -> None:
    kinds = set()
    for seed in promise.seeds:
        if promise.kind in ("upper", "lower"):
            graph = promise.graphs(seed)
            posterior = infer(graph, promise.backend, **promise.settings)
            _check_bound(graph, posterior, promise, f"seed {seed}")
            kinds.add(posterior.log_z_kind)
            continue
        graph, truth = graph_and_truth(promise.graphs, seed)
        posterior = infer(graph, promise.backend, **promise.settings)
        marginal, log_z = differences(truth, posterior)
        assert marginal <= promise.tolerance, f"seed {seed}: marginal off by {marginal}"
        if promise.kind == "exact":
            assert posterior.status in (Status.EXACT, Status.CONVERGED), f"seed {seed}"
            assert log_z <= promise.tolerance, f"seed {seed}: log Z off by {log_z}"
    # Bounds that are all exact would be a sweep of nothing.
    assert kinds != {LogZKind.EXACT}


def _check_bound(graph: FactorGraph, posterior: Posterior, promise: Promise, where: str) -> None:
    sides = {"upper": {LogZKind.UPPER}, "lower": {LogZKind.LOWER, LogZKind.ELBO}}
    assert np.isfinite(posterior.marginals.flat).all(), where
    # Without a split bucket, a bound is the value itself.
    assert posterior.log_z_kind in {LogZKind.EXACT, *sides[promise.kind]}
    if posterior.log_z_kind is LogZKind.ELBO:
        assert posterior.stats["bound_standard_error"] == 0.0
    exact = log_z_of(graph)
    rounding = promise.tolerance * max(1.0, abs(exact))
    if promise.kind == "upper":
        assert given(posterior) >= exact - rounding, where
    else:
        assert given(posterior) <= exact + rounding, where


def test_every_backend_promises_something() -> None:
    unlike = ", ".join(sorted({promise.backend for promise in PROMISES} ^ set(entries())))
    assert not unlike, f"a backend has a row in tests/inference/promises.py, unlike {unlike}"


QUICKER: dict[str, dict[str, Any]] = {
    "cavi": {"restarts": 1, "max_iterations": 100},
    "mean_field": {"restarts": 1, "max_iterations": 20},
    "gibbs": {"draws": 50},
}
"""Settings with which the large graph does not take a minute; what is asserted holds with any."""


REFUSING = ("enumeration", "numpyro", "pyagrum", "pgmpy", "exact_jax")
"""Backends that refuse a chain of 10,001 variables, in a sentence with their name: one must list
2**10001 assignments, one look at all factors for each variable, two take time that grows with the
square, and the last compiles every cluster."""


@pytest.fixture(scope="module")
def chain() -> tuple[FactorGraph, NDArray[np.float64], float]:
    """A chain of 20,001 factors, its marginals and its log Z."""
    graph = long_chain(10_001, seed=1)
    return graph, *chain_reference(graph)


@pytest.mark.parametrize("backend", list(entries()))
def test_a_graph_of_20_000_factors_far_below_the_range_of_doubles(
    backend: str, chain: tuple[FactorGraph, NDArray[np.float64], float]
) -> None:
    graph, expected, log_z = chain
    assert graph.n_factors == 20_001
    # The least positive double is exp(-745).
    assert log_z < -5000.0
    if backend in REFUSING:
        with pytest.raises(TooLargeError, match=f"'{backend}'"):
            infer(graph, backend)
        return
    posterior = infer(graph, backend, **QUICKER.get(backend, {}))
    marginals = posterior.marginals.flat.reshape(-1, 2)
    if not EXACTNESS[backend].forests:
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-12)
        # Mean field loses a share of the information in every link, not orders of magnitude.
        assert 1.05 * log_z < given(posterior) < log_z
        return
    # The recursion and each backend round 1e4 times on the way; errors do not build up in
    # marginals, whose messages are renormalized, and add up like a walk in log Z.
    np.testing.assert_allclose(marginals, expected, atol=1e-10)
    if posterior.log_z_kind is not LogZKind.NONE:
        assert posterior.log_z == pytest.approx(log_z, rel=1e-10)


FEWER = {"exact_jax": 500, "mean_field": 2_000, "numpyro": 2_000}
"""Backends of which the suite asks less: to the first every factor is a step of a program that is
compiled, which takes minutes for 20,000; the others take seconds."""


@cache
def many_factors(count: int) -> tuple[FactorGraph, NDArray[np.float64]]:
    """Factors on one binary variable, and the logarithms of their products."""
    rng = np.random.default_rng(3)
    # Their logarithms are -1 on average; of few they are less, so that their sum is as far down.
    tables = rng.random((count, 2)) * np.exp(min(0.0, 1.0 - 2_000 / count))
    # Sorted, so that the first half says one thing for certain before the second undoes it.
    tables = tables[np.argsort(tables[:, 0] / tables[:, 1])]
    graph = FactorGraph.from_factors([2], [([0], table) for table in tables])
    return graph, np.log(tables).sum(axis=0)


@pytest.mark.parametrize(
    ("backend", "count"),
    [
        *((backend, FEWER.get(backend, 20_000)) for backend in entries()),
        pytest.param("exact_jax", 2_000, marks=pytest.mark.nightly),
        pytest.param("mean_field", 20_000, marks=pytest.mark.nightly),
        pytest.param("numpyro", 20_000, marks=pytest.mark.nightly),
    ],
)
def test_20_000_factors_on_one_variable(backend: str, count: int) -> None:
    graph, logs = many_factors(count)
    log_z = float(np.logaddexp(*logs))
    # The least positive double is exp(-745).
    assert log_z < -1500.0
    posterior = infer(graph, backend)
    # Sums of 2e4 logarithms near 1e4 carry errors of about 1e-11, and so does the odds' logarithm.
    exactness = EXACTNESS[backend]
    off = np.abs(posterior.marginals.flat - np.exp(logs - log_z))
    assert (off <= exactness.allowed(graph, posterior)).all()
    if posterior.log_z_kind is not LogZKind.NONE:
        allowed = 1e-8 if exactness.forests else exactness.tolerance
        assert posterior.log_z == pytest.approx(log_z, abs=allowed)


MESSAGES = ("lbp", "lbp_jax", "pgmax", "trw")
"""Backends that find no contradiction around a cycle: messages go round it for ever."""


@pytest.mark.parametrize(
    ("backend", "contradictions"),
    [
        *(
            pytest.param(backend, CONTRADICTIONS, id=backend)
            for backend in entries()
            if backend != "exact_jax"
        ),
        # Each is a program of its own to it.
        pytest.param("exact_jax", ("a constant", "a cycle"), id="exact_jax-two"),
        pytest.param("exact_jax", CONTRADICTIONS, marks=pytest.mark.nightly, id="exact_jax-all"),
    ],
)
def test_whatever_leaves_nothing_possible_is_named_so(
    backend: str, contradictions: Iterable[str]
) -> None:
    for where in contradictions:
        if where == "a cycle" and backend in MESSAGES:
            continue
        with pytest.raises(ZeroPartitionError, match="partition function is zero"):
            infer(CONTRADICTIONS[where], backend)


CUT_SHORT: dict[str, dict[str, Any]] = {
    "lbp": {"schedule": "flooding", "max_iterations": 30},
    "lbp_jax": {"max_iterations": 30},
    "pgmax": {"max_iterations": 20, "tolerance": 0.0},
    "trw": {"max_iterations": 1},
    "cavi": {"max_iterations": 2},
    "mean_field": {"max_iterations": 10},
}


@pytest.mark.parametrize("backend", CUT_SHORT)
def test_failure_to_converge_is_a_status(backend: str) -> None:
    graph = grid(6, 6, coupling=8.0, field=0.5, seed=3)
    posterior = infer(graph, backend, **CUT_SHORT[backend])
    iterations = CUT_SHORT[backend]["max_iterations"]
    assert posterior.status is Status.NOT_CONVERGED
    assert posterior.stats["iterations"] == iterations
    assert np.isfinite(posterior.marginals.flat).all()
    if "residual_trace" in posterior.stats:
        trace = posterior.stats["residual_trace"]
        assert len(trace) == iterations
        assert trace[-1] == posterior.stats["residual"] > 1e-9


@pytest.mark.parametrize("backend", ["exact_jax", "lbp_jax", "pgmax", "numpyro"])
def test_doubles_are_used_without_a_global_switch(backend: str) -> None:
    import jax

    infer(FactorGraph.from_factors([2], [([0], [1.0, 3.0])]), backend)
    assert jax.numpy.ones(1).dtype == np.float32
