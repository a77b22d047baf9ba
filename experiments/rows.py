"""Tidy rows: what one atom, judged by one cell of a study, looks like in every result file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pandas as pd

FAILED = "failed"
"""The status of a unit whose backend raised: its rows have no `p`, and say why in `error`."""


def _field(name: str, kind: pa.DataType, meaning: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"description": meaning})


SCHEMA = pa.schema(
    [
        _field("study", pa.string(), "name of the study"),
        _field("dataset", pa.string(), "name of the dataset in the study"),
        _field("response", pa.string(), "id of the response, unique in its dataset"),
        _field(
            "atom",
            pa.string(),
            "id of the atom, unique in its response; null in the one row of a response without "
            "atoms",
            nullable=True,
        ),
        _field("variant", pa.string(), "view of the fact graph: given, FR1, FR2 or FR3"),
        _field("encoding", pa.string(), "encoding of relations: implication or conditional"),
        _field("backend", pa.string(), "name of the algorithm in the registry"),
        _field("backend_label", pa.string(), "what tables call it, unique in the study"),
        _field("setting", pa.string(), "settings of the backend, a JSON object with sorted keys"),
        _field("seed", pa.int64(), "seed of the study"),
        _field(
            "p",
            pa.float64(),
            "posterior probability that the atom is true; null if failed",
            nullable=True,
        ),
        _field("label", pa.bool_(), "human label; null where there is none", nullable=True),
        _field("annotation", pa.string(), "the annotator's own word for it", nullable=True),
        _field(
            "seconds",
            pa.float64(),
            "seconds that inference took for the whole response; null if failed",
            nullable=True,
        ),
        _field(
            "status",
            pa.string(),
            "how inference ended: exact, converged, not_converged, interrupted or failed",
        ),
        _field(
            "log_z",
            pa.float64(),
            "natural logarithm of the partition function; null where there is none",
            nullable=True,
        ),
        _field(
            "log_z_kind",
            pa.string(),
            "what log_z is: exact, upper, lower, bethe, elbo or none",
            nullable=True,
        ),
        _field("error", pa.string(), "why the unit failed; null if it did not", nullable=True),
    ]
)
"""Columns of rows.parquet and rows.csv; one row per atom, variant, encoding and backend."""


def as_table(rows: Iterable[Mapping[str, Any]], metadata: Mapping[str, str]) -> pa.Table:
    """Return rows as a table with the schema and facts about the study in its metadata."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA.with_metadata(dict(metadata)))


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write rows as Parquet; equal rows give equal bytes."""
    pq.write_table(table, path, compression="zstd")


def write_csv(table: pa.Table, path: Path) -> None:
    """Write rows as CSV with a header; null is empty, numbers are written in full."""
    as_frame(table).to_csv(path, index=False, lineterminator="\n")


def read_rows(path: Path) -> pd.DataFrame:
    """Return the rows of a rows.parquet file as a data frame with nullable columns."""
    return as_frame(pq.read_table(path))


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a data frame whose missing values are null, never NaN or a guess."""
    import pandas as pd

    nullable = {
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype(),
    }
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame
