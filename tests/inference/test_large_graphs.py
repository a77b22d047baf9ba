"""Graphs that no table can hold: every backend answers otherwise, or refuses before it starts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from experiments.run.processes import Child, limit_memory
from factormodels.factor_graph import FactorGraph
from inference import get_backend
from inference.auto import Auto
from inference.backend import TooLargeError
from inference.mini_buckets.wmb import WeightedMiniBuckets

pytestmark = [pytest.mark.slow, pytest.mark.kill]

EXPONENTIAL = ("exact", "enumeration", "pgmpy", "pyagrum")
"""Backends whose tables grow with the induced width, or with the number of states."""


def clique(size: int) -> FactorGraph:
    """Every pair of binary variables in a factor of its own."""
    numbers = np.random.default_rng(0)
    return FactorGraph.from_factors(
        [2] * size,
        [(pair, np.exp(numbers.normal(size=(2, 2)))) for pair in combinations(range(size), 2)],
    )


def refusal(_: dict[str, object], backend: str, size: int) -> str:
    """The sentence with which a backend refuses a clique."""
    try:
        get_backend(backend).infer(clique(size))
    except TooLargeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("backend", EXPONENTIAL)
def test_a_clique_of_45_is_refused_without_its_tables(backend: str) -> None:
    pytest.importorskip({"pgmpy": "pgmpy", "pyagrum": "pyagrum"}.get(backend, "numpy"))
    with Child() as child:
        # Libraries are loaded by a small graph; a table over 45 variables has 2^45 entries.
        child.call(refusal, backend, 4)
        child.call(limit_memory, 2**28)
        said = child.call(refusal, backend, 45)
    assert said
    assert "\n" not in said
    assert "use backend" in said


def test_auto_predicts_no_bound_that_certainly_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = clique(60)
    predicted = []
    predict = WeightedMiniBuckets.predict

    def counted(self: WeightedMiniBuckets, graph: FactorGraph) -> object:
        predicted.append(self.i_bound)
        return predict(self, graph)

    monkeypatch.setattr(WeightedMiniBuckets, "predict", counted)
    cost = Auto(seconds=0.5).predict(graph)
    assert cost.seconds <= 0.5
    assert len(predicted) <= 2
    for i_bound in (4, 8, 12):
        bound = WeightedMiniBuckets(i_bound=i_bound)
        assert bound.least_seconds(graph) <= predict(bound, graph).seconds


def test_auto_refuses_what_even_the_loosest_bound_cannot_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inference.auto._MOST_SECONDS", 1e-6)
    with pytest.raises(
        TooLargeError, match=r"the loosest bound takes more than .* use backend 'lbp"
    ):
        Auto(seconds=1e-6).infer(clique(60))
