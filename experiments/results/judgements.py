"""What one cell of a study judged, as arrays: read from the tidy rows, a cell at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.results.rows import UNANSWERED, CellRows, RowsFile


@dataclass(frozen=True, eq=False)
class Judgements:
    """The rows of one cell.

    Of a million responses there may be some millions of rows: ids are kept as Arrow has them, and
    become objects of Python only where they are asked for.

    Attributes:
        ids: texts (n_responses,), ids of the responses, in order.
        index: int64 (n_rows,), the position in `ids` of every row's.
        atoms: texts (n_rows,) as a dictionary, ids of the atoms; null in the row of a response
            without atoms.
        p: float64 (n_rows,), posteriors; NaN where there is none.
        label: float64 (n_rows,), human labels 1 and 0; NaN where there is none.
        status: object (n_responses,), how inference ended.
        seconds: float64 (n_responses,), NaN where it failed.
        kept_by: which selections may keep an atom, each as rows have it.
        kept: int64 (n_rows,), the position in `kept_by` of every row's.
        counts: bool (n_rows,), whether the atom is in the selection that is looked at.
    """

    ids: pa.StringArray
    index: NDArray[np.int64]
    atoms: pa.DictionaryArray
    p: NDArray[np.float64]
    label: NDArray[np.float64]
    status: NDArray[Any]
    seconds: NDArray[np.float64]
    kept_by: tuple[str, ...]
    kept: NDArray[np.int64]
    counts: NDArray[np.bool_]

    def selected(self, selection: str) -> Judgements:
        """The same rows, NaN in place of the posteriors of atoms that a selection leaves out."""
        keeps = np.array([selection in names.split() for names in self.kept_by], dtype=np.bool_)
        counts = keeps[self.kept]
        return replace(self, p=np.where(counts, self.p, np.nan), counts=counts)

    @cached_property
    def responses(self) -> tuple[str, ...]:
        """The ids of the responses, in order."""
        return tuple(self.ids.to_pylist())

    @property
    def claims(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """(p, label, index) of the rows with a posterior; where all have one, nothing is copied."""
        judged = self.judged
        if judged.all():
            return self.p, self.label, self.index
        return self.p[judged], self.label[judged], self.index[judged]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether there is a posterior, bool (n_rows,)."""
        return ~np.isnan(self.p)

    @property
    def n_missing(self) -> int:
        """Number of claims without a posterior in responses that did not fail."""
        failed = np.isin(self.status, UNANSWERED)[self.index]
        claims = self.atoms.is_valid().to_numpy(zero_copy_only=False)
        return int((claims & self.counts & ~self.judged & ~failed).sum())

    def same_rows(self, other: Judgements) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that two cells of one dataset have in common: int64 (n,), positions in each.

        Rows are in the order of the data, so that of the responses in common they are the same;
        where the data differ (two runs), atoms are matched by their ids.
        """
        if self.ids.equals(other.ids) and self.atoms.equals(other.atoms):
            # The usual case, two cells of one run, needs no matching.
            everything = np.arange(len(self.p))
            return everything, everything
        place = {
            (self.responses[response], atom): row
            for row, (response, atom) in enumerate(
                zip(self.index.tolist(), self.atoms.to_pylist(), strict=True)
            )
        }
        pairs = [
            (place[key], row)
            for row, (response, atom) in enumerate(
                zip(other.index.tolist(), other.atoms.to_pylist(), strict=True)
            )
            if (key := (other.responses[response], atom)) in place
        ]
        # The reshape gives two columns even without any pair.
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


def read_judgements(rows: RowsFile, cell: CellRows) -> Judgements:
    """The judgements of one cell, read from its rows; those of a small file are kept."""
    found: Judgements = rows.kept(("judgements", cell.key), partial(_read, rows, cell))
    return found


def _read(rows: RowsFile, cell: CellRows) -> Judgements:
    def column(name: str) -> Any:
        # One after another: of a large cell no two are in memory as they are in the file.
        found = rows.read(cell, [name])[name].combine_chunks()
        # Arrow keeps what it was lent for the next reading, which of a large file is a lot.
        pa.default_memory_pool().release_unused()
        return found

    # The dictionary lists ids by first appearance, which is the order of the data.
    response = column("response").dictionary_encode()
    index = response.indices.cast("int64").to_numpy()
    ids = response.dictionary
    del response
    # What is the same for a whole response is taken from its first row.
    first = pa.array(_firsts(index))
    selections = column("selections").fill_null("").dictionary_encode()
    kept = np.asarray(selections.indices.to_numpy(), dtype=np.int64)
    if len(selections.dictionary) == 1:
        # One entry that stands for all.
        kept = np.broadcast_to(np.zeros(1, dtype=np.int64), len(index))
    return Judgements(
        ids=ids,
        index=index,
        atoms=column("atom").dictionary_encode(),
        p=_floats(column("p")),
        label=_floats(column("label").cast("uint8")),
        status=_objects(column("status").take(first).dictionary_encode()),
        seconds=_floats(column("seconds").take(first)),
        kept_by=tuple(selections.dictionary.to_pylist()),
        kept=kept,
        counts=np.broadcast_to(np.ones(1, dtype=np.bool_), len(index)),
    )


def _firsts(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each number of `index`, which are those from 0, comes first."""
    steps = np.diff(index, prepend=-1)
    # The usual case: the rows of a response stand together, in the order of the data.
    if steps.min(initial=0) >= 0:
        return np.flatnonzero(steps)
    _, found = np.unique(index, return_index=True)
    return found


def _objects(encoded: Any) -> NDArray[Any]:
    """A dictionary-encoded column as Python objects (n,), each text once in memory."""
    # One more entry than the dictionary has: the last one, which -1 means, stands for null.
    texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    found: NDArray[Any] = texts[encoded.indices.fill_null(-1).to_numpy()]
    return found


def _floats(column: Any) -> NDArray[np.float64]:
    """A column as float64 (n,), null as NaN; read-only, so that nobody need copy it."""
    found = np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
    found.flags.writeable = False
    return found
