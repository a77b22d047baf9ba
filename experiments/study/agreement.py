"""Which cells of a study gave the same answer: cells whose posteriors agree, as one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.scores.registry import DEFAULT_MEASURES
from experiments.findings.table import Column, Table
from experiments.findings.text import duration
from experiments.study import study_table
from experiments.study.cell_names import CELL, NO_GRAPH, cell_words
from experiments.study.diagrams import SAME_CURVE
from experiments.study.judgements import read_judgements
from experiments.study.rows import RowsFile
from factormodels.io.long_columns import piecewise

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NAMED = (
    "variant", "relation_model", "encoding", "prior", "strength", "backend_label", "seed",
)  # fmt: skip
"""The columns that tell the cells of one dataset apart, in the order in which a name has them."""


_SHORT = ("precision", "brier", "log_loss", "accuracy")
"""Measures of the short table; one that a study adds to the usual ones is there too."""


_APART = Column("apart", "agree to", "Agree to", show=study_table.difference)

_NOTE = (
    "Cells whose posteriors never differ by more than 0.005 are one row, with the numbers of the "
    "first; agree to: the largest difference of two of its posteriors."
)


@dataclass(frozen=True)
class AgreeingCells:
    """Cells of one dataset (and selection) whose posteriors agree.

    Attributes:
        dataset: the dataset.
        selection: the selection of claims; empty where there are none.
        rows: positions of the cells in the summary, in its order.
        name: what the cells are called together, such as "FR2 = FR3, exact = lbp".
        apart: the largest difference between two of their posteriors of one claim; NaN for one
            cell alone, and for cells without any posterior.
        answered: whether they have posteriors; those without any are together too, and agree in
            nothing.
    """

    dataset: str
    selection: str
    rows: tuple[int, ...]
    name: str
    apart: float
    answered: bool = True


@dataclass(frozen=True)
class _Range:
    """Least and largest posterior of every claim, over cells that agree."""

    rows: tuple[int, ...]
    ids: pa.ChunkedArray
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    @property
    def apart(self) -> float:
        return _widest(self.lowest, self.highest)

    @property
    def answered(self) -> bool:
        """Whether there is any posterior."""
        return not np.isnan(self.lowest).all()


def agreeing_cells(rows: RowsFile, cells: pd.DataFrame) -> list[AgreeingCells]:
    """The cells of a study, those together whose posteriors never differ by more than 0.005.

    Two differ also where one has no posterior of a claim and the other has. Datasets in which
    cells differ come first, the one in which they differ most at the head.

    Args:
        rows: the tidy rows.
        cells: the summary, one row per cell, or per cell and selection.
    """
    by_key = {cell.key: cell for cell in rows.cells()}
    places: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    told = [name for name in (*CELL, "selection") if name in cells]
    for place, record in enumerate(cells[told].to_dict("records")):
        key = tuple(record[name] for name in CELL)
        places.setdefault(key, []).append((place, str(record.get("selection", ""))))
    ranges: dict[tuple[str, str], list[_Range]] = {}
    for key, own in places.items():
        judgements = read_judgements(rows, by_key[key])
        for place, selection in own:
            p = (judgements.selected(selection) if selection else judgements).p
            _join(ranges.setdefault((key[0], selection), []), place, judgements.ids, p)
    spread = {where: _spread(found) for where, found in ranges.items()}
    most = {
        dataset: max(value for (name, _), value in spread.items() if name == dataset)
        for dataset, _ in spread
    }
    # Sorting keeps the order of the study among equals.
    order = sorted(ranges, key=lambda where: -most[where[0]])
    varying = [
        name
        for name in _NAMED
        if cells.loc[cells["variant"] != NO_GRAPH, name].nunique() > 1 or name == "backend_label"
    ]
    named = study_table.with_absent_named(cells)[list(CELL)].to_dict("records")
    return [
        AgreeingCells(
            dataset,
            selection,
            one.rows,
            _name([named[row] for row in one.rows], varying),
            np.nan if len(one.rows) == 1 or not one.answered else one.apart,
            one.answered,
        )
        for dataset, selection in order
        for one in ranges[dataset, selection]
    ]


def _join(found: list[_Range], row: int, ids: pa.ChunkedArray, p: NDArray[np.float64]) -> None:
    """Take a cell into the first range that it leaves narrow enough, or open one for it."""
    for position, one in enumerate(found):
        if not one.ids.equals(ids) or not np.array_equal(np.isnan(p), np.isnan(one.lowest)):
            continue
        lowest = piecewise(np.minimum, one.lowest, p)
        highest = piecewise(np.maximum, one.highest, p)
        wider = replace(one, rows=(*one.rows, row), lowest=lowest, highest=highest)
        if wider.apart <= SAME_CURVE:
            found[position] = wider
            return
    found.append(_Range((row,), ids, p, p))


def _spread(found: Sequence[_Range]) -> float:
    """The largest difference of two cells' posteriors of one claim; 0 where all agree."""
    if len(found) == 1:
        return 0.0
    same = [one for one in found if one.ids.equals(found[0].ids)]
    lowest = reduce(partial(piecewise, np.fmin), [one.lowest for one in same])
    highest = reduce(partial(piecewise, np.fmax), [one.highest for one in same])
    return _widest(lowest, highest)


