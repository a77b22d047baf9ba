"""One table: each backend, on each class of graphs, keeps what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import (
    LogZKind,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    entries,
    infer,
)
from tests.inference.exactness import EXACTNESS
from tests.inference.graphs import (
    chain_reference,
    forest,
    frustrated,
    independent,
    long_chain,
    odd_graph,
)
from tests.oracle import oracle


@dataclass(frozen=True)
class Promise:
    """A row: on graphs `make(seed)` for `seeds`, marginals and log Z are right to `tolerance`."""

    backend: str
    graphs: Callable[[int], FactorGraph]
    seeds: range
    tolerance: float
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        settings = ",".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.backend}({settings})-{self.graphs.__name__}"


ROUNDING = "both sum the same terms in doubles: some hundred roundings of 1e-16"
FIXED_POINT = "a forest's messages are final after two sweeps; what is left is rounding"
OTHER_HANDS = "pgmpy sums in doubles too, but we hold an outside library only to what it states"
ONE_BLOCK = "a forest is one block, whose conditionals are exact and the same at every draw"
GUIDE = "the guide holds the posterior of a forest and starts there"
ASCENT = "independent variables are settled in one sweep"
GRADIENT = "the ascent stops where no derivative exceeds 1e-4"

PROMISES = (
    Promise("enumeration", odd_graph, range(1000), 1e-10, ROUNDING),
    Promise("exact", odd_graph, range(1000), 1e-10, ROUNDING),
    Promise("exact", forest, range(200), 1e-10, ROUNDING),
    Promise("pgmpy", odd_graph, range(60), 1e-6, OTHER_HANDS),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT, {"schedule": "flooding"}),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT, {"schedule": "residual"}),
    Promise("gibbs", forest, range(200), 1e-9, ONE_BLOCK),
    Promise("structured", forest, range(60), 1e-9, GUIDE),
    Promise("cavi", independent, range(100), 1e-9, ASCENT),
    Promise("mean_field", independent, range(10), 1e-3, GRADIENT),
)


@dataclass(frozen=True)
class LowerBound:
    """A row: on graphs `make(seed)` for `seeds`, log Z is reported no higher than it is."""

    backend: str
    graphs: Callable[[int], FactorGraph]
    seeds: range
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.backend}-{self.graphs.__name__}"


HASTY = {"restarts": 2, "max_iterations": 10}
"""The bound holds wherever an ascent is stopped, so that it need not be waited for."""

LOWER_BOUNDS = (
    LowerBound("cavi", odd_graph, range(1000)),
    LowerBound("cavi", frustrated, range(200)),
    LowerBound("mean_field", odd_graph, range(60), HASTY),
    LowerBound("mean_field", frustrated, range(40), HASTY),
    LowerBound("structured", odd_graph, range(100), HASTY),
    LowerBound("structured", frustrated, range(60), HASTY),
)


def differences(graph: FactorGraph, posterior: Posterior) -> tuple[float, float]:
    """Return the largest error of a marginal and the error of log Z relative to max(1, |log Z|)."""
    truth = oracle(graph)
    expected = np.concatenate([truth.marginals[name] for name in graph.names])
    marginal = float(np.abs(posterior.marginals.flat - expected).max())
    if posterior.log_z_kind is LogZKind.NONE:
        return marginal, 0.0
    assert posterior.log_z is not None
    return marginal, abs(posterior.log_z - truth.log_z) / max(1.0, abs(truth.log_z))


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_backend_keeps_its_promise(promise: Promise) -> None:
    for seed in promise.seeds:
        graph = promise.graphs(seed)
        posterior = infer(graph, promise.backend, **promise.settings)
        assert posterior.status in (Status.EXACT, Status.CONVERGED), f"seed {seed}"
        marginal, log_z = differences(graph, posterior)
        assert marginal <= promise.tolerance, f"seed {seed}: marginal off by {marginal}"
        assert log_z <= promise.tolerance, f"seed {seed}: log Z off by {log_z}"


@pytest.mark.parametrize("row", LOWER_BOUNDS, ids=str)
def test_every_lower_bound_is_one(row: LowerBound) -> None:
    for seed in row.seeds:
        graph = row.graphs(seed)
        exact, posterior = infer(graph, "exact"), infer(graph, row.backend, **row.settings)
        assert posterior.log_z_kind is LogZKind.ELBO
        assert posterior.stats["bound_standard_error"] == 0.0
        assert exact.log_z is not None
        assert posterior.log_z is not None
        # Where bound and truth coincide, both are rounded: some hundred roundings of 1e-16.
        rounding = 1e-12 * max(1.0, abs(exact.log_z))
        assert posterior.log_z <= exact.log_z + rounding, f"seed {seed}"


def test_exact_agrees_with_pgmpy() -> None:
    for seed in range(300):
        graph = odd_graph(seed)
        one, other = infer(graph, "exact"), infer(graph, "pgmpy")
        np.testing.assert_allclose(
            one.marginals.flat, other.marginals.flat, atol=1e-6, err_msg=f"seed {seed}"
        )
        assert one.log_z == pytest.approx(other.log_z, rel=1e-6, abs=1e-6), f"seed {seed}"


QUICKER: dict[str, dict[str, Any]] = {
    "cavi": {"restarts": 1, "max_iterations": 100},
    "mean_field": {"restarts": 1, "max_iterations": 20},
    "gibbs": {"draws": 50},
}
"""Settings with which the large graph does not take a minute; what is asserted holds with any."""


@pytest.mark.parametrize("backend", list(entries()))
def test_a_graph_of_20_000_factors_far_below_the_range_of_doubles(backend: str) -> None:
    graph = long_chain(10_001, seed=1)
    assert graph.n_factors == 20_001
    expected, log_z = chain_reference(graph)
    assert log_z < -5000.0
    if backend in ("enumeration", "numpyro"):
        # One must list 2**10001 assignments, the other look at all factors for each variable.
        with pytest.raises(TooLargeError, match=f"'{backend}'"):
            infer(graph, backend)
        return
    posterior = infer(graph, backend, **QUICKER.get(backend, {}))
    found = posterior.marginals.flat.reshape(-1, 2)
    if not EXACTNESS[backend].forests:
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
        assert posterior.log_z is not None
        # Mean field loses a share of the information in every link, not orders of magnitude.
        assert 1.05 * log_z < posterior.log_z < log_z
        return
    # The recursion and each backend round 1e4 times on the way; errors do not build up in
    # marginals, whose messages are renormalised, and add up like a walk in log Z.
    np.testing.assert_allclose(found, expected, atol=1e-10)
    if posterior.log_z_kind is not LogZKind.NONE:
        assert posterior.log_z == pytest.approx(log_z, rel=1e-10)


@pytest.mark.parametrize("backend", list(entries()))
def test_20_000_factors_on_one_variable(backend: str) -> None:
    rng = np.random.default_rng(3)
    tables = rng.random((20_000, 2))
    graph = FactorGraph.from_factors([2], [([0], table) for table in tables])
    logs = np.log(tables).sum(axis=0)
    log_z = float(np.logaddexp(*logs))
    assert log_z < -5000.0
    posterior = infer(graph, backend)
    # Sums of 2e4 logarithms near 1e4 carry errors of about 1e-11, and so does the odds' logarithm.
    exactness = EXACTNESS[backend]
    off = np.abs(posterior.marginals.flat - np.exp(logs - log_z))
    assert (off <= exactness.allowed(graph, posterior)).all()
    if posterior.log_z_kind is not LogZKind.NONE:
        allowed = 1e-8 if exactness.forests else exactness.tolerance
        assert posterior.log_z == pytest.approx(log_z, abs=allowed)


@pytest.mark.parametrize("backend", list(entries()))
def test_contradictory_graphs_are_named_so(backend: str) -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]]), ([1], [0, 1])])
    with pytest.raises(ZeroPartitionError, match="partition function is zero"):
        infer(graph, backend)


@pytest.mark.parametrize(
    "backend", ["exact", "cavi", "gibbs", "mean_field", "structured", "numpyro"]
)
def test_a_contradiction_around_a_cycle_is_named_so(backend: str) -> None:
    # Three variables that all differ in pairs, of two states: no message on a tree shows it.
    different = [[0.0, 1.0], [1.0, 0.0]]
    graph = FactorGraph.from_factors([2] * 3, [((i, (i + 1) % 3), different) for i in range(3)])
    with pytest.raises(ZeroPartitionError, match="partition function is zero"):
        infer(graph, backend)


def test_log_z_kinds() -> None:
    graph = forest(5)
    assert infer(graph, "exact").log_z_kind is LogZKind.EXACT
    assert infer(graph, "lbp").log_z_kind is LogZKind.BETHE
    assert math.isclose(infer(graph, "exact").log_z or 0.0, oracle(graph).log_z, rel_tol=1e-12)
