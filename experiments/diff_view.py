"""What the terminal shows of the difference between two runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.console import counted, heading, interval, number, plain_table, show_table, small
from experiments.diff import CellChange, Difference, cell_title
from experiments.rows import CELL

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 60
_MOST_VALUES = 6


def show(console: Console, difference: Difference) -> None:
    """Print what changed: settings, cells, posteriors, measures."""
    if difference.settings:
        heading(console, "what was run")
        table = plain_table()
        for title in ("", "before", "after"):
            table.add_column(title, overflow="fold")
        for place, before, after in difference.settings:
            table.add_row(place, _cut(before), _cut(after))
        show_table(console, table)
        console.print()
    for title, cells in (("before", difference.only_before), ("after", difference.only_after)):
        for one in _grouped(cells):
            n_cells = math.prod(len(values) for values in one.values())
            name = cell_title({column: _listed(values) for column, values in one.items()})
            console.print(f"only {title}: {counted(n_cells, 'cell')}, {name}", soft_wrap=True)
    if difference.only_before or difference.only_after:
        console.print()
    changed = [cell for cell in difference.cells if not cell.same]
    if changed:
        _show_cells(console, changed)
        _show_measures(console, [cell for cell in changed if cell.measures])
    unchanged = len(difference.cells) - len(changed)
    console.print(f"{counted(unchanged, 'cell')} of {len(difference.cells):,} unchanged")


def _show_cells(console: Console, cells: Sequence[CellChange]) -> None:
    heading(console, "posteriors")
    table = plain_table()
    table.add_column("cell", overflow="fold")
    for title in ("claims", "changed", "flipped", "max |Δp|", "mean |Δp|", "failed", "status"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell in cells:
        lost = cell.n_only_before + cell.n_only_after
        others = f" (-{cell.n_only_before} +{cell.n_only_after})" if lost else ""
        table.add_row(
            cell_title(cell.key, _varying(cells)),
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
                cell_title(cell.key, _varying(cells)),
                one.measure.replace("_", " "),
                number(one.before),
                number(one.after),
                f"{one.difference:+z.4f}",
                interval(one.lower, one.upper, 4),
            )
    show_table(console, table)
    console.print()


def _varying(cells: Sequence[CellChange]) -> list[str]:
    """Return the columns in which cells differ, and always the backend."""
    return [
        name
        for name in CELL
        if name == "backend_label" or len({cell.key[name] for cell in cells}) > 1
    ]


def _grouped(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[Any, ...]]]:
    """Return the cells in groups: every combination of the values of each column."""
    groups = [{name: (cell[name],) for name in CELL} for cell in cells]
    for name in reversed(CELL):
        merged: dict[tuple[tuple[Any, ...], ...], dict[str, tuple[Any, ...]]] = {}
        for group in groups:
            rest = tuple(values for column, values in group.items() if column != name)
            so_far = merged.setdefault(rest, {**group, name: ()})
            so_far[name] += group[name]
        groups = list(merged.values())
    return groups


def _listed(values: Sequence[Any]) -> Any:
    """Return a single value as it is, several in braces, of many the first."""
    if len(values) == 1:
        return values[0]
    more = f", {len(values) - _MOST_VALUES:,} more" if len(values) > _MOST_VALUES else ""
    return f"{{{', '.join(map(str, values[:_MOST_VALUES]))}{more}}}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
