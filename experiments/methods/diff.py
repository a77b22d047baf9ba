"""What changed from one folder of results to another."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.findings.diff import difference
from experiments.findings.findings import Findings
from experiments.findings.table import Column, Table, columns_as, data_frame, text_columns
from experiments.findings.text import ABSENT, small
from experiments.settings import front_door
from experiments.settings.limits import DrawnSettings
from experiments.study.cell_names import CELL, cell_words
from factormodels.nouns import counted

if TYPE_CHECKING:
    from experiments.study.diff import RunDifference

Results = str | os.PathLike[str] | Findings
"""A folder of results, or what was found, in memory."""

_LONGEST = 60
_MOST_VALUES = 6


class DiffSettings(DrawnSettings):
    """How differences are estimated."""


@front_door
def diff(before: Results, after: Results, settings: DiffSettings) -> Findings:
    """Say what changed from one folder of results to another.

    Shows what differs in the study, the data and the versions. For every cell that two runs of a
    study have, it then shows how many posteriors changed and by how much, and how far each measure
    moved over the claims that both judged, with 95% intervals from the paired bootstrap over
    responses. For two runs of an analysis, or two folders that any command wrote with --out, it
    shows which values in their tables changed, including intervals.

    Examples::

        factormodels diff results/compare results/damped
        factormodels diff results/before results/after --out changes

    Args:
        before: Folder of results; in Python also what a function has found.
        after: Another folder of results; in Python also what a function has found.
        settings: how differences are estimated.

    Returns:
        What was asked (`settings`); of runs of a study `posteriors`, `measures` and every number
        (`numbers`); of tables `changes`, and `rows` without a counterpart.

    Raises:
        InputError: if a folder holds no results, they have nothing in common, or a file is damaged.
    """
    from experiments.study.diff import are_of_units, as_rows, compare_runs, tables_of
    from experiments.study.diff import setting_changes as settings_of_both

    first, second = _place(before), _place(after)
    if first is None or second is None:
        one, other = (
            each if isinstance(each, Findings) else tables_of(Path(each))
            for each in (before, after)
        )
        return difference(one, other)
    asked = Table(
        settings_of_both(first, second),
        columns_as('place "" | before | after', before=_cut, after=_cut),
        "what was run",
    )
    if are_of_units(first, second):
        compared = compare_runs(first, second, seed=settings.seed)
        tables, sentences = _of_units(compared)
        every = data_frame(as_rows(compared))
        shown = text_columns(*every.columns) or columns_as("difference")
        tables["numbers"] = Table(
            every.reindex(columns=[column.name for column in shown]), shown, "Every number"
        )
    else:
        found = difference(tables_of(first), tables_of(second))
        tables, sentences = dict(found.tables), list(found.sentences)
    kept = {"settings": asked, **tables}
    return Findings(
        source=f"{first} against {second}",
        sentences=tuple(sentences),
        tables={name: table for name, table in kept.items() if len(table) or name == "numbers"},
        unshown=("numbers",),
    )


def _place(results: Results) -> Path | None:
    """The folder of results, that of a run too; None of what is known in memory alone."""
    if isinstance(results, Findings):
        return results.folder if results.command == "run" and results.written else None
    return Path(results)


def _of_units(compared: RunDifference) -> tuple[dict[str, Table], list[str]]:
    """Posteriors and measures of the cells that changed; what one run alone has."""
    sentences = []
    for title, cells in (("before", compared.only_before), ("after", compared.only_after)):
        for group in grouped(cells):
            n_cells = math.prod(len(values) for values in group.values())
            name = _cell_title({column: _listed(values) for column, values in group.items()}, CELL)
            sentences.append(f"only {title}: {counted(n_cells, 'cell')}, {name}")
    changed = [cell for cell in compared.cells if not cell["same"]]
    varying = [
        name
        for name in CELL
        if name == "backend_label" or len({cell[name] for cell in changed}) > 1
    ]
    n_same = len(compared.cells) - len(changed)
    sentences.append(f"{counted(n_same, 'cell')} of {len(compared.cells):,} unchanged")
    measures = [
        {"cell": _cell_title(cell, varying), **each}
        for cell in changed
        for each in cell["measures"]
    ]
    return {
        "posteriors": Table(
            data_frame([_posteriors(cell, varying) for cell in changed]),
            (
                *columns_as("cell | claims> | n_changed:0 changed | n_flipped:0 flipped"),
                Column("max_difference", "max |Δp|", show=small, right=True),
                Column("mean_difference", "mean |Δp|", show=small, right=True),
                *columns_as("failed> | n_status:0 status"),
            ),
            "posteriors",
        ),
        "measures": Table(
            data_frame(measures),
            columns_as(
                "cell | measure | before:4 | after:4 | difference:4[]",
                measure=lambda name: str(name).replace("_", " "),
            ),
            "measures, with 95% intervals of the difference over responses",
        ),
    }, sentences


def _posteriors(cell: Mapping[str, Any], varying: Collection[str]) -> dict[str, Any]:
    lost = cell["n_only_before"] + cell["n_only_after"]
    # Claims that only one run judged stand in brackets, as they are part of no difference.
    others = f" (-{cell['n_only_before']} +{cell['n_only_after']})" if lost else ""
    numbers = ("n_changed", "n_flipped", "max_difference", "mean_difference")
    return {
        "cell": _cell_title(cell, varying),
        "claims": f"{cell['n_claims']:,}{others}",
        **{name: cell[name] for name in numbers},
        "failed": f"{cell['failed_before']} → {cell['failed_after']}",
        "n_status": cell["n_status"],
    }


def _cell_title(key: Mapping[str, Any], columns: Collection[str]) -> str:
    """The name of a cell by some of its columns."""
    return cell_words(key, [name for name in CELL if name in columns])


def grouped(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, tuple[Any, ...]]]:
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


def _cut(text: Any) -> str:
    shown = ABSENT if text is None else str(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
