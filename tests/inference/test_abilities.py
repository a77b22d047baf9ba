"""Abilities of third-party backends are used like those of the project's backends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.learned_potentials import Objective
from calibration.learned_potentials.graph_loss import learning_problem
from calibration.learned_potentials.graph_potentials import Potentials, weights_of
from experiments.study.units import infer_many
from factormodels import FactorGraph
from inference import (
    Backend,
    FactorBeliefs,
    InferenceError,
    LogZKind,
    Posterior,
    PredictedCost,
    ZeroPartitionError,
    infer,
    infer_batch,
    infer_settings,
    infer_stream,
)
from inference.backend import BeliefFunction, Result
from inference.conformance import CHECKS, ConformanceError, Exactness
from inference.conformance.checks import (
    Check,
    a_batch_gives_the_answers_of_single_graphs,
    a_prediction_runs_nothing,
    beliefs_are_the_gradient_of_log_z,
)
from inference.enumeration import Enumeration
from inference.exact.backend import Exact
from inference.mini_buckets.wmb import WeightedMiniBuckets
from tests.calibration.learned_potentials.data import small_graphs
from tests.inference.answers import given, uniform
from tests.inference.graphs import forest
from tests.refusals import refused

EXACTNESS = Exactness("forests", 1e-9, "the same terms are summed in doubles")


@dataclass(frozen=True)
class Summing(Enumeration):
    """The sum over every assignment, with all that a backend may offer."""

    name: ClassVar[str] = "summing"
    identical_batches: ClassVar[bool] = True
    batches: ClassVar[list[int]] = []
    """Sizes of the batches that it was given."""

    def solve_batch(
        self,
        graphs: Sequence[FactorGraph],
        threads: int = 1,  # noqa: ARG002
    ) -> list[Result]:
        self.batches.append(len(graphs))
        return [self.attempt(graph) for graph in graphs]

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:
        states = np.indices(graph.cardinalities.tolist()).reshape(graph.n_variables, -1)
        entries = [
            start + np.ravel_multi_index(states[list(scope)], table.shape)
            for start, (scope, table) in zip(graph.table_starts, graph.factors(), strict=False)
        ]

        def beliefs(log_values: NDArray[np.float64]) -> FactorBeliefs:
            posterior = self.infer(replace(graph, log_values=log_values))
            weights = np.exp(sum(log_values[entry] for entry in entries) - given(posterior))
            counted = [np.bincount(entry, weights, len(log_values)) for entry in entries]
            return FactorBeliefs(posterior, np.sum(counted, axis=0))

        return beliefs

    def predict(self, graph: FactorGraph) -> PredictedCost | None:
        states = float(graph.absorb_evidence().cardinalities.astype(float).prod())
        return PredictedCost(seconds=1e-8 * states, bytes=8.0 * states)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Check) -> None:
    check(Summing(), EXACTNESS)


def test_its_batch_is_used_for_graphs_streams_and_settings() -> None:
    graphs = [forest(seed) for seed in range(7)]
    graphs[3] = graphs[3].with_evidence({0: 0})
    for run in (infer_batch, infer_stream):
        Summing.batches.clear()
        posteriors = list(run(graphs, Summing()))
        assert Summing.batches == [7]
        for posterior, graph in zip(posteriors, graphs, strict=True):
            assert posterior.backend == "summing"
            assert posterior.stats["seconds"] > 0.0
            # Sums of a few hundred products of doubles.
            np.testing.assert_allclose(
                posterior.marginals.flat, infer(graph).marginals.flat, atol=1e-9
            )
    Summing.batches.clear()
    rows = np.stack([graphs[3].log_values, 0.5 * graphs[3].log_values])
    settings = infer_settings(graphs[3], rows, Summing())
    assert Summing.batches == [2]
    expected = infer(replace(graphs[3], log_values=rows[1]))
    np.testing.assert_allclose(settings[1].marginals.flat, expected.marginals.flat, atol=1e-9)


def test_an_error_in_its_batch_is_named_by_number() -> None:
    graphs = [forest(0), FactorGraph.from_factors([2], [([0], [0.0, 0.0])])]
    with pytest.raises(ZeroPartitionError, match=r"^graph 1: the partition function is zero"):
        infer_batch(graphs, Summing())


def test_units_of_a_study_run_as_a_batch_where_that_gives_the_same_numbers() -> None:
    graphs = [forest(seed) for seed in range(4)]
    graphs[2] = FactorGraph.from_factors([2], [([0], [0.0, 0.0])])
    Summing.batches.clear()
    outcomes = infer_many(Summing(), graphs)
    assert Summing.batches == [4]
    assert [isinstance(outcome, Posterior) for outcome in outcomes] == [True, True, False, True]
    infer_many(Rounded(), graphs)
    assert Summing.batches == [4]


@dataclass(frozen=True)
class Rounded(Summing):
    """Does not say that its batches are single runs to the last bit."""

    identical_batches: ClassVar[bool] = False


@pytest.mark.parametrize("objective", Objective)
def test_it_learns_with_exact_gradients(objective: Objective) -> None:
    potentials = Potentials(("atom_prior", "context_prior"))
    # All responses are one graph to a backend, whose assignments are summed one by one.
    graphs = small_graphs(1)[:2]
    weights = weights_of(potentials, graphs)
    problems = [
        learning_problem(graphs, potentials, weights, backend, objective)
        for backend in (Summing(), Exact())
    ]
    theta = np.array([weight.start for weight in weights]) + 0.3
    (value, slopes), (other, expected) = (each.value_and_scores(theta) for each in problems)
    assert value == pytest.approx(other, abs=1e-10)
    np.testing.assert_allclose(slopes, expected, atol=1e-10)
    # A bound that is tightened moves with its own weights too: it has no beliefs.
    bounds = learning_problem(graphs, potentials, weights, WeightedMiniBuckets(), objective)
    refused("'wmb' has no beliefs that are the derivative", bounds.value_and_scores, theta)


@dataclass(frozen=True)
class Uniform(Exact):
    """Has a `solve` of its own, and so nothing else of the backend that it extends but its name."""

    def solve(self, graph: FactorGraph) -> Posterior:
        return replace(uniform(graph), log_z=0.0, log_z_kind=LogZKind.BETHE)


def test_a_backend_that_extends_another_answers_for_itself() -> None:
    graph = forest(2)
    values = uniform(graph).marginals.flat
    answers = [
        *infer_batch([graph] * 3, Uniform()),
        *infer_settings(graph, [graph.log_values], Uniform()),
    ]
    assert all(answer.marginals.flat.tolist() == values.tolist() for answer in answers)
    assert Uniform().prepare_beliefs(graph) is None
    assert Uniform().predict(graph) is None
    assert not Uniform.identical_batches


@dataclass(frozen=True)
class OtherBatch(Summing):
    """Gives other numbers in a batch."""

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        results = super().solve_batch(graphs, threads)
        return [
            replace(result, log_z=result.log_z + 1e-13)
            if isinstance(result, Posterior) and result.log_z is not None
            else result
            for result in results
        ]


@dataclass(frozen=True)
class Short(Summing):
    """Leaves a graph of a batch out."""

    def solve_batch(self, graphs: Sequence[FactorGraph], threads: int = 1) -> list[Result]:
        return super().solve_batch(graphs, threads)[:-1]


@dataclass(frozen=True)
class Tempered(Summing):
    """Has beliefs that are no derivative."""

    def prepare_beliefs(self, graph: FactorGraph) -> BeliefFunction | None:
        beliefs = super().prepare_beliefs(graph)

        def tempered(log_values: NDArray[np.float64]) -> FactorBeliefs:
            assert beliefs is not None
            belief = beliefs(log_values)
            return replace(belief, entries=0.99 * belief.entries)

        return tempered


@dataclass(frozen=True)
class Running(Summing):
    """Predicts by running."""

    def predict(self, graph: FactorGraph) -> PredictedCost | None:
        return PredictedCost(self.infer(graph).stats["seconds"], None)


@dataclass(frozen=True)
class Costless(Summing):
    """Predicts that everything takes no time."""

    def predict(self, graph: FactorGraph) -> PredictedCost | None:  # noqa: ARG002
        return PredictedCost(0.0, None)


@pytest.mark.parametrize(
    ("backend", "check", "message"),
    [
        (OtherBatch(), a_batch_gives_the_answers_of_single_graphs, "other numbers than alone"),
        (Short(), a_batch_gives_the_answers_of_single_graphs, "gave 6 answers for 7 graphs"),
        (Tempered(), beliefs_are_the_gradient_of_log_z, "from the derivative of log Z"),
        (Running(), a_prediction_runs_nothing, "runs the graph"),
        (Costless(), a_prediction_runs_nothing, "0.0 seconds are predicted"),
    ],
)
def test_a_broken_promise_is_caught(backend: Backend, check: Check, message: str) -> None:
    with pytest.raises((ConformanceError, InferenceError), match=message):
        check(backend, EXACTNESS)
