"""Which numbers of a table are the best of their column, beyond chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from experiments.study.config import Study
from experiments.study.diagrams import are_close
from experiments.study.judgements import Judgements
from experiments.study.rows import RowsFile
from experiments.study.significance import Side, judged_claims, labelled_pair, sides_of
from factormodels.io.long_columns import piecewise

if TYPE_CHECKING:
    import pandas as pd

COMPARED = ("precision_mae", "f1", "accuracy", "brier", "log_loss")
"""Measures of which better and worse can be said, because they are against labels."""

LEVEL = 0.05
"""Corrected p-values below this are significant."""


def significantly_best(study: Study, rows: RowsFile, cells: pd.DataFrame) -> pd.DataFrame:
    """By measure, which cells of a study are significantly the best of their dataset.

    A cell is, if it has the best value of its dataset (and selection) or posteriors like the one
    that has, and every other cell differs from it: paired permutation tests over responses,
    corrected (Holm) for the number of these others. Cells with failed or missing units or verdicts
    are left out.

    Args:
        study: the study.
        rows: its rows.
        cells: its summary, one row per cell, or per cell and selection.

    Returns:
        A frame of booleans with the index of `cells`, a column MEASURE_best for each of `COMPARED`.

    Raises:
        InputError: for unlabelled atoms under the policy "error".
    """
    import pandas as pd

    best = pd.DataFrame(False, index=cells.index, columns=[f"{name}_best" for name in COMPARED])
    sides = sides_of(study, rows)
    # Of two selections the claims differ, so that neither can be better over the same ones.
    together = ["dataset", *(["selection"] if study.selected else [])]
    for _, group in cells.groupby(together, sort=False):
        # A cell that lacks units would be compared over other responses than the rest.
        whole = group["n_responses"] == group["n_responses"].max()
        # Only over the same claims does better mean anything.
        complete = group[whole & (group[["n_failed", "n_absent", "n_missing"]] == 0).all(axis=1)]
        if len(complete) < 2 or not complete["n_labelled"].max():
            continue
        placed = {place: sides[place] for place in complete.index}
        for measure in COMPARED:
            for place in _leaders(study, rows, placed, complete[measure], measure):
                best.loc[place, f"{measure}_best"] = True
    return best


def _leaders(
    study: Study,
    rows: RowsFile,
    placed: dict[int, Side],
    values: pd.Series[float],
    measure: str,
) -> list[int]:
    """The cells that are significantly best, none if that cannot be said."""
    from calibration.scores.registry import REGISTRY
    from calibration.significance import adjust

    # An infinite log loss cannot be tested, and without one cell no other is the best of all.
    if not np.isfinite(values).all():
        return []
    # The nearest first: one that does not differ settles it.
    order = values.sort_values(ascending=not REGISTRY[measure].higher_is_better, kind="stable")
    first, *others = order.index
    own = placed[first].judgements(rows)
    leaders, p_values = [first], []
    for place in others:
        other = placed[place].judgements(rows)
        # Two names for one result share the first place, rather than keeping each other from it.
        if _alike(own, other):
            leaders.append(place)
            continue
        # The leader is compared with every other cell, which makes one family of tests for Holm.
        p_values.append(_p_value(study, own, other, measure))
        if not p_values[-1] < LEVEL:
            return []
    return leaders if p_values and float(np.max(adjust(p_values))) < LEVEL else []


def _alike(own: Judgements, other: Judgements) -> bool:
    mine, its = own.same_rows(other)
    return are_close(piecewise(own.p.take, mine), piecewise(other.p.take, its))


def _p_value(study: Study, own: Judgements, other: Judgements, measure: str) -> float:
    """P-value of a paired permutation test; 1 where nothing can be tested."""
    p, its, y, responses = labelled_pair(own, other, study.unlabelled)
    # With a single response a permutation test cannot tell anything.
    if len(np.unique(responses)) < 2:
        return 1.0
    from calibration.intervals import IntervalSettings
    from calibration.significance import compare_judged

    first, second = (judged_claims(each, y, responses, study.k) for each in (p, its))
    (found,) = compare_judged(
        *(first, second, [measure]),
        n_resamples=study.significance.resamples,
        intervals=IntervalSettings(seed=study.seed),
    )
    return 1.0 if np.isnan(found.p_value) else found.p_value
