"""The rows of a run, as other programs read them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from experiments.study.rows import SCHEMA, read_rows
from tests.experiments.conftest import invoke, study_file


@pytest.fixture
def rows_file(folder: Path) -> Path:
    """The rows of a small run."""
    study_file(folder, "study: s\ndatasets: [{name: demonstration, limit: 3}]\noutputs: []\n")
    invoke("run", "study.yaml", "--out", "out")
    return folder / "out" / "rows.parquet"


def test_duckdb_reads_every_column_as_pandas_does(rows_file: Path) -> None:
    frame = read_rows(rows_file)
    with duckdb.connect() as connection:
        columns = connection.execute(f"SELECT * FROM '{rows_file}'")
        names = [column[0] for column in columns.description]
        records = columns.fetchall()
    assert names == SCHEMA.names
    assert len(records) == len(frame)
    assert [record[names.index("p")] for record in records] == frame["p"].tolist()
    assert [record[names.index("atom")] for record in records] == frame["atom"].tolist()


def test_the_query_of_the_documentation_gives_the_means(rows_file: Path) -> None:
    query = f"SELECT backend_label, avg(p) FROM '{rows_file}' GROUP BY 1"
    with duckdb.connect() as connection:
        ((label, mean),) = connection.execute(query).fetchall()
    frame = read_rows(rows_file)
    assert label == "auto"
    assert mean == pytest.approx(frame["p"].mean(), abs=1e-12)  # another order of addition
