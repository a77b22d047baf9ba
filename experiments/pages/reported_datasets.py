"""Subject of a report: the study, data, rows and summary of a run, and the part to show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.columns.cell_names import RECORDED, UNANSWERED
from experiments.pages.report_settings import ReportSettings
from experiments.study.cells import NO_VIEW, GraphView, StudyCell
from experiments.study.config import OWN_PRIORS
from experiments.study.data import StudyData
from experiments.study.outputs import RunContents
from experiments.study.report.scores import REFERENCE
from experiments.study.rows import CellKey, CellRows, RowsFile
from factormodels.errors import InputError, nearest
from factormodels.fact_graph import FactGraph

WITHOUT_GRAPH = "no graph"
"""Name on pages for the view of assessors, which judge texts alone."""

MAX_CELLS = 60
"""Maximum number of cells of a dataset in the list of responses; the page states the number left
out."""

Step = Callable[[], None]
Watch = Callable[[int], AbstractContextManager[Step]]
"""(number of responses) -> a context whose function is called after each response."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Result of a cell for a response.

    Attributes:
        status: status of inference.
        p: float64 (n_atoms,), posteriors; NaN without a verdict of an assessor; empty if it failed.
        error: reason of a failure, or None.
    """

    status: str
    p: NDArray[np.float64]
    error: str | None = None


Place = tuple[int, int]
"""A cell of a dataset: (number of the view, number of the algorithm); an assessor, which has no
view, comes after the last one."""


@dataclass(frozen=True, eq=False)
class Part:
    """Dataset of a run as its report shows it.

    Attributes:
        data: the dataset.
        views: views of the graphs as (title, view); the view of assessors only if there is no
            other.
        algorithms: names of the algorithms in tables, with the seed if there are several seeds.
        assessors: numbers of the assessors.
        cells: position of each of its cells; `answers` may hold fewer.
        main: position of the cell that is shown first.
        responses: the responses that the page lists.
        answers: by id of the response and cell.
        selections: names of the selections in tables; empty if every atom counts.
        kept_by: the selections that keep each atom, by id of the response.
        remarks: remarks on selections, by id of the response.
    """

    data: StudyData
    views: tuple[tuple[str, GraphView], ...]
    algorithms: tuple[str, ...]
    assessors: frozenset[int]
    cells: dict[CellKey, Place]
    main: Place
    responses: tuple[FactGraph, ...]
    answers: dict[str, dict[Place, Answer]]
    selections: tuple[str, ...]
    kept_by: dict[str, list[tuple[str, ...]]]
    remarks: dict[str, tuple[str, ...]]

    @property
    def main_key(self) -> CellKey:
        """The cell that is shown first."""
        return next(key for key, cell in self.cells.items() if cell == self.main)

    @property
    def places(self) -> list[Place]:
        """The cells that are shown, in the order of views."""
        cells = {cell for answers in self.answers.values() for cell in answers}
        return sorted(cells | {self.main})

    def view(self, cell: Place) -> str:
        """The name of a cell's view."""
        return WITHOUT_GRAPH if cell[1] in self.assessors else self.views[cell[0]][0]

    def title(self, cell: Place) -> str:
        """The name of a cell."""
        algorithm = self.algorithms[cell[1]]
        return algorithm if cell[1] in self.assessors else f"{self.view(cell)} · {algorithm}"


def parts_of(subject: RunContents, shown: ReportSettings) -> list[Part]:
    """The datasets of a run that have rows, as their report shows them.

    One cell is in memory at a time.

    Args:
        subject: the run.
        shown: the responses to list, or the number of first responses of each dataset; by default,
            the number that the study sets.

    Raises:
        InputError: for an id that the run does not have.
    """
    chosen, count = shown.response, shown.first or subject.study.report.responses
    for name in chosen:
        present = [graph.id for data in subject.data for graph in data.graphs]
        if name not in present:
            near = nearest(name, present)
            hint = f"did you mean {near!r}?" if near else "check the id"
            raise InputError(f"the run has no response {name!r}; {hint}")
    # Rows identify a cell by its key only; the study has its view and algorithm.
    by_key: dict[CellKey, StudyCell] = {tuple(cell.key().values()): cell for cell in subject.cells}
    cells_with_rows = [cell for cell in subject.rows.cells() if cell.key in by_key]
    parts = []
    for data in subject.data:
        dataset_cells = [
            (rows, by_key[rows.key])
            for rows in cells_with_rows
            if rows.named()["dataset"] == data.name
        ]
        if not dataset_cells:
            continue
        graphs = [graph for graph in data.graphs if graph.id in chosen] if chosen else data.graphs
        limit = None if chosen else count
        parts.append(_part(subject, data, dataset_cells, tuple(graphs[:limit])))
    return parts


