"""The summary of a study: one row per cell, from the tidy rows alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.summary import Summary, summarise
from experiments.rows import FAILED

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "variant", "encoding", "backend_label"]
"""Columns that tell the cells of a study apart."""

REFERENCE = "exact"
"""The backend whose posteriors the others are compared with."""

_NO_MEASURES = [name for name in Summary.__dataclass_fields__ if not name.startswith("n_")]


@dataclass(frozen=True)
class StudySummary:
    """What a study found, cell by cell.

    Attributes:
        cells: one row per cell, in the order of the study; missing numbers are NaN. Columns: those
            of a cell, `backend`, `setting`, `seed`; `n_responses` and `n_failed` (units);
            `n_atoms` and `n_labelled` (of those judged); the measures of
            `calibration.summary.Summary`; `n_not_converged`; `max_difference`, the largest |Δp|
            against the exact backend over atoms that both judged (NaN for itself);
            `seconds_total` and `seconds_median` per response.
        n_misordered: number of cells in which E does not order responses by truth.
    """

    cells: pd.DataFrame
    n_misordered: int


def summarise_study(rows: pd.DataFrame, *, policy: str, k: int | str) -> StudySummary:
    """Return the summary of a study's rows.

    Args:
        rows: tidy rows, as `experiments.rows` describes them.
        policy: what unlabelled atoms count as.
        k: how the K of F1@K is chosen.

    Raises:
        InputError: for an unknown `policy` or `k`, or unlabelled atoms under the policy "error".
    """
    import pandas as pd

    groups = [(as_texts(key), cell) for key, cell in rows.groupby(CELL, sort=False)]
    summaries = []
    with entropy_warnings() as misordered:
        for key, cell in groups:
            summaries.append(_summarise_cell(cell, _reference(groups, key), policy, k))
    return StudySummary(pd.DataFrame(summaries), len(misordered))


def arrays(cell: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (p, label, response) of the atoms that a cell judged; an absent label is NaN."""
    judged = cell[cell["p"].notna()]
    return (
        judged["p"].to_numpy(dtype=np.float64),
        judged["label"].to_numpy(dtype=np.float64, na_value=np.nan),
        judged["response"].to_numpy(dtype=object),
    )


def as_texts(key: Any) -> tuple[str, ...]:
    """Return the key of a group of pandas as the tuple of texts that it is."""
    return tuple(map(str, key))


def _reference(
    groups: Sequence[tuple[tuple[str, ...], pd.DataFrame]], key: tuple[str, ...]
) -> pd.DataFrame | None:
    for other, cell in groups:
        if other[:-1] == key[:-1] and cell["backend"].iloc[0] == REFERENCE:
            return cell
    return None


def _summarise_cell(
    cell: pd.DataFrame, reference: pd.DataFrame | None, policy: str, k: int | str
) -> dict[str, Any]:
    units = cell.drop_duplicates("response")
    seconds = units["seconds"].to_numpy(dtype=np.float64, na_value=np.nan)
    done = seconds[~np.isnan(seconds)]
    p, label, response = arrays(cell)
    if p.size:
        measures = asdict(summarise(p, label, response, policy=policy, k=k))
    else:
        measures = {"n_atoms": 0, "n_labelled": 0, **dict.fromkeys(_NO_MEASURES)}
    first = cell.iloc[0]
    return {
        **{name: first[name] for name in [*CELL, "backend", "setting", "seed"]},
        **measures,
        "n_responses": len(units),
        "n_failed": int((units["status"] == FAILED).sum()),
        "n_not_converged": int((units["status"] == "not_converged").sum()),
        "max_difference": _max_difference(cell, reference),
        "seconds_total": float(done.sum()) if done.size else np.nan,
        "seconds_median": float(np.median(done)) if done.size else np.nan,
    }


def _max_difference(cell: pd.DataFrame, reference: pd.DataFrame | None) -> float:
    if reference is None or reference is cell:
        return np.nan
    both = cell.merge(reference, on=["response", "atom"], suffixes=("", "_exact"))
    differences = (both["p"] - both["p_exact"]).abs().dropna()
    return float(differences.max()) if len(differences) else np.nan


@contextmanager
def entropy_warnings() -> Iterator[list[str]]:
    """Collect the warnings about E, which every cell would repeat, instead of showing them."""
    collected: list[str] = []
    logger = logging.getLogger("calibration.measures")

    def collect(record: logging.LogRecord) -> bool:
        collected.append(record.getMessage())
        return False

    logger.addFilter(collect)
    try:
        yield collected
    finally:
        logger.removeFilter(collect)
