"""Posteriors averaged over draws of the relation probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from factormodels import FactGraph
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.synthetic import fact_graph
from inference import TooLargeError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.messages.lbp import LoopyBeliefPropagation
from inference.tasks.uncertain_relations import AveragedPosterior, averaged
from tests.chance import DEVIATIONS
from tests.inference.tasks.uncertain_relations.cases import (
    ROUNDING,
    contradictory,
    enumerated,
    hub,
    small_fact_graph,
    with_probability,
)
from tests.refusals import refused


def run(graph: FactGraph, encoding: str = "implication", draws: int = 3) -> AveragedPosterior:
    return averaged(graph, encoding=encoding, concentration=20.0, draws=draws, seed=4)


def with_drawn(graph: FactGraph, result: AveragedPosterior, draw: int) -> FactGraph:
    drawn = result.relation_probabilities[draw].tolist()
    relations = zip(graph.relations, drawn, strict=True)
    return replace(graph, relations=tuple(replace(r, probability=p) for r, p in relations))


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
def test_every_draw_is_the_enumeration_s(encoding: str) -> None:
    for seed in range(20):
        graph = small_fact_graph(seed)
        result = run(graph, encoding)
        for draw in range(3):
            expected = enumerated(with_drawn(graph, result, draw), encoding)
            np.testing.assert_allclose(
                result.posteriors[draw], expected, atol=ROUNDING, err_msg=f"seed {seed}"
            )


@pytest.mark.parametrize("graph", [hub(50), fact_graph(6, 3, 0.1, 0.05, seed=1)])
def test_one_plan_for_all_draws_is_one_run_per_draw_to_the_last_bit(graph: FactGraph) -> None:
    result = run(graph)
    for draw in range(3):
        posterior = infer(with_drawn(graph, result, draw).to_factor_graph("implication"))
        again = posterior.marginals.of_state(1, graph.atom_ids)
        np.testing.assert_array_equal(result.posteriors[draw], again)


def test_the_summary_is_that_of_the_draws() -> None:
    graph = fact_graph(4, 2, 0.2, seed=3)
    result = averaged(
        graph, encoding="implication", concentration=5.0, draws=11, seed=0, levels=(0.0, 0.5, 1.0)
    )
    draws = np.sort(result.posteriors, axis=0)
    np.testing.assert_allclose(result.mean, draws.mean(axis=0), rtol=1e-15)
    spread = np.sqrt(((draws - draws.mean(axis=0)) ** 2).sum(axis=0) / 10)
    # A sum of 11 squares.
    np.testing.assert_allclose(result.standard_deviation, spread, rtol=1e-13)
    np.testing.assert_allclose(result.standard_error, spread / math.sqrt(11), rtol=1e-13)
    np.testing.assert_array_equal(result.quantiles.T, draws[[0, 5, 10]])
    assert result.atom_ids == graph.atom_ids
    assert result.not_converged == 0


def test_draws_have_the_mean_and_variance_of_the_law() -> None:
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.8)
    graph = FactGraph("one", (Atom("a"),), (Context("c", prior=0.9),), (relation,))
    n, c = 4000, 9.0
    result = averaged(graph, encoding="implication", concentration=c, draws=n, seed=7)
    drawn = result.relation_probabilities[:, 0]
    variance = 0.8 * 0.2 / (c + 1.0)
    assert abs(drawn.mean() - 0.8) < DEVIATIONS * math.sqrt(variance / n)
    # A squared deviation from 0.8 has itself a standard deviation of at most
    # sqrt(E[(p - 0.8)**4]) <= 0.8 sqrt(variance), since |p - 0.8| <= 0.8.
    assert abs(drawn.var() - variance) < DEVIATIONS * 0.8 * math.sqrt(variance / n)
    # One entailment by hand: f(c, 1) = p and f(1, 0) = 1 - p, f(0, 0) = p.
    expected = drawn / (drawn + 0.9 * (1 - drawn) + 0.1 * drawn)
    np.testing.assert_allclose(result.posteriors[:, 0], expected, atol=ROUNDING)


def test_certain_and_neutral_relations_stay_fixed() -> None:
    kinds = [RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL]
    relations = tuple(
        Relation(f"c{i}", f"a{i}", kind, p)
        for i, (kind, p) in enumerate(zip(kinds, [1.0, 0.0, 0.7], strict=True))
    )
    atoms = tuple(Atom(f"a{i}") for i in range(3))
    contexts = tuple(Context(f"c{i}", prior=0.5) for i in range(3))
    graph = FactGraph("certain", atoms, contexts, relations)
    result = run(graph)
    np.testing.assert_array_equal(result.relation_probabilities, [[1.0, 0.0, 0.7]] * 3)
    np.testing.assert_array_equal(result.standard_deviation, 0.0)
    np.testing.assert_allclose(result.mean, enumerated(graph, "implication"), atol=ROUNDING)


def test_a_seed_decides_the_draws_and_a_high_concentration_the_point() -> None:
    graph = fact_graph(3, 2, 0.2, seed=2)
    first, second = run(graph), run(graph)
    np.testing.assert_array_equal(first.posteriors, second.posteriors)
    other = averaged(graph, encoding="implication", concentration=20.0, draws=3, seed=5)
    assert not np.array_equal(first.posteriors, other.posteriors)
    sharp = averaged(graph, encoding="implication", concentration=1e12, draws=3, seed=0)
    point = infer(graph.to_factor_graph("implication")).marginals.of_state(1, graph.atom_ids)
    # Draws lie about 1e-6 from p*, and a posterior moves by a few times as much.
    np.testing.assert_allclose(sharp.mean, point, atol=1e-4)


def test_other_backends_see_the_same_draws_and_say_where_they_failed() -> None:
    graph = fact_graph(4, 2, 0.3, seed=6)
    how: dict[str, Any] = {"encoding": "implication", "concentration": 20.0, "draws": 2, "seed": 4}
    reference = averaged(graph, backend="enumeration", **how)
    exact = run(graph, draws=2)
    np.testing.assert_allclose(exact.posteriors, reference.posteriors, atol=ROUNDING)
    cut = averaged(graph, backend=LoopyBeliefPropagation(max_iterations=1), **how)
    assert cut.not_converged == 2


def test_what_does_not_fit_is_refused() -> None:
    graph = fact_graph(8, 2, 0.5, seed=0)
    with pytest.raises(TooLargeError, match="the best elimination order found"):
        averaged(
            graph,
            encoding="implication",
            concentration=1.0,
            draws=2,
            seed=0,
            backend=Exact(memory_limit=1000),
        )


@pytest.mark.parametrize("backend", ["exact", "enumeration"])
def test_contradiction_is_named(backend: str) -> None:
    graph = contradictory()
    with pytest.raises(ZeroPartitionError, match="draw 0 of the relation probabilities"):
        averaged(graph, encoding="implication", concentration=1.0, draws=2, seed=0, backend=backend)
    fine = with_probability(graph, 1, 0.5)
    assert run(fine).mean == pytest.approx([1.0])


def test_bad_requests_are_named() -> None:
    graph = hub(2)
    good = {"encoding": "implication", "concentration": 1.0, "draws": 2, "seed": 0}
    for name, value, message in [
        ("encoding", "no", "the encoding 'no' is unknown"),
        ("concentration", 0.0, r"the concentration 0\.0 is not a finite number"),
        ("concentration", math.nan, "the concentration nan"),
        ("concentration", math.inf, "the concentration inf"),
        ("draws", 1, "draws is 1; give a whole number of at least 2"),
        ("draws", 2.0, r"draws is 2\.0"),
        ("seed", -1, "seed is -1; give a whole number of at least 0"),
        ("levels", (0.5, 1.5), "levels is"),
        ("backend", "no", "no"),
    ]:
        refused(message, averaged, graph, **{**good, name: value})
