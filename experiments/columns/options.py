"""Options for the columns of a table of claims, and the words of its labels."""

from __future__ import annotations

from typing import Annotated

from experiments.settings import USUAL, ColumnName, ColumnNames, Option, Settings, Words


class LabelColumns(Settings):
    """Columns of the table.

    Options that name the column of labels and the words for true and irrelevant.
    """

    label: Annotated[ColumnName, USUAL] = None
    """Column of the human label of the claim."""

    true: Words = ()
    """A label that means true (all others then mean false); repeatable."""

    irrelevant_label: Words = ()
    """A label that excludes a claim; repeatable."""


class ProbabilityColumns(LabelColumns):
    """Columns of the table.

    Options of `LabelColumns`, with columns of probabilities, responses, claims and data.
    """

    p: Annotated[ColumnNames, USUAL] = ()
    """Column of the probability of being true; several models as in p,q or repeated."""

    group: Annotated[ColumnName, USUAL] = None
    """Column of the claim's response; without it, each claim counts as a separate response."""

    by: Annotated[ColumnNames, USUAL] = ()
    """Column to score by, such as model or dataset; repeatable."""

    claim: ColumnName = None
    """Column of the claim's id within its response, used to pair models."""


class TaughtSettings(Settings):
    """Probabilities learned from labels.

    Options on labels that also trained the probabilities.
    """

    leave_out_taught: bool = False
    """Leave out responses whose own labels trained the probabilities, as marked in files from `fit`
    and `apply`; otherwise such labels are refused."""


class ClaimColumns(LabelColumns):
    """Columns of the table.

    Options of `LabelColumns`, with columns of judgments and positions.
    """

    group: Annotated[ColumnName, USUAL] = None
    """Column of the id of the claim's response."""

    judgment: Annotated[ColumnNames, Option("[SETTING=]COLUMN", usual=True)] = ()
    """Column of the model's judgment: correct/incorrect, yes/no, A/B/C; repeatable by setting."""

    confidence: Annotated[ColumnName, USUAL] = None
    """Column of the model's confidence, from 0 to 1."""

    votes: Annotated[ColumnNames, USUAL] = ()
    """Several answers per claim: a column of lists, or repeat the option for several columns."""

    claim: ColumnName = None
    """Column of the claim's id, if a claim has several rows."""

    sentence: ColumnName = None
    """Column of the index of the claim's sentence, from 1."""

    sentences: ColumnName = None
    """Column of the number of sentences of the response."""

    position: ColumnName = None
    """Column of the relative position (a share or a percentage), instead of a sentence."""

    in_order: bool = False
    """Use the order of claims as their position in the response."""

    model_column: ColumnName = None
    """Column of the judged model."""

    condition: ColumnName = None
    """Column that distinguishes answers, such as with and without retrieval."""

    setting: Annotated[str | None, Option("COLUMN|NAME")] = None
    """Setting in which the model was asked: a column, or direct_asking, question_answering or
    none_of_the_above."""
