"""Objectives against enumeration and finite differences, for every parameter and backend."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

from calibration.learned_priors import ClassProbability, Free, Objective, Specification, Temperature
from calibration.learned_priors.learned import apply
from calibration.learned_priors.objectives import LearningProblem, differences, problem
from calibration.learned_priors.parameters import resolve
from calibration.learned_priors.uncertainty import hessian
from factormodels import FactGraph, Relation
from inference import get_backend
from tests.calibration.learned_priors.data import small_graphs
from tests.oracle import oracle
from tests.refusals import refused

STEP = 1e-4
"""Central differences err by the square of the step times a third derivative, below 10 here, and by
the rounding of log Z, 1e-14, divided by it."""


def topic(graph: FactGraph) -> str:
    return graph.topic


def half(graph: FactGraph, relation: Relation) -> str:
    strong = relation.probability > 0.5 and bool(graph.topic)
    return "strong" if strong else "weak"


SPECIFICATIONS = {
    "shared": Specification(Free(), Free(), Temperature()),
    "grouped": Specification(Free(per=topic), Free(0.7, per=topic), Temperature("kind", per=topic)),
    "classes": Specification(Free(0.3), None, ClassProbability(half, start={"weak": 0.4})),
    "kinds": Specification(
        0.4, Free(), ClassProbability("kind", fixed={"contradiction": 0.8}, per=topic)
    ),
    "fixed": Specification(Free(), 0.9, Temperature("kind", fixed={"entailment": 1.5})),
    "priors": Specification(Free(), Free(), None),
}


def posed(
    name: str, encoding: str, seed: int, backend: str = "exact", objective: str = "likelihood"
) -> tuple[LearningProblem, list[FactGraph], Specification, np.ndarray]:
    chosen = SPECIFICATIONS[name]
    specification = Specification(
        chosen.atom_prior, chosen.context_prior, chosen.relations, encoding
    )
    graphs = small_graphs(seed)
    parameters = resolve(specification, graphs)
    settings = {"tolerance": 1e-12, "damping": 0.2} if backend == "lbp" else {}
    source = get_backend(backend, **settings)
    task = problem(graphs, specification, parameters, source, Objective(objective))
    rng = np.random.default_rng([seed, 1])
    return task, graphs, specification, parameters.start + rng.normal(size=len(parameters.items))


def enumerated(graph: FactGraph, encoding: str, objective: str) -> float:
    """Return what one response adds to an objective, by enumeration."""
    truth = oracle(graph.to_factor_graph(encoding))
    labels = {atom.id: int(atom.label) for atom in graph.atoms if atom.label is not None}
    if objective == "likelihood":
        return -math.log(truth.probability(labels))
    p = [truth.marginals[name][state] for name, state in labels.items()]
    return sum(-math.log(x) if objective == "log_loss" else (1.0 - x) ** 2 for x in p)


CASES = list(itertools.product(SPECIFICATIONS, ["implication", "conditional"], Objective))


@pytest.mark.parametrize("encoding", ["implication", "conditional", "mixture"])
@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_second_derivatives_are_exact(
    name: str, objective: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, *_, theta = posed(name, encoding, 3, objective=objective)

    def slope(at: int, where: np.ndarray) -> float:
        return float(task.value_and_gradient(where)[1][at])

    expected = np.array([differences(partial(slope, at), theta) for at in range(len(theta))])
    # Nothing is differenced: the gradient is not asked for.
    monkeypatch.setattr(LearningProblem, "value_and_gradient", None)
    found = hessian(task, theta)
    # Central differences of exact gradients err by 1e-8 times a third derivative below 10.
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(found, found.T, atol=1e-13)
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize(("name", "encoding", "objective"), CASES)
def test_objectives_are_those_of_enumeration(
    name: str, encoding: str, objective: Objective
) -> None:
    task, graphs, specification, theta = posed(name, encoding, 3, objective=objective)
    parameters = resolve(specification, graphs)
    expected = [
        enumerated(apply(g, specification, parameters, theta), encoding, objective) for g in graphs
    ]
    # Sums of a few hundred products of numbers between 1e-3 and 1.
    np.testing.assert_allclose(task.losses(theta), expected, atol=1e-11)
    assert task.value(theta) == pytest.approx(math.fsum(expected), abs=1e-11)


@pytest.mark.parametrize(("name", "encoding", "objective"), CASES)
def test_exact_gradients_are_those_of_finite_differences(
    name: str, encoding: str, objective: Objective
) -> None:
    largest = 0.0
    for seed in range(4):
        task, _, _, theta = posed(name, encoding, seed, objective=objective)
        assert task.exact_gradient
        value, gradient = task.value_and_gradient(theta)
        assert value == pytest.approx(task.value(theta), abs=1e-12)
        np.testing.assert_allclose(gradient, differences(task.value, theta, STEP), atol=1e-6)
        parts = np.array([differences(part, theta, STEP) for part in task._parts])
        np.testing.assert_allclose(task.scores(theta), parts, atol=1e-6)
        largest = max(largest, float(np.abs(gradient).min()))
    assert largest > 1e-3


@pytest.mark.parametrize("encoding", ["implication", "conditional"])
@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_bethe_gradients_are_those_of_finite_differences(name: str, encoding: str) -> None:
    for seed in range(4):
        task, _, _, theta = posed(name, encoding, seed, "lbp")
        assert task.exact_gradient
        assert task.posteriors(theta)[1]
        found = task.value_and_gradient(theta)[1]
        # At a fixed point to 1e-12; its error enters log Z squared, and beliefs as it is.
        np.testing.assert_allclose(found, differences(task.value, theta, STEP), atol=1e-6)


@pytest.mark.parametrize(
    ("backend", "objective"), [("wmb", "likelihood"), ("lbp", "brier"), ("wmb", "log_loss")]
)
def test_other_backends_go_by_differences(backend: str, objective: str) -> None:
    task, _, _, theta = posed("shared", "implication", 0, backend, objective)
    assert not task.exact_gradient
    value, gradient = task.value_and_gradient(theta)
    exact = posed("shared", "implication", 0, "exact", objective)[0].value_and_gradient(theta)
    if backend == "wmb":
        # Responses of five variables are within its i-bound, where it is exact.
        assert value == pytest.approx(exact[0], abs=1e-9)
        np.testing.assert_allclose(gradient, exact[1], atol=1e-6)
    np.testing.assert_allclose(task.scores(theta).sum(axis=0), gradient, atol=1e-6)


def test_a_backend_without_log_z_is_refused() -> None:
    task, _, _, theta = posed("priors", "implication", 0, "gibbs")
    refused(r"'gibbs' gives no log Z, hence no likelihood; use one", task.value, theta)
