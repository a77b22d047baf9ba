"""Beliefs of pairs of variables at a fixed point of belief propagation, from their marginals."""

from __future__ import annotations

import numpy as np
import pytest

from inference.messages.beliefs import pair_beliefs


def test_pair_beliefs_have_the_marginals_and_the_odds_ratio() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(500), rng.random(500)
    tables = rng.normal(size=(500, 2, 2)) * 5.0
    tables[:6, [0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 1, 0]] = 0.0
    found = pair_beliefs(first, second, tables)
    np.testing.assert_allclose(found[:, 1, :].sum(axis=1), first, atol=1e-14)
    np.testing.assert_allclose(found[:, :, 1].sum(axis=1), second, atol=1e-14)
    # Products, not quotients: an entry may be next to nothing.
    odds = np.exp(tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0])
    left = found[:, 0, 0] * found[:, 1, 1]
    right = found[:, 0, 1] * found[:, 1, 0] * odds
    np.testing.assert_allclose(left / (1.0 + odds), right / (1.0 + odds), atol=1e-14)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_pair_beliefs_keep_zeros(row: int, column: int) -> None:
    table = np.zeros((1, 2, 2))
    table[0, row, column] = -np.inf
    # Marginals that a joint distribution with this zero can have.
    first, second = {(0, 0): (0.7, 0.6), (1, 1): (0.3, 0.2)}.get((row, column), (0.5, 0.5))
    if (row, column) == (0, 1):
        first, second = 0.7, 0.4
    if (row, column) == (1, 0):
        first, second = 0.4, 0.7
    found = pair_beliefs(np.array([first]), np.array([second]), table)[0]
    assert found[row, column] == pytest.approx(0.0, abs=1e-15)
    assert found[1].sum() == pytest.approx(first)
    assert found[:, 1].sum() == pytest.approx(second)
