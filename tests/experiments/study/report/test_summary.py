"""The summary of a study's rows, the curves of its diagrams, and its tables."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from experiments.columns.cell_names import CELL
from experiments.findings.artifacts import Origin
from experiments.findings.latex import latex
from experiments.findings.table import markdown
from experiments.findings.terminal import show
from experiments.study.config import DatasetChoice, Reliability, Study
from experiments.study.report.diagrams import MAX_CURVES, diagrams, distinct_curves, write_diagrams
from experiments.study.report.scores import AgreeingCells, agreeing_cells, study_scores
from experiments.study.report.sentences import sentences
from experiments.study.report.tables import cells_table, short_table
from experiments.study.rows import SCHEMA, RowsFile, write_rows

STUDY = Study(study="s", datasets=(DatasetChoice(name="d"),))

ORIGIN = Origin("s", "0" * 64)

FileOf = Callable[[list[dict[str, Any]]], RowsFile]

P: dict[str, list[Any]] = {
    "exact": [0.9, 0.8, 0.3, 0.5],
    "lbp": [0.9, 0.7, 0.35, 0.5],
    "broken": [None] * 4,
}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "study": "s",
        "dataset": "d",
        "response": "r1",
        "atom": "a1",
        "variant": "FR1",
        "relation_model": "recorded",
        "encoding": "implication",
        "prior": "data",
        "strength": 1.0,
        "backend": "exact",
        "backend_label": "exact",
        "setting": "{}",
        "seed": 0,
        "p": 0.5,
        "label": True,
        "annotation": None,
        "selections": "all",
        "seconds": 1.0,
        "status": "exact",
        "log_z": -1.0,
        "log_z_kind": "exact",
        "log_z_lower": None,
        "answered_by": "exact",
        "error": None,
    } | changes


def rows_of(p: dict[str, list[Any]], **changes: Any) -> list[dict[str, Any]]:
    """Return rows of two responses with two atoms each, labeled true, false, false, none."""
    places = [("r1", "a1"), ("r1", "a2"), ("r2", "a1"), ("r2", "a2")]
    labels = [True, False, False, None]
    return [
        row(
            response=response,
            atom=atom,
            label=label,
            backend=backend.split()[0],
            backend_label=backend,
            p=value,
            seconds=None if value is None else {"r1": 1.0, "r2": 3.0}[response],
            status="failed" if value is None else "exact",
            error="no" if value is None else None,
            **changes,
        )
        for backend, values in p.items()
        for (response, atom), label, value in zip(places, labels, values, strict=True)
    ]


@pytest.fixture
def file_of(tmp_path: Path) -> FileOf:
    """Make a file of rows, which are grouped by cell already."""

    def make(rows: list[dict[str, Any]]) -> RowsFile:
        groups = itertools.groupby(rows, key=lambda record: [record[name] for name in CELL])
        tables = (pa.Table.from_pylist(list(group), SCHEMA) for _, group in groups)
        write_rows(tables, tmp_path / "rows.parquet", {})
        return RowsFile(tmp_path / "rows.parquet")

    return make


def agreed(file: RowsFile) -> tuple[pd.DataFrame, list[AgreeingCells]]:
    """The cells of a summary, and which of them agree."""
    cells = study_scores(STUDY, file).cells
    return cells, agreeing_cells(file, cells)


def test_measures_by_hand(file_of: FileOf) -> None:
    summary = study_scores(STUDY, file_of(rows_of(P)))
    cells = summary.cells.set_index("backend_label")
    exact = cells.loc["exact"]
    # Pr: 2 of 2 and 0 of 2. Labeled: 0.9 true, 0.8 false, 0.3 false.
    assert exact["precision"] == 0.5
    assert (exact["n_responses"], exact["n_atoms"], exact["n_labeled"]) == (2, 4, 3)
    # Sums of three squares: a rounding or two of doubles.
    assert exact["brier"] == pytest.approx((0.01 + 0.64 + 0.09) / 3, abs=1e-15)
    assert exact["accuracy"] == pytest.approx(2 / 3, abs=1e-15)
    assert exact["seconds_total"] == 4.0
    assert exact["seconds_median"] == 2.0
    assert exact["n_failed"] == 0
    assert np.isnan(exact["max_difference"])
    assert cells["max_difference"]["lbp"] == pytest.approx(0.1, abs=1e-15)
    broken = cells.loc["broken"]
    assert (broken["n_failed"], broken["n_atoms"]) == (2, 0)
    assert pd.isna([broken["brier"], broken["max_difference"], broken["seconds_total"]]).all()
    # P of 0.3 and 0.35 are below 1/e, where E falls as P falls.
    assert summary.n_misordered == 2


def test_the_policy_for_unlabeled_atoms_reaches_the_scores(file_of: FileOf) -> None:
    rows = file_of(rows_of({"exact": P["exact"]}))
    brier = {
        policy: study_scores(STUDY.model_copy(update={"unlabeled": policy}), rows).cells["brier"][0]
        for policy in ("exclude", "false", "true")
    }
    assert brier["exclude"] == pytest.approx(0.74 / 3, abs=1e-15)
    assert brier["false"] == brier["true"] == pytest.approx((0.74 + 0.25) / 4, abs=1e-15)


def test_differences_are_within_variant_and_encoding(file_of: FileOf) -> None:
    rows = rows_of({"exact": P["exact"]}) + rows_of({"lbp": P["lbp"]}, variant="FR2")
    cells = study_scores(STUDY.model_copy(update={"k": 3}), file_of(rows)).cells
    assert cells["max_difference"].isna().all()
    assert cells["k"].tolist() == [3, 3]


def test_a_failed_response_counts_in_neither_difference_nor_measures(file_of: FileOf) -> None:
    rows = file_of(rows_of({"exact": P["exact"], "lbp": [None, None, 0.31, 0.5]}))
    cells = study_scores(STUDY, rows).cells.set_index("backend")
    assert cells["max_difference"]["lbp"] == pytest.approx(0.01, abs=1e-15)
    assert (cells["n_failed"]["lbp"], cells["n_atoms"]["lbp"]) == (1, 2)


def test_cells_that_agree_share_a_curve(file_of: FileOf) -> None:
    near = [value + 0.004 for value in P["exact"]]
    p = {"exact": P["exact"], "near": near, "lbp": P["lbp"], "broken": P["broken"]}
    rows = file_of(rows_of(p))
    curves = distinct_curves(rows, rows.cells())
    names = [[cell[-1] for cell in curve.cells] for curve in curves]
    assert names == [["exact", "near"], ["lbp"]]


def test_a_diagram_has_few_curves_and_the_exact_one_first(tmp_path: Path, file_of: FileOf) -> None:
    many = {f"lbp {n}": [min(1.0, v + 0.02 * n) for v in P["exact"]] for n in range(1, 12)}
    rows = file_of(rows_of({**many, "exact": P["exact"]}))
    curves = distinct_curves(rows, rows.cells())
    assert len(curves) == 12
    from experiments.study.report.diagrams import _readable

    kept = _readable(curves)
    assert len(kept) == MAX_CURVES
    assert kept[-1].cells[0][-1] == "exact"
    drawn = diagrams(
        rows, Study(study="s", datasets=(DatasetChoice(name="d"),), reliability=Reliability(bins=2))
    )
    paths = write_diagrams(drawn, tmp_path, ORIGIN)
    kinds = ("pdf", "png", "tex", "csv")
    assert [path.name for path in paths] == [f"reliability.{kind}" for kind in kinds]
    assert all(path.stat().st_size > 1000 for path in paths[:2])
    numbers = pd.read_csv(paths[-1])
    assert set(numbers["part"]) == {"line", "bin"}
    assert numbers["model"].nunique() == MAX_CURVES
    assert (numbers.groupby("model")["count"].sum() == 3).all()


def test_data_without_labels_have_no_diagram(file_of: FileOf) -> None:
    rows = file_of([record | {"label": None} for record in rows_of({"exact": P["exact"]})])
    assert list(diagrams(rows, Study(study="s", datasets=(DatasetChoice(name="d"),)))) == []


@pytest.fixture
def two_datasets(file_of: FileOf) -> pd.DataFrame:
    """The summary of two datasets."""
    rows = rows_of(P) + rows_of({"lbp x_1%": P["lbp"]}, dataset="d_2 & co")
    return study_scores(STUDY, file_of(rows)).cells


def test_the_latex_table_is_well_formed(two_datasets: pd.DataFrame) -> None:
    text = latex(cells_table(two_datasets, "s"), "s", ("study s", "config 1"))
    lines = text.splitlines()
    assert lines[:2] == ["% study s", "% config 1"]
    rows = [line.replace(r"\&", "") for line in lines if line.endswith(r"\\")]
    body = [line.count("&") for line in rows if "multicolumn" not in line]
    widths = {int(number) for number in re.findall(r"multicolumn\{(\d+)\}\{l\}", text)}
    assert set(body) == {width - 1 for width in widths}
    # A block for each dataset, in every part.
    assert text.count(r"\midrule") == 2 * text.count(r"\toprule") == 2 * text.count(r"\bottomrule")
    assert r"d\_2 \& co: 2 responses, 4 atoms, 3 labeled" in text
    assert r"lbp x\_1\%" in text
    assert "nan" not in text.lower()


def test_the_markdown_table_is_well_formed(two_datasets: pd.DataFrame) -> None:
    text = markdown(cells_table(two_datasets, "s"))
    table = [line for line in text.splitlines() if line.startswith("|")]
    headings = {line.replace(r"\|", "").count("|") for line in table}
    assert len(headings) == 1
    assert "## d_2 & co" in text
    assert "| FR1 | implication | broken | -- |" in text
    assert r"max \|Δp\|" in text


def test_files_hold_no_timings(two_datasets: pd.DataFrame) -> None:
    other = two_datasets.assign(seconds_total=99.0, seconds_median=98.0)
    first, second = (cells_table(cells, "x") for cells in (two_datasets, other))
    assert latex(first, "s") == latex(second, "s")
    assert markdown(first) == markdown(second)
    assert not any("seconds" in str(name) for name in first.frame)


@pytest.mark.parametrize("width", [78, 100, 200])
def test_the_terminal_shows_every_number_at_any_width(
    two_datasets: pd.DataFrame, width: int
) -> None:
    stream = io.StringIO()
    table = cells_table(two_datasets, "", times=True)
    show(Console(file=stream, width=width, markup=False), table)
    text = stream.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    # Brier of exact; the largest difference of lbp; the seconds of exact.
    for shown in ("0.247", "1e-01", "4.00 s", "2.00 s"):
        assert shown in text


def test_cells_whose_posteriors_agree_are_one_row_named_together(file_of: FileOf) -> None:
    near = [value + 0.004 for value in P["exact"]]
    far = {"exact": P["exact"], "lbp": near, "cavi": P["lbp"], "broken": P["broken"]}
    alike = {"exact": P["exact"], "lbp": P["exact"]}
    rows = rows_of(alike, dataset="even", variant="FR1") + rows_of(
        alike, dataset="even", variant="FR2"
    )
    for view in ("FR1", "FR2"):
        rows += rows_of(far, variant=view)
    cells, groups = agreed(file_of(rows))
    # What differs comes first, and every cell is in one row.
    assert [(group.dataset, group.name) for group in groups] == [
        ("d", "FR1 = FR2, exact = lbp"),
        ("d", "FR1 = FR2, cavi"),
        ("d", "FR1 = FR2, broken"),
        ("even", "FR1 = FR2, exact = lbp"),
    ]
    assert sorted(row for group in groups for row in group.rows) == list(range(len(cells)))
    assert groups[0].apart == pytest.approx(0.004, abs=1e-12)
    assert groups[3].apart == 0.0
    table = short_table(cells, groups, "s")
    assert table.frame["brier"].tolist()[0] == cells["brier"].iloc[groups[0].rows[0]]
    assert "seconds_median" not in table.frame
    text = " ".join(sentences(cells, groups))
    assert text.startswith(
        "The 10 cells of 12 that have posteriors (a dataset, variant, encoding and algorithm each) "
        "have 3 different sets of posteriors"
    )
    # Cells without a posterior have none that could be the same.
    assert [group.answered for group in groups] == [True, True, False, True]
    assert table.frame["cells"].tolist()[2] == "FR1 = FR2, broken: no posterior"
    assert "on even no choice makes a difference" in text
    # Log losses of 0.9 true, 0.8 and 0.3 false, and of 0.9, 0.7 and 0.35.
    before, after = (-np.log([0.9, 1 - p, 1 - two]).mean() for p, two in ((0.8, 0.3), (0.7, 0.35)))
    assert f"cavi moves log loss from {before:.3f} to {after:.3f} on d, FR2 implication" in text
    assert "the choice of variant moves the Brier score by less than 0.001" in text
    assert "lbp moves no score by more than" in text
    assert "exact 2.00 s" in text
    assert "took" not in " ".join(sentences(cells, groups, times=False))


def test_cells_that_all_agree_give_one_answer(file_of: FileOf) -> None:
    p = P["exact"]
    apart = [value + 0.004 * (-1) ** at for at, value in enumerate(p)]
    rows = rows_of({"exact": p, "lbp": p}) + rows_of({"exact": apart}, variant="FR2")
    cells, groups = agreed(file_of(rows))
    text = sentences(cells, groups, times=False)
    assert text[0].startswith(
        "The 3 cells (a dataset, variant, encoding and algorithm each) all have the same posteriors"
    )
    first, second = cells["brier"].iloc[[0, 2]]
    assert 0.0005 < abs(first - second) < 0.005
    sentence = text[-1].removeprefix("Under exact inference the choice of variant moves the Brier ")
    alike = f"{first:.3f}" == f"{second:.3f}"
    assert sentence.startswith(f"score by {abs(first - second):.3f} on d")
    assert ("from" in sentence) != alike


def test_cells_of_which_every_unit_failed_are_not_said_to_agree(file_of: FileOf) -> None:
    cells, groups = agreed(file_of(rows_of({"exact": P["broken"], "lbp": P["broken"]})))
    assert all(np.isnan(group.apart) for group in groups)
    assert "same posteriors" not in " ".join(sentences(cells, groups, times=False))


@pytest.mark.parametrize(
    ("variants", "drawn", "messages"),
    [("FR1 FR2", 0.0, ["variant"]), ("FR1 FR2", 0.1, ["variant and seed"]), ("FR1", 0.0, [])],
)
def test_a_seed_is_named_where_it_moves_what_exact_inference_finds(
    file_of: FileOf, variants: str, drawn: float, messages: list[str]
) -> None:
    rows = []
    for number, variant in enumerate(variants.split()):
        for seed in (0, 1):
            moved = [value - 0.05 * number - drawn * seed for value in P["exact"]]
            rows += rows_of({"exact": moved}, variant=variant, seed=seed)
    text = " ".join(sentences(*agreed(file_of(rows)), times=False))
    assert re.findall("the choice of (.*?) moves", text) == messages


def test_cells_outside_a_grid_of_names_are_named_in_parts(file_of: FileOf) -> None:
    p = P["exact"]
    rows = rows_of({"exact": p, "lbp": p}) + rows_of({"exact": p, "lbp": P["lbp"]}, variant="FR2")
    assert [group.name for group in agreed(file_of(rows))[1]] == [
        "FR1, exact = lbp; FR2, exact",
        "FR2, lbp",
    ]
