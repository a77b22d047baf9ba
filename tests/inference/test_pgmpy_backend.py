"""pgmpy's variable elimination agrees with enumeration, and survives what breaks plain pgmpy."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from factormodels import FactorGraph
from factormodels.errors import InputError
from inference import (
    InferenceError,
    LogZKind,
    Posterior,
    Status,
    TooLargeError,
    ZeroPartitionError,
    infer,
)
from tests.oracle import oracle

pytestmark = pytest.mark.slow

# Sums of a few hundred logarithms of size below 100: rounding is some 1e-14, a wrong table is not.
SMALL = 1e-11

# Log Z is of size 1e4, where one rounding is 2e-12; 1e4 of them in sequence stay below 1e-8.
LARGE = 1e-8

Table = NDArray[np.float64]
Factor = tuple[list[int], Table]


def random_graph(rng: np.random.Generator) -> FactorGraph:
    """Return up to 7 variables of 1 to 4 states; scopes of 0 to 4, repeated ones; a few zeros."""
    count = int(rng.integers(1, 8))
    cardinalities = rng.integers(1, 5, count)
    scopes = [
        rng.permutation(count)[: rng.integers(0, min(count, 4) + 1)].tolist()
        for _ in range(rng.integers(0, 9))
    ]
    scopes += scopes[:2]
    factors = []
    for scope in scopes:
        shape = tuple(cardinalities[scope])
        factors.append((scope, rng.random(shape) * (rng.random(shape) > 0.05)))
    return FactorGraph.from_factors(cardinalities, factors)


def chain_factors(count: int, rng: np.random.Generator) -> list[Factor]:
    """Return unary factors, then pairwise ones, of a binary chain."""
    unary: list[Factor] = [([v], rng.uniform(0.05, 1.0, 2)) for v in range(count)]
    return unary + [([v, v + 1], rng.uniform(0.05, 1.0, (2, 2))) for v in range(count - 1)]


def grid(side: int, rng: np.random.Generator) -> FactorGraph:
    """Return a square grid of variables with 2 or 3 states."""
    cardinalities = rng.integers(2, 4, side * side)
    place = np.arange(side * side).reshape(side, side)
    across = zip(place[:, :-1].ravel().tolist(), place[:, 1:].ravel().tolist(), strict=True)
    down = zip(place[:-1].ravel().tolist(), place[1:].ravel().tolist(), strict=True)
    return FactorGraph.from_factors(
        cardinalities,
        [(pair, rng.random(cardinalities[list(pair)])) for pair in [*across, *down]],
    )


def forward_backward(unary: Table, pairwise: Table) -> tuple[Table, float]:
    """Return marginals and log Z of a chain by the normalised forward-backward recursion.

    Args:
        unary: (n, 2) potentials.
        pairwise: (n - 1, 2, 2) potentials.
    """
    count = len(unary)
    forward, backward = np.ones((count, 2)), np.ones((count, 2))
    log_z = 0.0
    message = np.ones(2)
    for v in range(count):
        forward[v] = message * unary[v]
        log_z += math.log(forward[v].sum())
        forward[v] /= forward[v].sum()
        if v + 1 < count:
            message = forward[v] @ pairwise[v]
    for v in reversed(range(count - 1)):
        backward[v] = pairwise[v] @ (unary[v + 1] * backward[v + 1])
        backward[v] /= backward[v].sum()
    marginals = forward * backward
    return marginals / marginals.sum(axis=1, keepdims=True), log_z


def assert_exact(posterior: Posterior, log_z: float, marginals: Table, tolerance: float) -> None:
    assert posterior.log_z_kind is LogZKind.EXACT
    assert posterior.status is Status.EXACT
    assert posterior.log_z == pytest.approx(log_z, rel=0, abs=tolerance)
    np.testing.assert_allclose(posterior.marginals.flat, marginals, rtol=0, atol=tolerance)


@pytest.mark.parametrize("cut_above", [2, 150])
def test_agrees_with_enumeration(cut_above: int) -> None:
    rng = np.random.default_rng(20)
    impossible = 0
    for _ in range(200):
        graph = random_graph(rng)
        truth = oracle(graph)
        if truth.log_z == -math.inf:
            impossible += 1
            with pytest.raises(ZeroPartitionError):
                infer(graph, "pgmpy", cut_above=cut_above)
            continue
        expected = np.concatenate([truth.marginals[name] for name in graph.names])
        posterior = infer(graph, "pgmpy", cut_above=cut_above)
        assert_exact(posterior, truth.log_z, expected, SMALL)
    assert 0 < impossible < 50


def test_worked_example() -> None:
    # FactReasoner's example: C1 entails A with 0.8, C2 contradicts A with 0.9.
    graph = FactorGraph.from_factors(
        [2, 2, 2],
        [
            ([0], [0.5, 0.5]),
            ([1], [0.01, 0.99]),
            ([2], [0.01, 0.99]),
            ([1, 0], [[0.8, 0.8], [0.2, 0.8]]),
            ([2, 0], [[0.9, 0.9], [0.9, 0.1]]),
        ],
        names=["A", "C1", "C2"],
    )
    posterior = infer(graph, "pgmpy")
    # Six digits are printed in the reference values.
    assert posterior.marginals["A"][1] == pytest.approx(0.317881, abs=5e-7)
    assert posterior.marginals["C1"][1] == pytest.approx(0.970331, abs=5e-7)
    assert posterior.marginals["C2"][1] == pytest.approx(0.966689, abs=5e-7)
    assert posterior.log_z == pytest.approx(oracle(graph).log_z, abs=SMALL)


def test_evidence() -> None:
    graph = grid(3, np.random.default_rng(1)).with_evidence({0: 1, 4: 0})
    truth = oracle(graph)
    expected = np.concatenate([truth.marginals[name] for name in graph.names])
    assert_exact(infer(graph, "pgmpy"), truth.log_z, expected, SMALL)


def test_equal_factors_count_each() -> None:
    # pgmpy's own factors are compared by value, and its elimination would drop the second.
    twice = [([0], [0.2, 0.8]), ([0], [0.2, 0.8])]
    graph = FactorGraph.from_factors([2, 2], [*twice, ([0, 1], [[1.0, 2.0], [3.0, 4.0]])])
    assert infer(graph, "pgmpy").marginals["0"] == pytest.approx([0.12 / 4.6, 4.48 / 4.6])


@pytest.mark.parametrize(
    ("cardinalities", "factors", "log_z"),
    [
        ([], [], 0.0),
        ([], [([], 3.0)], math.log(3.0)),
        ([2, 3], [], math.log(6.0)),
        ([1], [([0], [0.25])], math.log(0.25)),
        ([1, 2], [([], 2.0), ([0, 1], [[1.0, 1.0]])], math.log(4.0)),
    ],
    ids=["nothing", "a constant", "no factors", "one state", "a constant and one state"],
)
def test_degenerate_graphs(cardinalities: list[int], factors: list[Factor], log_z: float) -> None:
    uniform = np.concatenate([np.zeros(0), *(np.full(n, 1.0 / n) for n in cardinalities)])
    graph = FactorGraph.from_factors(cardinalities, factors)
    assert_exact(infer(graph, "pgmpy"), log_z, uniform, SMALL)


def test_cutting_changes_nothing() -> None:
    graph = grid(7, np.random.default_rng(2))
    whole = infer(graph, "pgmpy", cut_above=49)
    cut = infer(graph, "pgmpy", cut_above=48)
    assert whole.stats["cut_components"] == 0
    assert cut.stats["cut_components"] == 1
    assert whole.log_z is not None
    assert_exact(cut, whole.log_z, whole.marginals.flat, SMALL)
    assert cut.stats["log_z_spread"] < SMALL


def test_a_chain_far_below_the_range_of_doubles() -> None:
    # `test_agreement` has one of 20,000 factors.
    count = 2_000
    rng = np.random.default_rng(3)
    factors = chain_factors(count, rng)
    unary = np.array([table for _, table in factors[:count]])
    unary[17] **= 2
    marginals, log_z = forward_backward(unary, np.array([table for _, table in factors[count:]]))
    graph = FactorGraph.from_factors([2] * count, [*factors, factors[17]])
    assert log_z < -1_000
    assert_exact(infer(graph, "pgmpy"), log_z, marginals.ravel(), LARGE)


def test_forest_of_20000_factors() -> None:
    # 2,000 trees of 5 variables (hub and leaves) with 10 factors each, of 10 kinds.
    rng = np.random.default_rng(4)
    kinds = [
        FactorGraph.from_factors(
            [2] * 5,
            [([v], rng.random(2)) for v in range(5)]
            + [([0, v], rng.random((2, 2))) for v in range(1, 5)]
            + [([2, 0], rng.random((2, 2)))],
        )
        for _ in range(10)
    ]
    truths = [oracle(kind) for kind in kinds]
    factors = [
        ([5 * tree + v for v in scope], table)
        for tree in range(2_000)
        for scope, table in kinds[tree % 10].factors()
    ]
    graph = FactorGraph.from_factors([2] * 10_000, factors, log=True)
    log_z = 200 * math.fsum(truth.log_z for truth in truths)
    assert graph.n_factors == 20_000
    assert log_z < -5_000
    expected = np.tile(np.concatenate([np.ravel([*t.marginals.values()]) for t in truths]), 200)
    assert_exact(infer(graph, "pgmpy"), log_z, expected, LARGE)


def test_one_variable_of_20000_factors() -> None:
    # Sorted, so that the product of the first half is e^-2000 to 1 before the second undoes it.
    rng = np.random.default_rng(5)
    log_tables = np.zeros((20_000, 2))
    log_tables[:10_000, 0], log_tables[10_000:, 1] = -0.2, -0.2
    log_tables += rng.uniform(-1e-3, 0.0, log_tables.shape) - 0.3
    total = np.array([math.fsum(column) for column in log_tables.T])
    log_z = float(np.logaddexp(*total))
    assert log_z < -5_000
    graph = FactorGraph.from_factors([2], [([0], table) for table in log_tables], log=True)
    assert_exact(infer(graph, "pgmpy"), log_z, np.exp(total - log_z), LARGE)


def test_hub_with_contradictory_leaves() -> None:
    # The first leaves speak against state 0 of the hub by e^-880 in all, the others take it back.
    leaves = 600
    against, back = np.log([[0.05, 0.95], [0.95, 0.05]]), np.log([[0.95, 0.05], [0.05, 0.95]])
    evidence = np.log([0.95, 0.05])
    factors = [([0, v], against if v <= leaves // 2 else back) for v in range(1, leaves + 1)]
    factors += [([v], evidence * 3) for v in range(1, leaves + 1)]
    graph = FactorGraph.from_factors([2] * (leaves + 1), [*factors, ([0], [0.0, 1.0])], log=True)
    posterior = infer(graph, "pgmpy")
    # Equally many leaves of each kind cancel, whatever they say: the hub keeps its own odds of e.
    assert posterior.stats["cut_components"] == 1
    np.testing.assert_allclose(
        posterior.marginals["0"], [1 / (1 + math.e), math.e / (1 + math.e)], rtol=0, atol=SMALL
    )


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


def test_zero_partition_of_a_cut_component() -> None:
    factors = chain_factors(40, np.random.default_rng(6))
    factors += [([3], np.array([1.0, 0.0])), ([3, 4], np.array([[0.0, 0.0], [1.0, 1.0]]))]
    with pytest.raises(ZeroPartitionError):
        infer(FactorGraph.from_factors([2] * 40, factors), "pgmpy", cut_above=10)


def test_refuses_what_does_not_fit() -> None:
    pairs: list[Factor] = [([u, v], np.ones((2, 2))) for v in range(40) for u in range(v)]
    graph = FactorGraph.from_factors([2] * 40, pairs)
    with pytest.raises(TooLargeError, match=r"40 variables .* GiB .*'exact'.*'lbp'"):
        infer(graph, "pgmpy")
    with pytest.raises(TooLargeError, match="memory_limit"):
        infer(grid(4, np.random.default_rng(7)), "pgmpy", memory_limit=1_000)


def test_refuses_large_tables_before_it_has_found_a_whole_order() -> None:
    # Of treewidth in the hundreds: the complete order would take hours.
    rng = np.random.default_rng(8)
    pairs = [sorted(rng.choice(3_000, 2, replace=False).tolist()) for _ in range(12_000)]
    graph = FactorGraph.from_factors([2] * 3_000, [(pair, np.ones((2, 2))) for pair in pairs])
    with pytest.raises(TooLargeError):
        infer(graph, "pgmpy")


@pytest.mark.parametrize(
    ("setting", "value"), [("cut_above", 1), ("memory_limit", 0)], ids=["cut", "memory"]
)
def test_refuses_bad_settings(setting: str, value: int) -> None:
    with pytest.raises(InputError, match=str(value)):
        infer(grid(2, np.random.default_rng(9)), "pgmpy", **{setting: value})


def test_refuses_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    import pgmpy

    monkeypatch.setattr(pgmpy.config, "DTYPE", "float32")
    with pytest.raises(InferenceError, match="float32"):
        infer(grid(2, np.random.default_rng(10)), "pgmpy")


def test_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    infer(grid(4, np.random.default_rng(11)), "pgmpy", cut_above=5)
    assert capfd.readouterr() == ("", "")


def test_every_process_rounds_alike() -> None:
    # Without care pgmpy multiplies in the order of memory addresses, and last digits change.
    program = (
        "import numpy as np\n"
        "from inference import infer\n"
        "from tests.inference.test_pgmpy_backend import grid\n"
        "posterior = infer(grid(6, np.random.default_rng(12)), 'pgmpy')\n"
        "print(posterior.log_z.hex(), posterior.marginals.flat.tobytes().hex())\n"
    )
    here = infer(grid(6, np.random.default_rng(12)), "pgmpy")
    assert here.log_z is not None
    there = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == [here.log_z.hex(), here.marginals.flat.tobytes().hex()]
