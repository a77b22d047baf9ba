"""`factormodels diff`: what changed from one run to another."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.console import heading, output, plain_table, show_table
from experiments.cli.options import shared
from experiments.findings.text import counted, interval, number, small
from experiments.study.cell_names import CELL, cell_words

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.results.diff import (
        AnalysisDifference,
        CellChange,
        RunDifference,
        SettingChange,
        TableChange,
        ValueChange,
    )


_LONGEST = 60
_MOST_VALUES = 6
_MOST_MOVED = 20
"""Values of analyses that are shown; a file can have all."""


def command(
    before: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run's results.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Folder of another run's results.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every number to a CSV file.")
    ] = None,
    seed: shared.BootstrapSeed = 0,
) -> None:
    """Say what changed from one run of a study to another.

    Shows what differs in the study, the data and the versions. For every cell that
    both runs have, it then shows how many posteriors changed and by how much, and
    how far each measure moved over the claims that both judged, with 95% intervals
    from the paired bootstrap over responses. For two runs of an analysis, it shows
    which values in their tables changed, including intervals.

    [b]Examples[/b]

      factormodels diff results/compare results/damped
      factormodels diff results/before results/after --out changes.csv
    """
    from experiments.results.diff import as_rows, compare

    difference = compare(before, after, seed=seed)
    if out is not None:
        _write(out, as_rows(difference))
    show_difference(output(), difference)


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    import pandas as pd

    from experiments.findings.markup import csv_text
    from factormodels.io.files import write_text

    write_text(out, csv_text(pd.DataFrame(rows)))


def show_difference(console: Console, difference: RunDifference | AnalysisDifference) -> None:
    """Print what changed: settings, then cells with their measures, or tables with their values."""
    from experiments.results.diff import RunDifference

    _show_settings(console, difference.settings)
    if isinstance(difference, RunDifference):
        _show_units(console, difference)
    else:
        _show_analysis(console, difference)


def _show_units(console: Console, difference: RunDifference) -> None:
    for title, cells in (("before", difference.only_before), ("after", difference.only_after)):
        for one in _grouped(cells):
            n_cells = math.prod(len(values) for values in one.values())
            name = _cell_title({column: _listed(values) for column, values in one.items()}, CELL)
            console.print(f"only {title}: {counted(n_cells, 'cell')}, {name}", soft_wrap=True)
    if difference.only_before or difference.only_after:
        console.print()
    changed = [cell for cell in difference.cells if not cell.same]
    if changed:
        _show_cells(console, changed)
        _show_measures(console, [cell for cell in changed if cell.measures])
    unchanged = len(difference.cells) - len(changed)
    console.print(f"{counted(unchanged, 'cell')} of {len(difference.cells):,} unchanged")


def _show_analysis(console: Console, difference: AnalysisDifference) -> None:
    for title, stems in (("before", difference.only_before), ("after", difference.only_after)):
        for stem in stems:
            console.print(f"only {title}: {stem}", soft_wrap=True)
    changed = [table for table in difference.tables if not table.same]
    if changed:
        _show_tables(console, changed)
    unchanged = len(difference.tables) - len(changed)
    console.print(f"{counted(unchanged, 'table')} of {len(difference.tables):,} unchanged")


def _show_tables(console: Console, changed: Sequence[TableChange]) -> None:
    heading(console, "values of tables")
    table = plain_table(["table"], ["values", "changed", "only before", "only after"], fold=True)
    for one in changed:
        lost = (f"{counted(n, 'row')}" if n else "" for n in (one.n_only_before, one.n_only_after))
        table.add_row(one.table, f"{one.n_values:,}", f"{len(one.values):,}", *lost)
    show_table(console, table)
    console.print()
    for one in changed:
        if one.columns:
            console.print(f"{one.table}: only one has {', '.join(one.columns)}", soft_wrap=True)
    moved = [value for one in changed for value in one.values]
    if not moved:
        return
    # Relative, since the columns of an analysis have different units.
    moved.sort(key=_relative, reverse=True)
    heading(console, f"values that moved most, of {len(moved):,}")
    table = plain_table(["table", "row", "column"], ["before", "after", "difference"], fold=True)
    for value in moved[:_MOST_MOVED]:
        before, after = (number(one, 4) for one in (value.before, value.after))
        table.add_row(
            value.table, _cut(value.row), value.column, before, after, small(value.difference)
        )
    show_table(console, table)
    console.print()


def _relative(value: ValueChange) -> float:
    """A difference in units of the larger value; one that has no size comes first."""
    change = value.difference
    # A value that is missing on one side, or not a number, cannot be compared in size.
    if change is None or change != change:
        return float("inf")
    return abs(change) / max(abs(float(value.before)), abs(float(value.after)))


def _show_settings(console: Console, settings: Sequence[SettingChange]) -> None:
    if not settings:
        return
    heading(console, "what was run")
    table = plain_table(["", "before", "after"], fold=True)
    for place, before, after in settings:
        table.add_row(place, _cut(before), _cut(after))
    show_table(console, table)
    console.print()


def _show_cells(console: Console, cells: Sequence[CellChange]) -> None:
    heading(console, "posteriors")
    titles = ["claims", "changed", "flipped", "max |Δp|", "mean |Δp|", "failed", "status"]
    table = plain_table(["cell"], titles, fold=True)
    for cell in cells:
        lost = cell.n_only_before + cell.n_only_after
        # Claims that only one run judged stand in brackets, as they are part of no difference.
        others = f" (-{cell.n_only_before} +{cell.n_only_after})" if lost else ""
        table.add_row(
            _cell_title(cell.key, _varying(cells)),
            f"{cell.n_claims:,}{others}",
            f"{cell.n_changed:,}",
            f"{cell.n_flipped:,}",
            small(cell.max_difference),
            small(cell.mean_difference),
            f"{cell.failed_before} → {cell.failed_after}",
            f"{cell.n_status:,}",
        )
    show_table(console, table)
    console.print()


def _show_measures(console: Console, cells: Sequence[CellChange]) -> None:
    if not cells:
        return
    heading(console, "measures, with 95% intervals of the difference over responses")
    table = plain_table()
    table.add_column("cell", overflow="fold")
    table.add_column("measure", no_wrap=True)
    for title in ("before", "after", "difference", "interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell in cells:
        for one in cell.measures:
            table.add_row(
                _cell_title(cell.key, _varying(cells)),
                one.measure.replace("_", " "),
                number(one.before),
                number(one.after),
                f"{one.difference:+z.4f}",
                interval(one.lower, one.upper, 4),
            )
    show_table(console, table)
    console.print()


def _cell_title(key: Mapping[str, Any], columns: Collection[str]) -> str:
    """The name of a cell by some of its columns."""
    return cell_words(key, [name for name in CELL if name in columns])


def _varying(cells: Sequence[CellChange]) -> list[str]:
    """The columns in which cells differ, and always the backend."""
    return [
        name
        for name in CELL
        if name == "backend_label" or len({cell.key[name] for cell in cells}) > 1
    ]


def _grouped(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[Any, ...]]]:
    """The cells in groups: every combination of the values of each column."""
    groups = [{name: (cell[name],) for name in CELL} for cell in cells]
    # One column at a time: groups that agree in all others are merged, so that a full grid becomes
    # one line.
    for name in reversed(CELL):
        merged: dict[tuple[tuple[Any, ...], ...], dict[str, tuple[Any, ...]]] = {}
        for group in groups:
            rest = tuple(values for column, values in group.items() if column != name)
            so_far = merged.setdefault(rest, {**group, name: ()})
            so_far[name] += group[name]
        groups = list(merged.values())
    return groups


def _listed(values: Sequence[Any]) -> Any:
    """A single value as it is, several in braces, of many the first."""
    if len(values) == 1:
        return values[0]
    more = f", {len(values) - _MOST_VALUES:,} more" if len(values) > _MOST_VALUES else ""
    return f"{{{', '.join(map(str, values[:_MOST_VALUES]))}{more}}}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
