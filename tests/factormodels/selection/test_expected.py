"""Core under uncertain redundancy, against enumeration and against the plain program."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from factormodels.selection import (
    Program,
    SolverSettings,
    Subclaim,
    pairwise_entailments,
    solve,
)
from factormodels.selection.expected import (
    expected_weight,
    redundancy,
    select_expected,
)
from tests.factormodels.selection.cases import TableRelations
from tests.refusals import refused


def symmetric(generator: np.random.Generator, n: int, share: float) -> np.ndarray:
    r = np.triu(generator.random((n, n)) * (generator.random((n, n)) < share), 1)
    return r + r.T


def by_graphs(chosen: tuple[int, ...], weights: np.ndarray, r: np.ndarray) -> float:
    """The expected weight of what heavier members leave of a set, graph by graph."""
    pairs = list(itertools.combinations(chosen, 2))
    total = 0.0
    for present in itertools.product([False, True], repeat=len(pairs)):
        chance = np.prod(
            [r[i, j] if on else 1 - r[i, j] for (i, j), on in zip(pairs, present, strict=True)]
        )
        voided = {
            max(pair, key=lambda i: (-weights[i], i))
            for pair, on in zip(pairs, present, strict=True)
            if on
        }
        total += chance * sum(weights[i] for i in chosen if i not in voided)
    return float(total)


def test_the_expected_weight_is_that_over_all_graphs() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        weights, r = generator.random(4), symmetric(generator, 4, 0.9)
        # The same sum in another order: rounding alone.
        assert expected_weight((0, 1, 2, 3), weights, r) == pytest.approx(
            by_graphs((0, 1, 2, 3), weights, r), abs=1e-12
        )


def test_the_chosen_set_is_the_best_of_all() -> None:
    generator = np.random.default_rng(1)
    for n in [*range(7), 8, 9, 10]:
        for share in (0.2, 0.6, 1.0):
            weights = np.round(generator.uniform(-0.2, 1, n), 2)
            r = symmetric(generator, n, share)
            if share == 0.6:
                r = np.where(r > 0.1, np.maximum(r, 0.9), r)
            selected = select_expected(weights, r)
            best = max(
                expected_weight(s, weights, r)
                for size in range(n + 1)
                for s in itertools.combinations(range(n), size)
            )
            assert selected.status == "optimal"
            # Sums in different orders: rounding alone.
            assert selected.expected_weight == pytest.approx(best, abs=1e-12)
            assert expected_weight(selected.chosen, weights, r) == pytest.approx(best, abs=1e-12)
            assert selected.expected_weight == pytest.approx(
                sum(weights[i] * s for i, s in zip(selected.chosen, selected.survival, strict=True))
            )


def test_certain_redundancy_gives_the_plain_program() -> None:
    generator, patient = np.random.default_rng(2), SolverSettings(time_limit=120.0)
    for _ in range(60):
        n = int(generator.integers(1, 13))
        weights = generator.uniform(0.1, 2, n)
        r = (symmetric(generator, n, generator.random()) > 0).astype(float)
        pairs = tuple((int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(r)), strict=True))
        plain = solve(Program(tuple(weights), pairs), patient)
        # Sets within the solver's tolerance of each other count as equal.
        assert select_expected(weights, r).expected_weight == pytest.approx(plain.weight, abs=2e-6)


def test_the_limit_of_branchings_is_a_status_with_a_bound() -> None:
    generator = np.random.default_rng(3)
    weights = generator.uniform(0.5, 1, 40)
    r = symmetric(generator, 40, 0.5)
    r[r > 0] = 0.95
    selected = select_expected(weights, r, branches=50)
    better = select_expected(weights, r, branches=20_000)
    assert selected.status == "limit"
    assert selected.bound >= better.expected_weight >= selected.expected_weight > 0
    assert selected.gap > 0
    given = tuple(range(0, 40, 3))
    improved = select_expected(weights, r, start=given, branches=50)
    assert improved.expected_weight >= expected_weight(given, weights, r)


def test_repetition_of_a_probable_kind_counts_for_what_is_left_of_it() -> None:
    # One claim false, one true and repeated five times with redundancy 0.9 among repetitions.
    r = np.zeros((7, 7))
    r[1:, 1:] = 0.9
    np.fill_diagonal(r, 0.0)
    selected = select_expected([1.0] * 7, r)
    supported = [False] + [True] * 6
    # 1 + 0.1 + 0.01 + ... of the true one against 1 of the false one.
    assert selected.precision(supported) == pytest.approx(1.11111 / 2.11111)
    assert selected.expected_count == pytest.approx(2.11111)
    plain = solve(Program((1.0,) * 7, tuple(itertools.combinations(range(1, 7), 2))))
    assert len(plain.chosen) == 2


def test_redundancy_joins_both_directions() -> None:
    claims = [Subclaim("A."), Subclaim("B."), Subclaim("C.")]
    relations = TableRelations(
        {("A.", "B."): 0.8, ("B.", "A."): 0.5}, missing=frozenset({("A.", "C.")})
    )
    entailments = pairwise_entailments(claims, relations)
    assert redundancy(entailments)[0].tolist() == pytest.approx([0.0, 0.9, 0.0])
    assert redundancy(entailments, "both")[1].tolist() == pytest.approx([0.4, 0.0, 0.0])


@pytest.mark.parametrize(
    ("weights", "r", "message"),
    [
        ([1.0], [[0.0, 1.0]], "give n weights"),
        ([1.0, 1.0], [[0.0, 0.5], [0.4, 0.0]], "symmetric"),
        ([1.0], [[0.5]], "a zero diagonal"),
        ([float("nan")], [[0.0]], "weights must be finite"),
        ([1.0, 1.0], [[0.0, 2.0], [2.0, 0.0]], "have probabilities"),
    ],
)
def test_bad_arrays_are_named(weights: list[float], r: list[list[float]], message: str) -> None:
    refused(message, select_expected, weights, r)


def test_bad_counts_are_named() -> None:
    refused("branches is 0", select_expected, [], np.zeros((0, 0)), branches=0)
