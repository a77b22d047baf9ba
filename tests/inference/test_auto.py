"""What `auto` promises: the exact answer within the budget, a certified one beyond it."""

from __future__ import annotations

from factormodels.synthetic import fr2
from inference import LogZKind, Status, infer
from tests.inference.answers import log_z_of


def test_what_fits_is_exact() -> None:
    graph = fr2(20, 3, density=0.05, seed=0)
    posterior, truth = infer(graph, "auto"), infer(graph, "exact")
    assert posterior.status is Status.EXACT
    assert posterior.log_z == truth.log_z
    assert posterior.stats["chosen"].startswith("Exact(")
    assert "takes about" in posterior.stats["reason"]


def test_what_takes_too_long_is_bounded_within_the_budget() -> None:
    graph = fr2(21, 4, density=0.3, seed=0)
    truth = log_z_of(graph)
    tight = infer(graph, "auto", seconds=0.02)
    loose = infer(graph, "auto", seconds=1e-9)
    for posterior in (tight, loose):
        assert posterior.log_z_kind is LogZKind.UPPER
        assert posterior.stats["lower"] <= truth <= posterior.stats["upper"]
        assert posterior.stats["chosen"].startswith("WeightedMiniBuckets(")
    assert "of 0.02 s" in tight.stats["reason"]
    assert loose.stats["i_bound"] == 2 < tight.stats["i_bound"]


def test_what_does_not_fit_into_memory_is_bounded() -> None:
    graph = fr2(60, 5, density=0.3, seed=0)
    posterior = infer(graph, "auto", seconds=0.5)
    assert posterior.log_z_kind is LogZKind.UPPER
    assert "GiB" in posterior.stats["reason"]
