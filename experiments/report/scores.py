"""Scores of cells with their intervals over responses."""

from __future__ import annotations

from typing import NamedTuple

from experiments.judgements import Judgements, read_judgements
from experiments.rows import CellKey, RowsFile
from factormodels.errors import InputError

MEASURES = ("precision_mae", "f1", "brier", "log_loss", "accuracy")
"""Measures over labelled atoms whose value in the summary has an interval."""


class Score(NamedTuple):
    """A score.

    Attributes:
        estimate: its value.
        lower: lower end of its 95% interval over responses; NaN where there is none.
        upper: its upper end.
    """

    estimate: float
    lower: float
    upper: float


def scores_of(rows: RowsFile, *, policy: str) -> dict[CellKey, dict[str, Score]]:
    """Return the scores of every cell; none for a cell without labelled atoms.

    Args:
        rows: tidy rows; one cell is in memory at a time.
        policy: what unlabelled atoms count as.
    """
    return {cell.key: _scores(read_judgements(rows, cell), policy) for cell in rows.cells()}


def _scores(own: Judgements, policy: str) -> dict[str, Score]:
    from calibration.estimands import IntervalSettings, Ratio, estimate_all
    from calibration.grouping import group_by_response
    from calibration.labels import apply_policy
    from calibration.significance.measures import MEASURES as ALL
    from calibration.significance.measures import Judged, response_k

    judged = own.judged
    scored = apply_policy(own.p[judged], own.label[judged], own.index[judged], policy)
    if not len(scored.y):
        return {}
    grouping = group_by_response(scored.responses)
    # K plays no part in these measures.
    claims = Judged(scored.p, scored.y, grouping, response_k("median", grouping))
    result = {}
    for name in MEASURES:
        try:
            ratio = Ratio(name, ALL[name].sums(claims), ALL[name].scale)
        except InputError:
            continue  # An infinite log loss has no interval.
        found = estimate_all((ratio,), IntervalSettings(method="delta"))[0]
        result[name] = Score(float(found.estimate[0]), float(found.lower[0]), float(found.upper[0]))
    return result
