"""From the journal to the tidy rows: in the order of the study, whatever order units ended in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.results.rows import FAILED, SCHEMA
from experiments.run.selections import Selections
from experiments.run.units import decode, schema
from experiments.study.data import StudyData
from experiments.study.design import StudyCell
from factormodels.errors import InputError


@dataclass(frozen=True)
class Finished:
    """The finished units of a run, in the order of cells and responses.

    Attributes:
        table: their results, as `experiments.run.units.schema` has them.
        starts: int64 (n_cells + 1,); those of cell c are rows ``starts[c]`` to ``starts[c + 1]``.
    """

    table: pa.Table
    starts: NDArray[np.int64]

    @cached_property
    def responses(self) -> NDArray[np.int64]:
        """The position of every unit's response, int64 (n_units,)."""
        return np.asarray(self.table["response"].to_numpy(), dtype=np.int64)

    def of_cell(self, cell: int) -> slice:
        """Return the rows of a cell."""
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    def where(self, kept: NDArray[np.bool_]) -> Finished:
        """Return those of the units for which `kept`, (n_units,), holds."""
        before = np.concatenate([[0], np.cumsum(kept)])
        return Finished(self.table.filter(pa.array(kept)), before[self.starts])

    def statuses(self) -> dict[str, int]:
        """Return how many units ended in each way, by name."""
        counts = self.table["status"].value_counts().to_pylist()
        return dict(sorted((one["values"], one["counts"]) for one in counts))


def finished_units(records: Iterable[bytes], sizes: Sequence[int], place: object) -> Finished:
    """Return the finished units of a journal; of a unit that was done twice the later result.

    Args:
        records: the journal's records.
        sizes: number of responses of every cell's dataset.
        place: what errors call the journal.

    Raises:
        InputError: if a record is none of this study's.
    """
    try:
        batches = [decode(record) for record in records]
        table = pa.Table.from_batches(batches, schema()).combine_chunks()
    except pa.ArrowInvalid:
        raise InputError(f"{place}: a record cannot be read; start anew with --overwrite") from None
    cells = np.asarray(table["cell"].to_numpy(), dtype=np.int64)
    responses = np.asarray(table["response"].to_numpy(), dtype=np.int64)
    if len(cells) and (cells.max() >= len(sizes) or (responses >= np.asarray(sizes)[cells]).any()):
        raise InputError(f"{place}: it holds units of another study; start anew with --overwrite")
    order = np.lexsort((np.arange(len(cells)), responses, cells))
    same_as_next = (np.diff(cells[order]) == 0) & (np.diff(responses[order]) == 0)
    order = order[~np.append(same_as_next, False)[: len(order)]]
    starts = np.searchsorted(cells[order], np.arange(len(sizes) + 1))
    return Finished(table.take(pa.array(order)).combine_chunks(), starts.astype(np.int64))


def row_tables(
    study: str,
    data: Sequence[StudyData],
    cells: Sequence[StudyCell],
    finished: Finished,
    selections: Selections | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of each cell, those of the responses that are finished.

    Args:
        study: name of the study.
        data: its datasets.
        cells: its cells.
        finished: the finished units.
        selections: which atoms count; None: every one.
    """
    kept = selections or Selections()
    claims = {dataset.name: _Claims.of(dataset, kept.of_atoms(dataset)) for dataset in data}
    for number, cell in enumerate(cells):
        place = finished.of_cell(number)
        units = finished.table.slice(place.start, place.stop - place.start)
        if units.num_rows:
            yield _cell_rows(study, cell, claims[cell.dataset], units)


@dataclass(frozen=True)
class _Claims:
    """What the rows of a dataset have in common in all its cells, a row per atom.

    Attributes:
        n_atoms: int64 (n_responses,).
        starts: int64 (n_responses,), the first row of each; one without atoms has one row.
        columns: response, atom, label, annotation and selections.
    """

    n_atoms: NDArray[np.int64]
    starts: NDArray[np.int64]
    columns: dict[str, pa.Array]

    @staticmethod
    def of(dataset: StudyData, selections: Sequence[Sequence[str]]) -> _Claims:
        n_atoms = np.array([len(graph.atoms) for graph in dataset.graphs], dtype=np.int64)
        n_rows = np.maximum(n_atoms, 1)
        rows: list[tuple[Any, ...]] = []
        for graph, keeping in zip(dataset.graphs, selections, strict=True):
            rows += [
                (graph.id, atom.id, atom.label, atom.annotation, own)
                for atom, own in zip(graph.atoms, keeping, strict=True)
            ]
            if not graph.atoms:
                rows.append((graph.id, None, None, None, None))
        names = ("response", "atom", "label", "annotation", "selections")
        columns = {
            name: pa.array([row[position] for row in rows], SCHEMA.field(name).type)
            for position, name in enumerate(names)
        }
        return _Claims(n_atoms, np.cumsum(n_rows) - n_rows, columns)


def _cell_rows(study: str, cell: StudyCell, claims: _Claims, units: pa.Table) -> pa.Table:
    responses = np.asarray(units["response"].to_numpy(), dtype=np.int64)
    n_atoms = claims.n_atoms[responses]
    n_rows = np.maximum(n_atoms, 1)
    owner = np.repeat(np.arange(len(responses)), n_rows)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    rows = pa.array(claims.starts[responses][owner] + within)
    failed = np.asarray(units["status"].to_pylist(), dtype=object) == FAILED
    judged = ~(failed | (n_atoms == 0))[owner]
    p = np.zeros(len(owner))
    p[judged] = units["p"].combine_chunks().flatten().to_numpy()
    shared = {"study": study, **cell.key(), "backend": cell.algorithm.name}
    shared["setting"] = cell.algorithm.setting
    repeated = pa.array(owner)
    # A claim on which an assessor has no verdict is NaN there.
    columns: dict[str, Any] = {"p": pa.array(p, mask=~judged | np.isnan(p))}
    for name in SCHEMA.names:
        if name in shared:
            columns[name] = pa.repeat(pa.scalar(shared[name], SCHEMA.field(name).type), len(owner))
        elif name in claims.columns:
            columns[name] = claims.columns[name].take(rows)
        elif name != "p":
            columns[name] = units[name].combine_chunks().take(repeated)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
