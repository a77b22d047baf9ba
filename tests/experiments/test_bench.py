"""The benchmark: algorithms agree, ratios are right, the file is whole. No time is tested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from experiments.bench import families
from experiments.bench.algorithms import ALGORITHMS
from experiments.bench.families import FAMILIES, Family
from experiments.bench.timing import measure, ratio
from factormodels.factor_graph import FactorGraph
from factormodels.synthetic import fr2
from tests.experiments.conftest import Invoke


def small_graph(seed: int) -> FactorGraph:
    return fr2(4, 2, 0.2, seed=seed)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_answers_in_the_order_of_the_variables(name: str) -> None:
    algorithm = ALGORITHMS[name]
    if algorithm.missing:
        pytest.skip(f"{', '.join(algorithm.missing)} is not installed")
    # A chain of two and three states, its first scope in descending order.
    factors: list[tuple[tuple[int, ...], Any]] = [
        ((1, 0), [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]),
        ((1, 2), [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]]),
        ((0,), [0.3, 0.7]),
    ]
    if name != "lbp":
        # A second factor over a pair is a cycle, where belief propagation is not exact.
        factors.append(((0, 1), [[1.0, 2.0, 3.0], [2.0, 1.0, 1.0]]))
    graph = FactorGraph.from_factors([2, 3, 2], factors)
    states = np.array(list(np.ndindex(2, 3, 2)))
    weights = np.exp([graph.log_potential(state) for state in states])
    expected = [
        weights[states[:, variable] == state].sum() / weights.sum()
        for variable, count in enumerate((2, 3, 2))
        for state in range(count)
    ]
    # A tree, so lbp is exact too; 1e-8 is its tolerance of 1e-9 in log messages, with room.
    np.testing.assert_allclose(algorithm.prepare(graph)(), expected, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_families_name_algorithms_and_make_what_they_say(family: Family) -> None:
    assert {family.subject, *family.peers} <= set(ALGORITHMS)
    graph = family.graph(0)
    assert graph.n_variables == {"fr2-31x3": 124, "fr1-200k": 200_000}[family.name]


def test_ratios_are_paired_and_the_interval_is_an_order_statistic() -> None:
    subject = np.arange(1.0, 10.0)
    result = ratio(subject * [3, 1, 2, 5, 4, 9, 8, 7, 6], subject)
    assert (result.median, result.n_pairs) == (5.0, 9)
    # n = 9: 1 - 2 P(B < 2) = 0.961, and the 3rd smallest would have 0.82.
    assert (result.lower, result.upper) == (2.0, 8.0)
    assert result.level == pytest.approx(1 - 2 * binom.cdf(1, 9, 0.5), abs=1e-12)
    few = ratio([2.0, 4.0, 3.0], [1.0, 1.0, 1.0])
    assert (few.lower, few.median, few.upper) == (2.0, 3.0, 4.0)
    assert few.level == pytest.approx(0.75, abs=1e-12)
    assert ratio([2.0], [1.0]).level == 0.0


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    draws = generator.exponential(size=(4000, 12))
    results = [ratio(row, np.ones(12)) for row in draws]
    covered = np.mean([r.lower <= np.log(2) <= r.upper for r in results])
    # Five standard errors of a share of 4,000 draws.
    margin = 5 * np.sqrt(0.04 * 0.96 / 4000)
    assert results[0].level >= 0.95
    assert covered == pytest.approx(results[0].level, abs=margin)


def test_algorithms_take_turns_and_absent_ones_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.bench import algorithms, timing

    calls: list[str] = []

    def counting(name: str) -> algorithms.Algorithm:
        def prepare(graph: FactorGraph) -> algorithms.Run:
            run = ALGORITHMS["exact"].prepare(graph)

            def recorded() -> NDArray[np.float64]:
                calls.append(name)
                return run()

            return recorded

        return algorithms.Algorithm(prepare, name)

    table = {
        "exact": counting("exact"),
        "peer": counting("peer"),
        "gone": algorithms.Algorithm(ALGORITHMS["exact"].prepare, "x", ("no_such_library",)),
    }
    monkeypatch.setattr(timing, "ALGORITHMS", table)
    family = Family("f", "s", small_graph, peers=("peer", "gone"), n_graphs=1, repeats=2)
    result = measure(family)
    assert calls == ["exact", "peer", "exact", "peer", "peer", "exact"]
    assert result.absent == {"gone": "no_such_library is not installed"}
    assert result.differences == {"peer": 0.0}
    assert result.ratios["peer"].n_pairs == 2
    assert (result.variables, result.seconds["peer"].shape) == ((12,), (2,))


def test_the_command_writes_its_file(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = Family("small", "a few atoms", small_graph, peers=("lbp",), n_graphs=2, repeats=3)
    monkeypatch.setattr(families, "FAMILIES", (family,))
    result = invoke("bench", "small", "--repeats", "2")
    assert result.exit_code == 0, result.output
    assert "small: a few atoms" in result.stdout
    assert "4 paired timings, graphs: 2" in result.stdout
    document = json.loads((folder / "results" / "bench" / "bench.json").read_text())
    (measured,) = document["families"]
    assert len(measured["seconds"]["exact"]) == len(measured["seconds"]["lbp"]) == 4
    assert measured["ratios"]["lbp"]["n_pairs"] == 4
    assert str(folder) not in json.dumps(document)


def test_families_are_listed_and_an_unknown_one_refused(folder: Path, invoke: Invoke) -> None:
    listed = invoke("bench", "--list")
    assert listed.exit_code == 0
    assert all(family.name in listed.stdout for family in FAMILIES)
    assert all(name in listed.stdout for name in ALGORITHMS)
    refused = invoke("bench", "nonsense")
    assert refused.exit_code == 2
    assert "use one of fr2-31x3" in refused.stderr
    assert list(folder.iterdir()) == []
