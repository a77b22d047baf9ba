"""Cells of many rows: the numbers of cells in memory, and memory that does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibration.curves.reliability_bins import reliability_bins
from calibration.scoring import DEFAULT_INTERVALS
from experiments.evaluators.response import measured
from experiments.study import rows as tidy_rows
from experiments.study.config import DatasetChoice, SelectionChoice, Significance, Study
from experiments.study.diagrams import distinct_curves
from experiments.study.frame import read_judgements
from experiments.study.rows import SCHEMA, RowsFile, write_rows
from experiments.study.scores import agreeing_cells, study_scores
from factormodels.io.tables import long_columns
from tests.memory import held_by_arrow

LONG = 1000


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_columns, "LONG", LONG)


def rows_file(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_responses: int,
    *,
    unlabelled: float = 0.0,
    apart: bool = False,
) -> RowsFile:
    """Rows of two cells that were not computed.

    Args:
        path: the file.
        monkeypatch: makes row groups small.
        n_responses: responses of each cell, of four claims.
        unlabelled: share of claims without a label; as many responses have no atoms.
        apart: whether the claims of a response do not stand together.
    """
    monkeypatch.setattr(tidy_rows, "GROUP_ROWS", LONG)

    def tables() -> Iterator[pa.Table]:
        for backend in ("exact", "lbp"):
            generator = np.random.default_rng(1)
            n_rows = 4 * n_responses
            owner = np.tile(np.arange(n_responses), 4) if apart else np.arange(n_rows) // 4
            p = generator.beta(0.7, 0.5, n_rows)
            label = generator.random(n_rows) < p
            empty = (generator.random(n_responses) < unlabelled)[owner]
            unknown = empty | (generator.random(n_rows) < unlabelled)
            columns: dict[str, Any] = {
                "response": [f"r{number}" for number in owner.tolist()],
                "atom": pa.array((np.arange(n_rows) % 4).astype(str), mask=empty),
                "p": pa.array(p + (backend == "lbp") * 1e-3 * (0.5 - p), mask=empty),
                "label": pa.array(label, mask=unknown),
                "selections": pa.array(np.where(label, "all", "all few"), mask=empty),
                "seconds": owner / 1e6,
                "status": np.where(owner % 7 == 3, "converged", "exact"),
                "annotation": pa.nulls(n_rows, pa.string()),
                "error": pa.nulls(n_rows, pa.string()),
                "log_z": pa.nulls(n_rows, pa.float64()),
                "log_z_lower": pa.nulls(n_rows, pa.float64()),
            }
            same = {"strength": 1.0, "seed": 0, "backend": backend, "backend_label": backend}
            arrays = [
                pa.array(columns[field.name], field.type)
                if field.name in columns
                else pa.repeat(pa.scalar(same.get(field.name, "given"), field.type), n_rows)
                for field in SCHEMA
            ]
            yield pa.table(arrays, schema=SCHEMA)

    write_rows(tables(), path, {})
    return RowsFile(path)


def numbers(rows: RowsFile) -> list[Any]:
    """What a study makes of its rows."""
    plain = Study("s", (DatasetChoice("d"),), significance=Significance(resamples=20))
    chosen = (SelectionChoice(selection="all"), SelectionChoice(selection="core", name="few"))
    everything = study_scores(plain, rows)
    some = study_scores(replace(plain, unlabelled="false", k="half", selections=chosen), rows)
    curves = distinct_curves(rows, rows.cells())
    bins = [reliability_bins(c.p, c.label, responses=c.response, n_bootstrap=20) for c in curves]
    return [
        *(frame.to_dict("list") for frame in (everything.cells, some.cells)),
        *(vars(one) for one in bins),
        *(asdict(one) for one in agreeing_cells(rows, everything.cells)),
        *(vars(one) for one in agreeing_cells(rows, some.cells)),
    ]


@pytest.mark.parametrize(("unlabelled", "apart"), [(0.0, False), (0.3, False), (0.3, True)])
def test_numbers_of_long_cells_are_those_of_short_ones(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    unlabelled: float,
    apart: bool,
) -> None:
    path = tmp_path / "rows.parquet"
    rows = rows_file(path, monkeypatch, 1500, unlabelled=unlabelled, apart=apart)
    expected, held = numbers(rows), read_judgements(rows, rows.cells()[1])
    request.getfixturevalue("short")
    rows = RowsFile(path)
    # To the last bit.
    np.testing.assert_equal(numbers(rows), expected)
    found = read_judgements(rows, rows.cells()[1])
    for name in ("index", "p", "label", "status", "seconds", "kept"):
        np.testing.assert_array_equal(getattr(found, name), getattr(held, name))
    assert (found.responses, found.kept_by) == (held.responses, held.kept_by)
    assert found.atoms.to_pylist() == held.atoms.to_pylist()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("unlabelled", "most"), [(0.0, 100), (0.3, 120)])
def test_memory_does_not_grow_with_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlabelled: float, most: float
) -> None:
    """Of four claims a response, `most` bytes: as arrays they are 108, what is made of them 600."""
    sizes = (4_000, 12_000)
    files = [
        rows_file(tmp_path / f"{n}.parquet", monkeypatch, n, unlabelled=unlabelled)
        for n in (500, *sizes)
    ]
    # With a replicate more there would be a block of so many draws, whatever the number of rows.
    computed: list[Callable[[Any], Any]] = [
        lambda claims: measured(*claims),
        lambda claims: measured(*claims, intervals=DEFAULT_INTERVALS),
        lambda claims: reliability_bins(*claims[:2], responses=claims[2], n_bootstrap=1),
    ]
    peaks, kept = [], []
    for rows in files:
        taken = []
        before = held_by_arrow()
        tracemalloc.start()
        judgements = read_judgements(rows, rows.cells()[0])
        claims = judgements.claims
        taken.append(tracemalloc.get_traced_memory()[1])
        kept.append(held_by_arrow() - before)
        for compute in computed:
            tracemalloc.reset_peak()
            compute(claims)
            taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        peaks.append(taken)
    # The first loads what the others need.
    growth = np.subtract(peaks[2], peaks[1]) / (sizes[1] - sizes[0])
    assert growth.max() < most, growth
    assert kept[2] - kept[1] < sizes[1] - sizes[0]
