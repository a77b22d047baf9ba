"""What a method is given: a file, or a table that somebody has in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.evaluators.response import METADATA_KEY
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.published.evaluation_logs import KEYS, scored_rows
from factormodels.io.published.formats import format_of
from factormodels.io.tables import DataTable, read_table
from factormodels.recorded_verdicts import recorded_verdicts
from inference import infer_batch

if TYPE_CHECKING:
    import pandas as pd

    Data = str | os.PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

_JUDGED = ("fact-graph", "factreasoner", "factreasoner-results")
"""Formats of responses that may carry verdicts."""

AS_GIVEN = "as given"
"""What posteriors of graphs that carry no verdicts are called: those of inference."""

IN_MEMORY = "the table"
"""What a table that is not a file is called."""


def table_of(data: Data) -> DataTable:
    """The table of a file, a data frame, or records.

    Raises:
        InputError: if the file cannot be read, or there is no row.
    """
    if isinstance(data, str | os.PathLike):
        return read_table(data)
    # By what it can do: whoever has a data frame has loaded pandas.
    frame: Any = data
    records: list[Any]
    if hasattr(data, "to_dict"):
        # What is missing in a frame is a number, NaN, whatever the column holds.
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    else:
        records = list(data)
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            kind = type(record).__name__
            raise InputError(f"row {number} is a {kind}; give a mapping from columns to values")
    if not records:
        raise InputError(f"{IN_MEMORY} has no rows; give at least one")
    rows = tuple({str(key): value for key, value in record.items()} for record in records)
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return DataTable(IN_MEMORY, "table", columns, rows, (None,) * len(rows))


def judged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]]:
    """A row per claim or sample, if the records carry verdicts of such, and who gave these.

    Of fact graphs and of outputs of other tools: columns response, claim, text, answer (the whole
    response), label, and P(true) of each assessor by name and of each variant under which we
    assessed the response ourselves, None where there is none. Of logs of evaluation tools: a row
    per sample, with the columns of `scored_rows`. Another table stays as it is.

    Raises:
        InputError: if a record is malformed.
    """
    logged = _logged_table(table)
    if logged is not None:
        return logged
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    models: dict[str, None] = {}
    graphs: list[FactGraph] = []
    for record, line in zip(table.rows, table.lines, strict=True):
        form = format_of(record)
        if form is None or form.name not in _JUDGED or not record.keys() >= set(form.keys):
            return table, ()
        graph: FactGraph = form.parse(record, table.source, line)
        graphs.append(graph)
        told = posteriors_by_model(graph)
        models |= dict.fromkeys(told)
        for atom in graph.atoms:
            rows.append(
                {
                    "response": graph.id,
                    "claim": atom.id,
                    "text": atom.text,
                    "answer": graph.response,
                    "label": atom.label,
                    **{model: p[atom.id] for model, p in told.items() if atom.id in p},
                }
            )
            lines.append(line)
    if not models:
        # Graphs that nobody has judged are judged as they stand.
        models = {AS_GIVEN: None}
        answers = infer_batch([graph.to_factor_graph() for graph in graphs], "auto")
        told_p = [p for a, g in zip(answers, graphs, strict=True)
                  for p in a.marginals.of_state(1)[: len(g.atoms)].tolist()]  # fmt: skip
        for row, p in zip(rows, told_p, strict=True):
            row[AS_GIVEN] = p
    columns = ("response", "claim", "text", "answer", "label", *models)
    return DataTable(table.source, table.form, columns, tuple(rows), tuple(lines)), tuple(models)


def _logged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]] | None:
    """The table of a log's samples and its scorers; None where the records are of no log."""
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    for record, line in zip(table.rows, table.lines, strict=True):
        own = scored_rows(record, table.source, line)
        if own is None:
            return None
        rows += own
        lines += [line] * len(own)
    scorers = tuple(dict.fromkeys(name for row in rows for name in row if name not in KEYS))
    columns = (*KEYS, *scorers)
    return DataTable(table.source, table.form, columns, tuple(rows), tuple(lines)), scorers


def posteriors_by_model(graph: FactGraph) -> dict[str, dict[str, float | None]]:
    """P(true) of the claims of a response by who judged them: other tools, and our variants."""
    found = {
        name: {atom: verdict.p_true for atom, verdict in verdicts.items()}
        for name, verdicts in recorded_verdicts(graph).items()
    }
    for variant, view in graph.metadata.get(METADATA_KEY, {}).items():
        unanswered = view.get("unanswered", ())
        found[variant] = {
            atom: None if atom in unanswered else one["p"]
            for atom, one in view.get("atoms", {}).items()
        }
    return found


def name_of(data: Data) -> str:
    """What data are called: the name of the file, or `IN_MEMORY`."""
    return Path(data).name if isinstance(data, str | os.PathLike) else IN_MEMORY
