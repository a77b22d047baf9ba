"""log Z inside torch and JAX: the value and the gradient that `log_partition` has."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph, InputError, MissingDependencyError
from factormodels.synthetic import fr1_forest
from inference.tasks import (
    autodiff,
    differentiable_log_partition,
    log_partition,
    log_partition_hessian,
)
from tests.inference.graphs import odd_graph

FOREST = fr1_forest(2, 2, seed=0)


def log_value(graph: FactorGraph, log_values: NDArray[np.float64]) -> float:
    return log_partition(replace(graph, log_values=log_values)).value


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [4, pytest.param(30, marks=pytest.mark.nightly)])
def test_both_give_what_the_enumeration_gives_for_odd_graphs(seeds: int) -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    for seed in range(seeds):
        graph = odd_graph(seed)
        value, gradient = log_partition(graph)
        tables = torch.tensor(graph.log_values, requires_grad=True)
        log_z = differentiable_log_partition(graph, "torch")(tables)
        (3.0 * log_z).backward()  # type: ignore[no-untyped-call]
        assert log_z.item() == value
        np.testing.assert_array_equal(tables.grad.numpy(), 3.0 * gradient)
        with jax.enable_x64(True):
            function = jax.value_and_grad(differentiable_log_partition(graph, "jax"))
            log_z, slope = function(jax.numpy.asarray(graph.log_values))
        assert float(log_z) == value
        # JAX takes the smallest numbers of all, below 1e-307, for zero.
        np.testing.assert_allclose(np.asarray(slope), gradient, rtol=0.0, atol=1e-300)


def test_batches() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    tables = FOREST.log_values + rng.normal(size=(2, 3, FOREST.log_values.size))
    expected = np.array([[log_value(FOREST, row) for row in part] for part in tables])
    batch = torch.tensor(tables, requires_grad=True)
    log_z = differentiable_log_partition(FOREST, "torch")(batch)
    log_z.sum().backward()  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(log_z.detach().numpy(), expected)
    assert differentiable_log_partition(FOREST, "torch")(batch[:0]).shape == (0, 3)
    with jax.enable_x64(True):
        function = differentiable_log_partition(FOREST, "jax")
        mapped = jax.jit(jax.vmap(jax.value_and_grad(function)))
        values, slopes = mapped(jax.numpy.asarray(tables[0]))
    np.testing.assert_array_equal(np.asarray(values), expected[0])
    np.testing.assert_array_equal(np.asarray(slopes), batch.grad[0].numpy())


SMALL = FactorGraph.from_factors(
    [2] * 3,
    [
        ((0, 1), [[1.0, 0.4], [0.3, 0.9]]),
        ((1, 2), [[0.8, 0.5], [0.7, 0.2]]),
        ((2, 0), [[0.6, 1.1], [0.9, 0.5]]),
        ((0,), [0.4, 0.6]),
    ],
)
"""A cycle, so that no formula for trees would do."""


@pytest.mark.slow
def test_second_derivatives_in_torch() -> None:
    torch = pytest.importorskip("torch")
    function = differentiable_log_partition(SMALL, "torch")
    tables = torch.tensor(SMALL.log_values)
    expected = log_partition_hessian(SMALL)
    assert np.abs(expected).max() > 0.01
    hessian = torch.autograd.functional.hessian(function, tables)
    np.testing.assert_array_equal(hessian.numpy(), expected)
    batch = torch.stack([tables, tables + 0.3 * torch.randn_like(tables)]).requires_grad_()
    # By differences of values and of first derivatives.
    assert torch.autograd.gradcheck(function, batch)
    assert torch.autograd.gradgradcheck(function, batch)
    direction = torch.ones_like(tables)
    _, product = torch.autograd.functional.hvp(function, tables, direction)
    # Sums of the same numbers in another order.
    np.testing.assert_allclose(product.numpy(), expected.sum(axis=1), atol=1e-15)


@pytest.mark.slow
def test_second_derivatives_in_jax() -> None:
    jax = pytest.importorskip("jax")
    expected = log_partition_hessian(SMALL)
    with jax.enable_x64(True):
        function = differentiable_log_partition(SMALL, "jax")
        tables = jax.numpy.asarray(SMALL.log_values)
        for hessian in (
            jax.hessian(function),
            jax.jacrev(jax.jacrev(function)),
            jax.jacfwd(jax.jacfwd(function)),
            jax.jit(jax.hessian(function)),
        ):
            np.testing.assert_allclose(np.asarray(hessian(tables)), expected, atol=1e-15)
        direction = jax.numpy.asarray(np.random.default_rng(0).normal(size=tables.shape))
        _, moved = jax.jvp(jax.grad(function), (tables,), (direction,))
        np.testing.assert_allclose(np.asarray(moved), expected @ direction, atol=1e-14)
        rows = jax.numpy.stack([tables, tables + 0.1])
        assert jax.vmap(jax.hessian(function))(rows).shape == (2, *expected.shape)


def test_second_derivatives_at_a_point_are_computed_once() -> None:
    torch = pytest.importorskip("torch")
    points = []

    def second(row: NDArray[np.float64]) -> NDArray[np.float64]:
        points.append(row)
        return np.diag(row)

    function = autodiff.differentiable(lambda row: (row.sum(), row**2 / 2.0), "torch", second)
    row = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(function, row)
    np.testing.assert_array_equal(hessian.numpy(), np.diag([1.0, 2.0, 3.0]))
    assert len(points) == 1
    torch.autograd.functional.hessian(function, row + 1.0)
    assert len(points) == 2


def test_a_derivative_that_there_is_not_is_an_error_and_never_zero() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    tables = torch.tensor(SMALL.log_values, requires_grad=True)
    function = differentiable_log_partition(SMALL, "torch")
    (first,) = torch.autograd.grad(function(tables), tables, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), tables, create_graph=True)
    with pytest.raises(NotImplementedError, match="no third derivatives"):
        second.sum().backward()
    rows = SMALL.log_values
    with pytest.raises(NotImplementedError, match="no third derivatives"):
        jax.jacfwd(jax.hessian(differentiable_log_partition(SMALL, "jax")))(jax.numpy.asarray(rows))

    def sums(row: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return float(row.sum()), np.ones(row.size)

    with pytest.raises(NotImplementedError, match="no second derivatives"):
        torch.autograd.functional.hessian(autodiff.differentiable(sums, "torch"), torch.zeros(2))
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        jax.hessian(autodiff.differentiable(sums, "jax"))(jax.numpy.zeros(2))


def test_the_type_of_the_argument_is_kept() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    single = torch.tensor(FOREST.log_values, dtype=torch.float32, requires_grad=True)
    log_z = differentiable_log_partition(FOREST, "torch")(single)
    log_z.backward()  # type: ignore[no-untyped-call]
    assert log_z.dtype == single.grad.dtype == torch.float32
    # Log tables and log Z are rounded to single precision.
    assert log_z.item() == pytest.approx(log_partition(FOREST).value, rel=1e-6)
    array = differentiable_log_partition(FOREST, "jax")(
        jax.numpy.asarray(FOREST.log_values, dtype="float32")
    )
    assert array.dtype == np.dtype("float32")
    assert float(array) == pytest.approx(log_partition(FOREST).value, rel=1e-6)


def test_a_wrong_number_of_entries_is_named() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"log tables of shape \(3,\)"):
        differentiable_log_partition(FOREST, "torch")(torch.zeros(3))


@pytest.mark.parametrize(("library", "extra"), [("torch", "pyro"), ("jax", "jax")])
def test_an_absent_library_is_named(
    monkeypatch: pytest.MonkeyPatch, library: autodiff.Library, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    autodiff._torch_function.cache_clear()
    message = rf"need {library}, .* pip install 'factorfacts\[{extra}\]'"
    with pytest.raises(MissingDependencyError, match=message):
        autodiff.differentiable(lambda row: (0.0, row), library)
