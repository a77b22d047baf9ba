"""Derivatives of the atoms' posteriors with respect to the relation probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactGraph
from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.synthetic import fact_graph
from inference import InferenceError, ZeroPartitionError, infer
from inference.exact.backend import Exact
from inference.tasks.uncertain_relations import sensitivity
from tests.inference.tasks.uncertain_relations.cases import (
    ROUNDING,
    contradictory,
    enumerated,
    hub,
    small_fact_graph,
    with_probability,
)
from tests.refusals import refused

STEP = 1e-5

FINITE = 1e-6
"""The third derivative of a posterior is below 1e4 here, and rounding 1e-15 is divided by STEP."""


def posteriors(graph: FactGraph, encoding: str) -> NDArray[np.float64]:
    return infer(graph.to_factor_graph(encoding)).marginals.of_state(1, graph.atom_ids)


def finite_difference(graph: FactGraph, relation: int, encoding: str) -> NDArray[np.float64]:
    """Return the derivative by three points: one-sided at the ends of [0, 1]."""
    p = graph.relations[relation].probability

    def at(steps: int) -> NDArray[np.float64]:
        moved = with_probability(graph, relation, p + steps * STEP)
        return posteriors(moved, encoding)

    if p < STEP:
        return (-3.0 * at(0) + 4.0 * at(1) - at(2)) / (2.0 * STEP)
    if p > 1.0 - STEP:
        return (3.0 * at(0) - 4.0 * at(-1) + at(-2)) / (2.0 * STEP)
    return (at(1) - at(-1)) / (2.0 * STEP)


def enumerated_derivative(graph: FactGraph, relation: int, encoding: str) -> NDArray[np.float64]:
    """Return the derivative from three enumerations, without a step.

    Both Z(a true) and Z are affine in p, so P is a ratio (u + v x) / (1 + w x) of the distance x
    from p, and its derivative v - u w at x = 0 follows from its values at three distances.
    """
    p = graph.relations[relation].probability
    toward = -1.0 if p > 0.5 else 1.0
    x, y = 0.2 * toward, 0.4 * toward
    here, near, far = (
        enumerated(with_probability(graph, relation, p + step), encoding) for step in (0.0, x, y)
    )
    # near (1 + w x) = here + v x and far (1 + w y) = here + v y. Where P moves not at all, neither
    # does it at p: a ratio of affine functions is constant or takes no value twice.
    rise = far - near
    slopes = (near - here) / x - (far - here) / y
    w = np.divide(slopes, rise, out=np.zeros(len(here)), where=np.abs(rise) > 1e-13)
    derivative: NDArray[np.float64] = (near - here) * (1.0 / x + w)
    return derivative


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
def test_small_graphs_against_the_enumeration(encoding: str) -> None:
    certain = interior = 0
    for seed in range(60):
        graph = small_fact_graph(seed)
        found = sensitivity(graph, encoding=encoding)
        assert found.shape == (len(graph.atoms), len(graph.relations))
        for number, relation in enumerate(graph.relations):
            if relation.kind is RelationKind.NEUTRAL:
                np.testing.assert_array_equal(found[:, number], 0.0)
                continue
            expected = enumerated_derivative(graph, number, encoding)
            # Enumerated posteriors are right to 1e-15; w is a ratio of their differences, and where
            # those are small it is multiplied by one as small.
            np.testing.assert_allclose(
                found[:, number], expected, rtol=1e-6, atol=1e-7, err_msg=f"seed {seed}, {number}"
            )
            certain += relation.probability in (0.0, 1.0)
            interior += relation.probability not in (0.0, 1.0)
    assert certain > 30
    assert interior > 100


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
@pytest.mark.parametrize(
    "graph",
    [hub(50), fact_graph(6, 3, 0.1, 0.05, seed=1), fact_graph(5, 2, seed=2)],
    ids=["hub", "fr3", "fr1"],
)
def test_larger_graphs_against_finite_differences(graph: FactGraph, encoding: str) -> None:
    graph = with_probability(graph, 0, 1.0)
    graph = with_probability(graph, 3, 0.0)
    found = sensitivity(graph, encoding=encoding)
    assert np.abs(found).max() > 1e-3
    for number in range(0, len(graph.relations), 3):
        expected = finite_difference(graph, number, encoding)
        np.testing.assert_allclose(found[:, number], expected, atol=FINITE)


def test_one_entailment_by_hand() -> None:
    relation = Relation("c", "a", RelationKind.ENTAILMENT, 0.8)
    graph = FactGraph("one", (Atom("a"),), (Context("c", prior=0.9),), (relation,))
    for p in (0.0, 1e-12, 0.3, 0.8, 1.0 - 1e-12, 1.0):
        # P = p / (p + 0.9 (1 - p) + 0.1 p) = p / (0.9 + 0.2 p)
        found = sensitivity(with_probability(graph, 0, p), encoding="implication")
        np.testing.assert_allclose(found, 0.9 / (0.9 + 0.2 * p) ** 2, rtol=1e-12)


def test_components_share_propagations_and_do_not_mix() -> None:
    graph = small_fact_graph(1)
    other = small_fact_graph(2)
    renamed = {name: f"x{name}" for name in other.atom_ids + other.context_ids}
    both = FactGraph(
        "both",
        graph.atoms + tuple(replace(item, id=renamed[item.id]) for item in other.atoms),
        graph.contexts + tuple(replace(item, id=renamed[item.id]) for item in other.contexts),
        graph.relations
        + tuple(
            replace(r, source=renamed[r.source], target=renamed[r.target]) for r in other.relations
        ),
    )
    found = sensitivity(both, encoding="implication")
    n, m = len(graph.atoms), len(graph.relations)
    np.testing.assert_allclose(
        found[:n, :m], sensitivity(graph, encoding="implication"), atol=ROUNDING
    )
    np.testing.assert_allclose(
        found[n:, m:], sensitivity(other, encoding="implication"), atol=ROUNDING
    )
    np.testing.assert_array_equal(found[:n, m:], 0.0)
    np.testing.assert_array_equal(found[n:, :m], 0.0)


def test_a_forest_takes_as_many_propagations_as_its_largest_component_has_atoms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = fact_graph(40, 3, seed=0)
    calls = []
    calibrate = Exact.calibrate

    def counted(exact: Exact, factor_graph: object) -> object:
        calls.append(factor_graph)
        return calibrate(exact, factor_graph)  # type: ignore[arg-type]

    monkeypatch.setattr(Exact, "calibrate", counted)
    sensitivity(graph, encoding="implication")
    # The whole graph; log Z with one atom clamped in every tree.
    assert len(calls) <= 3


def test_nothing_to_differentiate() -> None:
    assert sensitivity(FactGraph("bare", (Atom("a"),)), encoding="implication").shape == (1, 0)
    neutral = Relation("c", "a", RelationKind.NEUTRAL, 0.9)
    graph = FactGraph("neutral", (Atom("a"),), (Context("c"),), (neutral,))
    np.testing.assert_array_equal(sensitivity(graph, encoding="conditional"), [[0.0]])


def test_impossible_graphs_and_bad_requests_are_named() -> None:
    graph = contradictory()
    with pytest.raises(ZeroPartitionError):
        sensitivity(graph, encoding="implication")
    refused("the encoding 'no' is unknown", sensitivity, graph, encoding="no")


def test_a_derivative_beyond_floating_point_is_refused() -> None:
    # One relation says that the atom is true; 1,500 others make that about 1e-1400 probable.
    many = tuple(Context(f"c{i}", prior=1.0) for i in range(1500))
    against = tuple(Relation(c.id, "a", RelationKind.CONTRADICTION, 0.9) for c in many)
    equal = Relation("a", "b", RelationKind.EQUIVALENCE, 1.0)
    known = FactGraph("far", (Atom("a"), Atom("b", prior=1.0)), many, (*against, equal))
    with pytest.raises(InferenceError, match=r"'a' -> 'b' of probability 1\.0 leaves"):
        sensitivity(known, encoding="implication")
