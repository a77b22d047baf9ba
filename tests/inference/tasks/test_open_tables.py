"""Bounds under open tables, also from draws: against every choice of tables, by the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from inference.sampling.annealing import AnnealedImportance
from inference.tasks import open_marginals
from inference.tasks.open_walks import Walks
from tests.oracle import oracle
from tests.refusals import refused

Floats = NDArray[np.float64]

NEUTRAL = np.ones((2, 2))


def entails(p: float) -> Floats:
    return np.array([[p, p], [1.0 - p, p]])


def contradicts(p: float) -> Floats:
    return entails(p)[:, ::-1]


ENDS = (NEUTRAL, entails(0.5), entails(1.0), contradicts(0.5), contradicts(1.0))
"""The tables of a relation of which nothing is known but that its probability is at least 1/2."""


@pytest.fixture(params=["choices", "walks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let bounds be those of all choices where these are few, or always those of walks."""
    way: str = request.param
    if way == "walks":
        monkeypatch.setattr("inference.tasks.open_tables._MOST_STATES", 0)
    return way


both_ways = pytest.mark.usefixtures("way")

ROUNDING = 1e-9
"""Marginals are sums of at most 2^6 products of a dozen numbers; log odds lose less than this."""


def logs(tables: Any) -> Floats:
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(np.array(tables))
    return logarithms


def graph_of(priors: Any, factors: Any) -> FactorGraph:
    unary = [((number,), [1.0 - p, p]) for number, p in enumerate(priors)]
    return FactorGraph.from_factors([2] * len(unary), [*unary, *factors])


def marginals(graph: FactorGraph) -> list[float]:
    return [of[1] for of in oracle(graph).marginals.values()]


