"""The oracle that the rest is held against, held against arithmetic by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest

from factormodels import FactorGraph
from tests.oracle import oracle


def test_the_oracle_itself_by_hand() -> None:
    graph = FactorGraph.from_factors([2, 2], [((0, 1), [[1, 2], [3, 4]]), ((1,), [1, 10])])
    answer = oracle(graph)
    weights = {(0, 0): 1, (0, 1): 20, (1, 0): 3, (1, 1): 40}
    assert answer.log_z == pytest.approx(math.log(64), rel=1e-15)
    assert answer.marginals["0"] == pytest.approx([21 / 64, 43 / 64], rel=1e-14)
    assert answer.marginals["1"] == pytest.approx([4 / 64, 60 / 64], rel=1e-14)
    joint = answer.joint(["1", "0"])
    for x, y in product(range(2), range(2)):
        assert joint[y, x] == pytest.approx(weights[x, y] / 64, rel=1e-14)
    assert oracle(graph.with_evidence({0: 1})).log_z == pytest.approx(math.log(43), rel=1e-15)


def test_the_oracle_stays_in_log_space_and_knows_impossible_graphs() -> None:
    deep = FactorGraph.from_factors([2], [((0,), [-5000.0, -5001.0])], log=True)
    assert oracle(deep).log_z == pytest.approx(-5000 + math.log1p(math.exp(-1)), rel=1e-15)
    impossible = FactorGraph.from_factors([2], [((0,), [0, 0])])
    assert oracle(impossible).log_z == -math.inf
    with pytest.raises(ZeroDivisionError):
        oracle(impossible).marginals  # noqa: B018