def _part(
    subject: RunContents,
    data: StudyData,
    cells: Sequence[tuple[CellRows, StudyCell]],
    responses: tuple[FactGraph, ...],
) -> Part:
    """Dataset with the results of its cells for the listed responses."""
    rows, selections = subject.rows, subject.study.selected
    inferred = list(dict.fromkeys(cell.view for _, cell in cells if cell.view != NO_VIEW))
    algorithms = list(dict.fromkeys(_algorithm(cell) for _, cell in cells))
    titles = [title for title, _ in algorithms]
    # The exact backend is shown first, or the first cell if it was not run.
    main = next((cell for _, cell in cells if cell.algorithm.name == REFERENCE), cells[0][1])
    # The cell that is shown first is also computed first, so that no limit leaves it out.
    ordered = sorted(cells, key=lambda cell: cell[1] is not main)
    answers: dict[str, dict[Place, Answer]] = {graph.id: {} for graph in responses}
    n_atoms = {graph.id: len(graph.atoms) for graph in responses}

    def place_of(cell: StudyCell) -> Place:
        # After the last view; see `Place`.
        view = len(inferred) if cell.algorithm.assessor else inferred.index(cell.view)
        return view, algorithms.index(_algorithm(cell))

    for located, cell in ordered[:MAX_CELLS]:
        for response, answer in _answers(rows, located, n_atoms):
            answers[response][place_of(cell)] = answer
    return Part(
        data=data,
        views=tuple((view_title(view), view) for view in inferred or [NO_VIEW]),
        algorithms=tuple(
            f"{title} seed {seed}" if titles.count(title) > 1 else title
            for title, seed in algorithms
        ),
        assessors=frozenset(place_of(cell)[1] for _, cell in cells if cell.algorithm.assessor),
        cells={located.key: place_of(cell) for located, cell in cells},
        main=place_of(main),
        responses=responses,
        answers=answers,
        selections=selections,
        kept_by=_kept_by(rows, [located for located, _ in cells], n_atoms) if selections else {},
        remarks={
            name: remark for (owner, name), remark in subject.remarks.items() if owner == data.name
        },
    )


def _algorithm(cell: StudyCell) -> tuple[str, int]:
    return cell.algorithm.title, cell.algorithm.seed


def view_title(view: GraphView) -> str:
    """Name of a view, which mentions the settings that do not come from the data."""
    if view == NO_VIEW:
        return WITHOUT_GRAPH
    parts = [view.variant]
    if view.relation_model != RECORDED:
        parts.append(view.relation_model)
    parts.append(view.encoding)
    if view.prior.title != OWN_PRIORS:
        parts.append(view.prior.title)
    if view.strength != 1.0:
        parts.append(f"strength {view.strength:g}")
    return " · ".join(parts)


def _answers(
    rows: RowsFile, cell: CellRows, n_atoms: dict[str, int]
) -> Iterator[tuple[str, Answer]]:
    """Yield (response, answer) of one cell, for the responses that are listed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ("response", "p", "status", "error")
    table = rows.read(cell, names)
    # Before anything becomes Python objects: a cell may have many more responses than are listed.
    table = table.filter(pc.is_in(table["response"], pa.array(list(n_atoms), pa.string())))
    records = zip(*(table[name].to_pylist() for name in names), strict=True)
    for response, group in itertools.groupby(records, key=lambda record: record[0]):
        _, values, statuses, errors = zip(*group, strict=True)
        failed = statuses[0] in UNANSWERED
        # A response without atoms has a row too.
        p = () if failed else values[: n_atoms[response]]
        yield response, Answer(statuses[0], np.array(p, dtype=np.float64), errors[0])


def _kept_by(
    rows: RowsFile, cells: Sequence[CellRows], n_atoms: dict[str, int]
) -> dict[str, list[tuple[str, ...]]]:
    """The selections that keep each atom of the responses that are listed."""
    kept: dict[str, list[tuple[str, ...]]] = {}
    for cell in cells:
        # In an incomplete run, possibly no cell has every response.
        if n_atoms.keys() <= kept.keys():
            break
        of_cell: dict[str, list[tuple[str, ...]]] = {}
        table = rows.read(cell, ("response", "selections"))
        columns = (table[name].to_pylist() for name in ("response", "selections"))
        for response, names in zip(*columns, strict=True):
            if response in n_atoms:
                of_cell.setdefault(response, []).append(tuple((names or "").split()))
        # The value of an earlier cell stays: selections are the same in every cell.
        kept = of_cell | kept
    return kept
