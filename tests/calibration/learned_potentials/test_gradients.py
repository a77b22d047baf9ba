"""Objectives against enumeration and finite differences, for every parameter and backend."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.learned_potentials.learned import apply
from calibration.learned_potentials.objectives import (
    LearningProblem,
    Objective,
    differences,
    problem,
)
from calibration.learned_potentials.terms import (
    Potentials,
    Term,
    level,
    probability,
    resolve,
    temperature,
)
from factormodels import FactGraph, Relation
from inference import get_backend
from tests.calibration.learned_potentials.data import small_graphs
from tests.oracle import oracle
from tests.refusals import refused

STEP = 1e-4
"""Central differences err by the square of the step times a third derivative, below 10 here, and by
the rounding of log Z, 1e-14, divided by it."""


def topics(graph: FactGraph) -> list[dict[str, float]]:
    return [{graph.topic: 1.0}] * len(graph.atoms)


def half(graph: FactGraph, relation: Relation) -> str:
    strong = relation.probability > 0.5 and bool(graph.topic)
    return "strong" if strong else "weak"


def told(graph: FactGraph) -> list[dict[str, float]]:
    return [
        {"level": 1.0, "p": r.probability, "pair": float(len(r.source + r.target) % 3)}
        for r in graph.relations
    ]


def place(graph: FactGraph) -> list[dict[str, float]]:
    return [{"level": 1.0, "place": float(at)} for at in range(len(graph.atoms))]


ATOMS, CONTEXTS = level("atom_prior"), level("context_prior", "contexts")

SPECIFICATIONS = {
    "shared": Potentials(ATOMS, CONTEXTS, temperature()),
    "grouped": Potentials(Term(topics, "atom_prior", None), None, temperature("kind")),
    "classes": Potentials(ATOMS, None, probability(half)),
    "kinds": Potentials(None, CONTEXTS, probability("kind")),
    "columns": Potentials(Term(place, "claim", {"level"}), None, Term(told, "relation", {"level"})),
    "priors": Potentials(ATOMS, CONTEXTS, None),
}


def posed(
    name: str, encoding: str, seed: int, backend: str = "exact", objective: str = "likelihood"
) -> tuple[LearningProblem, list[FactGraph], Potentials, np.ndarray]:
    chosen = SPECIFICATIONS[name]
    potentials = replace(chosen, encoding=encoding)
    graphs = small_graphs(seed)
    parameters = resolve(potentials, graphs)
    settings = {"tolerance": 1e-12, "damping": 0.2} if backend == "lbp" else {}
    source = get_backend(backend, **settings)
    task = problem(graphs, potentials, parameters, source, Objective(objective))
    start = np.array([item.start for item in parameters])
    rng = np.random.default_rng([seed, 1])
    return task, graphs, potentials, start + rng.normal(size=len(start))


def enumerated(graph: FactGraph, encoding: str, objective: str) -> float:
    """Return what one response adds to an objective, by enumeration."""
    truth = oracle(graph.to_factor_graph(encoding))
    labels = {atom.id: int(atom.label) for atom in graph.atoms if atom.label is not None}
    if objective == "likelihood":
        return -math.log(truth.probability(labels))
    p = [truth.marginals[name][state] for name, state in labels.items()]
    return sum(-math.log(x) if objective == "log_loss" else (1.0 - x) ** 2 for x in p)


CASES = list(itertools.product(SPECIFICATIONS, ["implication", "conditional"], Objective))


@pytest.mark.parametrize(("name", "encoding", "objective"), CASES)
def test_objectives_are_those_of_enumeration(
    name: str, encoding: str, objective: Objective
) -> None:
    task, graphs, potentials, theta = posed(name, encoding, 3, objective=objective)
    parameters = resolve(potentials, graphs)
    expected = [
        enumerated(apply(g, potentials, parameters, theta), encoding, objective) for g in graphs
    ]
    # Sums of a few hundred products of numbers between 1e-3 and 1.
    assert task.value(theta) == pytest.approx(math.fsum(expected), abs=1e-11)


@pytest.mark.parametrize(("name", "encoding", "objective"), CASES)
def test_exact_gradients_are_those_of_finite_differences(
    name: str, encoding: str, objective: Objective
) -> None:
    largest = 0.0
    for seed in range(4):
        task, _, _, theta = posed(name, encoding, seed, objective=objective)
        assert task.has_beliefs
        value, gradient = task.value_and_gradient(theta)
        assert value == pytest.approx(task.value(theta), abs=1e-12)
        np.testing.assert_allclose(gradient, differences(task.value, theta, STEP), atol=1e-6)
        parts = np.array([differences(part.value, theta, STEP) for part in task._parts])
        np.testing.assert_allclose(task.value_and_scores(theta)[1], parts, atol=1e-6)
        largest = max(largest, float(np.abs(gradient).min()))
    assert largest > 1e-3


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_bethe_gradients_are_those_of_finite_differences(name: str, encoding: str) -> None:
    for seed in range(4):
        task, _, _, theta = posed(name, encoding, seed, "lbp")
        assert task.has_beliefs
        assert task.settled(theta)
        found = task.value_and_gradient(theta)[1]
        # At a fixed point to 1e-12; its error enters log Z squared, and beliefs as it is.
        np.testing.assert_allclose(found, differences(task.value, theta, STEP), atol=1e-6)


@pytest.mark.parametrize("objective", ["log_loss", "brier"])
def test_marginals_of_propagation_are_learned_through_their_own_derivative(objective: str) -> None:
    for seed in range(4):
        task, _, _, theta = posed("columns", "implication", seed, "lbp", objective)
        found = task.value_and_gradient(theta)[1]
        np.testing.assert_allclose(found, differences(task.value, theta, STEP), atol=1e-5)


@pytest.mark.parametrize("objective", ["likelihood", "log_loss"])
def test_a_bound_goes_by_differences(objective: str) -> None:
    task, _, _, theta = posed("shared", "implication", 0, "wmb", objective)
    assert not task.has_beliefs
    value, gradient = task.value_and_gradient(theta)
    exact = posed("shared", "implication", 0, "exact", objective)[0].value_and_gradient(theta)
    # Responses of five variables are within its i-bound, where it is exact.
    assert value == pytest.approx(exact[0], abs=1e-9)
    np.testing.assert_allclose(gradient, exact[1], atol=1e-6)


def test_a_backend_without_log_z_is_refused() -> None:
    task, _, _, theta = posed("priors", "implication", 0, "gibbs")
    refused(r"'gibbs' gives no log Z, hence no likelihood; use one", task.value, theta)
