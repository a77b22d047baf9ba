"""Elimination in JAX: the numbers of `exact`, for many settings."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import (
    InferenceError,
    LogZKind,
    Posterior,
    ZeroPartitionError,
    infer,
    infer_batch,
    infer_settings,
)
from inference.backend import TooLargeError
from inference.peers import jax_backends
from inference.peers.jax_backends import JaxElimination, _answers
from tests.inference.answers import assert_agree
from tests.inference.graphs import odd_graph

pytestmark = pytest.mark.slow

SAME_TERMS = 1e-10
"""The same terms, summed in doubles in another order."""


def compiled() -> int:
    """How many structures and numbers of settings have been compiled so far."""
    size: int = cast("Any", _answers)._cache_size()
    return size


@pytest.mark.parametrize("seed", range(6))
def test_odd_graphs_have_the_posteriors_of_exact(seed: int) -> None:
    graph = odd_graph(seed)
    found = infer(graph, "exact_jax")
    assert found.log_z_kind is LogZKind.EXACT
    assert_agree(found, infer(graph), SAME_TERMS, rel=SAME_TERMS, where=f"seed {seed}")


def test_settings_with_zeros_contradictions_and_evidence() -> None:
    graph = fr2(4, 2, density=0.3, seed=1)
    rng = np.random.default_rng(0)
    rows = graph.log_values + rng.normal(size=(7, len(graph.log_values)))
    rows[1, 0] = rows[2, 3] = rows[4, 3] = -np.inf
    impossible = rows.copy()
    impossible[5, :2] = -np.inf
    for observed in (graph, graph.with_evidence({2: 1, 5: 0})):
        ours = infer_settings(observed, rows)
        theirs = infer_settings(observed, rows, "exact_jax")
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            assert_agree(one, other, SAME_TERMS, rel=SAME_TERMS, where=f"setting {number}")
        results = JaxElimination().solve_settings(graph, impossible)
        assert [isinstance(result, Posterior) for result in results] == [True] * 5 + [False, True]
        assert isinstance(results[5], ZeroPartitionError)
        with pytest.raises(InferenceError, match="setting 5"):
            infer_settings(graph, impossible, "exact_jax")


def test_a_thousand_small_factors_on_one_variable_do_not_underflow() -> None:
    factors = [((0,), [1e-9, 2e-9])] * 1000
    graph = FactorGraph.from_factors([2, 3], [*factors, ((0, 1), [[1, 2, 3], [3, 2, 1]])])
    assert_agree(infer(graph, "exact_jax"), infer(graph), SAME_TERMS, rel=SAME_TERMS, where="")


def test_parts_and_padding_leave_every_setting_its_own_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = fr2(5, 2, density=0.2, seed=3)
    rng = np.random.default_rng(1)
    rows = graph.log_values + rng.normal(size=(11, len(graph.log_values)))
    whole = JaxElimination().answers(graph, rows)
    needed = JaxElimination().predict(graph).bytes
    # Four at a time (each holds four copies of its tables), and the last three padded.
    monkeypatch.setattr(jax_backends, "_MOST_BYTES_AT_A_TIME", 4 * 5 * needed)
    before = compiled()
    parts = JaxElimination().answers(graph, rows)
    assert compiled() == before + 1
    np.testing.assert_allclose(parts[0], whole[0], rtol=SAME_TERMS)
    np.testing.assert_allclose(parts[1], whole[1], atol=SAME_TERMS)


def test_a_batch_mixes_structures() -> None:
    graphs = [fr2(3, 2, density=0.2, seed=seed) for seed in (0, 1, 0, 1, 0)]
    theirs = infer_batch(graphs, "exact_jax")
    for one, other in zip(theirs, infer_batch(graphs), strict=True):
        assert_agree(one, other, SAME_TERMS, rel=SAME_TERMS, where="")


def test_what_does_not_fit_is_refused_before_it_is_compiled() -> None:
    wide = grid(12, 12, coupling=1.0, field=0.5, seed=0)
    before = compiled()
    with pytest.raises(TooLargeError, match=r"one graph would take .* allowed \(by memory_limit"):
        infer(wide, "exact_jax", memory_limit=100_000)
    assert compiled() == before
