"""log Z inside torch and JAX, held against finite differences."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph, InputError, MissingDependencyError
from factormodels.synthetic import fr1_forest, fr2
from inference.tasks import autodiff, differentiable_log_partition, log_partition
from tests.inference.graphs import odd_graph


def with_zeros() -> FactorGraph:
    """Return a graph with zeros in its tables, a loop, three states and evidence."""
    rng = np.random.default_rng(5)
    shapes = [((0, 1), (3, 2)), ((1, 2), (2, 2)), ((2, 0), (2, 3)), ((3,), (2,)), ((0, 3), (3, 2))]
    factors = []
    for scope, shape in shapes:
        table = rng.random(shape) + 0.1
        table.flat[1] = 0.0
        factors.append((scope, table))
    return FactorGraph.from_factors([3, 2, 2, 2], factors).with_evidence({3: 0})


GRAPHS = {
    "zeros": with_zeros(),
    "forest": fr1_forest(2, 2, seed=0),
    "loops": fr2(4, 1, density=0.5, seed=0),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_torch_agrees_with_finite_differences(graph: FactorGraph) -> None:
    torch = pytest.importorskip("torch")
    log_z = differentiable_log_partition(graph, "torch")
    whole = torch.tensor(graph.log_values)
    finite = torch.isfinite(whole)

    def of_finite(entries: object) -> object:
        return log_z(whole.masked_scatter(finite, entries))

    entries = whole[finite].clone().requires_grad_()
    assert torch.autograd.gradcheck(of_finite, (entries,), eps=1e-5, atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_jax_agrees_with_finite_differences(graph: FactorGraph) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        log_z = differentiable_log_partition(graph, "jax")
        gradient = np.asarray(jax.jit(jax.grad(log_z))(jax.numpy.asarray(graph.log_values)))
    for entry in np.flatnonzero(np.isfinite(graph.log_values)):
        values = []
        for step in (1e-5, -1e-5):
            shifted = graph.log_values.copy()
            shifted[entry] += step
            values.append(log_value(graph, shifted))
        # Central differences err by the step squared and by rounding over the step.
        assert gradient[entry] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6)
    assert (gradient[~np.isfinite(graph.log_values)] == 0.0).all()


def log_value(graph: FactorGraph, log_values: NDArray[np.float64]) -> float:
    return log_partition(replace(graph, log_values=log_values)).value


def test_both_give_what_the_enumeration_gives_for_odd_graphs() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    for seed in range(30):
        graph = odd_graph(seed)
        value, gradient = log_partition(graph)
        tables = torch.tensor(graph.log_values, requires_grad=True)
        found = differentiable_log_partition(graph, "torch")(tables)
        (3.0 * found).backward()  # type: ignore[no-untyped-call]
        assert found.item() == value
        np.testing.assert_array_equal(tables.grad.numpy(), 3.0 * gradient)
        with jax.enable_x64(True):
            function = jax.value_and_grad(differentiable_log_partition(graph, "jax"))
            found, slope = function(jax.numpy.asarray(graph.log_values))
        assert float(found) == value
        # JAX takes the smallest numbers of all, below 1e-307, for zero.
        np.testing.assert_allclose(np.asarray(slope), gradient, rtol=0.0, atol=1e-300)


def test_batches() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    graph = GRAPHS["forest"]
    rng = np.random.default_rng(0)
    tables = graph.log_values + rng.normal(size=(2, 3, graph.log_values.size))
    expected = np.array([[log_value(graph, row) for row in part] for part in tables])
    batch = torch.tensor(tables, requires_grad=True)
    found = differentiable_log_partition(graph, "torch")(batch)
    found.sum().backward()  # type: ignore[no-untyped-call]
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    assert differentiable_log_partition(graph, "torch")(batch[:0]).shape == (0, 3)
    with jax.enable_x64(True):
        function = differentiable_log_partition(graph, "jax")
        mapped = jax.jit(jax.vmap(jax.value_and_grad(function)))
        values, slopes = mapped(jax.numpy.asarray(tables[0]))
    np.testing.assert_array_equal(np.asarray(values), expected[0])
    np.testing.assert_array_equal(np.asarray(slopes), batch.grad[0].numpy())


def test_the_type_of_the_argument_is_kept() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    graph = GRAPHS["forest"]
    single = torch.tensor(graph.log_values, dtype=torch.float32, requires_grad=True)
    found = differentiable_log_partition(graph, "torch")(single)
    found.backward()  # type: ignore[no-untyped-call]
    assert found.dtype == single.grad.dtype == torch.float32
    # Log tables and log Z are rounded to single precision.
    assert found.item() == pytest.approx(log_partition(graph).value, rel=1e-6)
    array = differentiable_log_partition(graph, "jax")(
        jax.numpy.asarray(graph.log_values, dtype="float32")
    )
    assert array.dtype == np.dtype("float32")
    assert float(array) == pytest.approx(log_partition(graph).value, rel=1e-6)


def test_a_label_is_learned_by_its_log_probability() -> None:
    torch = pytest.importorskip("torch")
    graph = GRAPHS["forest"]
    labelled = differentiable_log_partition(graph.with_evidence({"a1": 1}), "torch")
    free = differentiable_log_partition(graph, "torch")
    tables = torch.tensor(graph.log_values, requires_grad=True)
    optimiser = torch.optim.SGD([tables], lr=1.0)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = free(tables) - labelled(tables)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
    assert (np.diff(losses) < 0.0).all()
    assert losses[-1] < 0.1 * losses[0]


def test_a_wrong_number_of_entries_is_named() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"log tables of shape \(3,\)"):
        differentiable_log_partition(GRAPHS["forest"], "torch")(torch.zeros(3))


@pytest.mark.parametrize(("library", "extra"), [("torch", "pyro"), ("jax", "jax")])
def test_an_absent_library_is_named(
    monkeypatch: pytest.MonkeyPatch, library: autodiff.Library, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    autodiff._torch_function.cache_clear()
    said = rf"need {library}, .* pip install 'factormodels\[{extra}\]'"
    with pytest.raises(MissingDependencyError, match=said):
        autodiff.differentiable(lambda row: (0.0, row), library)
