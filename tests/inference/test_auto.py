"""What `auto` promises: the exact answer within its limits, the tightest bounds beyond them."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from factormodels import FactorGraph
from factormodels.synthetic import fr2, grid
from inference import LogZKind, Posterior, Status, ZeroPartitionError, infer, infer_anytime
from inference.anytime import _Best
from inference.auto import Auto
from inference.messages.trw import TreeReweighted
from inference.mini_buckets.wmb import WeightedMiniBuckets
from inference.stop import Stop
from tests.inference.answers import log_z_of

LITTLE = {"memory_limit": 20_000, "seconds": 1.0}


def test_what_fits_is_exact() -> None:
    graph = fr2(20, 3, density=0.05, seed=0)
    posterior, truth = infer(graph, "auto"), infer(graph, "exact")
    assert posterior.status is Status.EXACT
    assert posterior.log_z == truth.log_z == posterior.stats["lower"]
    assert posterior.stats["upper_by"] == "exact"
    assert "takes about" in posterior.stats["reason"]


def test_what_does_not_fit_is_bounded_from_both_sides_by_the_best() -> None:
    graph = fr2(21, 4, density=0.3, seed=0)
    truth = log_z_of(graph)
    posterior = infer(graph, "auto", **LITTLE)
    assert posterior.log_z_kind is LogZKind.UPPER
    assert posterior.log_z == posterior.stats["upper"]
    # Clamping may end in the exact sum, added in another order.
    slack = 1e-9 * abs(truth)
    assert posterior.stats["lower"] - slack <= truth <= posterior.stats["upper"] + slack
    assert posterior.stats["gap"] == posterior.stats["upper"] - posterior.stats["lower"]
    assert "by memory_limit" in posterior.stats["reason"]
    # Which algorithm gets how far depends on the clock; that something bounds each side does not.
    assert np.isfinite([posterior.stats["lower"], posterior.stats["upper"]]).all()
    for side in ("lower_by", "upper_by"):
        assert posterior.stats[side].startswith(("wmb(", "trw", "cavi", "clamping("))


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


def test_every_table_stays_within_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    solve_until = WeightedMiniBuckets.solve_until

    def watched(self: WeightedMiniBuckets, graph: FactorGraph, stop: Stop) -> Posterior:
        posterior = solve_until(self, graph, stop)
        taken.append(posterior.stats["predicted_bytes"])
        return posterior

    monkeypatch.setattr(WeightedMiniBuckets, "solve_until", watched)
    infer(grid(14, 14, coupling=1.0, field=1.0, seed=0), "auto", memory_limit=200_000, seconds=1.0)
    assert taken
    assert max(taken) <= 200_000


def test_bounds_tighten_as_they_come() -> None:
    graph = grid(14, 14, coupling=2.0, field=1.0, seed=1).with_evidence({3: 1})
    truth = log_z_of(graph)
    gaps = []
    for posterior in infer_anytime(graph, seconds=1.0, memory_limit=200_000):
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
        posterior = infer(graph, "auto", memory_limit=200_000, seconds=600.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert posterior.status is Status.INTERRUPTED
    assert np.isfinite(posterior.stats["lower"])


def test_a_contradiction_is_found_without_elimination() -> None:
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    graph = FactorGraph.from_factors(
        [2] * 7, [((a, b), table) for a in range(7) for b in range(a + 1, 7)]
    )
    with pytest.raises(ZeroPartitionError):
        infer(graph, "auto", memory_limit=100, seconds=1.0)


def test_a_prediction_within_limits() -> None:
    wide = fr2(60, 5, density=0.3, seed=0)
    cost = Auto(seconds=0.5, memory_limit=10**6).predict(wide)
    assert (cost.seconds, cost.bytes) == (0.5, 10**6)
