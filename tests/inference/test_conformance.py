"""Every registered backend: the same types, shapes and invariances."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from factormodels import FactorGraph
from inference import (
    Backend,
    LogZKind,
    Posterior,
    Status,
    entries,
    get_backend,
    infer,
)
from tests.inference.exactness import EXACTNESS, in_order
from tests.inference.graphs import forest, odd_graph, relabelled

BACKENDS = tuple(entries())


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return get_backend(request.param)


def test_a_backend_is_a_frozen_dataclass_of_settings(backend: Backend) -> None:
    assert dataclasses.is_dataclass(backend)
    assert backend == get_backend(backend.name)
    assert pickle.loads(pickle.dumps(backend)) == backend
    for field in dataclasses.fields(backend):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(backend, field.name, getattr(backend, field.name))


def test_the_posterior_has_the_contract_s_shape(backend: Backend) -> None:
    graph = forest(11)
    posterior = backend.infer(graph)
    assert isinstance(posterior, Posterior)
    assert posterior.backend == backend.name
    assert isinstance(posterior.log_z_kind, LogZKind)
    assert isinstance(posterior.status, Status)
    assert (posterior.log_z is None) == (posterior.log_z_kind is LogZKind.NONE)
    assert posterior.stats["seconds"] > 0.0
    assert list(posterior.marginals) == list(graph.names)
    for name, count in zip(graph.names, graph.cardinalities, strict=True):
        marginal = posterior.marginals[name]
        assert marginal.shape == (count,)
        assert not marginal.flags.writeable
        assert (marginal >= 0.0).all()
        assert marginal.sum() == pytest.approx(1.0, abs=1e-12)


def test_observed_variables_are_certain(backend: Backend) -> None:
    graph = forest(11).with_evidence({0: 0})
    marginal = backend.infer(graph).marginals[graph.names[0]]
    assert marginal.tolist() == [1.0] + [0.0] * (graph.cardinalities[0] - 1)


def test_every_backend_says_where_it_is_exact() -> None:
    assert EXACTNESS.keys() == set(BACKENDS)


@pytest.mark.parametrize("seed", range(3))
def test_a_backend_is_exact_where_it_says_so(backend: Backend, seed: int) -> None:
    exactness = EXACTNESS[backend.name]
    graph = exactness.graph(seed).with_evidence({0: 0}) if seed == 0 else exactness.graph(seed)
    truth, posterior = infer(graph, "enumeration"), backend.infer(graph)
    assert posterior.status in (Status.EXACT, Status.CONVERGED)
    off = np.abs(posterior.marginals.flat - truth.marginals.flat)
    assert (off <= exactness.allowed(graph, posterior)).all()
    if posterior.log_z is not None:
        assert posterior.log_z == pytest.approx(truth.log_z, abs=exactness.tolerance)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_variables_and_factors_does_not_matter(backend: Backend, seed: int) -> None:
    exactness = EXACTNESS[backend.name]
    graph = exactness.graph(seed).with_evidence({0: 0}) if seed == 0 else exactness.graph(seed)
    moved, _ = relabelled(graph, seed)
    one, other = backend.infer(graph), backend.infer(moved)
    # Another order of summation rounds differently; nothing else may change on such graphs.
    off = np.abs(in_order(graph, other.marginals) - one.marginals.flat)
    assert (off <= exactness.allowed(graph, one, other)).all()
    assert one.log_z == pytest.approx(other.log_z, abs=exactness.tolerance)


def test_a_constant_moves_log_z_alone(backend: Backend) -> None:
    exactness = EXACTNESS[backend.name]
    graph = exactness.graph(7)
    shifted = dataclasses.replace(graph, log_values=graph.log_values - 2.5)
    one, other = backend.infer(graph), backend.infer(shifted)
    off = np.abs(other.marginals.flat - one.marginals.flat)
    assert (off <= exactness.allowed(graph, one, other)).all()
    assert (one.log_z is None) == (other.log_z is None)
    if one.log_z is not None:
        moved = one.log_z - 2.5 * graph.n_factors
        assert other.log_z == pytest.approx(moved, abs=exactness.tolerance)


def test_the_same_run_twice_gives_the_same_numbers(backend: Backend) -> None:
    graph = odd_graph(4)
    one, other = backend.infer(graph), backend.infer(graph)
    allowed = EXACTNESS[backend.name].repeated
    if allowed == 0.0:
        assert one.marginals.flat.tobytes() == other.marginals.flat.tobytes()
        assert one.log_z == other.log_z
    else:
        np.testing.assert_allclose(one.marginals.flat, other.marginals.flat, rtol=0, atol=allowed)
        assert one.log_z == pytest.approx(other.log_z, rel=allowed)


@pytest.mark.parametrize(
    ("cardinalities", "factors"),
    [
        ([], []),
        ([], [([], 3.0)]),
        ([1], []),
        ([3], []),
        ([2, 2], []),
        ([1, 3], [([], 2.0), ([0], [5.0])]),
        ([1, 2], [([0, 1], [[0.25, 0.75]])]),
        ([2, 2], [([0], [0.0, 1.0]), ([1], [1.0, 0.0])]),
        ([2, 2], [([0, 1], np.ones((2, 2)))] * 3),
    ],
)
def test_degenerate_graphs(backend: Backend, cardinalities: list[int], factors: list) -> None:  # type: ignore[type-arg]
    exactness = EXACTNESS[backend.name]
    graph = FactorGraph.from_factors(cardinalities, factors)
    truth = infer(graph, "enumeration")
    posterior = backend.infer(graph)
    # Nothing is summed here that could round to more than 1e-12.
    allowed = np.full(int(graph.cardinalities.sum()), 1e-12)
    if not exactness.forests:
        allowed = exactness.allowed(graph, posterior)
    assert (np.abs(posterior.marginals.flat - truth.marginals.flat) <= allowed).all()
    if posterior.log_z is not None:
        allowed_log_z = 1e-12 if exactness.forests else exactness.tolerance
        assert posterior.log_z == pytest.approx(truth.log_z, abs=allowed_log_z)
