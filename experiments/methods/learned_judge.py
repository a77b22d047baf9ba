"""Cross-fitting of a judge on the labels that correct it, so that no label counts twice.

Labeled responses are dealt into folds. A claim of a labeled response gets its probability from the
judge that was trained on the other folds; every other claim gets the mean of the judges of all
folds, as in cross-prediction-powered inference (Zrnic and Candès 2024). A judge errs less on claims
of its training set, so that an estimate that corrects it with these labels is biased and has too
narrow an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.estimation import FoldJudges
from calibration.grouping import group_by_response
from calibration.learned_potentials import RESPONSE, ClaimTable, FieldSettings
from calibration.learned_potentials.columns import log_odds_of
from calibration.learned_potentials.methods import field, fold_judges, labeled_folds
from experiments.columns.frame import ClaimFrame
from experiments.columns.reader import TableReader
from experiments.progress import tell
from factormodels.errors import InputError
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from calibration.validation import Integers

LEARNED = "learned judge"
"""Name of the learned judge among the models."""


def with_learned_judge(
    claims: ClaimFrame,
    labels: Mapping[int, float],
    *,
    numbers: Sequence[str],
    folds: int,
    seed: int,
) -> tuple[ClaimFrame, FoldJudges]:
    """Return the claims with the probabilities of a learned judge as an additional column.

    The judge is a field: the log odds of a claim are linear in the log odds of the given
    probabilities and in `numbers`, and claims of a response are joined. Inner folds within the
    training folds choose its penalty. Every combination of model and data with labels has a
    separate judge.

    Args:
        claims: the claims with the given probabilities.
        labels: 1, 0, or NaN (no label that counts), by row of the table.
        numbers: further numeric columns for the judge.
        folds: number of folds of labeled responses.
        seed: seed of the folds.

    Returns:
        The claims, and the judges by row of the table.

    Raises:
        InputError: if a claim lacks a number, or there are fewer labeled responses than folds.
        MissingDependencyError: if PyTorch is not installed.
    """
    import pandas as pd

    frame, source = claims.frame, claims.table.source
    if LEARNED in claims.columns:
        raise InputError(f"{source}: a column of probabilities is named {LEARNED!r}; rename it")
    reader = TableReader(claims.table)
    number_columns = [reader.columns.given("--numbers", name) for name in numbers]
    position = {key: number for number, key in enumerate(dict.fromkeys(frame["by"]))}
    parts, remarks = [frame], list[str]()
    n_rows = len(claims.table.rows)
    judges = FoldJudges(np.full(n_rows, -1), np.full((folds, n_rows), np.nan))
    for _, part in frame.groupby(frame["by"].map(position), sort=False):
        once = part.drop_duplicates("place")
        table = _claim_table(reader, part, labels, number_columns)
        if not len(table.labeled):
            continue
        of = ", ".join(part["by"].iloc[0])
        fold = checked_folds(table, folds, seed, f"{source}: {of}" if of else source)
        tell(f"learns a judge in {counted(folds, 'fold')}")
        learned = fold_judges(field(FieldSettings(seed=seed)), table, fold)
        places = once["place"].to_numpy()
        judges.fold[places], judges.p[:, places] = learned.fold, learned.p
        parts.append(once.assign(p=learned.unseen(), column=LEARNED, taught=False))
        reads = f"The learned judge reads {', '.join(table.names)}. {folds_sentence(table, folds)}"
        remarks.append(f"{of}: {reads}" if of else reads)
    learned_claims = replace(
        claims,
        frame=pd.concat(parts, ignore_index=True),
        columns=(*claims.columns, LEARNED),
        remarks=[*claims.remarks, *remarks],
    )
    return learned_claims, judges


def checked_folds(table: ClaimTable, n_folds: int, seed: int, source: str) -> Integers:
    """Return the fold of every claim, (n,); -1 in responses without a label.

    Args:
        table: the claims.
        n_folds: number of folds.
        seed: seed of the folds.
        source: name of the data in errors.

    Raises:
        InputError: if there are fewer labeled responses than folds, or the labels outside a fold
            are all equal.
    """
    labels = table.labels[table.labeled]
    n_labeled = len(np.unique(table.responses[table.labeled]))
    if n_folds > n_labeled:
        fewer = f", or give --folds {n_labeled}" if n_labeled > 1 else ""
        raise InputError(
            f"{source}: {counted(n_labeled, 'response')} with labels that count cannot fill "
            f"--folds {n_folds}; label more responses{fewer}"
        )
    fold = labeled_folds(table, n_folds, seed)
    for number in range(n_folds):
        taught = labels[fold[table.labeled] != number]
        if taught.min() == taught.max():
            raise InputError(
                f"{source}: without fold {number + 1} of {n_folds} all "
                f"{counted(len(taught), 'label')} are {'true' if taught[0] else 'false'}, and "
                "learning needs both kinds; label more responses"
            )
    return fold


def folds_sentence(table: ClaimTable, n_folds: int) -> str:
    """Return a sentence on the training labels and the judge of each claim."""
    n_labeled = len(np.unique(table.responses[table.labeled]))
    return (
        f"{counted(len(table.labeled), 'label')} of {counted(n_labeled, 'response')} trained "
        f"judges in {counted(n_folds, 'fold')}: claims of these responses are judged without the "
        "labels of their fold, all others by the mean of the judges."
    )


def _claim_table(
    reader: TableReader,
    part: pd.DataFrame,
    labels: Mapping[int, float],
    number_columns: Sequence[str],
) -> ClaimTable:
    """Return the judge's columns for the claims of a combination of model and data.

    Raises:
        InputError: if a claim lacks one of its probabilities or numbers.
    """
    places = part["place"].unique()
    names, columns = list[str](), list[Any]()
    for column, rows in part.groupby("column", sort=False):
        p = dict(zip(rows["place"], rows["p"], strict=True))
        for row in places:
            if row not in p:
                raise InputError(
                    f"{reader.locate(row, str(column))}: the claim has no probability, and the "
                    "learned judge needs one for every claim; fill it in, or leave the column "
                    "out with --p"
                )
        names.append(f"log odds of {column}")
        columns.append([log_odds_of(p[row]) for row in places])
    for column in number_columns:
        names.append(column)
        columns.append([reader.filled_number(row, column, "--numbers") for row in places])
    once = part.drop_duplicates("place")
    grouping = group_by_response(once["response"].tolist())
    # Responses with a single claim each need no shared cause.
    causes = {RESPONSE: grouping.index} if (grouping.sizes > 1).any() else {}
    ids = zip(once["response"].map(str), once["place"].map(str), strict=True)
    return ClaimTable(
        tuple(names),
        np.array(columns, np.float64).T,
        np.array([labels[row] for row in places], np.float64),
        grouping.index,
        causes,
        tuple(ids),
        len(grouping.responses),
    )
