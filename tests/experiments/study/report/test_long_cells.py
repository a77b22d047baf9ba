"""Cells of many rows: what is read of them, and how much memory each row takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from calibration.curves.reliability_bins import reliability_bins
from calibration.scoring import DEFAULT_INTERVALS
from experiments.evaluators.response import measured
from experiments.study import rows as tidy_rows
from experiments.study.report.frame import read_judgments
from experiments.study.rows import SCHEMA, RowsFile, read_rows, write_rows
from tests.memory import held_by_arrow

GROUP = 1000


def rows_file(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_responses: int,
    *,
    unlabeled: float = 0.0,
    apart: bool = False,
) -> RowsFile:
    """Rows of two cells that were not computed.

    Args:
        path: the file.
        monkeypatch: makes row groups small.
        n_responses: responses of each cell, of four claims.
        unlabeled: share of claims without a label; as many responses have no atoms.
        apart: whether the claims of a response do not stand together.
    """
    monkeypatch.setattr(tidy_rows, "GROUP_ROWS", GROUP)

    def tables() -> Iterator[pa.Table]:
        for backend in ("exact", "lbp"):
            generator = np.random.default_rng(1)
            n_rows = 4 * n_responses
            owner = np.tile(np.arange(n_responses), 4) if apart else np.arange(n_rows) // 4
            p = generator.beta(0.7, 0.5, n_rows)
            label = generator.random(n_rows) < p
            empty = (generator.random(n_responses) < unlabeled)[owner]
            unknown = empty | (generator.random(n_rows) < unlabeled)
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


@pytest.mark.parametrize(("unlabeled", "apart"), [(0.0, False), (0.3, False), (0.3, True)])
def test_judgments_are_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlabeled: float, apart: bool
) -> None:
    path = tmp_path / "rows.parquet"
    rows = rows_file(path, monkeypatch, 1500, unlabeled=unlabeled, apart=apart)
    frame = read_rows(path)
    frame = frame[frame.backend == "lbp"].reset_index(drop=True)
    judgments = read_judgments(rows, rows.cells()[1])
    assert judgments.responses == tuple(dict.fromkeys(frame.response))
    np.testing.assert_array_equal(np.array(judgments.responses)[judgments.index], frame.response)
    assert judgments.atoms.to_pylist() == [None if pd.isna(atom) else atom for atom in frame.atom]
    for name in ("p", "label"):
        expected = frame[name].astype("Float64").to_numpy(float, na_value=np.nan)
        np.testing.assert_array_equal(getattr(judgments, name), expected)
    first = frame.drop_duplicates("response")
    np.testing.assert_array_equal(judgments.status, first.status)
    np.testing.assert_array_equal(judgments.seconds, first.seconds)
    names = np.array(judgments.kept_by)[judgments.kept]
    np.testing.assert_array_equal(names, frame.selections.fillna(""))


# Without unlabeled claims the same columns are read, but for the nulls in them.
@pytest.mark.parametrize("unlabeled", [pytest.param(0.0, marks=pytest.mark.nightly), 0.3])
def test_memory_of_a_response_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlabeled: float
) -> None:
    """`MOST` bytes for a response of four claims: a million take less than a gigabyte."""
    sizes = (2_000, 6_000)
    files = [
        rows_file(tmp_path / f"{n}.parquet", monkeypatch, n, unlabeled=unlabeled)
        for n in (500, *sizes)
    ]
    # With a replicate more there would be a block of so many draws, whatever the number of rows.
    computed: list[Callable[[Any], Any]] = [
        lambda claims: measured(*claims),
        lambda claims: measured(*claims, intervals=DEFAULT_INTERVALS),
        lambda claims: reliability_bins(*claims[:2], responses=claims[2], n_bootstrap=1),
    ]
    peaks = []
    for rows in files:
        tracemalloc.start()
        before = held_by_arrow()
        judgments = read_judgments(rows, rows.cells()[0])
        arrow = held_by_arrow() - before
        claims = judgments.claims
        taken = [tracemalloc.get_traced_memory()[1]]
        for compute in computed:
            tracemalloc.reset_peak()
            compute(claims)
            taken.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        peaks.append([arrow + peak for peak in taken])
    # The first loads what the others need.
    growth = np.subtract(peaks[2], peaks[1]) / (sizes[1] - sizes[0])
    assert growth.max() < MOST, growth


MOST = 700
