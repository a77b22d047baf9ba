"""Promises of `auto`: the exact answer within its limits, the tightest bounds beyond them."""

from __future__ import annotations

import builtins
import itertools
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import inference.anytime
import inference.auto
import inference.exact.plans
import inference.exact.speed
from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import (
    LogZKind,
    Marginals,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    get_backend,
    infer,
    infer_anytime,
    infer_batch,
    infer_settings,
    infer_stream,
)
from inference.anytime import Clamping, Exactly, _Best, conditioned_runs, improve
from inference.auto import Auto
from inference.exact.backend import Exact
from inference.exact.kernels.propagation import STOPPED, Workspace
from inference.exact.prediction import Prediction, Work
from inference.exact.speed import Speed
from inference.kernels.preparation import PREPARATION
from inference.messages.lbp import LoopyBeliefPropagation
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.ijgp import JoinGraphPropagation
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.stop import Stop, UnfinishedError
from inference.trace import Trace
from tests.inference.answers import log_z_of
from tests.inference.graphs import all_different, odd_graph

LITTLE = {"memory_limit": 20_000, "seconds": 1.0}

WIDE = grid(14, 14, coupling=1.0, field=1.0, seed=0)

NARROW = grid(7, 7, coupling=1.0, field=1.0, cardinality=3, seed=0)
"""Less wide, where a prediction decides and the time that tables take does not matter."""


def test_graphs_that_fit_are_exact() -> None:
    graph = fr2(20, 3, density=0.05, seed=0)
    posterior, truth = infer(graph, "auto"), infer(graph, "exact")
    assert posterior.status is Status.EXACT
    assert posterior.log_z == truth.log_z == posterior.stats["lower"]
    assert posterior.stats["upper_by"] == posterior.stats["marginals_by"] == "exact"
    assert "takes about" in posterior.stats["reason"]


def test_it_is_the_default_and_exact_to_the_last_bit() -> None:
    graphs = [odd_graph(seed) for seed in range(12)] + [fr2(6, 2, density=0.3, seed=0)] * 9
    exact = infer_batch(graphs, "exact")
    for posteriors in (map(infer, graphs), infer_batch(graphs), infer_stream(graphs)):
        for posterior, truth in zip(posteriors, exact, strict=True):
            assert (posterior.backend, posterior.answered_by) == ("auto", "exact")
            assert posterior.log_z == truth.log_z
            assert posterior.marginals.flat.tolist() == truth.marginals.flat.tolist()
    assert infer_settings(graphs[-1], graphs[-1].log_values[None])[0].backend == "auto"


def as_fast(monkeypatch: pytest.MonkeyPatch, graph: FactorGraph, seconds: float) -> Prediction:
    """Let this machine be of a speed at which exact inference is predicted to take so long."""
    cost = Exact().ready(graph).cost_of(graph)
    factor = seconds / cost.seconds
    machine = Speed(Work(*(factor for _ in Work._fields)), "a test")
    monkeypatch.setattr(inference.exact.speed, "speed_for", lambda _: machine)
    return cost


def test_exact_inference_that_fits_the_time_answers_with_bounds_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, truth = WIDE, infer(WIDE, "exact")
    as_fast(monkeypatch, graph, 25.0)
    # However little is counted.
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    posterior = infer(graph, seconds=30.0, trace=True)
    assert (posterior.answered_by, posterior.log_z) == ("exact", truth.log_z)
    assert posterior.marginals.flat.tolist() == truth.marginals.flat.tolist()
    stats = posterior.stats
    # What is said of it does not depend on the machine either.
    assert stats["predicted_seconds"] == truth.stats["predicted_seconds"]
    assert stats["time_limited"] is False
    assert "speed" not in stats
    assert isinstance(posterior.trace, Trace)
    assert "exact" in {step.algorithm for step in posterior.trace.steps}


@pytest.mark.parametrize(
    ("processors", "predicted", "started"),
    [(1, 1.2, True), (1, 1.4, False), (2, 1.5, True), (2, 1.9, False), (16, 2.3, True)],
)
def test_exact_inference_is_started_if_it_is_likely_to_end(
    monkeypatch: pytest.MonkeyPatch, processors: int, predicted: float, started: bool
) -> None:
    as_fast(monkeypatch, NARROW, 30.0 * predicted)
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    # Tables that processors share.
    monkeypatch.setattr(inference.auto, "LOG2_CHUNKED_TABLE", 1.0)
    monkeypatch.setattr(inference.auto, "available_processors", lambda: processors)
    monkeypatch.setattr(Exact, "thread_count", lambda _: processors)
    with_loose_bounds(monkeypatch)
    assert (infer(NARROW, seconds=30.0).answered_by == "exact") == started


