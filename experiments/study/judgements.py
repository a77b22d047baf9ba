"""What one cell of a study judged, as arrays: read from the tidy rows, a cell at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.study.config import Study
from experiments.study.rows import UNANSWERED, CellRows, RowsFile
from factormodels.io.long_columns import joined, pieces, piecewise, stored_column, texts_differ


@dataclass(frozen=True, eq=False)
class Judgements:
    """The rows of one cell.

    Of a million responses there may be some millions of rows: long columns are in temporary files,
    and ids become objects of Python only where they are asked for.

    Attributes:
        ids: texts (n_responses,), ids of the responses, in order.
        index: int64 (n_rows,), the position in `ids` of every row's.
        atoms: texts (n_rows,), ids of the atoms; null in the row of a response without atoms.
        p: float64 (n_rows,), posteriors; NaN where there is none.
        label: float64 (n_rows,), human labels 1 and 0; NaN where there is none.
        status: object (n_responses,), how inference ended.
        seconds: float64 (n_responses,), NaN where it failed.
        kept_by: which selections may keep an atom, each as rows have it.
        kept: int64 (n_rows,), the position in `kept_by` of every row's.
        counts: bool (n_rows,), whether the atom is in the selection that is looked at.
    """

    ids: pa.ChunkedArray
    index: NDArray[np.int64]
    atoms: pa.ChunkedArray
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
        p = piecewise(lambda counts, p: np.where(counts, p, np.nan), counts, self.p)
        return replace(self, p=p, counts=counts)

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
        p, label, index = (
            piecewise(lambda column, kept: column[kept], column, judged)
            for column in (self.p, self.label, self.index)
        )
        return p, label, index

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Whether there is a posterior, bool (n_rows,)."""
        return ~np.isnan(self.p)

    @property
    def n_missing(self) -> int:
        """Number of claims without a posterior in responses that did not fail."""
        failed = np.isin(self.status, UNANSWERED)[self.index]
        claims = self.atoms.is_valid().to_numpy()
        return int((claims & self.counts & ~self.judged & ~failed).sum())

    def same_rows(self, other: Judgements) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that two cells of one dataset have in common: int64 (n,), positions in each.

        Rows are in the order of the data, so that of the responses in common they are the same;
        where the data differ (two runs), atoms are matched by their ids.
        """
        if self.ids.equals(other.ids) and self.atoms.equals(other.atoms):
            # The usual case, two cells of one run, needs no matching.
            everything = joined(np.arange(at.start, at.stop) for at in pieces(len(self.p)))
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


def cross_fitted_folds(
    study: Study, cell: CellRows, judgements: Judgements
) -> NDArray[np.int64] | None:
    """Fold of every response of a cell, (n_responses,), -1 without a label; None if not learned.

    Responses are dealt out as `experiments.study.learned_priors` does.
    """
    from calibration.folds import response_folds

    title = cell.named()["prior"]
    learned = next((one.learned for one in study.prior_settings if one.title == title), None)
    if learned is None or learned.judge:
        return None
    labelled = np.unique(judgements.index[~np.isnan(judgements.label)])
    fold = np.full(len(judgements.ids), -1)
    names = [judgements.responses[at] for at in labelled.tolist()]
    fold[labelled] = response_folds(names, learned.folds, study.seed)
    return fold


def read_judgements(rows: RowsFile, cell: CellRows) -> Judgements:
    """The judgements of one cell, read from its rows; those of a small file are kept."""
    found: Judgements = rows.kept(("judgements", cell.key), partial(_read, rows, cell))
    return found


def _read(rows: RowsFile, cell: CellRows) -> Judgements:
    def column(name: str) -> Iterator[pa.Array]:
        # A row group at a time: of a large cell no column is in memory as a whole.
        for group in cell.groups:
            yield rows.read(replace(cell, groups=(group,)), [name])[name].combine_chunks()
        # Arrow keeps what it was lent for the next reading.
        pa.default_memory_pool().release_unused()

    # The usual case: the rows of a response stand together, in the order of the data.
    begins = joined(_changes(column("response")))
    ids = stored_column(_filtered(column("response"), begins), pa.string())
    if texts_differ(ids):
        index = joined(_counted(begins))
    else:
        # The dictionary lists ids by first appearance, which is the order of the data.
        response = pa.chunked_array(column("response")).combine_chunks().dictionary_encode()
        index, ids = (
            response.indices.cast("int64").to_numpy(),
            pa.chunked_array([response.dictionary]),
        )
        begins = np.isin(np.arange(len(index)), np.unique(index, return_index=True)[1])
    names: dict[str, int] = {}
    kept = joined(_codes(part.fill_null(""), names) for part in column("selections"))
    if len(names) == 1:
        # One entry that stands for all.
        kept = np.broadcast_to(np.zeros(1, dtype=np.int64), len(index))
    # What is the same for a whole response is taken from its first row.
    status = [_objects(part.dictionary_encode()) for part in _filtered(column("status"), begins)]
    return Judgements(
        ids=ids,
        index=index,
        atoms=stored_column((part.cast(pa.string()) for part in column("atom")), pa.string()),
        p=_floats(column("p")),
        label=_floats(part.cast("uint8") for part in column("label")),
        status=np.concatenate(status),
        seconds=_floats(_filtered(column("seconds"), begins)),
        kept_by=tuple(names),
        kept=kept,
        counts=np.broadcast_to(np.ones(1, dtype=np.bool_), len(index)),
    )


def _changes(parts: Iterable[pa.Array]) -> Iterator[NDArray[np.bool_]]:
    """Yield which texts are not the one before, part by part."""
    before = pa.nulls(1, pa.string())
    for part in parts:
        texts = part.cast(pa.string())
        changed = pc.not_equal(texts, pa.concat_arrays([before, texts[:-1]]))
        yield changed.fill_null(True).to_numpy(zero_copy_only=False)
        before = texts[-1:]


def _filtered(parts: Iterable[pa.Array], kept: NDArray[np.bool_]) -> Iterator[pa.Array]:
    """Yield what is kept of every part; `kept`, (n,), is of all parts together."""
    start = 0
    for part in parts:
        yield part.filter(pa.array(kept[start : start + len(part)]))
        start += len(part)


def _counted(begins: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of rows that count up where one begins, from 0, piece by piece."""
    last = -1
    for piece in pieces(len(begins)):
        found = np.cumsum(begins[piece], dtype=np.int64) + last
        last = found[-1]
        yield found


def _codes(part: pa.Array, names: dict[str, int]) -> NDArray[np.int64]:
    """Each text's number in `names`, where new ones are added."""
    encoded = part.dictionary_encode()
    own = [names.setdefault(name, len(names)) for name in encoded.dictionary.to_pylist()]
    found: NDArray[np.int64] = np.array(own, dtype=np.int64)[encoded.indices.to_numpy()]
    return found


def _objects(encoded: Any) -> NDArray[Any]:
    """A dictionary-encoded column as Python objects (n,), each text once in memory."""
    # One more entry than the dictionary has: the last one, which -1 means, stands for null.
    texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    found: NDArray[Any] = texts[encoded.indices.fill_null(-1).to_numpy()]
    return found


def _floats(parts: Iterable[pa.Array]) -> NDArray[np.float64]:
    """A column as float64 (n,), null as NaN; read-only, so that nobody need copy it."""
    found = joined(
        np.asarray(part.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
        for part in parts
    )
    found.flags.writeable = False
    return found
