"""Options that name the columns of a table of claims, and the words of its labels."""

from __future__ import annotations

from typing import Annotated

from experiments.settings import USUAL, ColumnName, ColumnNames, Option, Settings, Words


class LabelColumns(Settings):
    """Columns of the table."""

    label: Annotated[ColumnName, USUAL] = None
    """The human label of the claim."""

    true: Words = ()
    """A label that means true; all others are then false; repeatable."""

    irrelevant_label: Words = ()
    """A label of claims that do not count; repeatable."""


class ProbabilityColumns(LabelColumns):
    """Columns of the table."""

    p: Annotated[ColumnNames, USUAL] = ()
    """Probability of being true; repeat it for several models."""

    group: Annotated[ColumnName, USUAL] = None
    """The response that the claim belongs to; without one, every claim is its own."""

    by: Annotated[ColumnNames, USUAL] = ()
    """Column to score by, such as model or dataset; repeatable."""

    claim: ColumnName = None
    """Id of the claim within its response, used to pair models."""


class TaughtSettings(Settings):
    """Treatment of probabilities learned from labels of the same response."""

    leave_out_taught: bool = False
    """Leave out responses whose own labels taught the probabilities, as files of `fit` and `apply`
    mark them; otherwise such labels are refused."""


class ClaimColumns(LabelColumns):
    """Columns of the table."""

    group: Annotated[ColumnName, USUAL] = None
    """Id of the response that the claim belongs to."""

    judgement: Annotated[ColumnNames, Option("[SETTING=]COLUMN", usual=True)] = ()
    """Column of the model's judgment: correct/incorrect, yes/no, A/B/C; repeatable by setting."""

    confidence: Annotated[ColumnName, USUAL] = None
    """Its confidence, from 0 to 1."""

    votes: Annotated[ColumnNames, USUAL] = ()
    """Several answers per claim: a column of lists, or repeated, a column each."""

    claim: ColumnName = None
    """Id of the claim, if several rows are about one."""

    sentence: ColumnName = None
    """Index of its sentence, from 1."""

    sentences: ColumnName = None
    """Number of sentences of the response."""

    position: ColumnName = None
    """Relative position, as a share or in percent, instead of a sentence."""

    in_order: bool = False
    """Claims are in the order of their response: use their order as position."""

    model_column: ColumnName = None
    """The model being judged."""

    condition: ColumnName = None
    """Column that distinguishes answers, such as with and without retrieval."""

    setting: Annotated[str | None, Option("COLUMN|NAME")] = None
    """How the model was asked: a column, or direct_asking, question_answering or
    none_of_the_above."""
