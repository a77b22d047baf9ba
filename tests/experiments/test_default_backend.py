"""Every default backend is `auto`, and the algorithm that answered is reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.learned_potentials.graph_fitting import fit_potentials
from experiments import posteriors
from experiments.evaluators.estimate import expected_inference
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.study.config import DatasetChoice, Study
from experiments.study.rows import read_rows
from factormodels import FactGraph
from factormodels.datasets import load
from factormodels.encodings import DEFAULT_ENCODING
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.synthetic import fact_graph
from inference import get_backend
from inference.auto import Auto
from tests.experiments.conftest import invoke, study_file

ROOT = Path(__file__).parents[2]
PACKAGES = ("inference", "calibration", "experiments")


def defaults(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Yield the line and the default of every parameter and field that is called backend."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            plain = [*given.posonlyargs, *given.args]
            pairs = [
                *zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ]
            yield from (
                (arg.lineno, value) for arg, value in pairs if value and arg.arg == "backend"
            )
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "backend":
            yield from [(node.lineno, node.value)] if node.value else []


def test_auto_is_the_default_wherever_a_backend_is_taken() -> None:
    stated = [
        (f"{path.relative_to(ROOT)}:{line}", ast.literal_eval(value))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        # A file without the name has no such default.
        if "backend" in (text := path.read_text(encoding="utf-8"))
        for line, value in defaults(ast.parse(text))
        if isinstance(value, ast.Constant)
    ]
    assert len(stated) > 12
    # None and "" stand for none at all: the name then says nothing of an algorithm.
    assert [default for default in stated if default[1] not in ("auto", None, "")] == []
    assert [
        choice.backend for choice in Study(study="s", datasets=(DatasetChoice(name="d"),)).backends
    ] == ["auto"]


def test_numbers_of_graphs_that_are_quick_are_those_of_exact_to_the_last_bit() -> None:
    chosen, exact = posteriors("demonstration"), posteriors("demonstration", backend="exact")
    assert chosen["p"].tolist() == exact["p"].tolist()
    assert chosen["log_z"].tolist() == exact["log_z"].tolist()
    assert set(chosen["answered_by"]) == set(chosen["status"]) == {"exact"}
    assert chosen["log_z_lower"].isna().all()


@pytest.mark.slow
def test_a_wide_response_is_bounded_and_its_rows_say_by_whom() -> None:
    # 31 claims and 93 passages, as the paper has them: exact inference takes minutes.
    wide = fact_graph(31, 3, 0.3, 0.3, seed=0)
    rows = posteriors([wide], variant="FR3", backend=Auto(seconds=0.25))
    assert len(rows) == 31
    assert rows["p"].between(0.0, 1.0).all()
    assert set(rows["backend"]) == {"auto"}
    assert set(rows["log_z_kind"]) == {"upper"}
    assert (rows["log_z_lower"] < rows["log_z"]).all()
    assert "exact" not in set(rows["answered_by"].dropna())
    assert rows["answered_by"].notna().all()


def test_a_view_tells_who_answered_it_or_why_nobody_did() -> None:
    graph = fact_graph(6, 2, 0.4, 0.4, seed=0)
    little = Auto(seconds=0.2, memory_limit=300)
    refusing = get_backend("exact", memory_limit=300)
    views = [AssessmentView("FR2", DEFAULT_ENCODING, little)]
    (answer,) = assess_graph(graph, views).values()
    assert answer["answered_by"] not in ("auto", "exact")
    (failed,) = assess_graph(graph, [replace(views[0], backend=refusing)]).values()
    assert "induced width" in failed["error"]


@pytest.mark.slow
def test_a_refused_view_ends_with_the_code_for_incomplete(folder: Path) -> None:
    write_fact_graphs(load("demonstration").graphs[:4], folder / "four.jsonl")
    asked = ["assess", "four.jsonl", "--retriever", "local", "--variant", "FR3"]
    result = invoke(*asked, "--backend", "exact,memory_limit=300", code=1)
    assert "FR3: no posterior of 4 responses, the first demo-01" in result.stdout
    assert "induced width" in result.stdout
    assert invoke(*asked, code=0).stdout.count("no posterior") == 0


@pytest.mark.slow
def test_failed_units_end_a_run_with_the_code_for_incomplete(tmp_path: Path) -> None:
    study = "study: small\ndatasets: [worked-examples]\nvariants: [FR1]\noutputs: [csv]\n"
    refusing = "backends: [{backend: exact, settings: {memory_limit: 30}}]\n"
    path = study_file(tmp_path, study + refusing)
    result = invoke("run", path, "--out", tmp_path / "out", code=1)
    assert "units failed" in result.stdout
    path = study_file(tmp_path, study)
    invoke("run", path, "--out", tmp_path / "other")
    rows = read_rows(tmp_path / "other")
    assert set(rows["backend"]) == {"auto"}
    assert set(rows["answered_by"]) == {"exact"}


def test_a_dry_run_names_the_expected_width() -> None:
    paper = expected_inference("FR2", 31, 90)
    assert paper is not None
    assert 20 <= paper.prediction.induced_width <= paper.widest == 31
    star = expected_inference("FR1", 31, 90)
    assert star is not None
    assert star.prediction.induced_width == star.widest == 1
    dense = expected_inference("FR3", 31, 90)
    assert dense is not None
    assert paper.prediction.induced_width < dense.prediction.induced_width < dense.widest == 120
    # No machine has tables of that many variables.
    assert Auto().exact().refuses(dense.prediction)
    assert expected_inference("FR3", 0, 5) is expected_inference("FR3", 5, 0) is None
    shown = invoke("assess", "demonstration", "--retriever", "local", "--dry-run").stdout
    assert "induced width" in shown
    row = next(line.split() for line in shown.splitlines() if line.startswith("FR2 "))
    assert row[1:3] == ["3", "12"]
    assert row[-2:] == ["auto:", "exact"]


@pytest.mark.slow
def test_a_dry_run_of_a_study_names_the_width_of_what_takes_longest(tmp_path: Path) -> None:
    graphs = [fact_graph(n, 3, 0.3, seed=n) for n in (4, 12, 8)]
    graphs = [replace(graph, id=str(number)) for number, graph in enumerate(graphs)]
    write_fact_graphs(graphs, tmp_path / "graphs.jsonl")
    study = f"study: s\ndatasets: [{{name: d, path: {tmp_path / 'graphs.jsonl'}}}]\n"
    shown = invoke("run", study_file(tmp_path, study), "--dry-run").stdout
    widths = [
        get_backend("exact").predict(graph.to_factor_graph()).induced_width  # type: ignore[union-attr]
        for graph in graphs
    ]
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("d "))
    assert int(row[row.index("auto") + 4]) == max(widths) == widths[1]


def test_learning_goes_by_exact_where_it_can_and_says_if_it_cannot() -> None:
    graphs = [labeled(seed) for seed in range(4)]
    chosen, exact = fit_potentials(graphs), fit_potentials(graphs, backend="exact")
    assert chosen.backend == "exact"
    np.testing.assert_array_equal(chosen.theta, exact.theta)
    np.testing.assert_array_equal(chosen.covariance, exact.covariance)
    wide = fit_potentials(graphs, backend=Auto(memory_limit=200))
    assert wide.backend == "lbp"
    np.testing.assert_array_equal(wide.theta, fit_potentials(graphs, backend="lbp").theta)


def labeled(seed: int) -> FactGraph:
    graph = fact_graph(5, 2, 0.4, seed=seed)
    atoms = tuple(replace(a, label=(i + seed) % 3 > 0) for i, a in enumerate(graph.atoms))
    return replace(graph, id=str(seed), atoms=atoms)
