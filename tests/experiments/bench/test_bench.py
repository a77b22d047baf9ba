"""The benchmark: algorithms agree, families are what they say, results are whole. No times."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.bench import families
from experiments.bench.algorithms import (
    ALGORITHMS,
    BenchAlgorithm,
    parse_algorithms,
)
from experiments.bench.answers import BenchAnswer, Prepared
from experiments.bench.batches import union
from experiments.bench.families import FAMILIES, PRESETS, Family, select
from experiments.bench.measure import MeasurementPlan, Processes, measure
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph, digest
from factormodels.synthetic import fr1_forest, fr2, random_graph
from inference import infer
from tests.experiments.conftest import invoke
from tests.oracle import oracle

pytestmark = pytest.mark.slow

SINGLE = sorted(name for name, algorithm in ALGORITHMS.items() if not algorithm.batch)
EXACT = {"exact", "auto", "wmb-14", "pyagrum", "pgmpy"}

# Two or three states, a scope in descending order, no cycle, and a variable without a factor.
TREE: list[tuple[tuple[int, ...], Any]] = [
    ((1, 0), [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]),
    ((1, 2), [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]]),
    ((0,), [0.3, 0.7]),
]


def small(number: int) -> tuple[FactorGraph]:
    return (fr2(4, 2, 0.2, seed=number),)


SMALL = Family("small", "a few atoms", small, ("exact", "lbp"), n_instances=2)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(MeasurementPlan()) as started:
        yield started


def nothing() -> None:
    """Load nothing."""


def half(graph: FactorGraph) -> Prepared:
    """Prepare an algorithm that answers one half, always."""
    values = np.repeat(1.0 / graph.cardinalities, graph.cardinalities)
    return Prepared(partial(BenchAnswer, values, 7.0, "upper"), lambda answer: answer)


def refusing(_graph: FactorGraph) -> Prepared:
    raise InputError("no graph will do")


@pytest.mark.parametrize("name", SINGLE)
def test_every_algorithm_answers_in_the_order_of_the_variables(name: str) -> None:
    algorithm = ALGORITHMS[name]
    if algorithm.missing:
        pytest.skip(f"{', '.join(algorithm.missing)} is not installed")
    factors = list(TREE)
    if name in EXACT:
        # A second factor over a pair, in the other order, makes a cycle; zeros are legal.
        factors.append(((0, 1), [[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]]))
    graph = FactorGraph.from_factors([2, 3, 2, 2], factors)
    for given in (graph, graph.with_evidence({1: 2})):
        prepared = algorithm.prepare(given)
        found = prepared.read(prepared.run())
        expected = list(oracle(given).marginals.values())
        # On trees belief propagation and Gibbs sampling of forests are exact; single precision
        # (pgmax) sees 1e-7. Mean field is an estimate everywhere.
        close = {"cavi": 0.3, "pgmax": 1e-5, "lbp-1e-5": 1e-5}.get(name, 1e-8)
        assert found.marginals is not None
        np.testing.assert_allclose(found.marginals, np.concatenate(expected), atol=close, rtol=0.0)


@pytest.fixture(autouse=True)
def _jax_as_it_was() -> Iterator[None]:
    """Take back what the peers lend JAX: in earnest each of them has a process of its own."""
    import jax

    before = hasattr(jax.lib, "xla_bridge")
    yield
    if not before and hasattr(jax.lib, "xla_bridge"):
        del jax.lib.xla_bridge


@pytest.mark.parametrize("name", ["pyagrum", "pgmpy", "pgmax"])
def test_peers_answer_graphs_of_odd_shapes(name: str) -> None:
    algorithm = ALGORITHMS[name]
    if algorithm.missing:
        pytest.skip(f"{', '.join(algorithm.missing)} is not installed")
    graph = random_graph(
        9, 8, min_arity=0, max_arity=3, max_cardinality=3, zero_probability=0.1, isolated=1, seed=5
    )
    prepared = algorithm.prepare(graph)
    found = prepared.read(prepared.run())
    expected = infer(graph, "lbp" if name == "pgmax" else "exact").marginals.flat
    assert found.marginals is not None
    # PGMax in single precision stops at changes of 1e-5.
    np.testing.assert_allclose(found.marginals, expected, atol=1e-3 if name == "pgmax" else 1e-9)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("fr1-31x3", 124),
        ("fr2-31x3-d05", 124),
        ("fr2-26x5-d05", 156),
        ("fr2-26x5-d15", 156),
        ("fr2-26x5-d40", 156),
        ("fr3-31x3", 124),
        ("fr1-2000x5", 12_000),
        ("fr2-200x5", 1_200),
        ("grid-10x10", 100),
        ("random-60", 60),
        ("batch-512", 512 * 124),
    ],
)
def test_families_make_what_they_say(name: str, variables: int) -> None:
    (family,) = select([name])
    assert {*family.algorithms, *family.slow} <= set(ALGORITHMS)
    graphs = family.graphs(0)
    assert sum(graph.n_variables for graph in graphs) == variables
    assert digest(family.graphs(0)) == digest(graphs) != digest(family.graphs(1))


def test_presets_name_families() -> None:
    names = {family.name for family in FAMILIES}
    assert all(set(preset.families) <= names for preset in PRESETS.values())
    assert set(PRESETS["full"].families) == names


def test_measurements_hold_times_errors_and_failures(processes: Processes) -> None:
    algorithms = (
        ALGORITHMS["exact"],
        BenchAlgorithm("half", "one half", half, nothing, against="exact"),
        BenchAlgorithm("refusing", "refuses", refusing, nothing),
        BenchAlgorithm("gone", "is not there", half, nothing, requires=("no_such_library",)),
    )
    result = measure(
        SMALL, algorithms, MeasurementPlan(rounds=3, budget=5.0), processes, n_instances=1
    )
    (graph,) = result.graphs
    assert (graph.label, graph.variables, graph.reference) == ("seed 0", 12, "exact")
    assert result.against == {"half": "exact"}
    exact, bound, refused, gone = graph.measurements
    posterior = infer(small(0)[0])
    assert exact.status == "exact"
    assert exact.rounds == bound.rounds == (0, 1, 2)
    assert len(graph.yardstick) == 3
    assert min(*exact.seconds, *bound.seconds, *graph.yardstick) > 0.0
    assert exact.first_seconds is not None
    assert exact.build_seconds is not None
    assert exact.max_error == 0.0
    assert bound.max_error == pytest.approx(np.abs(posterior.marginals.flat - 0.5).max())
    assert bound.mean_error == pytest.approx(np.abs(posterior.marginals.flat - 0.5).mean())
    assert posterior.log_z is not None
    assert bound.log_z_error == pytest.approx(7.0 - posterior.log_z)
    assert (refused.status, refused.remark) == ("refused", "no graph will do")
    assert (gone.status, gone.remark) == ("absent", "no_such_library is not installed")
    assert not refused.answered
    assert not gone.answered


def test_memory_is_that_of_the_algorithm() -> None:
    plan = MeasurementPlan(rounds=1, memory=True)
    with Processes(plan) as processes:
        hungry = BenchAlgorithm("hungry", "takes 64 MiB", hungry_prepare, nothing)
        result = measure(SMALL, [hungry], plan, processes, n_instances=1)
    (one,) = result.graphs[0].measurements
    if one.peak_bytes is None:
        pytest.skip("this system does not tell the memory of a process")
    # The system counts pages in lots, and a process touches little else meanwhile.
    assert 0.95 * 2**26 <= one.peak_bytes <= 1.25 * 2**26


def hungry_prepare(_graph: FactorGraph) -> Prepared:
    """Prepare an algorithm that takes 64 MiB."""
    return Prepared(
        lambda: np.ones(2**26, dtype=np.uint8).sum(),
        lambda _: BenchAnswer(None, status="converged"),
    )


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - set(SINGLE)))
def test_batches_answer_graph_by_graph(name: str) -> None:
    algorithm = ALGORITHMS[name]
    if algorithm.missing:
        pytest.skip(f"{', '.join(algorithm.missing)} is not installed")
    graphs = [fr1_forest(3, 2, seed=seed) for seed in range(3)]
    prepared = algorithm.prepare(graphs)
    found = prepared.read(prepared.run())
    expected = np.concatenate([infer(graph).marginals.flat for graph in graphs])
    assert found.marginals is not None
    # Forests: belief propagation is exact; PGMax computes in single precision.
    close = 1e-5 if name == "pgmax-union" else 1e-8
    np.testing.assert_allclose(found.marginals, expected, atol=close)


def test_a_union_is_its_graphs_side_by_side() -> None:
    graphs = [*small(0), FactorGraph.from_factors([2, 3, 2, 2], TREE).with_evidence({1: 2})]
    whole = infer(union(graphs))
    parts = [infer(graph) for graph in graphs]
    np.testing.assert_allclose(
        whole.marginals.flat, np.concatenate([part.marginals.flat for part in parts]), atol=1e-12
    )
    assert whole.log_z == pytest.approx(sum(part.log_z or 0.0 for part in parts), abs=1e-10)
    assert union(graphs[:1]) is graphs[0]


def test_algorithms_are_named_with_settings_too() -> None:
    found = parse_algorithms(["exact,lbp", "wmb:i_bound=4,gap=false", "exact"])
    assert [one.name for one in found] == ["exact", "lbp", "wmb:i_bound=4,gap=false"]
    prepared = found[2].prepare(small(0)[0])
    assert prepared.read(prepared.run()).lower is None
    assert [one.name for one in parse_algorithms(["enumeration"])] == ["enumeration"]
    for text, message in (
        ("nonsense", "the algorithm 'nonsense' is unknown; use one of exact"),
        ("wmb:i_bund=4", "did you mean 'i_bound'"),
        ("wmb:4", "is not a setting"),
    ):
        with pytest.raises(InputError, match=message):
            parse_algorithms([text])


def test_files_are_grouped_by_set_with_their_references(tmp_path: Path) -> None:
    network = "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.25 0.75\n4\n0.9 0.1 0.2 0.8\n"
    for name in ("Grids_1", "Grids_2", "other"):
        (tmp_path / f"{name}.uai").write_text(network)
    (tmp_path / "Grids_2.uai.PR").write_text("PR\n-1.0\n")
    (tmp_path / "Grids_2.uai.evid").write_text("1 1 0\n")
    grids, other = select([str(tmp_path)])
    assert (grids.name, grids.labels) == ("Grids", ("Grids_1.uai", "Grids_2.uai"))
    assert (other.name, other.n_instances) == ("other", 1)
    assert grids.reference(0) is None
    reference = grids.reference(1)
    assert reference is not None
    assert reference.log_z == pytest.approx(-np.log(10.0))
    assert grids.graphs(1)[0].evidence.tolist() == [-1, 0]
    for what, message in (
        ("nonsense", "is neither a family nor a file; use one of fr1-31x3"),
        (str(tmp_path / "gone.uai"), "there is no such file"),
    ):
        with pytest.raises(InputError, match=message):
            select([what])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"there is no \.uai file"):
        select([str(tmp_path / "empty")])


def test_the_command_writes_its_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", (SMALL,))
    # The preset's limit is for a machine that does nothing else; a turn beyond it is left out.
    chosen = ("--preset", "quick", "--rounds", "2", "--graphs", "2", "--time-limit", "300")
    result = invoke("bench", "small", *chosen)
    assert "small: a few atoms; 12 variables" in result.stdout
    assert "Rounds: 2; graphs: 2." in result.stdout
    out = folder / "results" / "bench"
    assert sorted(path.name for path in out.iterdir()) == [
        "bench.json",
        "frontier.pdf",
        "frontier.png",
    ]
    document = json.loads((out / "bench.json").read_text())
    (measured,) = document["families"]
    assert [graph["label"] for graph in measured["graphs"]] == ["seed 0", "seed 1"]
    assert document["settings"]["plan"]["rounds"] == 2
    assert str(folder) not in json.dumps(document)


def test_choices_are_listed_and_unknown_ones_refused(folder: Path) -> None:
    listed = invoke("bench", "--list")
    for names in ([family.name for family in FAMILIES], ALGORITHMS, PRESETS):
        assert all(name in listed.stdout for name in names)
    assert "use one of fr1-31x3" in invoke("bench", "nonsense", code=2).stderr
    assert "use one of quick, standard, full" in invoke("bench", "--preset", "huge", code=2).stderr
    assert list(folder.iterdir()) == []


def test_the_runner_is_measured_stored_and_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(PRESETS["quick"], runner=10)
    monkeypatch.setitem(families.PRESETS, "quick", preset)
    result = invoke("bench", "runner", "--preset", "quick", "--out", "old")
    assert "runner: a study of 30 units on 2 processes" in result.stdout
    shutil.copytree("old", "new")
    document = json.loads((folder / "old" / "bench.json").read_text())
    assert document["families"] == []
    cost = document["runner"]
    assert cost["n_units"] == 30
    spent = cost["overhead"] * cost["n_units"] + cost["inference_seconds"] / cost["workers"]
    # By definition, up to rounding.
    assert spent == pytest.approx(cost["seconds"], rel=1e-9)
    assert not (folder / "old" / "frontier.pdf").exists()

    assert "runner: the overhead per unit was" in invoke("bench", "--compare", "old", "new").stdout
    document["runner"]["seconds"] = "long"
    (folder / "old" / "bench.json").write_text(json.dumps(document))
    damaged = invoke("bench", "--compare", "old", "new", code=2)
    assert "runner['seconds'] is damaged" in damaged.stderr
