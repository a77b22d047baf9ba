"""The judgments of a cell as arrays, and the long frame of a study, from tidy rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibration.cells import CellClaims
from calibration.validation import Booleans
from experiments.columns.cell_names import CELL, UNANSWERED
from experiments.study.config import Study
from experiments.study.rows import CellRows, RowsFile
from factormodels.conventions import DEFAULT, Conventions
from factormodels.words import IRRELEVANT

if TYPE_CHECKING:
    import pandas as pd

    from experiments.study.data import StudyData


@dataclass(frozen=True, eq=False)
class Judgments(CellClaims):
    """The rows of a cell: its claims, and the status of inference.

    A million responses may have several million rows, so ids become Python objects only on request.

    Attributes:
        status: object (n_responses,), status of inference.
        seconds: float64 (n_responses,), NaN after a failure.
        kept_by: sets of selections that keep an atom, as in rows.
        kept: int64 (n,), index into `kept_by` for every row.
        counts: bool (n,), True if the current selection keeps the atom.
        irrelevant: bool (n,), True if the claim is labeled irrelevant.
    """

    status: NDArray[Any]
    seconds: NDArray[np.float64]
    kept_by: tuple[str, ...]
    kept: NDArray[np.int64]
    counts: Booleans
    irrelevant: Booleans

    def under(self, conventions: Conventions) -> Judgments:
        """The same rows with the conventions' treatment of irrelevant claims."""
        if conventions.irrelevant_claims == "left-out":
            counts = self.counts & ~self.irrelevant
            return replace(self, p=np.where(counts, self.p, np.nan), counts=counts)
        if conventions.irrelevant_claims == "false":
            return replace(self, label=np.where(self.irrelevant, 0.0, self.label))
        return self

    def selected(self, selection: str | None) -> Judgments:
        """The same rows, with NaN for posteriors of atoms that a selection leaves out.

        Args:
            selection: its name; None keeps every atom.
        """
        if selection is None:
            return self
        keeps = np.array([selection in names.split() for names in self.kept_by], dtype=np.bool_)
        counts = self.counts & keeps[self.kept]
        return replace(self, p=np.where(counts, self.p, np.nan), counts=counts)

    @property
    def n_missing(self) -> int:
        """Number of claims without a posterior in responses that did not fail."""
        failed = np.isin(self.status, UNANSWERED)[self.index]
        claims = self.atoms.is_valid().to_numpy()
        return int((claims & self.counts & ~self.judged & ~failed).sum())


def long_frame(rows: pd.DataFrame, data: Iterable[StudyData]) -> pd.DataFrame:
    """A row per claim and cell, as input of `calibration.score`, with the claim's text.

    Columns: response, claim, text, p, label; the columns of the cell; selections and status.

    Args:
        rows: tidy rows.
        data: the datasets of the rows.
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


def cross_fitted_folds(study: Study, judgments: Judgments) -> dict[str, int] | None:
    """Fold of every response of a cell, -1 without a label; None if its priors were not learned.

    The folds are those of `experiments.study.prepared.learned_priors`.
    """
    from calibration.folds import response_folds

    title = judgments.named["prior"]
    learned = next(
        (setting.learned for setting in study.prior_settings if setting.title == title), None
    )
    if learned is None or learned.judge:
        return None
    labeled = np.unique(judgments.index[~np.isnan(judgments.label)])
    names = [judgments.responses[at] for at in labeled.tolist()]
    folds = response_folds(names, learned.folds, study.seed) if names else np.zeros(0, np.int64)
    return dict.fromkeys(judgments.responses, -1) | dict(zip(names, folds.tolist(), strict=True))


def read_judgments(rows: RowsFile, cell: CellRows, conventions: Conventions = DEFAULT) -> Judgments:
    """Read the judgments of a cell; those of a small file are cached.

    Args:
        rows: the tidy rows.
        cell: the cell.
        conventions: conventions for irrelevant claims.
    """
    judgments: Judgments = rows.kept(("judgments", cell.key), partial(_read, rows, cell))
    return judgments.under(conventions)


_OF_JUDGMENTS = (
    *("response", "atom", "annotation", "status", "selections"),
    *("p", "label", "seconds"),
)


def _read(rows: RowsFile, cell: CellRows) -> Judgments:
    # Together, unless each must leave memory before the next is read.
    together = rows.read(cell, _OF_JUDGMENTS) if rows.is_small else None

    def column(name: str) -> pa.ChunkedArray:
        return (rows.read(cell, [name]) if together is None else together)[name]

    # The usual case: rows of a response are adjacent, in the order of the data.
    response = column("response").cast(pa.string())
    begins = _changes(response)
    ids = response.filter(pa.array(begins))
    if pc.count_distinct(ids).as_py() == len(ids):
        index = np.cumsum(begins, dtype=np.int64) - 1
    else:
        # The dictionary lists ids by first appearance, which is the order of the data.
        encoded = response.combine_chunks().dictionary_encode()
        index, ids = (
            encoded.indices.cast("int64").to_numpy(),
            pa.chunked_array([encoded.dictionary]),
        )
        begins = np.isin(np.arange(len(index)), np.unique(index, return_index=True)[1])
    del response
    # Take values of a response from its first row.
    first = pa.array(begins)
    annotation = column("annotation").fill_null("").combine_chunks().dictionary_encode()
    status = column("status").filter(first).combine_chunks().dictionary_encode()
    selections = column("selections").fill_null("").combine_chunks().dictionary_encode()
    return Judgments(
        named=cell.named(),
        ids=ids,
        index=index,
        atoms=column("atom").cast(pa.string()),
        p=_floats(column("p")),
        label=_floats(column("label").cast("uint8")),
        status=np.array(status.dictionary.to_pylist(), dtype=object)[status.indices.to_numpy()],
        seconds=_floats(column("seconds").filter(first)),
        kept_by=tuple(selections.dictionary.to_pylist()),
        kept=selections.indices.to_numpy().astype(np.int64),
        counts=np.ones(len(index), dtype=np.bool_),
        irrelevant=np.array(
            [word.casefold() in IRRELEVANT for word in annotation.dictionary.to_pylist()],
            dtype=np.bool_,
        )[annotation.indices.to_numpy()],
    )


def _changes(texts: pa.ChunkedArray) -> NDArray[np.bool_]:
    """True where a text differs from the previous one, bool (n,)."""
    changed = np.ones(len(texts), dtype=np.bool_)
    differ = pc.not_equal(texts[1:], texts[:-1]).fill_null(True)
    changed[1:] = differ.to_numpy()
    return changed


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column as float64 (n,), with NaN for null; read-only, so that it can be shared."""
    numbers = np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)
    numbers.flags.writeable = False
    return numbers
