"""What differs between any two findings: settings, rows, numbers and words."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as
from factormodels.errors import InputError
from factormodels.io.files import read_text
from factormodels.io.json_text import decode
from factormodels.nouns import counted, is_or_are

Row = Mapping[Any, Any]
Key = tuple[str, ...]

FINDINGS = "findings.json"
"""What `Findings.save` calls the file that holds all of them."""

SAME = 1e-12
"""Numbers that differ by no more are the same up to rounding."""

_NOT_COMPARED = ("seconds",)
"""Columns that no two runs have in common."""


def read_findings(path: str | os.PathLike[str]) -> Findings:
    """Findings that were written before; their figures are not among them.

    Args:
        path: the folder of `Findings.save`, or a file with what `Findings.as_json` gives.

    Raises:
        InputError: if there are none.
    """
    file = Path(path)
    if file.is_dir():
        file /= FINDINGS
    found = decode(read_text(file), file)
    keys = ("command", "source", "settings", "findings", "tables")
    if not isinstance(found, dict) or not all(key in found for key in keys):
        raise InputError(f"{file}: it holds no findings; name a folder that --out wrote")
    return Findings(
        command=str(found["command"]),
        source=str(found["source"]),
        sentences=tuple(map(str, found["findings"])),
        tables={str(name): _as_table(rows) for name, rows in found["tables"].items()},
        settings=found["settings"],
        incomplete=bool(found.get("incomplete")),
        texts=found.get("texts", {}),
    )


def _as_table(rows: Sequence[Row]) -> Table:
    """A table whose columns are titled as they are named."""
    columns = [
        Column(name, name, show=_shown, right=not _is_text(name, rows))
        for name in dict.fromkeys(str(name) for row in rows for name in row)
    ]
    return Table([{str(key): value for key, value in row.items()} for row in rows], tuple(columns))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def difference(before: Findings, after: Findings, tolerance: float = SAME) -> Findings:
    """What differs between two findings of whatever command.

    Rows belong together whose texts are the same, those of the first columns that tell all rows
    apart. Several with the same texts do so in their order, unless one table has more of them than
    the other: then none is compared. Seconds are not compared.

    Args:
        before: the first.
        after: the second.
        tolerance: differences between numbers that do not count.

    Returns:
        Findings with the tables `changes` (one number or word a row), `rows` (those of one alone)
        and `settings`, each where there is any.
    """
    common = [name for name in before.tables if name in after.tables]
    told = [
        f"Only {side}: {', '.join(only)}."
        for side, these in (("before", before), ("after", after))
        if (only := [name for name in these.tables if name not in common])
    ]
    compared = [
        _compared(name, before.tables[name].records(), after.tables[name].records(), tolerance)
        for name in common
    ]
    told += [
        f"{each.table}: only one has {', '.join(each.columns)}."
        for each in compared
        if each.columns
    ]
    changes = sorted((row for each in compared for row in each.changes), key=_size, reverse=True)
    alone = [row for each in compared for row in each.alone]
    settings = [
        {"setting": name, "before": was, "after": now}
        for name in dict.fromkeys((*before.settings, *after.settings))
        if (was := before.settings.get(name)) != (now := after.settings.get(name))
    ]
    sides = tuple(Column(name, name, show=_shown, right=True) for name in ("before", "after"))
    change = Column("change", "change", show=_shown, right=True)
    tables = {
        "changes": Table(
            changes, (*columns_as("row | column"), *sides, change), "What changed.", "table"
        ),
        "rows": Table(
            alone,
            (*columns_as("table | row"), *sides),
            "Rows without a counterpart: how many.",
        ),
        "settings": Table(settings, (*columns_as("setting"), *sides), "Settings."),
    }
    return Findings(
        source=f"{before.command} {before.source}, {after.command} {after.source}",
        sentences=(*told, *_sentences(changes, alone, settings, sum(e.same for e in compared))),
        tables={name: table for name, table in tables.items() if len(table)},
        settings={"tolerance": tolerance},
    )


class _Compared(NamedTuple):
    """What changed in a table, rows that are not compared, and how many values are the same."""

    table: str
    changes: list[Row]
    alone: list[Row]
    columns: list[str]
    same: int


def _compared(
    name: str, before: Sequence[Row], after: Sequence[Row], tolerance: float
) -> _Compared:
    keys = _keys(before, after)
    first, second = (_by_key(rows, keys) for rows in (before, after))
    columns = [dict.fromkeys(str(each) for row in rows for each in row) for rows in (before, after)]
    apart = [each for each in columns[0] | columns[1] if not all(each in c for c in columns)]
    numbers = [each for each in columns[0] if each not in (*keys, *apart, *_NOT_COMPARED)]
    found = _Compared(name, [], [], apart if before and after else [], 0)
    same = 0
    for key in dict.fromkeys((*first, *second)):
        row, these, those = ", ".join(key), first.get(key, []), second.get(key, [])
        if len(these) != len(those):
            more = {"before": len(these), "after": len(those)}
            found.alone.append({"table": name, "row": row, **more})
            continue
        for place, (was, now) in enumerate(zip(these, those, strict=True), 1):
            shown = row if len(these) == 1 else f"{row} [{place}]".strip()
            for column in numbers:
                old: Any = was.get(column)
                new: Any = now.get(column)
                if _alike(old, new, tolerance):
                    same += 1
                    continue
                change = new - old if _is_number(old) and _is_number(new) else None
                cell = {"table": name, "row": shown, "column": column}
                found.changes.append({**cell, "before": old, "after": new, "change": change})
    return found._replace(same=same)


def _keys(first: Sequence[Row], second: Sequence[Row]) -> tuple[str, ...]:
    """The first columns of texts that tell rows apart in both tables; all of them if none do."""
    rows = first or second
    names = dict.fromkeys(str(name) for row in rows for name in row)
    chosen: list[str] = []
    for name in names:
        if not (_is_text(name, first) and _is_text(name, second)):
            continue
        chosen.append(name)
        apart = (
            len({tuple(row.get(each) for each in chosen) for row in rows}) == len(rows)
            for rows in (first, second)
        )
        if all(apart):
            break
    return tuple(chosen)


def _by_key(rows: Sequence[Row], names: Sequence[str]) -> dict[Key, list[Row]]:
    """Rows by their texts."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        key = tuple(str(text) for name in names if _plain(text := row.get(name)) is not None)
        found.setdefault(key, []).append(row)
    return found


