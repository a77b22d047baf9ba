"""What a report is about: a run's study, data, rows and summary, and which part of it is shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments.config import Study
from experiments.config_parts import OWN_PRIORS
from experiments.design import Cell, View
from experiments.rows import FAILED, CellKey, CellRows, RowsFile
from experiments.study_data import StudyData
from experiments.summary import REFERENCE
from factormodels.errors import InputError, nearest
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 60
"""Cells of one dataset that pages of responses show; a page says if there are more."""

Step = Callable[[], None]
Watch = Callable[[int], AbstractContextManager[Step]]
"""(number of pages) -> a context with what is to be called after each page."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A run with its results.

    Attributes:
        study: the study.
        data: its datasets.
        cells: its cells.
        rows: its tidy rows.
        summary: its summary, one row per cell.
        tests: its significance tests.
        manifest: its manifest.
    """

    study: Study
    data: tuple[StudyData, ...]
    cells: tuple[Cell, ...]
    rows: RowsFile
    summary: pd.DataFrame
    tests: pd.DataFrame
    manifest: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Answer:
    """What one cell said of one response.

    Attributes:
        status: how inference ended.
        p: float64 (n_atoms,), posteriors; empty if it failed.
        error: why it failed, or None.
    """

    status: str
    p: NDArray[np.float64]
    error: str | None = None


Place = tuple[int, int]
"""A cell of a dataset: (number of the view, number of the algorithm)."""


@dataclass(frozen=True, eq=False)
class Part:
    """One dataset of a run as its report shows it.

    Attributes:
        data: the dataset.
        views: what is asked, as (title, view).
        algorithms: what tables call the algorithms, with the seed where there are several.
        cells: where each of its cells stands; `answers` may hold fewer.
        main: the cell that is shown first.
        responses: the responses that have a page, each with the name of its file.
        answers: by id of the response and cell.
    """

    data: StudyData
    views: tuple[tuple[str, View], ...]
    algorithms: tuple[str, ...]
    cells: dict[CellKey, Place]
    main: Place
    responses: tuple[tuple[FactGraph, str], ...]
    answers: dict[str, dict[Place, Answer]]

    @property
    def main_key(self) -> CellKey:
        """The cell that is shown first."""
        return next(key for key, place in self.cells.items() if place == self.main)

    @property
    def places(self) -> list[Place]:
        """The cells that are shown, in the order of views."""
        held = {place for answers in self.answers.values() for place in answers}
        return sorted(held | {self.main})

    def title(self, place: Place) -> str:
        """Return the name of a cell."""
        return f"{self.views[place[0]][0]} · {self.algorithms[place[1]]}"


def parts_of(subject: Subject, n_responses: int, chosen: Sequence[str] = ()) -> list[Part]:
    """Return the datasets of a run that have rows, as their report shows them.

    One cell is in memory at a time.

    Args:
        subject: the run.
        n_responses: how many responses of each dataset have a page, the first ones.
        chosen: ids of the responses that have a page in their place.

    Raises:
        InputError: for an id that the run does not have.
    """
    for name in chosen:
        present = [graph.id for data in subject.data for graph in data.graphs]
        if name not in present:
            near = nearest(name, present)
            hint = f"did you mean {near!r}?" if near else "check the id"
            raise InputError(f"the run has no response {name!r}; {hint}")
    by_key: dict[CellKey, Cell] = {tuple(cell.key().values()): cell for cell in subject.cells}
    held = [cell for cell in subject.rows.cells() if cell.key in by_key]
    numbers = itertools.count(1)
    parts = []
    for data in subject.data:
        own = [(rows, by_key[rows.key]) for rows in held if rows.named()["dataset"] == data.name]
        if not own:
            continue
        graphs = [one for one in data.graphs if one.id in chosen] if chosen else data.graphs
        limit = None if chosen else n_responses
        responses = tuple((one, f"response-{next(numbers):04}.html") for one in graphs[:limit])
        parts.append(_part(subject.rows, data, own, responses))
    return parts


def _part(
    rows: RowsFile,
    data: StudyData,
    cells: Sequence[tuple[CellRows, Cell]],
    responses: tuple[tuple[FactGraph, str], ...],
) -> Part:
    views = list(dict.fromkeys(cell.view for _, cell in cells))
    algorithms = list(dict.fromkeys(_algorithm(cell) for _, cell in cells))
    titles = [title for title, _ in algorithms]
    main = next((cell for _, cell in cells if cell.algorithm.name == REFERENCE), cells[0][1])
    # The one that is shown first comes first, so that no limit leaves it out.
    ordered = sorted(cells, key=lambda cell: cell[1] is not main)
    answers: dict[str, dict[Place, Answer]] = {graph.id: {} for graph, _ in responses}
    n_atoms = {graph.id: len(graph.atoms) for graph, _ in responses}

    def place(cell: Cell) -> Place:
        return views.index(cell.view), algorithms.index(_algorithm(cell))

    for located, cell in ordered[:MAX_CELLS]:
        for response, answer in _answers(rows, located, n_atoms):
            answers[response][place(cell)] = answer
    return Part(
        data=data,
        views=tuple((view_title(view), view) for view in views),
        algorithms=tuple(
            f"{title} seed {seed}" if titles.count(title) > 1 else title
            for title, seed in algorithms
        ),
        cells={located.key: place(cell) for located, cell in cells},
        main=place(main),
        responses=responses,
        answers=answers,
    )


def _algorithm(cell: Cell) -> tuple[str, int]:
    return cell.algorithm.title, cell.algorithm.seed


def view_title(view: View) -> str:
    """Return the name of a view: what it does not take from the data is said."""
    parts = [view.variant, view.encoding]
    if view.prior.title != OWN_PRIORS:
        parts.append(view.prior.title)
    if view.strength != 1.0:
        parts.append(f"strength {view.strength:g}")
    return " · ".join(parts)


def _answers(
    rows: RowsFile, cell: CellRows, n_atoms: dict[str, int]
) -> Iterator[tuple[str, Answer]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ("response", "p", "status", "error")
    table = rows.read(cell, names)
    table = table.filter(pc.is_in(table["response"], pa.array(list(n_atoms), pa.string())))
    records = zip(*(table[name].to_pylist() for name in names), strict=True)
    for response, group in itertools.groupby(records, key=lambda record: record[0]):
        _, values, statuses, errors = zip(*group, strict=True)
        failed = statuses[0] == FAILED
        # A response without atoms has a row too.
        p = () if failed else values[: n_atoms[response]]
        yield response, Answer(statuses[0], np.array(p, dtype=np.float64), errors[0])
