"""pgmpy's variable elimination survives what breaks plain pgmpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.synthetic import grid
from inference import (
    InferenceError,
    LogZKind,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    infer,
)
from tests.inference.answers import assert_near, given
from tests.inference.graphs import long_chain
from tests.processes import run_python

pytestmark = pytest.mark.slow

# Sums of a few hundred logarithms of size below 100: rounding is some 1e-14, a wrong table is not.
SMALL = 1e-11

# Log Z is of size 1e4, where one rounding is 2e-12; 1e4 of them in sequence stay below 1e-8.
LARGE = 1e-8

Table = NDArray[np.float64]
Factor = tuple[list[int], Table]


def square(side: int, seed: int) -> FactorGraph:
    return grid(side, side, coupling=1.0, field=1.0, cardinality=3, seed=seed)


def assert_exact(posterior: Posterior, log_z: float, marginals: Table, tolerance: float) -> None:
    assert posterior.log_z_kind is LogZKind.EXACT
    assert posterior.status is Status.EXACT
    assert_near(posterior, marginals, log_z, tolerance)


def test_equal_factors_count_each() -> None:
    # pgmpy's own factors are compared by value, and its elimination would drop the second.
    twice = [([0], [0.2, 0.8]), ([0], [0.2, 0.8])]
    graph = FactorGraph.from_factors([2, 2], [*twice, ([0, 1], [[1.0, 2.0], [3.0, 4.0]])])
    assert infer(graph, "pgmpy").marginals["0"] == pytest.approx([0.12 / 4.6, 4.48 / 4.6])


def test_a_hub_of_many_factors_does_not_underflow() -> None:
    # Sorted, so that the product of the first half is e^-2000 to 1 before the second undoes it.
    rng = np.random.default_rng(5)
    log_tables = np.zeros((4_000, 2))
    log_tables[:2_000, 0], log_tables[2_000:, 1] = -1.0, -1.0
    log_tables += rng.uniform(-1e-3, 0.0, log_tables.shape) - 0.3
    total = np.array([math.fsum(column) for column in log_tables.T])
    log_z = float(np.logaddexp(*total))
    graph = FactorGraph.from_factors([2], [([0], table) for table in log_tables], log=True)
    assert_exact(infer(graph, "pgmpy"), log_z, np.exp(total - log_z), LARGE)


def test_tables_beyond_the_range_of_doubles() -> None:
    graph = FactorGraph.from_factors(
        [2, 2],
        [([0], [0.0, -2000.0]), ([0, 1], [[-2000.0, -2001.0], [0.0, -1.0]])],
        log=True,
    )
    odds = 1 / (1 + math.exp(-1.0))
    expected = np.array([0.5, 0.5, odds, 1 - odds])
    assert_exact(infer(graph, "pgmpy"), -2000 + math.log(2 / odds), expected, SMALL)


@pytest.mark.parametrize(
    "factors",
    [
        [([], 0.0)],
        [([0], [0.0, 0.0])],
        [([0], [1.0, 0.0]), ([0, 1], [[0.0, 0.0], [1.0, 1.0]])],
    ],
    ids=["a constant", "a table", "two factors"],
)
def test_zero_partition(factors: list[Factor]) -> None:
    with pytest.raises(ZeroPartitionError, match="partition function is zero"):
        infer(FactorGraph.from_factors([2, 2], factors), "pgmpy")


def test_refuses_what_does_not_fit() -> None:
    pairs: list[Factor] = [([u, v], np.ones((2, 2))) for v in range(40) for u in range(v)]
    graph = FactorGraph.from_factors([2] * 40, pairs)
    with pytest.raises(TooLargeError, match=r"40 variables, would take .* GiB.*'exact'.*'lbp'"):
        infer(graph, "pgmpy")
    with pytest.raises(TooLargeError, match="memory_limit"):
        infer(square(4, seed=7), "pgmpy", memory_limit=1_000)


def test_refuses_components_of_many_variables() -> None:
    with pytest.raises(TooLargeError, match=r"150 variables that are connected .* has 151; use"):
        infer(long_chain(151, seed=6), "pgmpy")
    pair = [([v, v + 1], np.ones((2, 2))) for v in range(0, 400, 2)]
    many = infer(FactorGraph.from_factors([2] * 400, pair), "pgmpy")
    assert many.stats["components"] == 200
    assert many.log_z == pytest.approx(400.0 * math.log(2.0), rel=SMALL)


def test_refuses_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    import pgmpy

    monkeypatch.setattr(pgmpy.config, "DTYPE", "float32")
    with pytest.raises(InferenceError, match="float32"):
        infer(square(2, seed=10), "pgmpy")


def test_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    infer(square(4, seed=11), "pgmpy")
    assert capfd.readouterr() == ("", "")


def test_every_process_rounds_alike() -> None:
    # Without care pgmpy multiplies in the order of memory addresses, and last digits change.
    program = (
        "from inference import infer\n"
        "from tests.inference.test_pgmpy_backend import square\n"
        "posterior = infer(square(6, seed=12), 'pgmpy')\n"
        "print(posterior.log_z.hex(), posterior.marginals.flat.tobytes().hex())\n"
    )
    here = infer(square(6, seed=12), "pgmpy")
    there, _ = run_python(program)
    assert there.split() == [given(here).hex(), here.marginals.flat.tobytes().hex()]
