"""Objectives against enumeration and finite differences, for every weight and backend."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.learned_potentials import Objective
from calibration.learned_potentials.graph_loss import LearningProblem, learning_problem
from calibration.learned_potentials.graph_potentials import Potentials, apply, weights_of
from factormodels import FactGraph, Relation
from inference import get_backend
from tests.calibration.learned_potentials.data import small_graphs
from tests.oracle import oracle
from tests.refusals import refused

STEP = 1e-4
"""Central differences err by the square of the step times a third derivative, below 10 here, and by
the rounding of log Z, 1e-14, divided by it."""


def strength(graph: FactGraph, relation: Relation) -> str:
    strong = relation.probability > 0.5 and bool(graph.topic)
    return "strong" if strong else "weak"


def position_class(graph: FactGraph, relation: Relation) -> str:
    return f"{graph.topic} {relation.target}"


SPECIFICATIONS = {
    "shared": Potentials(("atom_prior", "context_prior", "temperature")),
    "grouped": Potentials(("atom_prior", "temperature"), "kind"),
    "classes": Potentials(("atom_prior", "probability"), strength),
    "kinds": Potentials(("context_prior", "probability")),
    "places": Potentials(("atom_prior", "context_prior", "probability"), position_class),
    "priors": Potentials(("atom_prior", "context_prior")),
    "sources": Potentials(("context_prior",), contexts_by=lambda _, context: context.id[-1]),
}


def posed(
    name: str, encoding: str, seed: int, backend: str = "exact", objective: str = "likelihood"
) -> tuple[LearningProblem, list[FactGraph], Potentials, np.ndarray]:
    potentials = replace(SPECIFICATIONS[name], encoding=encoding)
    graphs = small_graphs(seed)
    weights = weights_of(potentials, graphs)
    settings = {"tolerance": 1e-12, "damping": 0.2} if backend == "lbp" else {}
    source = get_backend(backend, **settings)
    problem = learning_problem(graphs, potentials, weights, source, objective)
    start = np.array([weight.start for weight in weights])
    rng = np.random.default_rng([seed, 1])
    return problem, graphs, potentials, start + rng.normal(size=len(start))


def differences(problem: LearningProblem, theta: np.ndarray) -> np.ndarray:
    """Return derivatives of the objective by central differences."""
    moves = np.eye(len(theta)) * STEP
    ends = [[problem.value_and_scores(theta + sign * m)[0] for m in moves] for sign in (1, -1)]
    return np.asarray((np.array(ends[0]) - np.array(ends[1])) / (2 * STEP))


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
    problem, graphs, potentials, theta = posed(name, encoding, 3, objective=objective)
    values = dict(zip((w.name for w in problem.weights), theta.tolist(), strict=True))
    expected = [enumerated(apply(g, potentials, values), encoding, objective) for g in graphs]
    # Sums of a few hundred products of numbers between 1e-3 and 1.
    value_scores = problem.value_and_scores(theta)[0]
    assert value_scores == pytest.approx(math.fsum(expected), abs=1e-11)


@pytest.mark.parametrize("seed", [4, pytest.param(7, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("name", "encoding", "objective"), CASES)
def test_exact_gradients_are_those_of_finite_differences(
    name: str, encoding: str, objective: Objective, seed: int
) -> None:
    # Each response by itself: that the objective is their sum, enumeration has shown.
    problem, _, _, theta = posed(name, encoding, seed, objective=objective)
    scores = problem.value_and_scores(theta)[1]
    parts = [replace(problem, graphs=(graph,)) for graph in problem.graphs]
    expected = [differences(part, theta) for part in parts]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    # These graphs have something to say of every weight.
    assert np.abs(scores.sum(axis=0)).min() > 1e-3


def test_mixture_is_learned_by_exact_gradients_too() -> None:
    for seed in range(4):
        problem, _, _, theta = posed("grouped", "mixture", seed)
        value_scores = problem.value_and_scores(theta)[1].sum(axis=0)
        np.testing.assert_allclose(value_scores, differences(problem, theta), atol=1e-6)


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_bethe_gradients_are_those_of_finite_differences(name: str, encoding: str) -> None:
    for seed in (4, 7):
        problem, _, _, theta = posed(name, encoding, seed, "lbp")
        assert problem.settled(theta)
        value_scores = problem.value_and_scores(theta)[1].sum(axis=0)
        # At a fixed point to 1e-12; its error enters log Z squared, and beliefs as it is.
        np.testing.assert_allclose(value_scores, differences(problem, theta), atol=1e-6)


@pytest.mark.parametrize("objective", ["log_loss", "brier"])
def test_marginals_of_propagation_are_learned_through_their_own_derivative(objective: str) -> None:
    for seed in range(4):
        problem, _, _, theta = posed("places", "implication", seed, "lbp", objective)
        value_scores = problem.value_and_scores(theta)[1].sum(axis=0)
        np.testing.assert_allclose(value_scores, differences(problem, theta), atol=1e-5)


@pytest.mark.parametrize("backend", ["wmb", "gibbs"])
def test_a_backend_whose_log_z_has_no_derivative_is_refused(backend: str) -> None:
    problem, _, _, theta = posed("priors", "implication", 0, backend)
    refused(f"{backend!r} has no beliefs that are the d", problem.value_and_scores, theta)