def random_open_graph(seed: int, most_open: int) -> tuple[Any, Any, list[tuple[int, int]]]:
    """Priors, known tables and open pairs of a graph from a tree to a complete one."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 7))
    pairs = list(combinations(range(n), 2))
    generator.shuffle(pairs)
    # The shortest cycles of complete graphs are triangles.
    joined = [(int(i), int(j)) for i, j in pairs[: generator.integers(1, len(pairs) + 1)]]
    n_open = min(most_open, (len(joined) + 1) // 2)
    # Either end may be the source.
    unknown = [(j, i) if generator.integers(2) else (i, j) for i, j in joined[:n_open]]
    known = [(pair, np.exp(generator.normal(0.0, 1.5, (2, 2)))) for pair in joined[n_open:]]
    return generator.uniform(0.02, 0.98, n), known, unknown


@both_ways
@pytest.mark.parametrize("seed", range(60))
def test_no_choice_of_tables_leaves_the_bounds(seed: int) -> None:
    priors, known, unknown = random_open_graph(seed, most_open=8)
    generator = np.random.default_rng(seed)
    bounds = open_marginals(graph_of(priors, known), dict.fromkeys(unknown, logs(ENDS)))
    for _ in range(12):
        p = generator.choice([0.5, generator.uniform(0.5, 1.0), 1.0 - 1e-9])
        kinds = (NEUTRAL, entails(p), contradicts(p))
        tables = [(pair, kinds[generator.integers(3)]) for pair in unknown]
        exact = marginals(graph_of(priors, [*known, *tables]))
        for value, (lower, upper) in zip(exact, bounds.tolist(), strict=True):
            assert np.isnan(lower) or lower - ROUNDING <= value <= upper + ROUNDING


def attained(
    priors: Any, known: Any, unknown: Sequence[tuple[int, int]], ends: Sequence[Floats] = ENDS
) -> Floats:
    """The least and the largest marginals of all choices, each enumerated."""
    exact = np.array(
        [
            marginals(graph_of(priors, [*known, *zip(unknown, tables, strict=True)]))
            for tables in product(ends, repeat=len(unknown))
        ]
    )
    return np.stack([exact.min(axis=0), exact.max(axis=0)], axis=1)


def crossed(n_open: int) -> tuple[list[float], list[tuple[tuple[int, int], Floats]], Any]:
    """Priors, known tables and open pairs of four claims, each related to the same two passages."""
    priors = [0.5, 0.4, 0.6, 0.3, 0.97, 0.9]
    pairs = [(passage, claim) for claim in range(4) for passage in (4, 5)]
    known = [((0, 1), entails(0.8)), ((1, 2), contradicts(0.7)), ((2, 3), entails(0.6))]
    for number, pair in enumerate(pairs[n_open:]):
        known.append((pair, (entails, contradicts)[number % 2](0.8)))
    return priors, known, pairs[:n_open]


def weighed(
    priors: Sequence[float], known: Any, unknown: Sequence[tuple[int, int]], ends: Sequence[Floats]
) -> Floats:
    """The least and the largest marginals of all choices, from one table of all states."""
    states = np.array(list(product((0, 1), repeat=len(priors))))
    weights = np.where(states, priors, 1.0 - np.array(priors)).prod(axis=1)
    for (first, second), table in known:
        weights = weights * table[states[:, first], states[:, second]]
    of_choices = weights[None]
    for first, second in unknown:
        tables = np.array(ends)[:, states[:, first], states[:, second]]
        of_choices = (of_choices[:, None] * tables).reshape(-1, len(states))
    p = of_choices @ states / of_choices.sum(axis=1, keepdims=True)
    return np.stack([p.min(axis=0), p.max(axis=0)], axis=1)


def test_tables_that_differ_by_a_constant_leave_eight_open_pairs_computed(way: str) -> None:
    priors, known, unknown = crossed(8)
    bounds = open_marginals(graph_of(priors, known), dict.fromkeys(unknown, logs(ENDS)))
    # A relation at 1/2 says as much as a neutral one.
    exact = weighed(priors, known, unknown, (NEUTRAL, entails(1.0), contradicts(1.0)))
    assert (bounds[:, 0] <= exact[:, 0] + ROUNDING).all()
    assert (bounds[:, 1] >= exact[:, 1] - ROUNDING).all()
    assert np.allclose(bounds, exact, rtol=0.0, atol=ROUNDING) == (way == "choices")


def test_in_a_cycle_the_bounds_of_all_choices_are_attained(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two passages and two claims, each passage related to both, and a passage beside one claim.
    priors = [0.5, 0.4, 0.99, 0.8, 0.95]
    known = [
        *(((2, 0), entails(0.9)), ((2, 1), contradicts(0.9)), ((3, 0), contradicts(0.8))),
        ((4, 1), entails(0.7)),
    ]
    unknown = [(3, 1), (4, 0)]
    opened = dict.fromkeys(unknown, logs(ENDS))
    bounds = open_marginals(graph_of(priors, known), opened)
    extremes = attained(priors, known, unknown)
    assert (bounds[:, 0] <= extremes[:, 0] + ROUNDING).all()
    assert (bounds[:, 1] >= extremes[:, 1] - ROUNDING).all()
    assert np.allclose(bounds, extremes, rtol=0.0, atol=ROUNDING) == (way == "choices")
    # What is predicted to take too long is left to the walks.
    monkeypatch.setattr("inference.tasks.open_tables._MOST_SECONDS", 1e-12)
    wider = open_marginals(graph_of(priors, known), opened)
    assert not np.allclose(wider, extremes, rtol=0.0, atol=ROUNDING)


@both_ways
def test_a_choice_that_leaves_nothing_possible_is_no_answer() -> None:
    certain = graph_of([0.5, 0.5], []).with_evidence({0: 1, 1: 1})
    bounds = open_marginals(certain, {(0, 1): logs([NEUTRAL, contradicts(1.0)])})
    assert bounds[:, 0] == pytest.approx([1.0, 1.0])


@both_ways
def test_in_a_forest_the_bounds_are_attained() -> None:
    # Two claims with an answer and an open relation each; nothing joins the claims.
    priors = [0.5, 0.3, 0.99, 0.9, 0.99, 0.8]
    known = [((2, 0), entails(0.9)), ((4, 1), contradicts(0.7))]
    unknown = [(3, 0), (5, 1)]
    bounds = open_marginals(graph_of(priors, known), dict.fromkeys(unknown, logs(ENDS)))
    # No log odds is cut but that of the tables' zeros, e^-1000; the rest is rounding.
    assert bounds == pytest.approx(attained(priors, known, unknown), abs=1e-12)


@both_ways
def test_variables_apart_from_open_tables_have_no_bounds() -> None:
    graph = graph_of([0.5] * 4, [((0, 1), entails(0.9)), ((2, 3), entails(0.9))])
    bounds = open_marginals(graph, {(0, 1): logs(ENDS)})
    assert np.isnan(bounds).all(axis=1).tolist() == [False, False, True, True]
    assert np.isnan(open_marginals(graph, {})).all()


@both_ways
def test_evidence_is_kept() -> None:
    graph = graph_of([0.5] * 3, [((0, 1), entails(0.9))]).with_evidence({0: 1})
    bounds = open_marginals(graph, {(1, 2): logs([NEUTRAL])})
    assert bounds[1] == pytest.approx([0.9, 0.9])
    assert bounds[0].tolist() == [1.0, 1.0]


@both_ways
def test_a_table_over_three_variables_is_refused() -> None:
    three = FactorGraph.from_factors([2] * 3, [((0, 1, 2), np.ones((2, 2, 2)))])
    refused("tables over two of them", open_marginals, three, {})
    refused("two states", open_marginals, FactorGraph.from_factors([3], []), {})


@both_ways
def test_an_open_table_stands_beside_a_known_one() -> None:
    priors, known = [0.9, 0.4], [((0, 1), entails(0.8))]
    bounds = open_marginals(graph_of(priors, known), {(1, 0): logs(ENDS)})
    exact = np.array([marginals(graph_of(priors, [*known, ((1, 0), table)])) for table in ENDS])
    assert bounds[:, 0] == pytest.approx(exact.min(axis=0), abs=1e-12)
    assert bounds[:, 1] == pytest.approx(exact.max(axis=0), abs=1e-12)


SETTINGS = AnnealedImportance(min_effective=50.0)


@pytest.fixture
def exact_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.tasks.open_tables._MOST_SECONDS", 1e-12)


from_draws = pytest.mark.usefixtures("exact_is_slow")
"""Of tests of bounds from draws, which are asked for where all choices would take too long."""


@from_draws
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


@from_draws
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


@from_draws
@pytest.mark.parametrize("n_open", [5, pytest.param(8, marks=pytest.mark.nightly)])
def test_several_open_pairs_are_estimated(n_open: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Walks, "bounds", lambda _: np.tile([0.0, 1.0], (6, 1)))
    priors, known, unknown = crossed(n_open)
    ends = (NEUTRAL, entails(0.5), entails(0.8), contradicts(0.8))
    tables = dict.fromkeys(unknown, logs(ends))
    bounds = open_marginals(graph_of(priors, known), tables, AnnealedImportance(particles=256))
    exact = weighed(priors, known, unknown, ends)
    assert (bounds[:, 0] <= exact[:, 0] + ROUNDING).all()
    assert (bounds[:, 1] >= exact[:, 1] - ROUNDING).all()
    assert (exact[:, 0] - bounds[:, 0] < 0.2).all()
    assert (bounds[:, 1] - exact[:, 1] < 0.2).all()


@from_draws
def test_with_too_many_choices_the_bounds_are_sure() -> None:
    priors = [0.5] * 12
    unknown = [(0, n) for n in range(1, 12)]
    tables = dict.fromkeys(unknown, logs(ENDS))
    graph = graph_of(priors, [((1, 2), entails(0.9)), ((2, 3), entails(0.9))])
    sure = open_marginals(graph, tables)
    assert open_marginals(graph, tables, SETTINGS).tolist() == sure.tolist()