@pytest.mark.parametrize("fails", [False, True])
def test_bounds_wait_for_exact_inference_that_is_likely_to_end(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """They run beside it for their part of the time, and go on once it has failed."""
    stop = Stop(1.0)
    begun: list[float] = []

    def exact(_: FactorGraph, stop: Stop) -> Posterior:
        while not (fails or stop.over):
            time.sleep(0.01)
        raise UnfinishedError("the time is over")

    def bound(*_: object) -> Posterior:
        begun.append(stop.elapsed)
        time.sleep(0.01)
        raise UnfinishedError("no bound")

    monkeypatch.setattr(inference.anytime, "_estimates", lambda *_: iter(()))
    monkeypatch.setattr(
        inference.anytime, "_bounds", lambda *_: itertools.repeat(("bound", 0.1, bound))
    )
    beside = Exactly(exact, 1000, delay=0.0, alone=0.4)
    *_, last = improve(WIDE, stop, 10**6, 0, "a reason", exactly=beside)
    assert last.status is not Status.EXACT
    assert begun
    # A thread that has looked at the clock may begin its run later: by less than .2 s.
    assert (max(begun) < 0.6) != fails


def test_processors_share_large_tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    as_fast(monkeypatch, NARROW, 45.0)
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    monkeypatch.setattr(inference.auto, "LOG2_CHUNKED_TABLE", 99.0)
    monkeypatch.setattr(inference.auto, "available_processors", lambda: 2)
    with_loose_bounds(monkeypatch)
    assert infer(NARROW, seconds=30.0).answered_by != "exact"


def with_loose_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `auto` bound log Z once, with tables far too small to be exact on any machine."""
    monkeypatch.setattr(inference.anytime, "_ROUNDS", 1)
    monkeypatch.setattr(
        inference.anytime, "_estimates", lambda *_: iter([inference.anytime._message_passing(0)])
    )


def test_exact_inference_that_does_not_fit_the_time_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost = as_fast(monkeypatch, NARROW, 2500.0)
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    with_loose_bounds(monkeypatch)
    # The algorithms end long before that.
    posterior = infer(NARROW, seconds=60.0)
    assert posterior.log_z_kind is LogZKind.UPPER
    assert posterior.lower_bound is not None
    stats = posterior.stats
    width = cost.induced_width
    assert stats["reason"].startswith(
        f"exact elimination, of induced width {width}, is predicted to take 2.5e+03 s, of "
    )
    assert stats["reason"].endswith("planning left of 60 s")
    assert (stats["time_limited"], stats["speed"]) == (True, "a test")
    assert stats["preparation_seconds"] >= 0.0


def test_the_speed_of_a_machine_decides_about_the_time_and_not_about_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = fr2(13, 30, density=0.9, seed=0)
    seconds = Exact().predict(graph).seconds
    ways = []
    for speed in (0.01, 1.0, 100.0):
        as_fast(monkeypatch, graph, speed)
        ways.append(Auto(seconds=seconds)._way(graph).cost.method)
    assert ways == ["conditioning"] * 3
    # A machine four times as fast as the reference one may have the time that was counted out.
    assert Auto(seconds=0.3 * seconds)._way(graph).cost.method == "conditioning"
    with pytest.raises(TooLargeError):
        Auto(seconds=0.2 * seconds)._way(graph)


def test_exact_inference_that_was_predicted_to_fit_is_stopped_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*arguments: Any) -> tuple[int, float, bool]:
        work = next(each for each in arguments if isinstance(each, Workspace))
        while not work.stop[0]:
            time.sleep(0.001)
        return STOPPED, 0.0, True

    as_fast(monkeypatch, WIDE, 0.1)
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    monkeypatch.setattr(inference.exact.plans, "run_in_chunks", endless)
    with_loose_bounds(monkeypatch)
    posterior = infer(WIDE, seconds=1.0)
    assert posterior.answered_by != "exact"
    assert posterior.log_z_kind is LogZKind.UPPER
    stats = posterior.stats
    assert "has not ended, and was predicted to take 0.1 s, of 1 s" in stats["reason"]
    assert stats["time_limited"]


def test_clamping_that_takes_too_long_is_named_with_its_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = grid(8, 8, coupling=1.0, field=1.0, seed=0)
    limit = int(0.6 * Exact().predict(graph).bytes)
    machine = Speed(Work(*(1e6 for _ in Work._fields)), "a test")
    monkeypatch.setattr(inference.exact.speed, "speed_for", lambda _: machine)
    monkeypatch.setattr(inference.auto, "_ALONE", 0.0)
    stats = infer(graph, seconds=0.5, memory_limit=limit).stats
    assert stats["reason"].startswith("exact clamping, of induced width")
    assert "is predicted to take" in stats["reason"]


def test_loading_the_code_of_the_algorithms_is_no_time_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[bool] = []
    load = builtins.__import__

    def watched(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "inference.anytime":
            before = PREPARATION.seconds
            time.sleep(0.001)
            counted.append(PREPARATION.seconds > before)
        return load(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", watched)
    infer(WIDE, "auto", **LITTLE)
    assert counted == [True]


def test_compiling_amid_the_algorithms_is_counted_and_no_time_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remaining: list[float] = []
    solve = LoopyBeliefPropagation.solve_until

    def compiling(self: LoopyBeliefPropagation, graph: FactorGraph, stop: Stop) -> Posterior:
        with PREPARATION.counted():
            # Longer than message passing has.
            time.sleep(0.3)
        remaining.append(stop.remaining)
        return solve(self, graph, stop)

    monkeypatch.setattr(LoopyBeliefPropagation, "solve_until", compiling)
    stats = infer(WIDE, "auto", memory_limit=LITTLE["memory_limit"], seconds=0.5).stats
    assert stats["preparation_seconds"] >= 0.3
    assert min(remaining) > 0.0


def test_a_batch_takes_the_wide_graphs_out_and_leaves_the_others_as_they_are() -> None:
    small = fr2(6, 2, density=0.3, seed=0)
    short = Auto(seconds=1e-3)
    posteriors = infer_batch([small, WIDE, small], short)
    assert [posterior.answered_by == "exact" for posterior in posteriors] == [True, False, True]
    assert posteriors[0].log_z == posteriors[2].log_z == infer(small, "exact").log_z
    assert short.predict(WIDE).seconds == short.seconds
    # The plan of the wide one is kept by now; it is refused all the same.
    infer(WIDE, "exact")
    assert infer_batch([WIDE] * 9, short)[8].answered_by != "exact"


def test_exact_refuses_by_predicted_seconds() -> None:
    graph = fr2(13, 30, density=0.9, seed=0)
    prediction = Exact().predict(graph)
    assert prediction.method == "conditioning"
    for limited in (graph, grid(8, 8, coupling=1.0, field=1.0, seed=0)):
        seconds = Exact().predict(limited).seconds
        exact = Exact(seconds_limit=0.9 * seconds)
        with pytest.raises(TooLargeError, match=r"seconds_limit is .* or raise seconds_limit"):
            exact.infer(limited)
        (result,) = exact.solve_batch([limited])
        assert isinstance(result, TooLargeError)
        assert result.prediction == Exact().predict(limited)
    with pytest.raises(TooLargeError, match="seconds_limit"):
        exact.calibrate(limited)
    # The plan that another kept is refused as well.
    Exact().infer(limited)
    assert Exact().kept(limited) is not None
    with pytest.raises(TooLargeError, match="seconds_limit"):
        exact.infer(limited)
    assert Exact(seconds_limit=1.1 * seconds).infer(limited).status is Status.EXACT


def test_beliefs_are_those_of_exact_or_else_of_message_passing() -> None:
    graph = fr2(8, 3, density=0.4, seed=0)
    for backend, source in ((Auto(), "exact"), (Auto(memory_limit=200), "lbp")):
        beliefs = backend.prepare_beliefs(graph)
        other = get_backend(source).prepare_beliefs(graph)
        assert beliefs is not None
        assert other is not None
        ours, expected = beliefs(graph.log_values), other(graph.log_values)
        assert ours.entries.tolist() == expected.entries.tolist()
        assert ours.posterior.log_z == expected.posterior.log_z


def test_graphs_that_do_not_fit_are_bounded_from_both_sides_by_the_best() -> None:
    graph = fr2(21, 4, density=0.3, seed=0)
    truth = log_z_of(graph)
    posterior = infer(graph, "auto", **LITTLE)
    assert posterior.log_z_kind is LogZKind.UPPER
    assert posterior.log_z == posterior.stats["upper"]
    # Clamping may end in the exact sum, added in another order.
    slack = 1e-9 * abs(truth)
    assert posterior.stats["lower"] - slack <= truth <= posterior.stats["upper"] + slack
    assert posterior.stats["gap"] == posterior.stats["upper"] - posterior.stats["lower"]
    reason = posterior.stats["reason"]
    assert reason.startswith("exact elimination, of induced width")
    assert "by memory_limit" in reason
    assert posterior.stats["time_limited"]
    # Which algorithm gets how far depends on the clock; that something bounds each side does not.
    assert np.isfinite([posterior.stats["lower"], posterior.stats["upper"]]).all()
    for side in ("lower_by", "upper_by"):
        assert posterior.stats[side].startswith(("wmb(", "trw", "cavi", "clamping(", "quadratic"))
    # What there is no estimate or error of, it says.
    for key in ("estimate_standard_error", "marginals_error"):
        assert (posterior.stats[key] is None) == bool(posterior.stats["missing"].get(key))


def test_the_best_of_each_side_is_kept() -> None:
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    stop = Stop()
    best = _Best()
    given: list[tuple[str, float, LogZKind, bool]] = [
        ("a", 5.0, LogZKind.UPPER, True),
        ("b", 1.0, LogZKind.ELBO, True),
        ("c", 6.0, LogZKind.UPPER, False),
        ("d", 4.0, LogZKind.UPPER, True),
        ("e", 0.0, LogZKind.LOWER, False),
        ("f", 2.0, LogZKind.LOWER, True),
    ]
    for name, log_z, kind, tighter in given:
        posterior = replace(infer(graph, "cavi"), log_z=log_z, log_z_kind=kind)
        assert best.take(name, posterior) is tighter
    stats = best.answer(stop, "why").stats
    assert (stats["upper"], stats["upper_by"]) == (4.0, "d")
    assert (stats["lower"], stats["lower_by"], stats["gap"]) == (2.0, "f", 2.0)


@pytest.mark.slow
def test_marginals_are_not_those_of_a_loose_bound() -> None:
    graph = fr2(24, 4, density=0.15, seed=1)
    truth = infer(graph).marginals.flat
    best = _Best()
    # What the lanes run first, one after another: how far they come depends on the clock.
    for name in ("trw", "cavi", "lbp"):
        best.take(name, infer(graph, name))
    best.take("ijgp(i_bound=4)", infer(graph, "ijgp", i_bound=4))
    posterior = best.answer(Stop(), "why")
    stats = posterior.stats
    assert stats["gap"] > 1.0
    assert (stats["upper_by"], stats["marginals_by"]) == ("trw", "ijgp")
    assert np.abs(posterior.marginals.flat - truth).mean() < 0.02
    # Those of the tightest upper bound are off by 0.16 on average.
    assert posterior.log_z_kind is LogZKind.UPPER
    assert best.posterior is not None
    assert np.abs(best.posterior.marginals.flat - truth).mean() > 0.1


def best_of_a_grid() -> tuple[FactorGraph, _Best, Posterior]:
    """Bounds of a small grid, 5 from log Z, with wrong marginals, and its exact posterior."""
    graph = grid(3, 3, coupling=1.0, field=1.0, seed=0)
    truth = infer(graph)
    best = _Best()
    bound = replace(infer(graph, "trw"), log_z=log_z_of(graph) + 5.0, log_z_kind=LogZKind.UPPER)
    best.take("trw", replace(bound, marginals=shifted(graph, 0.3), status=Status.NOT_CONVERGED))
    lower = replace(infer(graph, "cavi"), log_z=log_z_of(graph) - 5.0)
    best.take("cavi", replace(lower, marginals=shifted(graph, 0.2)))
    return graph, best, truth


def shifted(graph: FactorGraph, by: float) -> Marginals:
    """Marginals of binary variables, off the truth by so much of the way to 0 and 1."""
    exact = infer(graph).marginals.flat
    return Marginals.of(graph, (1.0 - by) * exact + by * np.tile([1.0, 0.0], graph.n_variables))


def test_message_passing_outside_the_bounds_does_not_count() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    stop = Stop()
    messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED)
    given: list[tuple[str, float, Status, str | None]] = [
        ("lbp", log_z + 6.0, Status.CONVERGED, None),
        ("lbp", log_z - 5.1, Status.CONVERGED, None),
        ("lbp", log_z + 4.0, Status.NOT_CONVERGED, None),
        ("lbp", log_z + 4.0, Status.CONVERGED, "lbp"),
        ("ijgp(i_bound=2)", log_z, Status.CONVERGED, "ijgp"),
        ("ijgp(i_bound=4)", log_z + 1.0, Status.NOT_CONVERGED, "ijgp"),
        ("ijgp(i_bound=8)", log_z + 9.0, Status.CONVERGED, "lbp"),
    ]
    for name, estimate, status, by in given:
        best.take(name, replace(messages, log_z=estimate, status=status, stats={}))
        answer = best.answer(stop, "")
        assert answer.stats["bethe_by"] == by
        # It has no error, so it is no estimate.
        assert answer.stats["estimate"] is answer.stats["estimate_by"] is None
        assert "ais" in answer.stats["missing"]["estimate"]
        assert answer.stats["estimate_standard_error"] is None
        assert "ais" in answer.stats["missing"]["estimate_standard_error"]
        # The bounds stay whose they are.
        assert (answer.stats["upper_by"], answer.stats["lower_by"]) == ("trw", "cavi")


def test_without_samples_the_two_that_agree_best_are_taken() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED, stats={})
    loose = replace(
        truth, log_z=log_z + 6.0, log_z_kind=LogZKind.UPPER, status=Status.CONVERGED, stats={}
    )
    best.take("wmb(table_limit=64)", replace(loose, marginals=shifted(graph, 0.9)))
    best.take("lbp", replace(messages, marginals=shifted(graph, 0.2)))
    answer = best.answer(Stop(), "").stats
    assert answer["marginals_by"] == "wmb(table_limit=64)"
    assert answer["marginals_reason"].startswith("no two algorithms agree, so they may be far off")
    alone = answer["marginals_error"]
    best.take("ijgp(i_bound=2)", replace(messages, marginals=shifted(graph, 0.25)))
    answer = best.answer(Stop(), "").stats
    assert answer["marginals_by"] == "ijgp"
    assert "those of 'lbp'" in answer["marginals_reason"]
    assert "marginals_error" not in answer["missing"]
    # The farther apart, the larger the error, but those that agree have a smaller one.
    near = answer["marginals_error"]
    best.take("ijgp(i_bound=3)", replace(messages, marginals=shifted(graph, 0.22)))
    nearer = best.answer(Stop(), "").stats["marginals_error"]
    assert 0.0 < nearer < near < alone
    # Outside the bounds, message passing is wrong however well it agrees.
    best.take("ijgp(i_bound=4)", replace(messages, log_z=log_z + 9.0))
    assert best.answer(Stop(), "").stats["marginals_by"] == "wmb(table_limit=64)"
    # A sum over some assignments and mini-buckets err in different ways.
    part = replace(truth, log_z_kind=LogZKind.LOWER, status=Status.NOT_CONVERGED, stats={})
    best.take("clamping(table_limit=64)", replace(part, log_z=log_z - 3.0))
    best.take("wmb(table_limit=512)", replace(loose, marginals=shifted(graph, 0.01)))
    answer = best.answer(Stop(), "").stats
    assert answer["marginals_by"] == "clamping(table_limit=64)"
    assert "those of 'wmb(table_limit=512)'" in answer["marginals_reason"]


def test_conditioned_messages_precede_others_unless_they_alone_have_not_converged() -> None:
    graph, _, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    for status, by in ((Status.CONVERGED, "conditioned ijgp"), (Status.NOT_CONVERGED, "ijgp")):
        _, best, _ = best_of_a_grid()
        messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED, stats={})
        best.take("ijgp(i_bound=4)", replace(messages, marginals=shifted(graph, 0.1)))
        best.take("lbp", replace(messages, marginals=shifted(graph, 0.2)))
        given = replace(messages, status=status, marginals=shifted(graph, 0.05))
        best.take("conditioned ijgp(i_bound=4)", given)
        answer = best.answer(Stop(), "").stats
        assert (answer["marginals_by"], answer["bethe_by"]) == (by, by)
        # Outside the bounds they are wrong, whatever they agree with.
        best.take("conditioned ijgp(i_bound=8)", replace(given, status=status, log_z=log_z + 9.0))
        assert best.answer(Stop(), "").stats["bethe_by"] == "ijgp"


def test_a_sum_that_is_nearly_the_best_lower_bound_is_compared() -> None:
    graph, _, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    for below, by in ((0.05, "clamping(table_limit=64)"), (0.5, "wmb(table_limit=64)")):
        _, best, _ = best_of_a_grid()
        upper = replace(truth, log_z_kind=LogZKind.UPPER, status=Status.CONVERGED, stats={})
        loose = replace(upper, log_z=log_z + 4.0, marginals=shifted(graph, 0.05))
        best.take("wmb(table_limit=64)", replace(loose, stats={"lower": log_z - 1.0}))
        part = replace(truth, log_z_kind=LogZKind.LOWER, status=Status.NOT_CONVERGED, stats={})
        best.take("clamping(table_limit=64)", replace(part, log_z=log_z - 1.0 - below))
        # A run with a looser bound does not replace it.
        best.take("clamping(table_limit=32)", replace(part, log_z=log_z - 9.0))
        answer = best.answer(Stop(), "").stats
        assert answer["lower_by"] == "wmb(table_limit=64)"
        assert answer["marginals_by"] == by


def test_a_sum_near_the_upper_bound_is_certified_though_another_lower_bound_is_better() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    upper = replace(truth, log_z_kind=LogZKind.UPPER, status=Status.CONVERGED)
    best.take("wmb(table_limit=64)", replace(upper, log_z=log_z + 2e-3, stats={"lower": log_z}))
    part = replace(truth, log_z_kind=LogZKind.LOWER, status=Status.NOT_CONVERGED, stats={})
    best.take("clamping(table_limit=64)", replace(part, log_z=log_z - 1e-3))
    stats = best.answer(Stop(), "").stats
    assert stats["marginals_by"] == "clamping(table_limit=64)"
    # What the sum leaves out of Z at most.
    assert stats["marginals_error"] == pytest.approx(-np.expm1(-3e-3))


def test_bounds_that_are_near_each_other_prefer_mini_buckets_to_message_passing() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    for gap, by in ((3.0, "lbp"), (0.5, "wmb(table_limit=64)")):
        upper = replace(truth, log_z_kind=LogZKind.UPPER, status=Status.CONVERGED, stats={})
        best.take("wmb(table_limit=64)", replace(upper, log_z=log_z + 0.5 * gap))
        lower = replace(truth, log_z_kind=LogZKind.ELBO, status=Status.CONVERGED, stats={})
        wrong = shifted(graph, 0.2)
        best.take("cavi", replace(lower, log_z=log_z - 0.5 * gap, marginals=wrong))
        best.take("lbp", replace(upper, log_z=log_z, log_z_kind=LogZKind.BETHE))
        assert best.answer(Stop(), "").stats["marginals_by"] == by


def test_bounds_that_are_near_each_other_prefer_mini_buckets_that_have_settled() -> None:
    graph, _, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    sums = "clamping(table_limit=64)"
    # Distance of the bounds, change of the marginals at the last growth of the tables, share of
    # the later half of the sum, and what is chosen without and with a sum.
    for gap, moved, late, by, with_sum in (
        (0.05, 0.01, 0.3, "wmb(table_limit=512)", "wmb(table_limit=512)"),
        (0.05, 0.01, 0.01, "wmb(table_limit=512)", sums),
        (0.05, 0.30, 0.3, "ijgp", sums),
        (0.80, 0.01, 0.3, "wmb(table_limit=512)", sums),
        (3.00, 0.01, 0.3, "ijgp", sums),
    ):
        best = _Best()
        upper = replace(truth, log_z=log_z + 0.5 * gap, log_z_kind=LogZKind.UPPER)
        upper = replace(upper, status=Status.NOT_CONVERGED, stats={})
        lower = replace(upper, log_z=log_z - 0.5 * gap, log_z_kind=LogZKind.ELBO)
        best.take("cavi", replace(lower, marginals=shifted(graph, 0.9)))
        far = shifted(graph, 0.1 + 2.0 * moved)
        best.take("wmb(table_limit=64)", replace(upper, log_z=log_z + gap, marginals=far))
        best.take("wmb(table_limit=512)", replace(upper, marginals=shifted(graph, 0.1)))
        messages = replace(upper, log_z=log_z, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED)
        # Message passing on clusters and on factors agree with each other best.
        best.take("ijgp(i_bound=2)", replace(messages, marginals=shifted(graph, 0.3)))
        best.take("lbp", replace(messages, marginals=shifted(graph, 0.301)))
        assert best.answer(Stop(), "").stats["marginals_by"] == by
        part = replace(lower, stats={"late_share": late}, log_z_kind=LogZKind.LOWER)
        part = replace(part, marginals=shifted(graph, 0.1005))
        best.take(sums, part)
        answer = best.answer(Stop(), "").stats
        assert answer["marginals_by"] == with_sum
        if with_sum != sums:
            assert answer["marginals_reason"].startswith(f"mini-buckets precede {sums!r}; they")


def test_message_passing_that_has_not_converged_counts_less() -> None:
    graph, best, truth = best_of_a_grid()
    messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.NOT_CONVERGED, stats={})
    upper = replace(messages, log_z=log_z_of(graph) + 6.0, log_z_kind=LogZKind.UPPER)
    best.take("wmb(table_limit=64)", replace(upper, marginals=shifted(graph, 0.02)))
    best.take("ijgp(i_bound=2)", replace(messages, stats={"residual": 0.1}))
    assert best.answer(Stop(), "").stats["marginals_by"] == "wmb(table_limit=64)"
    # Larger clusters that are farther from a fixed point do not replace it.
    worse = replace(messages, stats={"residual": 0.5}, marginals=shifted(graph, 0.9))
    best.take("ijgp(i_bound=4)", worse)
    assert best.messages["ijgp"].stats["residual"] == 0.1
    # What has converged comes before larger clusters.
    best.take("lbp", replace(messages, status=Status.CONVERGED, marginals=shifted(graph, 0.01)))
    assert best.answer(Stop(), "").stats["marginals_by"] == "lbp"


def test_where_none_agree_a_sum_that_no_longer_grows_replaces_unsettled_mini_buckets() -> None:
    graph, _, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    for late, before, by in (
        (0.01, 0.9, "clamping(table_limit=64)"),
        (0.01, 0.5, "wmb(table_limit=512)"),
        (0.3, 0.9, "wmb(table_limit=512)"),
    ):
        _, best, _ = best_of_a_grid()
        stats = {"late_share": late}
        part = replace(truth, log_z_kind=LogZKind.LOWER, status=Status.NOT_CONVERGED, stats=stats)
        best.take("clamping(table_limit=64)", replace(part, log_z=log_z - 3.0))
        upper = replace(truth, log_z_kind=LogZKind.UPPER, status=Status.CONVERGED, stats={})
        for table, by_how_much in ((64, before), (512, 0.5)):
            off = replace(upper, log_z=log_z + 6.0, marginals=shifted(graph, by_how_much))
            best.take(f"wmb(table_limit={table})", off)
        answer = best.answer(Stop(), "").stats
        assert answer["marginals_by"] == by
        assert "no two algorithms agree" in answer["marginals_reason"]


def test_mini_buckets_without_a_pass_have_no_marginals() -> None:
    graph, best, _ = best_of_a_grid()
    posterior = WeightedMiniBuckets(i_bound=1).solve_until(graph, Stop(0.0))
    assert posterior.stats["iterations"] == 0
    best.take("wmb(table_limit=64)", posterior)
    assert best.largest is None


def test_larger_tables_with_a_looser_bound_do_not_replace_smaller_ones() -> None:
    graph, best, truth = best_of_a_grid()
    upper = replace(truth, log_z_kind=LogZKind.UPPER, status=Status.NOT_CONVERGED, stats={})
    for table, looser, off, kept in (
        (64, 6.0, 0.3, 64),
        (512, 4.0, 0.2, 512),
        # With time for few passes.
        (4096, 5.0, 0.9, 512),
        (32768, 4.0, 0.1, 32768),
    ):
        marginals = shifted(graph, off)
        bound = replace(upper, log_z=log_z_of(graph) + looser, marginals=marginals)
        best.take(f"wmb(table_limit={table})", bound)
        assert best.answer(Stop(), "").stats["marginals_by"] == f"wmb(table_limit={kept})"


def test_a_run_is_named_by_the_tables_that_memory_left_it() -> None:
    graph, best, _ = best_of_a_grid()
    mini_buckets = WeightedMiniBuckets(i_bound=26, table_limit=2**20, memory_limit=7000)
    posterior = mini_buckets.infer(graph)
    best.take(f"wmb(table_limit={2**20})", posterior)
    assert posterior.stats["table_limit"] < 2**20
    assert best.upper_by == f"wmb(table_limit={posterior.stats['table_limit']})"
    assert best.at_largest_tables


def test_clamping_begins_in_several_modes() -> None:
    agree = [((i, j), 2.0 * np.eye(2)) for i in range(12) for j in range(i)]
    graph = FactorGraph.from_factors([2] * 12, agree, log=True)
    truth = log_z_of(graph)
    # All true and all false have half of Z each, and no change of one variable leads from one to
    # the other.
    bounds = [
        Clamping(8, seed, np.zeros(12, dtype=np.int64), assignments=4).solve_until(graph, Stop())
        for seed in range(3)
    ]
    for bound in bounds:
        assert bound.log_z is not None
        # Others than these two leave less than a thousandth.
        assert truth - 1e-3 < bound.log_z <= truth + 1e-9
        assert bound.marginals.flat == pytest.approx(0.5, abs=1e-3)


def test_bounds_that_nearly_meet_certify_the_marginals() -> None:
    graph, best, _ = best_of_a_grid()
    log_z = log_z_of(graph)
    best.take("trw", replace(infer(graph, "trw"), log_z=log_z + 1e-4))
    best.take("cavi", replace(infer(graph, "cavi"), log_z=log_z, marginals=shifted(graph, 0.001)))
    stats = best.answer(Stop(), "").stats
    assert stats["marginals_by"] == "cavi"
    # Pinsker: a divergence of at most the gap.
    assert stats["marginals_error"] == pytest.approx((0.5e-4) ** 0.5)


def test_agreeing_samples_choose_the_marginals_with_the_least_error() -> None:
    graph, best, truth = best_of_a_grid()
    errors = {name: np.full(2, 0.01) for name in graph.names}
    noise = np.random.default_rng(0).normal(scale=0.01, size=graph.n_variables)
    values = truth.marginals.flat + np.repeat(noise, 2) * np.tile([1.0, -1.0], graph.n_variables)
    stats = {"standard_errors": errors, "log_z_standard_error": 0.1}
    sampled = replace(
        truth,
        marginals=Marginals.of(graph, values),
        status=Status.CONVERGED,
        log_z_kind=LogZKind.ESTIMATE,
        stats=stats,
    )
    stop = Stop()
    messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED, stats={})
    # What the rule chooses without an error counts until there are samples that agree.
    best.take("lbp", replace(messages, marginals=shifted(graph, 0.31)))
    ruled = best.answer(stop, "").stats
    assert ruled["marginals_by"] != "ais"
    best.take("ais", replace(sampled, stats={**stats, "log_z_standard_error": None}))
    assert best.answer(stop, "").stats["estimate_by"] == "ais"
    assert best.answer(stop, "").stats["bethe_by"] == "lbp"
    assert best.answer(stop, "").stats["marginals_by"] == ruled["marginals_by"]
    best.take("ais", sampled)
    answer = best.answer(stop, "")
    assert answer.stats["marginals_by"] == answer.stats["estimate_by"] == "ais"
    assert answer.stats["marginals_error"] == pytest.approx(0.01)
    assert answer.stats["estimate"] == truth.log_z
    assert answer.stats["estimate_standard_error"] == 0.1
    assert not answer.stats["missing"]
    # Nearer than the noise of the samples allows to tell: better than they are.
    best.take("ijgp(i_bound=2)", replace(messages, status=Status.NOT_CONVERGED))
    answer = best.answer(stop, "")
    assert answer.stats["marginals_by"] == "ijgp"
    # What is said is the root of the noise of that estimate: of n variables of two states, each
    # with the variance v of a draw, a mean over 2n states has the standard error v (8n)^(1/2) / 2n.
    floor = 0.01 * (2.0 * graph.n_variables * 4.0) ** 0.25 / (2.0 * graph.n_variables) ** 0.5
    assert answer.stats["marginals_error"] == pytest.approx(floor)
    assert answer.stats["marginals_error"] < 0.01


def test_of_errors_that_samples_do_not_distinguish_the_algorithm_decides() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    stats = {
        "standard_errors": {name: np.full(2, 0.05) for name in graph.names},
        "log_z_standard_error": 0.1,
    }
    sampled = replace(truth, log_z_kind=LogZKind.ESTIMATE, status=Status.CONVERGED, stats=stats)
    best.take("ais", sampled)
    messages = replace(truth, log_z_kind=LogZKind.BETHE, status=Status.CONVERGED, stats={})
    best.take("lbp", replace(messages, marginals=shifted(graph, 0.01)))
    assert best.answer(Stop(), "").stats["marginals_by"] == "lbp"
    # Certainly farther off than that.
    best.take("ijgp(i_bound=2)", replace(messages, marginals=shifted(graph, 0.5)))
    assert best.answer(Stop(), "").stats["marginals_by"] == "lbp"
    # Farther off by less than the samples can tell.
    best.take("ijgp(i_bound=4)", replace(messages, marginals=shifted(graph, 0.02)))
    answer = best.answer(Stop(), "").stats
    assert answer["marginals_by"] == "ijgp"
    assert (
        "do not distinguish their error from the least, that of 'lbp'"
        in (answer["marginals_reason"])
    )
    assert 0.0 < answer["marginals_error"] < 0.05
    # A sum precedes message passing only if its later half added little.
    part = replace(
        truth, log_z=log_z - 5.0, log_z_kind=LogZKind.LOWER, marginals=shifted(graph, 0.02)
    )
    for late, by in ((0.3, "ijgp"), (0.01, "clamping(table_limit=64)")):
        late_sum = replace(part, status=Status.NOT_CONVERGED, stats={"late_share": late})
        best.take("clamping(table_limit=64)", late_sum)
        assert best.answer(Stop(), "").stats["marginals_by"] == by


def test_fewer_assignments_and_larger_clusters_follow_where_messages_do_not_converge() -> None:
    _, _, truth = best_of_a_grid()
    messages = replace(truth, log_z_kind=LogZKind.BETHE, stats={"residual": 1.0})
    for status, count in ((Status.CONVERGED, 1), (Status.NOT_CONVERGED, 2)):
        best = _Best()
        names = []
        for name, _, _ in conditioned_runs(JoinGraphPropagation(i_bound=5), truth.marginals, best):
            names.append(name)
            best.take(name, replace(messages, status=status))
        assert names == [f"conditioned ijgp(i_bound={bound})" for bound in (4, 5)][:count]


def test_bounds_by_samples_are_no_certain_bounds() -> None:
    graph, best, truth = best_of_a_grid()
    log_z = log_z_of(graph)
    stats = {
        **{"upper": log_z + 1.0, "lower": log_z - 1.0, "certain_upper": log_z + 2.0},
        **{"log_z_standard_error": 0.1, "standard_errors": {n: np.ones(2) for n in graph.names}},
    }
    best.take("wmb_is", replace(truth, log_z_kind=LogZKind.ESTIMATE, stats=stats))
    answer = best.answer(Stop(), "").stats
    assert (answer["upper"], answer["upper_by"]) == (log_z + 2.0, "wmb_is")
    assert answer["lower_by"] == "cavi"


def test_every_table_stays_within_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    solve_until = WeightedMiniBuckets.solve_until

    def watched(self: WeightedMiniBuckets, graph: FactorGraph, stop: Stop) -> Posterior:
        posterior = solve_until(self, graph, stop)
        taken.append(posterior.stats["predicted_bytes"])
        return posterior

    monkeypatch.setattr(WeightedMiniBuckets, "solve_until", watched)
    # So wide that exact inference does not fit, and little enough for small mini-buckets alone.
    infer(grid(20, 20, coupling=1.0, field=1.0, seed=0), "auto", memory_limit=10**6, seconds=2.0)
    assert taken
    # A quarter is for what estimates meanwhile.
    assert max(taken) <= 750_000


def test_bounds_tighten_as_they_come() -> None:
    graph = grid(14, 14, coupling=2.0, field=1.0, seed=1).with_evidence({3: 1})
    truth = log_z_of(graph)
    gaps = []
    for posterior in infer_anytime(graph, seconds=1.0, memory_limit=50_000):
        assert posterior.stats["lower"] <= truth + 1e-9
        assert posterior.stats["upper"] >= truth - 1e-9
        assert posterior.marginals[graph.names[3]].tolist() == [0.0, 1.0]
        assert posterior.backend == "auto"
        gaps.append(posterior.stats["gap"])
    assert len(gaps) >= 3
    assert sorted(gaps, reverse=True) == gaps


@pytest.mark.kill
def test_an_interrupt_returns_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(14, 14, coupling=2.0, field=1.0, seed=1)
    solve_until = TreeReweighted.solve_until

    def interrupting(self: TreeReweighted, graph: FactorGraph, stop: Stop) -> Posterior:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        while not stop.over:
            pass
        return solve_until(self, graph, stop)

    monkeypatch.setattr(TreeReweighted, "solve_until", interrupting)
    # A shell lets what it starts in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        posterior = infer(graph, "auto", memory_limit=50_000, seconds=600.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert posterior.status is Status.INTERRUPTED
    assert np.isfinite(posterior.stats["lower"])


def test_a_contradiction_is_found_without_elimination() -> None:
    with pytest.raises(ZeroPartitionError):
        infer(all_different(7, 2), "auto", memory_limit=100, seconds=1.0)


def test_a_prediction_within_limits() -> None:
    wide = fr2(60, 5, density=0.3, seed=0)
    cost = Auto(seconds=0.5, memory_limit=10**6).predict(wide)
    assert (cost.seconds, cost.bytes) == (0.5, 10**6)
