"""The summary of a study: one row per cell, from the tidy rows alone, a cell at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.scores.estimates import without_labels
from calibration.scores.measures import entropy_warnings
from calibration.scores.registry import MEASURES, scores_named
from calibration.scoring import DEFAULT_INTERVALS, score
from experiments.evaluators.response import COLUMNS, measured
from experiments.findings.table import named
from experiments.study.judgements import Judgements, read_judgements
from experiments.study.rows import ABSENT, FAILED, CellRows, RowsFile
from factormodels.io.long_columns import piecewise

if TYPE_CHECKING:
    import pandas as pd

WITHIN_FOLDS = "within_folds"
"""Status of an AUROC that compares claims of one fold, since priors were learned in folds."""

REFERENCE = "exact"
"""The backend whose posteriors the others are compared with."""

TIMES = ("seconds_total", "seconds_median")
"""Columns that no two runs have alike; they have a file of their own."""

_NO_MEASURES = (
    *(name for name in COLUMNS if not name.startswith("n_")),
    *(f"{name}_{end}" for name in MEASURES for end in ("lower", "upper")),
)


@dataclass(frozen=True)
class StudySummary:
    """What a study found, cell by cell.

    Attributes:
        cells: one row per cell, in the order of the study; missing numbers are NaN. Columns: those
            of a cell, `backend`, `setting`; `n_responses`, `n_failed` and `n_absent`
            (units; those whose backend lacks its library are absent);
            `n_atoms` and `n_labelled` (of those judged); `n_missing` (claims of units that did not
            fail, on which an assessor has no verdict or one that takes them out, or all of whose
            relations were requested in vain); the measures of
            `experiments.evaluators.response`, with the ends of their 95% intervals over
            responses as MEASURE_lower and MEASURE_upper; `n_not_converged`; `max_difference`, the
            largest |Δp| against the exact backend over atoms that both judged (NaN for itself);
            `seconds_total` and `seconds_median` per response. Where there are selections a row
            each, with `selection`, over the atoms that it keeps.
        n_misordered: number of cells in which E does not order responses by truth.
    """

    cells: pd.DataFrame
    n_misordered: int


Folds = Callable[[CellRows, Judgements], NDArray[np.int64] | None]
"""Fold of every response of a cell, (n_responses,), or None where nothing was cross-fitted."""


def summarise_study(
    rows: RowsFile,
    *,
    policy: str,
    k: int | str,
    selections: Sequence[str] = (),
    measures: Sequence[str] = (),
    folds: Folds = lambda *_: None,
) -> StudySummary:
    """The summary of a study's rows.

    Args:
        rows: tidy rows; those of one cell are in memory at a time, and of the exact backend's.
        policy: what unlabelled atoms count as.
        k: how the K of F1@K is chosen.
        selections: names of the selections; none where every atom counts and nothing else.
        measures: scores of `calibration.scores.REGISTRY` to add, where they are none of
            `MEASURES`: each with its interval, and `MEASURE_status` that says why it has no value,
            or of an AUROC that it is within folds.
        folds: the folds of a cell, within which its AUROC is.

    Raises:
        InputError: for an unknown `policy` or `k`, or unlabelled atoms under the policy "error".
    """
    import pandas as pd

    more = [name for name in measures if name not in MEASURES]
    summaries = []
    with entropy_warnings() as misordered:
        # Cells of one question follow each other in the file, so at most two are in memory: the
        # reference and the one that is summarised.
        for _, group in itertools.groupby(rows.cells(), key=lambda cell: cell.question):
            cells = list(group)
            exact = next((cell for cell in cells if cell.backend == REFERENCE), None)
            # Read before the others, wherever it stands among them.
            reference = None if exact is None else read_judgements(rows, exact)
            for cell in cells:
                known = reference if cell is exact else None
                judgements = known or read_judgements(rows, cell)
                against = None if cell is exact else reference
                fold = folds(cell, judgements) if more else None
                for name in selections or (None,):
                    own = judgements if name is None else judgements.selected(name)
                    row = _summarise_cell(cell, own, against, policy, k)
                    selected = {} if name is None else {"selection": name}
                    added = _added(own, more, policy, k, fold)
                    summaries.append({**cell.named(), **selected, **row, **added})
    return StudySummary(pd.DataFrame(summaries), len(misordered))


def _summarise_cell(
    cell: CellRows, own: Judgements, reference: Judgements | None, policy: str, k: int | str
) -> dict[str, Any]:
    """One row of the summary, over the atoms that have a posterior."""
    # Units that failed have no time.
    done = own.seconds[~np.isnan(own.seconds)]
    atoms = own.claims
    if atoms[0].size:
        measures = measured(*atoms, policy=policy, k=k, intervals=DEFAULT_INTERVALS)
    else:
        measures = {"n_atoms": 0, "n_labelled": 0, **dict.fromkeys(_NO_MEASURES)}
    return {
        **cell.named(),
        "backend": cell.backend,
        "setting": cell.setting,
        **measures,
        "n_responses": len(own.ids),
        "n_failed": int((own.status == FAILED).sum()),
        "n_absent": int((own.status == ABSENT).sum()),
        "n_missing": own.n_missing,
        "n_not_converged": int((own.status == "not_converged").sum()),
        "max_difference": _max_difference(own, reference),
        "seconds_total": float(done.sum()) if done.size else np.nan,
        "seconds_median": float(np.median(done)) if done.size else np.nan,
    }


def _added(
    own: Judgements,
    names: Sequence[str],
    policy: str,
    k: int | str,
    folds: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """Scores that are none of `MEASURES`, with their ends and status."""
    p, label, index = own.claims
    fold = None if folds is None else folds[index]
    found = without_labels(scores_named(names)) if names else {}
    if names and p.size:
        told = score(p, label, index, scores=names, unlabelled=policy, k=k, folds=fold)
        found = dict(told.models[0].scores)
    row: dict[str, Any] = {}
    for name, each in found.items():
        row |= named(name, (each.value, each.lower, each.upper))
        row[f"{name}_status"] = str(each.status)
    if fold is not None and row.get("auroc_status") == "ok":
        row["auroc_status"] = WITHIN_FOLDS
    return row


def _max_difference(own: Judgements, reference: Judgements | None) -> float:
    if reference is None:
        return np.nan
    mine, exact = own.same_rows(reference)

    def differences_at(mine: NDArray[np.int64], exact: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.abs(own.p[mine] - reference.p[exact])
        return found[~np.isnan(found)]

    differences = piecewise(differences_at, mine, exact)
    return float(differences.max()) if differences.size else np.nan
