"""Join-graph propagation given every assignment of a few variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import chain, grid
from inference import LogZKind, Posterior, Status, ZeroPartitionError, infer
from inference.mini_buckets.conditioned import ConditionedPropagation
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.stop import Stop, UnfinishedError

PROPAGATION = JoinGraphPropagation(i_bound=1, damping=0.5, tolerance=1e-9)


def conditioned(graph: FactorGraph, assignments: int, seconds: float | None = None) -> Posterior:
    guide = PROPAGATION.infer(graph).marginals
    run = ConditionedPropagation(PROPAGATION, guide, (assignments, assignments))
    return run.solve_until(graph, Stop(seconds))


def cycle(states: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    pairs = [(v, (v + 1) % 4) for v in range(4)]
    tables = rng.normal(scale=0.3, size=(4, states, states)) + 2.5 * np.eye(states)
    return FactorGraph.from_factors([states] * 4, list(zip(pairs, tables, strict=True)), log=True)


def error_of(posterior: Posterior, truth: Posterior) -> float:
    return float(np.abs(posterior.marginals.flat - truth.marginals.flat).max())


@pytest.mark.parametrize("states", [2, 3])
def test_given_a_variable_of_a_cycle_messages_are_exact(states: int) -> None:
    graph = cycle(states)
    truth, posterior = infer(graph, "exact"), conditioned(graph, states)
    assert error_of(infer(graph, PROPAGATION), truth) > 0.01
    # To the tolerance of the messages.
    assert error_of(posterior, truth) < 1e-6
    assert posterior.log_z == pytest.approx(truth.log_z, abs=1e-6)
    assert posterior.stats["assignments"] == states
    assert len(posterior.stats["conditioned"]) == 1


def test_more_assignments_bring_marginals_nearer_the_exact_ones() -> None:
    graph = grid(4, 4, coupling=2.0, field=0.3, seed=1)
    truth = infer(graph, "exact")
    plain = error_of(infer(graph, PROPAGATION), truth)
    few, many = (error_of(conditioned(graph, count), truth) for count in (4, 64))
    assert many < few < plain


def test_two_mirrored_modes_have_their_shares() -> None:
    # Messages of a strong ferromagnet settle in one of its modes.
    agree = [((i, j), 1.5 * np.eye(2)) for i in range(8) for j in range(i)]
    field = [((0,), np.array([0.0, 0.2]))]
    graph = FactorGraph.from_factors([2] * 8, [*agree, *field], log=True)
    truth = infer(graph, "exact")
    assert error_of(infer(graph, PROPAGATION), truth) > 0.3
    assert error_of(conditioned(graph, 2), truth) < 0.02


def test_an_assignment_that_is_impossible_has_no_weight() -> None:
    graph = cycle(3)
    never = [((v,), np.array([0.0, 0.0, -np.inf])) for v in range(4)]
    graph = FactorGraph.from_factors([3] * 4, [*graph.factors(), *never], log=True)
    truth, posterior = infer(graph, "exact"), conditioned(graph, 3)
    assert posterior.stats["assignments"] == 2
    assert error_of(posterior, truth) < 1e-6


def test_where_nothing_is_possible_no_marginals_are_given() -> None:
    differ = np.where(np.eye(2) > 0.0, -np.inf, 0.0)
    triangle = FactorGraph.from_factors(
        [2] * 3, [((0, 1), differ), ((1, 2), differ), ((2, 0), differ)], log=True
    )
    guide = infer(chain(3, coupling=1.0, field=1.0, seed=0), "exact").marginals
    run = ConditionedPropagation(PROPAGATION, guide, (2, 2))
    with pytest.raises(ZeroPartitionError):
        run.solve_until(triangle, Stop())


def test_it_refuses_rather_than_take_smaller_clusters_or_fewer_assignments() -> None:
    with pytest.raises(UnfinishedError, match="more than 2 states"):
        conditioned(cycle(3), 2)
    with pytest.raises(UnfinishedError, match="the time does not suffice"):
        conditioned(grid(6, 6, coupling=1.0, field=1.0, seed=0), 16, seconds=0.0)


def test_more_assignments_follow_if_messages_converge_and_the_time_suffices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = grid(4, 4, coupling=2.0, field=0.3, seed=1)
    guide = infer(graph, PROPAGATION).marginals
    both = ConditionedPropagation(PROPAGATION, guide, (4, 64))
    assert both.solve_until(graph, Stop()).stats["assignments"] == 64
    short = replace(both, propagation=replace(PROPAGATION, max_iterations=2))
    assert short.solve_until(graph, Stop()).stats["assignments"] == 4

    given = ConditionedPropagation._given

    def in_time(
        self: ConditionedPropagation, graph: FactorGraph, variables: list[int], stop: Stop
    ) -> Posterior:
        if len(variables) > 2:
            raise UnfinishedError("the time does not suffice for every assignment")
        return given(self, graph, variables, stop)

    monkeypatch.setattr(ConditionedPropagation, "_given", in_time)
    assert both.solve_until(graph, Stop()).stats["assignments"] == 4


def test_messages_that_have_not_converged_are_told_by_the_status() -> None:
    graph = grid(4, 4, coupling=2.0, field=0.3, seed=1)
    guide = infer(graph, PROPAGATION).marginals
    short = replace(PROPAGATION, max_iterations=2)
    posterior = ConditionedPropagation(short, guide).solve_until(graph, Stop())
    assert (posterior.status, posterior.log_z_kind) == (Status.NOT_CONVERGED, LogZKind.BETHE)
    assert conditioned(graph, 16).status is Status.CONVERGED
