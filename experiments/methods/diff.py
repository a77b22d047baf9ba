"""Changes from one result to another: an outer merge of two frames.

Frames, files of claims, findings and analyses are tables, which `_merged` merges on the texts of
their rows. Claims with probabilities are also merged by cell, response and claim, which gives the
measures of each cell on both sides and their paired difference (`compared_cells`).

`convention_effects` attributes differences to conventions. `explained_difference` and
`explained_tools` only say what is solved again: the views of findings, the cells of runs, and the
responses that tools judged.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from experiments.columns.cell_names import CELL
from experiments.columns.reader import Columns
from experiments.columns.roles import CLAIM, DATA, MODEL, PROBABILITY, RESPONSE
from experiments.columns.sources import IN_MEMORY, name_of, table_of
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.markup import read_csv
from experiments.findings.table import Column, Table, columns_as
from experiments.findings.text import ABSENT
from experiments.methods.compared_cells import (
    SAME,
    both_named,
    cell_tables,
    cell_title,
    compare_frames,
    compare_runs,
    paired_cells,
)
from experiments.settings import front_door
from experiments.settings.inputs import is_table
from experiments.settings.limits import DrawnSettings
from experiments.study.files import MANIFEST, judges_claims, read_manifest
from factormodels.errors import InputError
from factormodels.io.claim_rows import cell_name
from factormodels.io.json import decode, jsonable
from factormodels.io.source.files import read_text
from factormodels.io.tables.numbers import cell_number
from factormodels.nouns import counted, is_or_are
from factormodels.words import folded

if TYPE_CHECKING:
    import pandas as pd

    from experiments.columns.sources import Data

Results = str | os.PathLike[str] | Findings
"""A folder of results, or findings in memory."""

Row = Mapping[Any, Any]

FINDINGS = "findings.json"
"""Name of the file with all findings that `Findings.save` writes."""

_LONGEST = 60


class DiffSettings(DrawnSettings):
    """Estimated differences.

    Options of `diff`.
    """


@front_door
def diff(before: Data, after: Data, settings: DiffSettings) -> Findings:
    """Compare two folders of results.

    Shows the differences in the study, the data and the versions. For every cell that two runs of a
    study, or two tables of claims, have in common, it then shows how many posteriors changed and by
    how much. It also shows the change of each measure over the claims that both judged, with 95%
    intervals paired by response. If conventions differ, also between results of `infer` or
    `assess`, it solves the first result again with one convention switched at a time. It then names
    the convention that explains the difference of each claim and measure. For two runs of an
    analysis, or two folders that any command wrote with --out, it shows which values in their
    tables changed, including intervals. A table is compared row by row with the claims of the other
    result.

    Examples::

        diff("results/compare", "results/damped")
        diff("results/before", "results/after").save("changes")
        diff("before.csv", "after.csv")

    Args:
        before: Folder of results, or a table (CSV, Parquet or JSON Lines). In Python also the
            findings of a function, or a data frame.
        after: Another such folder or table. In Python also the findings of a function, or a data
            frame.
        settings: options of the estimated differences.

    Returns:
        Tables of differences. `settings` is always present. If conventions differ: `conventions`,
        `explained` (claims) and, for runs of a study, `convention_measures`. For runs of a study
        and for claims with probabilities: `posteriors`, `measures`, and `numbers` with every
        number. For tables: `changes`, and `rows` without a counterpart.

    Raises:
        InputError: if a folder holds no results, they have nothing in common, or a file is damaged.
    """
    if _is_rows(before) or _is_rows(after):
        return _of_rows(before, after, settings.seed)
    from experiments.methods.explained_difference import explained_findings, explained_runs

    sides = cast("tuple[Results, Results]", (before, after))
    folders = [_folder(results) for results in sides]
    first, second = (
        folder if folder and all(folders) else _findings(results)
        for folder, results in zip(folders, sides, strict=True)
    )
    changed = setting_changes(_facts(first), _facts(second))
    asked = Table(
        changed,
        columns_as('setting "" | before | after', before=_cut, after=_cut),
        "Settings that differ.",
    )
    if isinstance(first, Path) and isinstance(second, Path) and are_of_units(first, second):
        tables, sentences = cell_tables(compare_runs(first, second, seed=settings.seed))
        effects, causes = explained_runs(
            first,
            second,
            paired_cells,
            lambda cell, other: cell_title(both_named(cell.named(), other.named()), CELL),
        )
    else:
        of_tables = _findings(first), _findings(second)
        tables, sentences = _of_tables(*of_tables)
        read_from = [side if isinstance(side, Path) else None for side in (first, second)]
        effects, causes = explained_findings(*of_tables, read_from)
        if all(CLAIMS in (*findings.tables, *findings.frames) for findings in of_tables):
            claims = [findings.claims for findings in of_tables]
            of_cells, remarks = _of_claims(claims[0], claims[1], settings.seed)
            tables, sentences = {**of_cells, **tables}, [*remarks, *sentences]
    kept = {"settings": asked, **effects, **tables}
    sentences = [*causes, *sentences]
    return Findings(
        source=f"{_title(first)} against {_title(second)}",
        sentences=tuple(sentences),
        tables={name: table for name, table in kept.items() if len(table) or name == "numbers"},
        unshown=("numbers", "explained_claims"),
    )


def _is_rows(side: Data) -> bool:
    """Return True if a side is a table: a file, or rows in memory."""
    if isinstance(side, str | os.PathLike):
        return Path(side).is_file() or is_table(side)
    return not isinstance(side, Findings)


def _of_rows(before: Data, after: Data, seed: int) -> Findings:
    """Changes from one table to another; either may be the claims of results."""
    frames = [_rows(side) for side in (before, after)]
    of_cells, remarks = _of_claims(frames[0], frames[1], seed)
    name = CLAIMS if all({*_IDS} <= {*frame} for frame in frames) else IN_MEMORY
    first, second = (Findings(name, (), {name: Table(frame, ())}) for frame in frames)
    tables, sentences = _of_tables(first, second)
    return Findings(
        source=" against ".join(
            str(side) if isinstance(side, str | os.PathLike) else name_of(side)
            for side in (before, after)
        ),
        sentences=(*remarks, *sentences),
        tables={name: table for name, table in {**of_cells, **tables}.items() if len(table)},
        unshown=("numbers",),
    )


_IDS = ("response", "claim")
"""Columns that identify a claim."""


def _rows(side: Data) -> pd.DataFrame:
    """Rows of a table, or of the claims of results, with claim names and cells as text."""
    if isinstance(side, str | os.PathLike) and Path(side).is_dir():
        from experiments.study.rows import read_rows

        folder = Path(side)
        side = read_rows(folder) if _is_of_units(folder) else _findings(folder)
    table = table_of(side)
    columns = Columns(table.columns, table.source)
    ids = [columns.known(role) for role in (RESPONSE, CLAIM)]
    frame = table.frame().astype(object)
    # Two tools may name these columns differently.
    if None not in ids and not {*_IDS} & {*frame}.difference(ids):
        frame = frame.rename(columns=dict(zip(ids, _IDS, strict=True)))
    for name in frame:
        if table.form in _OF_TEXTS and name not in _IDS:
            frame[name] = _values_of_texts(frame[name])
        if name in (*_IDS, *CELL):
            frame[name] = frame[name].map(cell_name)
        # A text file can express a missing value only as an empty cell.
        frame[name] = frame[name].where(frame[name] != "", None)
    return frame


_OF_TEXTS = ("CSV", "TSV")
"""File formats whose cells are text."""


def _values_of_texts(texts: pd.Series[Any]) -> list[Any]:
    """Convert a column to numbers or Booleans if every filled cell can be converted."""
    filled = [text for text in texts if text.strip()]
    for read in (_number, _truth):
        if all(read(text) is not None for text in filled):
            return [read(text) if text.strip() else None for text in texts]
    return list(texts)


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return cell_number(text)[0]
    return None


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(folded(text))


def _folder(results: Results) -> Path | None:
    """Folder of results or of a run; None for findings in memory."""
    if isinstance(results, Findings):
        return results.folder if results.command == "run" and results.written else None
    return Path(results)


def _title(side: Path | Findings) -> str:
    return str(side) if isinstance(side, Path) else f"{side.command} {side.source}"


def _findings(side: Results) -> Findings:
    """Tables of a side, from memory or from the folder of an analysis or of a command with --out.

    Raises:
        InputError: if there are none, or one of them cannot be read.
    """
    if isinstance(side, Findings):
        return side
    folder = Path(side)
    if not _is_of_run(folder):
        return _respelled(read_findings(folder))
    files = [Path(name) for name in read_manifest(folder)["files"]]
    frames = {
        file.stem: read_csv(folder / file).rename(columns=_EARLIER)
        for file in files
        if file.suffix == ".csv"
    }
    return Findings(str(folder), (), {n: Table(f, ()) for n, f in frames.items()}, command="run")


_EARLIER = {
    "labelled": "labeled",
    "n_labelled": "n_labeled",
    "unlabelled": "unlabeled",
    "n_unlabelled": "n_unlabeled",
    "licence": "license",
}
"""Columns that earlier versions wrote, with their current names."""


def _respelled(findings: Findings) -> Findings:
    """Rename the columns of tables that earlier versions wrote."""
    tables = {
        name: replace(
            table,
            data=table.frame.rename(columns=_EARLIER),
            columns=tuple(
                replace(column, name=_EARLIER.get(column.name, column.name))
                for column in table.columns
            ),
        )
        if _EARLIER.keys() & set(table.frame)
        else table
        for name, table in findings.tables.items()
    }
    return replace(findings, tables=tables)


def are_of_units(before: Path, after: Path) -> bool:
    """Return True if two folders are runs of units, False if both have tables.

    Raises:
        InputError: if only one of them is a run of units, or a folder holds no results.
    """
    of_units = [_is_of_units(folder) for folder in (before, after)]
    if of_units[0] != of_units[1]:
        units, other = (before, after) if of_units[0] else (after, before)
        raise InputError(
            f"{other} contains tables and {units} a run of units, which cannot be compared; name "
            "two folders of the same kind"
        )
    return of_units[0]


def _is_of_units(folder: Path) -> bool:
    """Return True for a run of units, False for tables of an analysis or a command."""
    return _is_of_run(folder) and judges_claims(read_manifest(folder)["config"])


def _is_of_run(folder: Path) -> bool:
    """Return True if a folder is a run, False if a command wrote its findings there."""
    return (folder / MANIFEST).exists() or not (folder / FINDINGS).is_file()


def setting_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Differences in study, data and versions, or in the settings of commands.

    Rows with each `setting` and its values in the first and the second, "--" for none.
    """
    return [
        {"setting": name, "before": _as_text(before.get(name)), "after": _as_text(after.get(name))}
        # Keys of both, in the order of the first; a set would shuffle them from run to run.
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _facts(side: Path | Findings) -> dict[str, Any]:
    """Settings, data and versions that results may depend on, by path."""
    if isinstance(side, Path) and _is_of_run(side):
        manifest = read_manifest(side)
        facts: dict[str, Any] = {}
        for part in ("config", "data", "models", "code", "packages"):
            facts.update(_flat(manifest.get(part, {}), "" if part == "config" else f"{part}."))
        return facts | {name: manifest.get(name) for name in ("python", "platform", "processor")}
    findings = _findings(side)
    asked = {"command": findings.command, "source": findings.source}
    return asked | dict(_flat(jsonable(dict(findings.settings)), ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) of everything in nested plain data."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            # A list of plain values remains a single fact; a list of objects is split by position.
            yield from _flat(item, f"{path}{key}." if isinstance(item, dict) else f"{path}{key}")
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for position, item in enumerate(value):
            start = f"{path}[{position}]"
            yield from _flat(item, f"{start}." if isinstance(item, dict) else start)
    else:
        yield path.rstrip("."), value


def _as_text(value: Any) -> str:
    return ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_NOT_COMPARED = ("seconds", "predicted_seconds")
"""Columns that differ between any two runs."""

_SECONDS = re.compile(r"\b[0-9][0-9.]*(e[+-]?[0-9]+)? s\b")
"""A time in a text, such as a predicted one."""


def _of_tables(before: Findings, after: Findings) -> tuple[dict[str, Table], list[str]]:
    """Changes in common tables, and rows that occur on one side only.

    Rows match if their texts are equal in the first columns that identify all rows. Rows with the
    same texts match in order if both tables have the same number of them; otherwise none of them is
    compared. Times in seconds are not compared.
    """
    common = [name for name in before.tables if name in after.tables]
    sentences = [
        f"Only {side}: {', '.join(only)}."
        for side, these in (("before", before), ("after", after))
        if (only := [name for name in these.tables if name not in common])
    ]
    changes: list[dict[str, Any]] = []
    alone: list[dict[str, Any]] = []
    n_same = 0
    for name in common:
        first, second = (_as_objects(findings.tables[name]) for findings in (before, after))
        of_each = {
            "before": [each for each in first.columns.tolist() if each not in second],
            "after": [each for each in second.columns.tolist() if each not in first],
        }
        apart = [*chain.from_iterable(of_each.values())]
        if apart and len(first) and len(second):
            parts = [f"only {side} {', '.join(these)}" for side, these in of_each.items() if these]
            sentences.append(f"Columns of {name}: {'; '.join(parts)}.")
        keys = _keys(first, second)
        compared = [each for each in first if each not in (*keys, *apart, *_NOT_COMPARED)]
        for row, record, counts in _merged(first, second, keys):
            if record is None:
                alone.append({"table": name, "row": row, **counts})
                continue
            for column in compared:
                was, now = (record[f"{column} {side}"] for side in ("before", "after"))
                if _alike(was, now):
                    n_same += 1
                    continue
                change = now - was if _is_number(was) and _is_number(now) else None
                value = {"table": name, "row": row, "column": column}
                changes.append({**value, "before": was, "after": now, "change": change})
    changes.sort(key=_size, reverse=True)
    sides = tuple(Column(name, name, show=_shown, right=True) for name in ("before", "after"))
    change_column = Column("change", "change", show=_change, right=True)
    tables = {
        "changes": Table(
            changes, (*columns_as("row | column"), *sides, change_column), "Changes.", "table"
        ),
        "rows": Table(
            alone, (*columns_as("table | row"), *sides), "Numbers of rows without a counterpart."
        ),
    }
    return tables, [*sentences, *_change_sentences(changes, alone, n_same)]


_ORDER, _ROW, _SIDE = "(order)", "(row)", "(side)"
"""Columns of the merge: position among rows of the same texts, position in the table, and side."""


def _merged(
    before: pd.DataFrame, after: pd.DataFrame, keys: Sequence[str]
) -> Iterator[tuple[str, Row | None, dict[str, int]]]:
    """Outer merge of two tables on their keys, in the order of the first table.

    Yields:
        The name of a row, its values as `COLUMN before` and `COLUMN after`, and an empty mapping.
        For rows that one table has more often: the name, None, and the number of rows in each
        table.
    """
    import numpy as np

    sides = []
    for frame in (before, after):
        side = frame.reindex(columns=list(dict.fromkeys((*keys, *frame.columns))))
        side = side.assign(**{key: side[key].where(side[key].notna(), "") for key in keys})
        order = side.groupby(list(keys), sort=False).cumcount() if keys else np.arange(len(side))
        sides.append(side.assign(**{_ORDER: order, _ROW: np.arange(len(side))}))
    both = sides[0].merge(
        sides[1],
        on=[*keys, _ORDER],
        how="outer",
        suffixes=(" before", " after"),
        indicator=_SIDE,
    )
    both = both.sort_values([f"{_ROW} before", f"{_ROW} after"], kind="stable")
    if not keys:
        texts: list[tuple[str, ...]] = [()] * len(both)
    else:
        texts = list(both[list(keys)].itertuples(index=False, name=None))
    rows = [*zip(texts, both.to_dict("records"), strict=True)]
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    for key, record in rows:
        count = counts.setdefault(key, {"before": 0, "after": 0})
        count["before"] += record[_SIDE] != "right_only"
        count["after"] += record[_SIDE] != "left_only"
    for key, record in rows:
        count, name = counts[key], ", ".join(filter(None, key))
        if count["before"] == count["after"]:
            several = count["before"] > 1
            yield f"{name} [{record[_ORDER] + 1}]".strip() if several else name, record, count
        elif record[_ORDER] == 0:
            yield name, None, count


def _as_objects(table: Table) -> pd.DataFrame:
    """Table with values of any type and missing ones."""
    import pandas as pd

    rows = [{str(key): value for key, value in row.items()} for row in table.records()]
    return pd.DataFrame(rows, dtype=object)


def _keys(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Text columns that identify the rows of both tables: few of the first ones, or all.

    In tables of responses, the response, the claim and the columns of a cell come first. Other
    columns are left out if the rest identifies the rows, so that their texts are compared instead.
    """
    chosen: list[str] = []
    frames = [frame for frame in (first, second) if len(frame)]
    names = frames[0].columns.tolist() if frames else []
    if {*_IDS} & {*names}:
        names.sort(key=lambda name: name not in (*_IDS, *CELL))
    for name in names:
        if all(name in frame and _is_text(frame[name]) for frame in frames):
            chosen.append(name)
            if _identify(chosen, frames):
                break
    else:
        return chosen
    for name in reversed(chosen[:-1]):
        rest = [each for each in chosen if each != name]
        if name not in (*_IDS, *CELL) and _identify(rest, frames):
            chosen = rest
    return chosen


def _identify(names: Sequence[str], frames: Sequence[pd.DataFrame]) -> bool:
    """Return True if no two rows of a table have the same values in some columns."""
    return not any(frame.duplicated([*names]).any() for frame in frames)


def _is_text(values: Iterable[Any]) -> bool:
    return all(isinstance(_plain(value), str | None) for value in values)


def _alike(was: Any, now: Any) -> bool:
    if _is_number(was) and _is_number(now):
        # Two undefined values are equal; the difference of two infinities is undefined.
        return was == now or abs(now - was) <= SAME or (math.isnan(was) and math.isnan(now))
    if isinstance(was, str) and isinstance(now, str):
        return was == now or _SECONDS.sub("s", was) == _SECONDS.sub("s", now)
    return bool(_plain(was) == _plain(now))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _change_sentences(changes: Sequence[Row], alone: Sequence[Row], same: int) -> Iterator[str]:
    if not changes and not same:
        yield ("No value was compared: the only columns that the tables share are names of rows.")
    elif not changes and not alone:
        yield f"Nothing changed: {counted(same, 'value')} {is_or_are(same)} the same."
    if changes:
        yield f"{len(changes):,} of {counted(same + len(changes), 'value')} changed."
        most = max(changes, key=_size)
        if most["change"] is not None:
            yield (
                f"The largest relative change is {most['change']:+.4g}: {most['column']} of "
                f"{most['row'] or most['table']}, from {most['before']:.4g} to "
                f"{most['after']:.4g}."
            )
    if alone:
        yield f"{counted(len(alone), 'row')} without a counterpart."


def _size(change: Row) -> float:
    """Relative change of a number, since columns have different units."""
    moved = change["change"]
    if moved is None or not math.isfinite(moved):
        return -1.0
    largest = max(abs(change["before"]), abs(change["after"]))
    return float(abs(moved) / largest)


def read_findings(path: str | os.PathLike[str]) -> Findings:
    """Read findings that were written to disk, without their figures.

    Args:
        path: folder of `Findings.save`, or a file with the output of `Findings.as_json`.

    Raises:
        InputError: if there are none.
    """
    file = Path(path)
    if file.is_dir():
        file /= FINDINGS
    document = decode(read_text(file), file)
    keys = ("command", "source", "settings", "findings", "tables")
    if not isinstance(document, dict) or not all(key in document for key in keys):
        raise InputError(f"{file}: it contains no findings; name a folder that --out wrote")
    return Findings(
        command=str(document["command"]),
        source=str(document["source"]),
        sentences=tuple(map(str, document["findings"])),
        tables={str(name): _as_table(rows) for name, rows in document["tables"].items()},
        settings=document["settings"],
        incomplete=bool(document.get("incomplete")),
        texts=document.get("texts", {}),
    )


def _as_table(rows: Sequence[Row]) -> Table:
    """Table whose columns are titled by their names."""
    columns = [
        Column(name, name, show=_shown, right=not _is_text(row.get(name) for row in rows))
        for name in dict.fromkeys(str(name) for row in rows for name in row)
    ]
    return Table([{str(key): value for key, value in row.items()} for row in rows], tuple(columns))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _change(value: Any) -> str:
    """A change of a number; a change of a text has no size."""
    return ABSENT if _plain(value) is None else _shown(value)


def _of_claims(
    before: pd.DataFrame, after: pd.DataFrame, seed: int
) -> tuple[dict[str, Table], list[str]]:
    """Posteriors and measures by cell of two frames of claims; nothing for other tables."""
    for frame in (before, after):
        columns = Columns(list(map(str, frame)), "the claims")
        if not {*_IDS} <= {*frame} or columns.known(PROBABILITY) is None:
            return {}, []
    try:
        by = _cell_columns(before, after)
        return cell_tables(compare_frames(before, after, by, seed=seed))
    except InputError as error:
        return {}, [f"Measures are not compared: {error}."]


def _cell_columns(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Columns of both frames that name the cells of claims.

    These are the columns of models, of data and of a study's cells that have several values, and
    the columns without which rows would repeat a claim.
    """
    columns = Columns([str(name) for name in before], "before")
    keys = _keys(before, after)
    if not all(len(frame) and _identify(keys, [frame]) for frame in (before, after)):
        keys = []
    names = dict.fromkeys([*CELL, *columns.all_known(DATA), *columns.all_known(MODEL), *keys])
    return [
        name
        for name in names
        if name not in _IDS
        and name in before
        and name in after
        and len({*map(cell_name, before[name]), *map(cell_name, after[name])}) > 1
    ]
