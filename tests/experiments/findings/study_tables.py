"""Tables of every embedded study as data: what a run of each shows, its widest rows alone.

    python -m tests.experiments.findings.study_tables papers/datasets i-bound encodings

runs studies of networks, and analyses that need no data of the user, and scripts of
notebooks/questions by
their names, and keeps their tables anew beside this file. Tables of one form, such as those of one
paper on several data, are kept once.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from experiments.findings.artifacts import Artifacts
from experiments.findings.table import Column, Table, blocks, data_frame

KEPT = Path(__file__).with_suffix(".json")

ROWS = 5
"""Rows that are kept of a table: those with the widest texts."""


def kept_tables() -> list[dict[str, Any]]:
    """Kept tables: the studies of each table, and the table as `plain` makes it."""
    tables: list[dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))
    return tables


def plain(table: Table) -> dict[str, Any]:
    """A table as JSON takes it: texts as they are shown, numbers as they are."""
    columns = [replace(column, show=str) for column in table.columns]
    frame = {
        column.name: [column.text(value) for value in table.frame[column.name]]
        if column.digits is None
        else table.frame[column.name].tolist()
        for column in table.columns
    }
    for column in columns:
        for name in filter(None, (column.lower, column.upper, column.bold, column.stars)):
            frame[name] = table.frame[name].tolist()
    if table.group:
        frame[table.group] = table.frame[table.group].tolist()
    whole = replace(table, data=data_frame(frame), columns=tuple(columns))
    rows = [row for _, rows in blocks(whole) for row in rows]
    widths = [[len(cell.text + cell.interval) for cell in row] for row in rows]
    order = sorted(range(len(rows)), key=lambda at: -sum(widths[at]))
    # Of every column the widest row, then those that are widest on the whole.
    widest = [int(np.argmax(column)) for column in zip(*widths, strict=True)]
    chosen = list(dict.fromkeys([*widest, *order]))[: max(ROWS, len(set(widest)))]
    ordered = _by_group(whole) if table.group else list(range(len(rows)))
    places = sorted(ordered[at] for at in chosen if rows)
    return {
        "columns": [
            {
                field.name: getattr(column, field.name)
                for field in fields(Column)
                if field.name != "show" and getattr(column, field.name) != field.default
            }
            for column in columns
        ],
        "frame": {
            name: [values[column] for column in sorted(places)] for name, values in frame.items()
        },
        "caption": table.caption,
        "group": table.group,
        "note": " ".join(filter(None, (table.note, *table.shared))),
    }


def _by_group(table: Table) -> list[int]:
    """Places of rows in the order of `blocks`."""
    groups = table.frame.groupby(table.group, sort=False)
    return [number for _, members in groups for number in members.index]


def table_of(kept: Mapping[str, Any]) -> Table:
    """A kept table as it was."""
    columns = tuple(Column(**column) for column in kept["columns"])
    frame = data_frame(kept["frame"])
    return Table(frame, columns, kept["caption"], kept["group"], kept["note"])


RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


def tables_of_results() -> dict[str, Table]:
    """Return the tables of docs/results by study and stem, as their Markdown shows them."""
    return {
        f"{path.parent.name}-{path.stem}": _from_markdown(path.read_text("utf-8"))
        for path in sorted(RESULTS.glob("*/*.md"))
    }


def _from_markdown(text: str) -> Table:
    """Return a table as `markdown` writes it, with its widest rows alone."""
    lines = [line for line in text.splitlines() if line and not line.startswith("<!--")]
    first = next(at for at, line in enumerate(lines) if line.startswith("|"))
    last = max(at for at, line in enumerate(lines) if line.startswith("|"))
    titles, alignments, *rows = (
        [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines[first : last + 1]
        if line.startswith("|")
    )
    names = [f"c{at}" for at in range(len(titles))]
    rows.sort(key=lambda row: -sum(map(len, row)))
    widest = [max(rows, key=lambda row: len(row[at])) for at in range(len(titles))]
    shown = [*widest, *rows[:ROWS]]
    frame = data_frame({name: [row[at] for row in shown] for at, name in enumerate(names)})
    columns = tuple(
        Column(name, title, right=alignment.endswith(":"))
        for name, title, alignment in zip(names, titles, alignments, strict=True)
    )
    return Table(frame, columns, " ".join(lines[:first]), note=" ".join(lines[last + 1 :]))


def main(studies: list[str]) -> None:
    """Run studies, and replace their kept tables."""
    kept = [each for each in kept_tables() if not set(each["studies"]) & set(studies)]
    for study in studies:
        script = f"notebooks.questions.{study.replace('-', '_')}"
        if find_spec(script) is not None:
            tables = getattr(import_module(script), script.rpartition(".")[2])().tables
        else:
            tables = artifacts_of(study).tables
        kept += [{"studies": [study], **plain(table)} for table in tables.values()]
    keep(kept)


def artifacts_of(study: str, overrides: Sequence[str] = ()) -> Artifacts:
    """Run a study of networks or an analysis in a folder of its own."""
    from experiments.analyses.study import load_analysis, run_analysis
    from experiments.networks.config import load_networks
    from experiments.networks.design import design
    from experiments.networks.runner import run_networks
    from experiments.study.reading import is_of_networks, read_raw

    raw = read_raw(study, overrides)
    with TemporaryDirectory() as folder:
        if is_of_networks(raw):
            return run_networks(design(load_networks(raw)), Path(folder), chosen={}).artifacts
        return run_analysis(load_analysis(raw), Path(folder))[0]


def keep(tables: list[dict[str, Any]]) -> None:
    """Write what is kept."""
    text = ",\n".join(json.dumps(each, ensure_ascii=False) for each in tables)
    KEPT.write_text(f"[\n{text}\n]\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
