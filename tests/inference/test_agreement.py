"""One table: each backend, on each class of graphs, keeps what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import LogZKind, Posterior, Status, ZeroPartitionError, entries, infer
from tests.inference.graphs import chain_reference, forest, long_chain, odd_graph
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

PROMISES = (
    Promise("enumeration", odd_graph, range(1000), 1e-10, ROUNDING),
    Promise("exact", odd_graph, range(1000), 1e-10, ROUNDING),
    Promise("exact", forest, range(200), 1e-10, ROUNDING),
    Promise("pgmpy", odd_graph, range(60), 1e-6, OTHER_HANDS),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT, {"schedule": "flooding"}),
    Promise("lbp", forest, range(300), 1e-9, FIXED_POINT, {"schedule": "residual"}),
)


def differences(graph: FactorGraph, posterior: Posterior) -> tuple[float, float]:
    """Return the largest error of a marginal and the error of log Z relative to max(1, |log Z|)."""
    truth = oracle(graph)
    expected = np.concatenate([truth.marginals[name] for name in graph.names])
    assert posterior.log_z is not None
    scale = max(1.0, abs(truth.log_z))
    return (
        float(np.abs(posterior.marginals.flat - expected).max()),
        abs(posterior.log_z - truth.log_z) / scale,
    )


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_backend_keeps_its_promise(promise: Promise) -> None:
    for seed in promise.seeds:
        graph = promise.graphs(seed)
        posterior = infer(graph, promise.backend, **promise.settings)
        assert posterior.status in (Status.EXACT, Status.CONVERGED), f"seed {seed}"
        marginal, log_z = differences(graph, posterior)
        assert marginal <= promise.tolerance, f"seed {seed}: marginal off by {marginal}"
        assert log_z <= promise.tolerance, f"seed {seed}: log Z off by {log_z}"


def test_exact_agrees_with_pgmpy() -> None:
    for seed in range(300):
        graph = odd_graph(seed)
        one, other = infer(graph, "exact"), infer(graph, "pgmpy")
        np.testing.assert_allclose(
            one.marginals.flat, other.marginals.flat, atol=1e-6, err_msg=f"seed {seed}"
        )
        assert one.log_z == pytest.approx(other.log_z, rel=1e-6, abs=1e-6), f"seed {seed}"


# Every backend but the one that must list 2**10001 assignments.
@pytest.mark.parametrize("backend", sorted(set(entries()) - {"enumeration"}))
def test_a_graph_of_20_000_factors_far_below_the_range_of_doubles(backend: str) -> None:
    graph = long_chain(10_001, seed=1)
    assert graph.n_factors == 20_001
    expected, log_z = chain_reference(graph)
    assert log_z < -5000.0
    posterior = infer(graph, backend)
    found = posterior.marginals.flat.reshape(-1, 2)
    # The recursion and each backend round 1e4 times on the way; errors do not build up in
    # marginals, whose messages are renormalised, and add up like a walk in log Z.
    np.testing.assert_allclose(found, expected, atol=1e-10)
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
    np.testing.assert_allclose(posterior.marginals["0"], np.exp(logs - log_z), atol=1e-9)
    assert posterior.log_z == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize("backend", list(entries()))
def test_contradictory_graphs_are_named_so(backend: str) -> None:
    graph = FactorGraph.from_factors([2, 2], [([0, 1], [[1.0, 0.0], [0.0, 0.0]]), ([1], [0, 1])])
    with pytest.raises(ZeroPartitionError, match="partition function is zero"):
        infer(graph, backend)


def test_log_z_kinds() -> None:
    graph = forest(5)
    assert infer(graph, "exact").log_z_kind is LogZKind.EXACT
    assert infer(graph, "lbp").log_z_kind is LogZKind.BETHE
    assert math.isclose(infer(graph, "exact").log_z or 0.0, oracle(graph).log_z, rel_tol=1e-12)
