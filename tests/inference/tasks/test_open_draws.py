"""Bounds under open tables from draws: against every choice of tables, enumerated by the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from inference.sampling.annealing import AnnealedImportance
from inference.tasks import open_marginals
from inference.tasks.open_walks import Walks
from tests.inference.tasks.test_open_tables import (
    ENDS,
    NEUTRAL,
    ROUNDING,
    attained,
    contradicts,
    crossed,
    entails,
    graph_of,
    logs,
    random_open_graph,
    weighed,
)

SETTINGS = AnnealedImportance(min_effective=50.0)


@pytest.fixture(autouse=True)
def exact_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.tasks.open_tables._MOST_SECONDS", 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_every_choice_is_within_and_bounds_are_no_wider_than_their_errors(seed: int) -> None:
    priors, known, unknown = random_open_graph(seed, most_open=3)
    graph, tables = graph_of(priors, known), dict.fromkeys(unknown, logs(ENDS))
    sure, bounds = open_marginals(graph, tables), open_marginals(graph, tables, SETTINGS)
    touched = ~np.isnan(sure[:, 0])
    (least, most), exact = bounds[touched].T, attained(priors, known, unknown)[touched]
    assert (least <= exact[:, 0] + ROUNDING).all()
    assert (most >= exact[:, 1] - ROUNDING).all()
    # Of 50 draws that count, four standard errors are 0.28 at most, about as much beside the
    # farthest of several estimates; and never beyond the sure bounds.
    assert (exact[:, 0] - least < 0.35).all()
    assert (most - exact[:, 1] < 0.35).all()
    assert (least >= sure[touched, 0]).all()
    assert (most <= sure[touched, 1]).all()


@pytest.mark.parametrize("strength", [0.99, 1.0])
@pytest.mark.parametrize("p", [0.002, 1e-5])
def test_a_table_that_forbids_what_is_known_has_draws_of_its_own(
    p: float, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passage says what hardly any draw does, and walks nothing."""
    monkeypatch.setattr(Walks, "bounds", lambda _: np.tile([0.0, 1.0], (4, 1)))
    priors = [0.5, p, 1.0 - p, 0.5]
    known = [((0, 1), entails(0.7)), ((1, 3), entails(0.6)), ((0, 3), contradicts(0.6))]
    unknown = [(2, 1)]
    ends = (NEUTRAL, entails(strength), contradicts(strength))
    bounds = open_marginals(
        graph_of(priors, known), dict.fromkeys(unknown, logs(ends)), AnnealedImportance()
    )
    exact = attained(priors, known, unknown, ends)
    assert bounds == pytest.approx(exact, abs=0.1)
    assert (bounds[:, 0] <= exact[:, 0] + ROUNDING).all()
    assert (bounds[:, 1] >= exact[:, 1] - ROUNDING).all()


def test_eight_open_pairs_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Walks, "bounds", lambda _: np.tile([0.0, 1.0], (6, 1)))
    priors, known, unknown = crossed(8)
    ends = (NEUTRAL, entails(0.5), entails(0.8), contradicts(0.8))
    tables = dict.fromkeys(unknown, logs(ends))
    bounds = open_marginals(graph_of(priors, known), tables, AnnealedImportance(particles=256))
    exact = weighed(priors, known, unknown, ends)
    assert (bounds[:, 0] <= exact[:, 0] + ROUNDING).all()
    assert (bounds[:, 1] >= exact[:, 1] - ROUNDING).all()
    assert (exact[:, 0] - bounds[:, 0] < 0.2).all()
    assert (bounds[:, 1] - exact[:, 1] < 0.2).all()


def test_with_too_many_choices_the_bounds_are_sure() -> None:
    priors = [0.5] * 12
    unknown = [(0, n) for n in range(1, 12)]
    tables = dict.fromkeys(unknown, logs(ENDS))
    graph = graph_of(priors, [((1, 2), entails(0.9)), ((2, 3), entails(0.9))])
    sure = open_marginals(graph, tables)
    assert open_marginals(graph, tables, SETTINGS).tolist() == sure.tolist()
