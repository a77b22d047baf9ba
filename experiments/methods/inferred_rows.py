"""Posteriors of one model under every row of a table of evidence, for the command `infer`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.findings import Findings
from experiments.findings.table import Table, columns_as
from experiments.findings.text import duration
from experiments.settings.inputs import LoadedModel, is_evidence_table, with_evidence
from factormodels.errors import InputError
from factormodels.io.source.places import location
from factormodels.io.tables.data_table import read_table
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from inference.backend import Backend

_SHOWN_LINES = 10_000
"""Largest number of printed lines of posteriors; a longer table is written to a file only."""

_NAMED_ROWS = 5
"""Largest number of rows that a sentence names."""


def infer_each_row(
    source: str, model: LoadedModel, evidence: Sequence[Any], algorithm: Backend
) -> Findings:
    """Posteriors of a model under each row of the table among its evidence, as findings.

    Tables: `posteriors` by row, variable and state, and `rows`, with log Z and status of each.

    Args:
        source: name of the model.
        model: the model.
        evidence: one table, and the observations that all rows share.
        algorithm: the backend.

    Raises:
        InputError: for two tables, or a cell that does not fit the model; the message names it.
        InferenceError: if the backend cannot answer for a row.
    """
    from inference.row_posteriors import infer_named_rows
    from inference.warm_up import warm_up_for

    tables = [part for part in evidence if is_evidence_table(part)]
    if len(tables) > 1:
        raise InputError(
            f"--evidence {tables[1]}: {tables[0]} already has a row for each case; keep one table"
        )
    (table,) = tables
    graph = with_evidence(
        model.factor_graph, [part for part in evidence if not is_evidence_table(part)]
    )
    name = "the table"
    locate = None
    frame: Any = table
    lines: Sequence[int | None] = ()
    if isinstance(table, Path):
        import pandas as pd

        name = str(table)
        records = read_table(table, empty_rows=True)
        locate, lines = records.locate, records.lines
        frame = pd.DataFrame(list(records.rows), columns=list(records.columns))
        if not frame.columns.size:
            raise InputError(f"{table}: it has no column; name a variable in its first line")
    warm_up_for(algorithm, [graph])
    start = time.perf_counter()
    try:
        posteriors = infer_named_rows(graph, frame, algorithm, locate)
    except InputError as error:
        if locate is None or str(error).startswith((f"{table}:", f"{table},")):
            raise
        raise InputError(f"{location(table, lines[0] and 1)}: {error}") from None
    seconds = time.perf_counter() - start
    each = _each_row(posteriors, len(frame), lines)
    long = Table(
        posteriors,
        columns_as("row | variable | state | p:6 | status"),
        f"Posteriors of {source} for the rows of {name}, by row, variable and state.",
    )
    rows = Table(
        each, columns_as("row> | log_z:6 log Z | status"), f"Rows of {name}, counted from 0."
    )
    return Findings(
        source=source,
        sentences=tuple(_sentences(each, name, algorithm.name, seconds)),
        tables={"posteriors": long, "rows": rows},
        unshown=("rows",) if len(long) <= _SHOWN_LINES else ("posteriors", "rows"),
    )


def _each_row(posteriors: pd.DataFrame, count: int, lines: Sequence[int | None]) -> pd.DataFrame:
    """Log Z and status of each row, and its line in the file if there is one."""
    first = posteriors.iloc[:: len(posteriors) // max(count, 1) or 1]
    each = first[["row", "log_z", "status"]].reset_index(drop=True)
    if any(line is not None for line in lines):
        each.insert(1, "line", list(lines))
    return each


def _sentences(each: pd.DataFrame, name: str, backend: str, seconds: float) -> list[str]:
    from inference.row_posteriors import IMPOSSIBLE

    counts = each["status"].value_counts()
    ended = ", ".join(
        f"{count:,} {status}" for status, count in counts.items() if count and status != IMPOSSIBLE
    )
    sentences = [
        f"{counted(len(each), 'row')} of {name}, backend {backend}"
        f"{f' ({ended})' if ended else ''}, {duration(seconds)}."
    ]
    impossible = each.loc[each["status"] == IMPOSSIBLE, "row"].tolist()
    if impossible:
        shown = ", ".join(map(str, impossible[:_NAMED_ROWS]))
        more = ", ..." if len(impossible) > _NAMED_ROWS else ""
        sentences.append(
            f"The evidence of {counted(len(impossible), 'row')} has probability zero "
            f"({shown}{more}): their posterior is undefined, and p is empty."
        )
    return sentences
