"""Posteriors with factors or variables removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr1_forest, fr2, grid
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks import without_factors, without_variables
from tests.inference.tasks.cases import ROUNDING, case
from tests.oracle import oracle
from tests.refusals import refused

pytestmark = pytest.mark.slow


def stripped(graph: FactorGraph, removed: list[int]) -> FactorGraph:
    """Return the graph with some of its factors 1 everywhere."""
    log_values = graph.log_values.copy()
    for factor in removed:
        log_values[graph.table_starts[factor] : graph.table_starts[factor + 1]] = 0.0
    return replace(graph, log_values=log_values)


def factors_on(graph: FactorGraph, variable: int) -> list[int]:
    slots = np.flatnonzero(graph.scope_variables == variable)
    found: list[int] = (np.searchsorted(graph.scope_starts, slots, side="right") - 1).tolist()
    return found


def test_every_factor_of_small_graphs_removed() -> None:
    pairs = 0
    for seed in range(150):
        graph, truth = case(seed)
        effects = without_factors(graph)
        assert np.array_equal(
            effects.contribution, effects.present - effects.without, equal_nan=True
        )
        expected = {
            (f, v)
            for f in range(graph.n_factors)
            for v in graph.scope(f)
            if graph.cardinalities[v] > 1
        }
        assert set(zip(effects.removed.tolist(), effects.targets.tolist(), strict=True)) == expected
        for factor in np.unique(effects.removed).tolist():
            rest = oracle(stripped(graph, [factor]))
            for at in np.flatnonzero(effects.removed == factor):
                name = graph.names[effects.targets[at]]
                where = f"seed {seed}, factor {factor}, target {name}"
                present, without = truth.marginals[name][1], rest.marginals[name][1]
                assert effects.present[at] == pytest.approx(present, abs=ROUNDING), where
                assert effects.without[at] == pytest.approx(without, abs=ROUNDING), where
                pairs += 1
    assert pairs > 1000


def test_effects_on_targets_anywhere() -> None:
    for seed in range(100):
        graph, _ = case(seed)
        targets = np.flatnonzero(graph.cardinalities > 1)[::-1].tolist()
        if not targets:
            continue
        effects = without_factors(graph, targets=targets)
        matrix = effects.without.reshape(graph.n_factors, len(targets))
        for factor in range(graph.n_factors):
            rest = oracle(stripped(graph, [factor]))
            expected = [rest.marginals[graph.names[v]][1] for v in targets]
            np.testing.assert_allclose(
                matrix[factor], expected, atol=ROUNDING, err_msg=f"seed {seed}, factor {factor}"
            )


@pytest.mark.parametrize("anywhere", [False, True])
def test_every_variable_of_small_graphs_removed(anywhere: bool) -> None:
    for seed in range(100):
        graph, _ = case(seed)
        targets = np.flatnonzero(graph.cardinalities > 1).tolist()
        if anywhere and not targets:
            continue
        effects = without_variables(graph, range(graph.n_variables), targets if anywhere else None)
        for variable in range(graph.n_variables):
            group = factors_on(graph, variable)
            rest = oracle(stripped(graph, group))
            found = effects.removed == variable
            if anywhere:
                assert effects.targets[found].tolist() == targets
            else:
                near = {v for f in group for v in graph.scope(f)} - {variable}
                assert effects.targets[found].tolist() == sorted(near & set(targets))
            for at in np.flatnonzero(found):
                target = int(effects.targets[at])
                where = f"seed {seed}, variable {variable}, target {target}"
                if target == variable:
                    assert np.isnan(effects.without[at])
                    continue
                expected = rest.marginals[graph.names[target]][1]
                assert effects.without[at] == pytest.approx(expected, abs=ROUNDING), where


def test_a_factor_whose_zeros_decide_everything() -> None:
    # With the first factor x is 1 for certain; without it, 0.2 by the second: belief says nothing.
    graph = FactorGraph.from_factors(
        [2, 2], [([0], [0.0, 1.0]), ([0], [0.8, 0.2]), ([0, 1], [[0.9, 0.1], [0.0, 1.0]])]
    )
    effects = without_factors(graph, [0], targets=[0, 1])
    assert effects.present.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(effects.without, [0.2, 0.28], atol=1e-15)


@pytest.mark.parametrize(
    "graph",
    [fr2(12, 3, density=0.12, seed=2), grid(7, 8, coupling=1.0, field=1.0, seed=0)],
    ids=["fr2", "grid"],
)
def test_larger_graphs_agree_with_running_again(graph: FactorGraph) -> None:
    rng = np.random.default_rng(0)
    targets = rng.choice(graph.n_variables, size=10, replace=False).tolist()
    factors = rng.choice(graph.n_factors, size=12, replace=False).tolist()
    matrix = without_factors(graph, factors, targets).without.reshape(12, 10)
    for row, factor in zip(matrix, factors, strict=True):
        again = infer(stripped(graph, [factor]), "exact").marginals.of_state(1)[targets]
        np.testing.assert_allclose(row, again, atol=ROUNDING)
    removed = rng.choice(graph.n_variables, size=12, replace=False).tolist()
    matrix = without_variables(graph, removed, targets).without.reshape(12, 10)
    for row, variable in zip(matrix, removed, strict=True):
        again = infer(stripped(graph, factors_on(graph, variable)), "exact").marginals
        expected = again.of_state(1)[targets]
        expected[np.array(targets) == variable] = np.nan
        np.testing.assert_allclose(row, expected, atol=ROUNDING)


def test_targets_may_be_taken_in_parts() -> None:
    graph = fr2(12, 3, density=0.12, seed=2)
    atoms = list(range(12))
    whole = without_factors(graph, targets=atoms)
    needed = infer(graph, "exact").stats["predicted_bytes"]
    limit = needed + 8 * graph.n_factors * 14
    parts = without_factors(graph, targets=atoms, exact=Exact(memory_limit=2 * limit))
    np.testing.assert_allclose(parts.without, whole.without, atol=1e-13)


def test_what_each_context_contributes_to_the_atoms_of_a_large_forest() -> None:
    graph = fr1_forest(20_000, 3, seed=0)
    contexts = np.flatnonzero([name.startswith("c") for name in graph.names])
    effects = without_variables(graph, contexts)
    assert effects.removed.tolist() == contexts.tolist()
    assert (effects.targets < 20_000).all()
    for at in range(0, len(contexts), 9973):
        again = stripped(graph, factors_on(graph, int(contexts[at])))
        expected = infer(again, "exact").marginals.of_state(1)[effects.targets[at]]
        assert effects.without[at] == pytest.approx(expected, abs=ROUNDING)


def test_another_state_may_be_asked_for() -> None:
    graph = FactorGraph.from_factors([3, 2], [([0, 1], np.arange(1.0, 7.0).reshape(3, 2))])
    effects = without_factors(graph, state=2)
    assert effects.targets.tolist() == [0]  # the other one has no state 2
    assert effects.present[0] == pytest.approx(11.0 / 21.0, abs=1e-15)
    assert effects.without[0] == pytest.approx(1.0 / 3.0, abs=1e-15)


def test_nothing_to_remove() -> None:
    effects = without_factors(FactorGraph.from_factors([2], []))
    assert effects.without.shape == (0,)
    effects = without_factors(FactorGraph.from_factors([], [([], 3.0)]))
    assert effects.without.shape == (0,)
    effects = without_variables(FactorGraph.from_factors([2, 2], []), [0], [1])
    assert effects.without.tolist() == [0.5]


def test_bad_requests_are_named() -> None:
    graph = fr1_forest(2, 1, seed=0)
    without = without_factors
    refused("there is no factor number 99; they run from 0 to", without, graph, [99])
    refused("give a list of numbers of factors", without, graph, [0.5])
    refused("targets name 'b', which is no", without, graph, [0], ["b"])
    refused("'a1' has no state 2; its", without, graph, [0], ["a1"], 2)
    refused("the state -1 is not a number of a state", without, graph, [0], None, -1)
    refused("variables name 'b', which is no", without_variables, graph, ["b"])
    contradictory = FactorGraph.from_factors([2], [([0], [0.0, 1.0]), ([0], [1.0, 0.0])])
    with pytest.raises(ZeroPartitionError):
        without_factors(contradictory)
    wide = fr2(12, 3, density=0.12, seed=2)
    needed = infer(wide, "exact").stats["predicted_bytes"]
    with pytest.raises(TooLargeError, match="under removal would take"):
        without_factors(wide, targets=range(12), exact=Exact(memory_limit=needed))
