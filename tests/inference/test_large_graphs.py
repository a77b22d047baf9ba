"""Graphs that no table can hold: every backend answers otherwise, or refuses before it starts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from factormodels.factor_graph import FactorGraph
from inference import get_backend
from inference.auto import Auto
from inference.backend import TooLargeError
from tests.limited_process import Child, limit_memory

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


def test_auto_bounds_a_clique_within_its_time_and_memory() -> None:
    graph = clique(60)
    posterior = Auto(seconds=0.5, memory_limit=2**24).infer(graph)
    assert posterior.stats["lower"] <= posterior.stats["upper"]
    assert np.isfinite([posterior.stats["lower"], posterior.stats["upper"]]).all()
    assert Auto(seconds=0.5).predict(graph).seconds == 0.5