def _alike(was: Any, now: Any, tolerance: float) -> bool:
    if _is_number(was) and _is_number(now):
        # What is undefined in both is the same; infinities have no difference.
        return was == now or abs(now - was) <= tolerance or (math.isnan(was) and math.isnan(now))
    return bool(_plain(was) == _plain(now))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(name: str, rows: Sequence[Row]) -> bool:
    return all(isinstance(_plain(row.get(name)), str | None) for row in rows)


def _sentences(
    changes: Sequence[Row], alone: Sequence[Row], settings: Sequence[Row], same: int
) -> Iterator[str]:
    if not changes and not alone:
        yield f"Nothing changed: {counted(same, 'value')} {is_or_are(same)} the same."
    if changes:
        yield f"{len(changes):,} of {counted(same + len(changes), 'value')} changed."
        most = max(changes, key=_size)
        if most["change"] is not None:
            yield (
                f"The largest change beside its size is {most['change']:+.4g}: {most['column']} of "
                f"{most['row'] or most['table']}, from {most['before']:.4g} to {most['after']:.4g}."
            )
    if alone:
        yield f"{counted(len(alone), 'row')} without a counterpart."
    if settings:
        yield f"Other settings: {', '.join(str(row['setting']) for row in settings)}."


def _size(change: Row) -> float:
    """A change of a number in units of the larger value; columns have different units."""
    moved = change["change"]
    if moved is None or not math.isfinite(moved):
        return -1.0
    largest = max(abs(change["before"]), abs(change["after"]))
    return float(abs(moved) / largest)
