"""Probabilities with labels from a table in anybody's columns: a row per claim and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

from experiments.findings.table import data_frame
from experiments.settings import ColumnName, ColumnNames, Settings, Words
from experiments.settings.columns import LABEL, MODEL, PROBABILITY, RESPONSE, Columns
from experiments.study.cell_names import CELL
from factormodels.errors import InputError
from factormodels.io.claim_records import ClaimLabel
from factormodels.io.labels import NO_LABEL, label_spelling
from factormodels.io.table_numbers import Notation, cell_share, notation_remark
from factormodels.io.tables import DataTable
from factormodels.truth_words import folded

if TYPE_CHECKING:
    import pandas as pd

_DATA = ("dataset", "data", "benchmark", "split")
_CLAIM = ("claim id", "claim", "atom id", "atom")


class ProbabilityColumns(Settings, together={"column": "*"}):
    """Columns of the table."""

    p: ColumnNames = ()
    """Probability of being true; repeat it for several models."""

    label: ColumnName = None
    """The human label of the claim."""

    true: Words = ()
    """A label that means true; all others are then false; repeatable."""

    irrelevant: Words = ()
    """A label of claims that do not count; repeatable."""

    group: ColumnName = None
    """The response that the claim belongs to; without one, every claim is its own."""

    by: ColumnNames = ()
    """What to score separately: model, dataset; repeatable."""

    claim: ColumnName = None
    """Id of the claim within its response, used to pair models."""


def probability_frame(
    table: DataTable, columns: ProbabilityColumns, *, labelled: bool = True
) -> tuple[pd.DataFrame, list[str]]:
    """Probabilities, labels, groups, models and data in columns of known names, and remarks.

    Columns: p, y (True, False, or None without a label that counts), irrelevant (whether a label
    says that it does not count), place (row of the table), group, claim, by (values of
    `columns.by`) and column (which p). What parts models and data is in `attrs`, for `model_parts`.

    Args:
        table: the table.
        columns: which columns are what, where their names do not tell.
        labelled: whether it must have labels.

    Raises:
        InputError: if a column is missing, or a cell is no probability or label.
    """
    names = Columns(table.columns, table.source)
    given = [names.given("--p", name) for name in columns.p]
    probabilities = given or [names.required("--p", None, PROBABILITY, "probability")]
    label = names.optional("--label", columns.label, LABEL, "label")
    if label is None and labelled:
        label = names.required("--label", columns.label, LABEL, "label")
    group = names.optional("--group", columns.group, RESPONSE, "response")
    claim = names.optional("--claim", columns.claim, _CLAIM, "claim")
    by = [names.given("--by", name) for name in columns.by]
    if not by and len(probabilities) == 1:
        by = _varying(table, [n for n in names.names if folded(n) in {*MODEL, *_DATA} or n in CELL])
        if by:
            names.guessed["model"] = ", ".join(by)
    said = read_labels(
        [None if label is None else row.get(label) for row in table.rows],
        f"{table.source}: column {label!r}",
        columns,
        labelled=labelled,
    )
    rows = []
    unanswered = 0
    notations = {column: Counter[Notation]() for column in probabilities}
    for place, row in enumerate(table.rows):
        told = said[place]
        for column in probabilities:
            p, notation = cell_share(row.get(column), table.place(place, column), "a probability")
            notations[column].update(notation)
            if p is None:
                unanswered += 1
                continue
            rows.append(
                {
                    "p": p,
                    "y": truth(told),
                    "irrelevant": told is ClaimLabel.IRRELEVANT,
                    "place": place,
                    "group": place if group is None else str(row.get(group)),
                    "claim": None if claim is None else str(row.get(claim)),
                    "by": (*(str(row.get(name)) for name in by),),
                    "column": column,
                }
            )
    if not rows:
        raise InputError(f"{table.source}: column {probabilities[0]!r} holds no probability")
    frame = data_frame(rows)
    remarks = [names.remark()] if names.guessed else []
    remarks += filter(None, starmap(notation_remark, notations.items()))
    for column in probabilities:
        if all(row["column"] != column for row in rows):
            remarks.append(f"Column {column!r} has no value: it is left out.")
            unanswered -= len(table.rows)
    if unanswered:
        remarks.append(f"{unanswered:,} rows without a probability are left out.")
    if group is None:
        remarks.append(
            "No column says which claims are of one response, so claims are taken as independent; "
            "name it with --group."
        )
        frame.attrs["ungrouped"] = True
    frame.attrs["by"] = by
    frame.attrs["columns"] = probabilities
    return frame, remarks


def read_labels(
    values: Sequence[Any], where: str, columns: ProbabilityColumns, *, labelled: bool = True
) -> list[ClaimLabel | None]:
    """Labels in whatever words a column has them, None where there is none.

    Raises:
        InputError: for words of no known spelling and, if there must be labels, if there is none.
    """
    if not labelled and all(folded(value) in NO_LABEL for value in values):
        return [None] * len(values)
    spelling = label_spelling(values, where, columns.true, columns.irrelevant)
    return [spelling.read(value) for value in values]


def truth(told: ClaimLabel | None) -> bool | None:
    """Whether a label says that a claim is true; None if there is none that counts."""
    return None if told in (None, ClaimLabel.IRRELEVANT) else told is ClaimLabel.SUPPORTED


def _varying(table: DataTable, names: Sequence[str]) -> list[str]:
    """Columns that hold more than one value."""
    return [name for name in names if len({str(row.get(name)) for row in table.rows}) > 1]


def model_parts(frame: pd.DataFrame, remarks: list[str]) -> dict[str, pd.DataFrame]:
    """The frame by data, with the models in a column; what parts responses is data."""
    by: list[str] = frame.attrs["by"]
    of_data = [
        place
        for place, name in enumerate(by)
        if folded(name) in _DATA
        or frame.assign(part=[key[place] for key in frame["by"]])
        .groupby("group")["part"]
        .nunique()
        .max()
        == 1
    ]
    # Where every column parts the responses, the models have none in common.
    if len(of_data) == len(by) and by and not any(folded(name) in _DATA for name in by):
        of_data = []
        remarks.append("The models have no response in common, so they are not paired.")
    several = len(frame.attrs["columns"]) > 1

    def joined(key: Sequence[str], places: Sequence[int]) -> str:
        return ", ".join(key[place] for place in places)

    rest = [place for place in range(len(by)) if place not in of_data]
    models = [
        ", ".join(filter(None, (joined(key, rest), column if several else "")))
        for key, column in zip(frame["by"], frame["column"], strict=True)
    ]
    single = frame.attrs["columns"][0]
    named = frame.assign(
        model=[model or single for model in models],
        data=[joined(key, of_data) for key in frame["by"]],
    )
    if several and not rest:
        # Columns of one row are of one claim, whatever its id.
        named["claim"] = named["place"]
    elif named["claim"].isna().any():
        named = named.drop(columns="claim")
    return {str(name): part for name, part in named.groupby("data", sort=False)}


def labelled_parts(frame: pd.DataFrame, remarks: list[str]) -> dict[str, pd.DataFrame]:
    """Those parts of `model_parts` that have a label.

    Raises:
        InputError: if none has.
    """
    parts = {}
    for name, part in model_parts(frame, remarks).items():
        if part["y"].isna().all():
            remarks.append(f"{name}: no claim has a label, so nothing is scored.")
            continue
        parts[name] = part
    if not parts:
        raise InputError("no claim that has a probability has a label; give labelled claims")
    return parts