def _widest(lowest: NDArray[np.float64], highest: NDArray[np.float64]) -> float:
    """The largest difference, 0 without any."""
    return float(np.fmax.reduce(piecewise(np.subtract, highest, lowest), initial=0.0))


def _name(cells: Sequence[dict[Any, Any]], varying: Sequence[str]) -> str:
    """Cells by name: as few blocks as are found in which every combination of values occurs."""
    blocks = [{name: [cell[name]] for name in varying} for cell in cells]
    for name in reversed(varying):
        merged: list[dict[str, list[Any]]] = []
        for block in blocks:
            rest = {other: values for other, values in block.items() if other != name}
            for one in merged:
                if rest == {other: one[other] for other in rest}:
                    one[name] = [*one[name], *block[name]]
                    break
            else:
                merged.append(block)
        blocks = merged
    return "; ".join(", ".join(filter(None, _parts(block))) for block in blocks)


def _parts(block: dict[str, list[Any]]) -> list[str]:
    return [
        " = ".join(filter(None, (cell_words({name: value}, [name]) for value in values)))
        if len(values) == 1
        # Beside other values, what otherwise goes without saying is said.
        else " = ".join(
            f"{value:g}" if isinstance(value, float) else str(value) for value in values
        )
        for name, values in block.items()
    ]


def short_table(
    cells: pd.DataFrame,
    groups: Sequence[AgreeingCells],
    title: str,
    measures: Iterable[str] = DEFAULT_MEASURES,
    *,
    times: bool = False,
) -> Table:
    """The summary with cells whose posteriors agree as one row.

    Args:
        cells: the summary.
        groups: its cells by whether they agree (`experiments.study.agreement`).
        title: what the table is of.
        measures: names of the measures that the study shows.
        times: whether it shows how long computation took, in place of intervals: for a terminal.
    """
    import pandas as pd

    wanted = [name for name in measures if name in _SHORT or name not in DEFAULT_MEASURES]
    by_dataset = dict(list(cells.groupby("dataset", sort=False)))
    records: list[dict[str, Any]] = []
    for group in groups:
        own = cells.iloc[list(group.rows)]
        size = study_table.size_of(by_dataset[group.dataset])
        # Of cells that agree, the one that the study names first.
        first: dict[str, Any] = {str(name): value for name, value in own.iloc[0].items()}
        records.append(
            first
            | {
                "cells": _title(group),
                "n_cells": len(own),
                "apart": group.apart,
                # From how far cells are from exact, not from how far they are from each other.
                "max_difference": own["max_difference"].max(),
                **{name: own[name].sum() for name in ("n_not_converged", "n_missing", "n_failed")},
                "block": f"{group.dataset}: {size}",
                **{str(name): own[name].any() for name in own if str(name).endswith("_best")},
            }
        )
    frame = pd.DataFrame(records)
    troubled = tuple(
        column
        for column in (study_table.AGREEMENT[1], *study_table.TROUBLES)
        if not frame.empty and frame[column.name].any()
    )
    shown = [column for column in study_table.chosen(wanted) if frame[column.name].notna().any()]
    columns = (
        Column("cells", "cells that agree", "Cells that agree"),
        *(study_table.set_column(column, frame, True) for column in shown),
        *(replace(column, right=True) for column in (_APART, study_table.AGREEMENT[0], *troubled)),
    )
    # Times differ from run to run, and what is kept must not.
    frame = frame.drop(
        columns=[column.name for column in study_table.TIMES if column.name in frame]
    )
    if times:
        frame["times"] = [_times(cells, group) for group in groups]
        bare = tuple(replace(column, lower="", upper="") for column in columns)
        columns = (*bare, Column("times", "per resp.", right=True))
    intervals = any(column.interval for column in columns)
    note = "" if times else " ".join(filter(None, [_NOTE, study_table.NOTE * intervals]))
    return Table(frame, columns, title, "block", note)


def _title(group: AgreeingCells) -> str:
    """What a row is called; cells that have nothing to agree in are said to have nothing."""
    title = ", ".join(filter(None, [group.name, group.selection]))
    return title if group.answered else f"{title}: no posterior"


def _times(cells: pd.DataFrame, group: AgreeingCells) -> str:
    """The median times per response of the fastest and the slowest of cells that agree."""
    seconds = cells["seconds_median"].iloc[list(group.rows)]
    least, most = duration(seconds.min()), duration(seconds.max())
    if least == most:
        return least
    # One unit is enough for both, and leaves its room to the names.
    return f"{least.removesuffix(most[most.rindex(' ') :])}–{most}"
