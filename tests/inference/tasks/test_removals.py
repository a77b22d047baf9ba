"""Posteriors with variables removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import infer
from inference.tasks import removals, without_variables
from tests.inference.tasks.cases import ROUNDING, case
from tests.oracle import oracle

pytestmark = pytest.mark.slow


def stripped(graph: FactorGraph, removed: list[int]) -> FactorGraph:
    """Return the graph with some of its factors 1 everywhere."""
    log_values = graph.log_values.copy()
    for factor in removed:
        log_values[graph.table_starts[factor] : graph.table_starts[factor + 1]] = 0.0
    return replace(graph, log_values=log_values)


def factors_on(graph: FactorGraph, variable: int) -> list[int]:
    slots = np.flatnonzero(graph.scope_variables == variable)
    factors: list[int] = (np.searchsorted(graph.scope_starts, slots, side="right") - 1).tolist()
    return factors


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("seeds", [30, pytest.param(100, marks=pytest.mark.nightly)])
def test_every_variable_of_small_graphs_removed(anywhere: bool, seeds: int) -> None:
    for seed in range(seeds):
        graph, _ = case(seed)
        # Of every other graph state 0, which all variables have.
        state = seed % 2
        targets = np.flatnonzero(graph.cardinalities > state).tolist()
        if anywhere and not targets:
            continue
        effects = without_variables(
            graph, range(graph.n_variables), targets if anywhere else None, state
        )
        for variable in range(graph.n_variables):
            group = factors_on(graph, variable)
            rest = oracle(stripped(graph, group))
            rows_of_variable = effects.removed == variable
            if anywhere:
                assert effects.targets[rows_of_variable].tolist() == targets
            else:
                near = {v for f in group for v in graph.scope(f)} - {variable}
                assert effects.targets[rows_of_variable].tolist() == sorted(near & set(targets))
            for at in np.flatnonzero(rows_of_variable):
                target = int(effects.targets[at])
                where = f"seed {seed}, variable {variable}, target {target}"
                if target == variable:
                    assert np.isnan(effects.without[at])
                    continue
                expected = rest.marginals[graph.names[target]][state]
                assert effects.without[at] == pytest.approx(expected, abs=ROUNDING), where


def test_a_factor_whose_zeros_decide_everything() -> None:
    # With b, a is 1 for certain; without it, 0.2 by the other factor: belief says nothing.
    graph = FactorGraph.from_factors(
        [2, 2], [([0, 1], [[0.0, 0.0], [1.0, 1.0]]), ([0], [0.8, 0.2])]
    )
    effects = without_variables(graph, [1])
    assert (effects.present.tolist(), effects.without.tolist()) == ([1.0], [pytest.approx(0.2)])
    assert effects.contribution.tolist() == [pytest.approx(0.8)]


@pytest.mark.parametrize(
    "graph",
    [fr2(12, 3, density=0.12, seed=2), grid(7, 8, coupling=1.0, field=1.0, seed=0)],
    ids=["fr2", "grid"],
)
def test_larger_graphs_agree_with_running_again(graph: FactorGraph) -> None:
    rng = np.random.default_rng(0)
    targets = rng.choice(graph.n_variables, size=10, replace=False).tolist()
    removed = rng.choice(graph.n_variables, size=12, replace=False).tolist()
    matrix = without_variables(graph, removed, targets).without.reshape(12, 10)
    for row, variable in zip(matrix, removed, strict=True):
        again = infer(stripped(graph, factors_on(graph, variable)), "exact").marginals
        expected = again.of_state(1)[targets]
        expected[np.array(targets) == variable] = np.nan
        np.testing.assert_allclose(row, expected, atol=ROUNDING)


@pytest.mark.parametrize("observed", [False, True])
def test_parts_and_runs_of_a_graph_agree(observed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(5, 5, coupling=1.0, field=0.5, cardinality=4, seed=1)
    if observed:
        graph = graph.with_evidence({7: 2, 12: 1})
    taken: list[bool] = []
    predicted = removals._runs_are_cheaper

    def noted(*arguments: Any) -> bool:
        taken.append(predicted(*arguments))
        return taken[-1]

    monkeypatch.setattr(removals, "_runs_are_cheaper", noted)
    by_runs = without_variables(graph, range(25))
    monkeypatch.setattr(removals, "_runs_are_cheaper", lambda *_: False)
    by_parts = without_variables(graph, range(25))
    assert taken == [True]
    np.testing.assert_array_equal(by_runs.targets, by_parts.targets)
    np.testing.assert_allclose(by_runs.without, by_parts.without, rtol=0.0, atol=ROUNDING)
    # Parts of a response are small.
    monkeypatch.setattr(removals, "_runs_are_cheaper", noted)
    without_variables(fr2(31, 3, density=0.02, seed=0), range(31, 124))
    assert taken == [True, False]


def test_models_are_propagated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = fr2(12, 3, density=0.12, seed=2)
    atoms = list(range(12))
    whole = without_variables(graph, range(12, 30), atoms)
    monkeypatch.setattr("inference.tasks.removals._ENTRIES_AT_ONCE", 5 * len(graph.log_values))
    parts = without_variables(graph, range(12, 30), atoms)
    np.testing.assert_array_equal(parts.without, whole.without)
    near = without_variables(graph, range(12, 30))
    matrix = parts.without.reshape(18, 12)
    kept = near.targets < 12
    expected = matrix[near.removed[kept] - 12, near.targets[kept]]
    # Other sums of the same terms.
    np.testing.assert_allclose(near.without[kept], expected, atol=ROUNDING)


def test_contributions_of_contexts_in_a_large_forest() -> None:
    graph = fr1_forest(20_000, 3, seed=0)
    contexts = np.flatnonzero([name.startswith("c") for name in graph.names])
    effects = without_variables(graph, contexts)
    assert effects.removed.tolist() == contexts.tolist()
    assert (effects.targets < 20_000).all()
    for at in range(0, len(contexts), 9973):
        again = stripped(graph, factors_on(graph, int(contexts[at])))
        expected = infer(again, "exact").marginals.of_state(1)[effects.targets[at]]
        assert effects.without[at] == pytest.approx(expected, abs=ROUNDING)


def test_nothing_to_remove() -> None:
    effects = without_variables(FactorGraph.from_factors([2], []), [0])
    assert effects.without.shape == (0,)
    effects = without_variables(FactorGraph.from_factors([2, 2], []), [0], [1])
    assert effects.without.tolist() == [0.5]
