"""Cells in bold: the best, only if every other cell differs significantly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from experiments.findings.table import markdown
from experiments.study.config import DatasetChoice, SelectionChoice, Study
from experiments.study.report.scores import study_scores
from experiments.study.report.tables import cells_table
from experiments.study.rows import SCHEMA, RowsFile, write_rows
from tests.experiments.study.report.test_summary import row

pytestmark = pytest.mark.slow

STUDY = Study(study="s", datasets=(DatasetChoice(name="d"),))


def bold(
    folder: Path,
    methods: dict[str, list[float | None]],
    labels: list[bool],
    study: Study = STUDY,
) -> Any:
    """Return the summary of methods, four claims a response, with its columns of the best."""
    pieces = [
        pa.Table.from_pylist(
            [
                row(
                    response=f"r{number // 4}",
                    atom=f"a{number % 4}",
                    label=label,
                    selections="all core" if number % 2 else "all",
                    backend_label=name,
                    p=value,
                    status="failed" if value is None else "exact",
                )
                for number, (value, label) in enumerate(zip(values, labels, strict=True))
            ],
            SCHEMA,
        )
        for name, values in methods.items()
    ]
    write_rows(iter(pieces), folder / "rows.parquet", {})
    rows = RowsFile(folder / "rows.parquet")
    return study_scores(study, rows).cells.set_index("backend_label")


@pytest.fixture(scope="module")
def labels() -> list[bool]:
    return [bool(value) for value in np.random.default_rng(1).uniform(size=160) < 0.6]


def judged(labels: list[bool], strength: float, noise: float, seed: int) -> list[float | None]:
    """Return probabilities on the side of the label, more or less."""
    rng = np.random.default_rng(seed)
    signs = np.where(labels, 1.0, -1.0)
    return list(1 / (1 + np.exp(-(strength * signs + rng.normal(0, noise, len(labels))))))


def test_a_clear_winner_is_bold(tmp_path: Path, labels: list[bool]) -> None:
    methods = {
        "good": judged(labels, 2.0, 0.5, 0),
        "weak": judged(labels, 0.2, 1.0, 1),
        "poor": judged(labels, -0.5, 1.0, 2),
    }
    cells = bold(tmp_path, methods, labels)
    assert cells["brier_best"].tolist() == [True, False, False]
    assert cells["precision_mae_best"].tolist() == [True, False, False]
    text = markdown(cells_table(cells.reset_index(), "t", ["precision", "brier"]))
    assert text.count("**") == 2
    assert "In bold" in text


def test_nothing_is_bold_where_two_do_not_differ(tmp_path: Path, labels: list[bool]) -> None:
    methods = {
        "one": judged(labels, 1.0, 1.0, 0),
        "other": judged(labels, 1.0, 1.0, 1),
        "poor": judged(labels, -1.0, 1.0, 2),
    }
    assert not bold(tmp_path, methods, labels)["brier_best"].any()


def worse_in(good: list[float | None], labels: list[bool], responses: range) -> list[float | None]:
    """Return probabilities that are further from the labels, by the same, in some responses."""
    return [
        abs(y - 0.5) if number // 4 in responses else p
        for number, (p, y) in enumerate(zip(good, labels, strict=True))
    ]


def test_every_rival_belongs_to_the_family_of_tests(tmp_path: Path, labels: list[bool]) -> None:
    good: list[float | None] = [abs(y - 0.2) for y in labels]
    # Of 2^6 ways to swap six responses that differ by the same, two are as extreme: p is 1/32.
    methods = {"good": good, "one": worse_in(good, labels, range(6))}
    assert bold(tmp_path, methods, labels)["brier_best"].tolist() == [True, False]
    # Holm doubles the smaller of two: 1/16 is above 0.05.
    methods["other"] = worse_in(good, labels, range(6, 12))
    assert not bold(tmp_path, methods, labels)["brier_best"].any()


def test_a_distant_rival_may_be_the_one_that_does_not_differ(
    tmp_path: Path, labels: list[bool]
) -> None:
    good: list[float | None] = [abs(y - 0.2) for y in labels]
    near: list[float | None] = [abs(y - 0.21) for y in labels]
    # The mean of one response decides, and a swap of one response leaves the difference as large.
    far = [
        float(not y) if number < 4 else p
        for number, (y, p) in enumerate(zip(labels, good, strict=True))
    ]
    cells = bold(tmp_path, {"good": good, "near": near, "far": far}, labels)
    assert cells["brier"].is_monotonic_increasing
    assert not cells["brier_best"].any()
    assert bold(tmp_path, {"good": good, "near": near}, labels)["brier_best"].any()


def test_cells_with_the_same_posteriors_are_bold_together(
    tmp_path: Path, labels: list[bool]
) -> None:
    good = judged(labels, 2.0, 0.5, 0)
    near = [None if value is None else value + 0.001 for value in good]
    methods = {"good": good, "near": near, "poor": judged(labels, -0.5, 1.0, 2)}
    assert bold(tmp_path, methods, labels)["accuracy_best"].tolist() == [True, True, False]


def test_cells_that_agree_or_fail_leave_nothing_to_compare(
    tmp_path: Path, labels: list[bool]
) -> None:
    good = judged(labels, 2.0, 0.5, 0)
    failed = judged(labels, -1, 1.0, 2)
    failed[:4] = [None, None, None, None]
    assert not bold(tmp_path, {"good": good, "again": list(good)}, labels)["brier_best"].any()
    assert not bold(tmp_path, {"good": good, "failed": failed}, labels)["brier_best"].any()


def test_without_labels_there_is_no_best(tmp_path: Path, labels: list[bool]) -> None:
    good = judged(labels, 2.0, 0.5, 0)
    unlabeled: list[Any] = [None] * len(labels)
    cells = bold(tmp_path, {"good": good, "poor": [0.5] * len(labels)}, unlabeled)
    assert not cells.filter(like="_best").any(axis=None)


def test_each_selection_has_its_own_best(tmp_path: Path, labels: list[bool]) -> None:
    good, poor = judged(labels, 1.0, 0.5, 0), judged(labels, -1.0, 0.5, 1)
    selections = (SelectionChoice(selection="all"), SelectionChoice(selection="core"))
    study = STUDY.model_copy(update={"selections": selections})
    methods = {
        "there": [g if at % 2 else p for at, (g, p) in enumerate(zip(good, poor, strict=True))],
        "elsewhere": [p if at % 2 else g for at, (g, p) in enumerate(zip(good, poor, strict=True))],
    }
    cells = bold(tmp_path, methods, labels, study)
    best = {
        (name, row["selection"]): row["brier_best"]
        for name, row in zip(cells.index, cells.to_dict("records"), strict=True)
    }
    assert best == {
        ("there", "all"): False,
        ("there", "core"): True,
        ("elsewhere", "all"): False,
        ("elsewhere", "core"): False,
    }
