"""The long frame of a study, a cell at a time: what one cell judged, as arrays, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibration.cells import CellClaims
from experiments.columns.cell_names import CELL
from experiments.study.config import Study
from experiments.study.rows import UNANSWERED, CellRows, RowsFile
from factormodels.io.tables.long_columns import (
    joined,
    pieces,
    piecewise,
    stored_column,
    texts_differ,
)

if TYPE_CHECKING:
    import pandas as pd

    from experiments.study.data import StudyData


@dataclass(frozen=True, eq=False)
class Judgements(CellClaims):
    """The rows of one cell: its claims, and how inference ended.

    Of a million responses there may be some millions of rows: long columns are in temporary files,
    and ids become objects of Python only where they are asked for.

    Attributes:
        status: object (n_responses,), how inference ended.
        seconds: float64 (n_responses,), NaN where it failed.
        kept_by: which selections may keep an atom, each as rows have it.
        kept: int64 (n,), the position in `kept_by` of every row's.
        counts: bool (n,), whether the atom is in the selection that is looked at.
    """

    status: NDArray[Any]
    seconds: NDArray[np.float64]
    kept_by: tuple[str, ...]
    kept: NDArray[np.int64]
    counts: NDArray[Any]

    def selected(self, selection: str | None) -> Judgements:
        """The same rows, NaN in place of the posteriors of atoms that a selection leaves out.

        Args:
            selection: its name; None keeps every atom.
        """
        if selection is None:
            return self
        keeps = np.array([selection in names.split() for names in self.kept_by], dtype=np.bool_)
        counts = keeps[self.kept]
        p = piecewise(lambda counts, p: np.where(counts, p, np.nan), counts, self.p)
        return replace(self, p=p, counts=counts)

    @property
    def n_missing(self) -> int:
        """Number of claims without a posterior in responses that did not fail."""
        failed = np.isin(self.status, UNANSWERED)[self.index]
        claims = self.atoms.is_valid().to_numpy()
        return int((claims & self.counts & ~self.judged & ~failed).sum())


def long_frame(rows: pd.DataFrame, data: Iterable[StudyData]) -> pd.DataFrame:
    """A row per claim and cell, as `calibration.score` takes it, with what the claim says.

    Columns: response, claim, text, p, label; those of a cell, by which it is scored; selections
    and status.

    Args:
        rows: tidy rows.
        data: the datasets that they are of.
    """
    import pandas as pd

    known = pd.DataFrame(
        [
            (dataset.name, graph.id, *claim)
            for dataset in data
            for graph in dataset.graphs
            for claim in zip(graph.atom_ids, graph.column("atoms", "text"), strict=True)
        ],
        columns=["dataset", "response", "claim", "text"],
        dtype="string",
    )
    claims = rows[rows["atom"].notna()].rename(columns={"atom": "claim"})
    with_texts = claims.merge(known, how="left", on=["dataset", "response", "claim"])
    return with_texts[["response", "claim", "text", "p", "label", *CELL, "selections", "status"]]


def cross_fitted_folds(study: Study, judgements: Judgements) -> dict[str, int] | None:
    """Fold of every response of a cell, -1 without a label; None if its priors were not learned.

    Responses are dealt out as `experiments.study.learned_priors` does.
    """
    from calibration.folds import response_folds

    title = judgements.named["prior"]
    learned = next(
        (setting.learned for setting in study.prior_settings if setting.title == title), None
    )
    if learned is None or learned.judge:
        return None
    labelled = np.unique(judgements.index[~np.isnan(judgements.label)])
    names = [judgements.responses[at] for at in labelled.tolist()]
    folds = response_folds(names, learned.folds, study.seed) if names else np.zeros(0, np.int64)
    return dict.fromkeys(judgements.responses, -1) | dict(zip(names, folds.tolist(), strict=True))


def read_judgements(rows: RowsFile, cell: CellRows) -> Judgements:
    """The judgements of one cell, read from its rows; those of a small file are kept."""
    judgements: Judgements = rows.kept(("judgements", cell.key), partial(_read, rows, cell))
    return judgements


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
        named=cell.named(),
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
        counts = np.cumsum(begins[piece], dtype=np.int64) + last
        last = counts[-1]
        yield counts


def _codes(part: pa.Array, names: dict[str, int]) -> NDArray[np.int64]:
    """Each text's number in `names`, where new ones are added."""
    encoded = part.dictionary_encode()
    numbers = [names.setdefault(name, len(names)) for name in encoded.dictionary.to_pylist()]
    codes: NDArray[np.int64] = np.array(numbers, dtype=np.int64)[encoded.indices.to_numpy()]
    return codes


def _objects(encoded: Any) -> NDArray[Any]:
    """A dictionary-encoded column as Python objects (n,), each text once in memory."""
    # One more entry than the dictionary has: the last one, which -1 means, stands for null.
    texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    objects: NDArray[Any] = texts[encoded.indices.fill_null(-1).to_numpy()]
    return objects


def _floats(parts: Iterable[pa.Array]) -> NDArray[np.float64]:
    """A column as float64 (n,), null as NaN; read-only, so that nobody need copy it."""
    column = joined(
        np.asarray(part.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
        for part in parts
    )
    column.flags.writeable = False
    return column
