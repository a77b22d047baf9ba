"""Reading of claims with probabilities and labels from any table, as a long frame.

Every method with probabilities as input reads its data with `read_claims`.
`experiments.columns.reader` finds columns and reads cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from experiments.columns.cell_names import CELL
from experiments.columns.cells import (
    LabelColumn,
    NumberColumn,
    NumberLabels,
    ShareColumn,
    are_numbers,
    label_text,
    label_value,
    number_labels,
)
from experiments.columns.contents import likely_column
from experiments.columns.frame import LONG, ClaimFrame
from experiments.columns.layouts import with_layout
from experiments.columns.nested_responses import ID_OF_A_RESPONSE, rows_in_lists
from experiments.columns.nested_rows import FlatTable, column_names_of
from experiments.columns.options import ProbabilityColumns
from experiments.columns.reader import Columns, TableReader, as_option
from experiments.columns.roles import (
    ANSWER,
    ANY_TEXT,
    CLAIM,
    CLAIM_TEXT,
    DATA,
    LABEL,
    MODEL,
    PROBABILITY,
    RESPONSE,
    SHOWN_TEXT,
    TEXT_BESIDE_ID,
)
from experiments.columns.sources import table_of
from experiments.columns.verdicts import judged_table
from experiments.findings.table import data_frame
from factormodels.claims import ClaimLabel
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.io.claim_rows import (
    ClaimRow,
    cell_name,
    repeated_remark,
    repeated_rows,
)
from factormodels.io.tables.data_table import DataTable
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom
from factormodels.nouns import counted, is_or_are
from factormodels.words import folded

if TYPE_CHECKING:
    import pandas as pd

    from experiments.columns.sources import Data


_WHOLE_NUMBER = re.compile(r"\d{1,300}(\.0*)?")


def read_claims(
    data: Data,
    options: ProbabilityColumns,
    *,
    labeled: bool = True,
    judges: bool = False,
    texts: bool = False,
    numbers: Sequence[Any] | None = None,
    carried: Mapping[str, str] | None = None,
) -> ClaimFrame:
    """Read claims with their probabilities and labels, and remarks.

    If no column of probabilities is named, each judge of records with verdicts becomes a model.
    Columns without a role are recorded as unused.

    Args:
        data: a file, the name of an embedded dataset, a data frame, or records.
        options: columns whose names do not show their roles.
        labeled: True if labels are required.
        judges: True if models judge the same responses, so that a claim has the same label for all
            models.
        texts: True to read texts of claims and responses too.
        numbers: labels of other tables of the same claims, if numeric labels are allowed. Labels
            are numeric if all labels here and in the table are numbers and some are neither 0 nor
            1; predictions may then be any numbers. None if labels mean true or false.
        carried: columns to copy into the frame, by the option that names each. The frame's column
            has the option's name, without hyphens.

    Raises:
        InputError: if the data cannot be read, a column is missing, a cell is not a probability or
            label, or rows of the same claim contradict each other.
    """
    table, assessors = judged_table(table_of(data))
    asked = _columns_in(options.p, table)
    wanted = options.model_copy(update={"p": asked or assessors})
    table, wanted, known_layout = _with_row_per_claim(table, wanted, labeled=labeled)
    reader = TableReader(table)
    resolved = _resolve(reader, wanted, labeled=labeled, judges=judges, texts=texts)
    cells = {
        option.strip("-"): reader.columns.given(option, name)
        for option, name in (carried or {}).items()
    }
    label = resolved.label
    named_words = wanted.true or wanted.irrelevant_label or table.classes.get(str(label))
    of_table = [] if label is None else [row.get(label) for row in table.rows]
    of_numbers = numbers is not None and not named_words and are_numbers([*of_table, *numbers])
    labels: LabelColumn | NumberLabels
    if of_numbers:
        labels = number_labels(table, label)
    else:
        labels = reader.labels(label, wanted, labeled=labeled)
    read = _Rows(reader, resolved, labels, of_numbers=of_numbers)
    read.refuse_contradictions()
    remarks = [
        *known_layout,
        *filter(None, [reader.columns.remark(), read.repeated_remark(), *labels.remarks()]),
        *read.number_remarks(),
        *_response_remarks(reader, wanted, resolved, read.kept),
        *_order_remarks(reader, resolved),
        *_spelling_remarks(reader.response, read.kept),
    ]
    # Records with verdicts now have standard columns.
    if not assessors:
        reader.note_unused(resolved.by)
    if isinstance(table, FlatTable):
        remarks += _list_remarks(table, resolved)
    frame = data_frame(read.long_rows(cells))
    return ClaimFrame(
        frame, table, resolved.by, resolved.probabilities, remarks, of_numbers=of_numbers
    )


def claims_frame(data: Data) -> pd.DataFrame:
    """Long frame of the claims of any data, with a row for each claim and judge.

    Columns: response, claim, text, p, label; the columns that separate data and models; model, the
        source of p (a variant, an assessor, another tool, or the recorded graph), if there are
        several; p_learned_from, if p was learned from labels of a response.

    Raises:
        InputError: as `read_claims`.
    """
    claims = read_claims(data, ProbabilityColumns(), labeled=False, texts=True)
    frame = claims.frame
    label = frame["label"].mask(frame["irrelevant"].astype(bool), str(ClaimLabel.IRRELEVANT))
    if "text" not in frame:
        frame = frame.assign(text="")
    long = frame.assign(label=label)[list(LONG)]
    for position, name in enumerate(claims.by):
        long[name] = [values[position] for values in frame["by"]]
    if len(claims.columns) > 1:
        long["model"] = frame["column"]
    if frame["taught"].any():
        marks = frame["taught"].map({True: str(LearnedFrom.THIS_RESPONSE), False: None})
        long[f"p_{LEARNED_FROM}"] = marks
    return long


def _columns_in(names: Sequence[str], table: DataTable) -> tuple[str, ...]:
    """Names of columns; a list with commas that is not itself a column is split."""
    if not any("," in name for name in names):
        return tuple(names)
    known = {folded(column) for column in (*table.columns, *column_names_of(table))}
    lists = ([name] if folded(name) in known else name.split(",") for name in names)
    return tuple(part for parts in lists for name in parts if (part := name.strip()))


def _with_row_per_claim(
    table: DataTable, wanted: ProbabilityColumns, *, labeled: bool
) -> tuple[DataTable, ProbabilityColumns, tuple[str, ...]]:
    """The table with a row per claim, expanded if responses contain lists of claims.

    Returns:
        The table, the options completed with a known tool's layout, and remarks.
    """

    def has_roles(columns: Columns, options: ProbabilityColumns) -> bool:
        has_labels = not labeled or columns.has(LABEL, options.label)
        asked = options.p or (None,)
        return has_labels and all(columns.has(PROBABILITY, name) for name in asked)

    if has_roles(Columns(table.columns, table.source), wanted):
        return table, wanted, ()
    names = column_names_of(table)
    filled, remarks = with_layout(names, wanted)
    nested = Columns(names, table.source)
    # Errors refer to the user's columns.
    if not has_roles(nested, filled):
        return table, wanted, ()
    name = next(iter(filled.p), None)
    column = nested.required(PROBABILITY) if name is None else nested.given("--p", name)
    return rows_in_lists(table, column, repeated=True), filled, remarks


@dataclass(frozen=True, eq=False)
class _Resolved:
    """The column of each role in a table, or None.

    Attributes:
        probabilities: the columns of probabilities.
        label: the column of labels.
        claim: the column of the claims' ids.
        identity: the column that identifies a claim: its id, or otherwise its text.
        text_beside_id: the column of claim texts, if another column has ids.
        by: the columns that separate data and models.
        of_models: columns that distinguish the judges of the same responses.
        shown_text: the column of claim texts, if requested.
        answer: the column of whole responses, if requested.
    """

    probabilities: tuple[str, ...]
    label: str | None
    claim: str | None
    identity: str | None
    text_beside_id: str | None
    by: tuple[str, ...]
    of_models: tuple[str, ...]
    shown_text: str | None
    answer: str | None


def _resolve(
    reader: TableReader, wanted: ProbabilityColumns, *, labeled: bool, judges: bool, texts: bool
) -> _Resolved:
    """Find the column of each role, and set the reader's column of responses.

    Raises:
        InputError: if an option names an unknown column, or a required role has no column.
    """
    columns, rows = reader.columns, reader.table.rows
    probabilities = tuple(columns.given("--p", name) for name in wanted.p)
    if not probabilities:
        lacks_labels = labeled and wanted.label is None and columns.known(LABEL) is None
        lacking = (LABEL,) if lacks_labels else ()
        probabilities = (columns.required(PROBABILITY, lacking=lacking),)
    if labeled:
        label: str | None = columns.required(LABEL, wanted.label)
    else:
        label = columns.optional(LABEL, wanted.label)
    # An object with claims is a response, even if its name is unknown.
    guesses = not reader.is_nested
    response = columns.filled(RESPONSE, rows, wanted.group) if guesses or wanted.group else None
    reader.response = response
    claim = columns.filled(CLAIM, rows, wanted.claim) if guesses or wanted.claim else None
    text_beside_id = _text_beside_id(reader, claim)
    identity = claim or columns.filled(CLAIM_TEXT, rows)
    if identity is None and response is not None:
        text = columns.filled(ANY_TEXT, rows)
        if text is not None and _differs_within(rows, response, text):
            identity = text
        else:
            columns.guessed.pop(ANY_TEXT.meaning, None)
    by = tuple(columns.given("--by", name) for name in wanted.by)
    if not by and len(probabilities) == 1:
        by = _known_parts(reader)
        if by:
            columns.guessed["model"] = ", ".join(by)
    # Otherwise a model may have written the responses, whose claims have their own labels.
    models = columns.all_known(MODEL)
    of_models = tuple(name for name in by if judges and name in models)
    if claim is None and guesses and of_models:
        claim = _id_shared_by_models(reader, identity, by, of_models)
        identity = claim or identity
    return _Resolved(
        probabilities,
        label,
        claim,
        identity,
        text_beside_id,
        by,
        of_models,
        columns.quietly(SHOWN_TEXT) if texts else None,
        columns.quietly(ANSWER) if texts else None,
    )


def _id_shared_by_models(
    reader: TableReader, text: str | None, by: Sequence[str], of_models: Sequence[str]
) -> str | None:
    """The column that identifies a claim of a response for every model, or None.

    It is the claim's text or a column of ids. A name such as "item id" can mean a response or a
    claim: it means a claim if another column holds the responses, no model repeats the id within a
    response, and models share ids.
    """
    columns, rows, response = reader.columns, reader.table.rows, reader.response
    if response is None:
        return None
    of_data = [name for name in by if name not in of_models]
    ids = [name for name in columns.all_known(RESPONSE) if name not in columns.used]
    for column in filter(None, (text, *ids)):
        if any(not cell_name(row.get(column)) for row in rows):
            continue
        claims = [
            tuple(cell_name(row.get(name)) for name in (*of_data, response, column)) for row in rows
        ]
        judged = {
            (claim, tuple(cell_name(row.get(name)) for name in of_models))
            for claim, row in zip(claims, rows, strict=True)
        }
        if len(judged) == len(rows) > len(set(claims)):
            if column != text:
                columns.used.add(column)
                columns.guessed[CLAIM.meaning] = column
            return column
    return None


def _text_beside_id(reader: TableReader, claim: str | None) -> str | None:
    """The column of claim texts for claims with ids, where rows of an id must have equal texts."""
    if reader.response is None or claim is None:
        return None
    text = reader.columns.known(TEXT_BESIDE_ID)
    # It may be the id itself, or the text of the whole response.
    if text in (None, claim) or not _differs_within(reader.table.rows, reader.response, str(text)):
        return None
    return text


def _known_parts(reader: TableReader) -> tuple[str, ...]:
    """Columns known as models, data or parts of a study's cells, with more than one value."""
    columns, rows = reader.columns, reader.table.rows
    known = {*columns.all_known(MODEL), *columns.all_known(DATA), *CELL}
    return tuple(
        name
        for name in columns.names
        if name in known and len({str(row.get(name)) for row in rows}) > 1
    )


@dataclass(frozen=True)
class _KeptRow:
    """A row of the table with a probability.

    Attributes:
        index: index of the row.
        by: values of the columns that separate data and models.
        response: its response; the row itself without such a column.
        claim: id of its claim, or None.
        label: its label: true, false, irrelevant, or a number.
        p: its probabilities by column.
    """

    index: int
    by: tuple[str, ...]
    response: str | int
    claim: str | None
    label: ClaimLabel | float | None
    p: Mapping[str, float]


class _Rows:
    """The rows of a table with a probability, without repeated claims.

    Args:
        reader: the table.
        resolved: the columns of the roles.
        labels: its labels.
        of_numbers: True if labels and predictions are arbitrary numbers.

    Raises:
        InputError: if a cell is not a probability or an id is empty, or no row has a probability.
    """

    def __init__(
        self,
        reader: TableReader,
        resolved: _Resolved,
        labels: LabelColumn | NumberLabels,
        *,
        of_numbers: bool = False,
    ) -> None:
        self.reader, self.resolved, self.labels = reader, resolved, labels
        kind: type[NumberColumn | ShareColumn] = NumberColumn if of_numbers else ShareColumn
        self.shares = [kind(reader.table, column) for column in resolved.probabilities]
        self.kept: list[_KeptRow] = []
        self._unanswered = 0
        # Statements of rows about claims: with a probability, with labels only, and with labels
        # from any judge.
        self._stated: list[ClaimRow] = []
        self._labeled: list[ClaimRow] = []
        self._labeled_for_all: list[ClaimRow] = []
        self._repeated: list[int] = []
        for index in range(len(reader)):
            self._read(index)
        if not self.kept:
            column = resolved.probabilities[0]
            raise InputError(f"{reader.table.source}: column {column!r} holds no probability")

    def _read(self, index: int) -> None:
        reader, resolved, label = self.reader, self.resolved, self.labels.meanings[index]
        read = {share.name: share.read(index) for share in self.shares}
        p = {column: value for column, value in read.items() if value is not None}
        self._unanswered += len(read) - len(p)
        naming = [*resolved.by, *filter(None, (reader.response, resolved.claim))]
        if not p and (label is None or not all(reader.name_if_any(index, n) for n in naming)):
            return
        by = tuple(
            # Columns of a study's own rows may be empty.
            part_name(reader.cell(index, name)) if name in CELL else reader.name(index, name, name)
            for name in resolved.by
        )
        # A row without a known response is a response of its own.
        is_known = reader.response is not None or reader.is_nested
        name = reader.response_name(index) if is_known else None
        response = index if name is None else name
        claim = None if resolved.claim is None else reader.name(index, resolved.claim, "claim")
        stated = self._claim_row(index, by, response, claim)
        if label is not None:
            self._labeled.append(stated)
            if stated.claim is not None and reader.response is not None and resolved.of_models:
                # A claim has the same label for all models.
                of_data = tuple(
                    part
                    for part, name in zip(by, resolved.by, strict=True)
                    if name not in resolved.of_models
                )
                claim_of_all = (*of_data, *stated.claim[len(by) :], stated.text)
                self._labeled_for_all.append(replace(stated, claim=claim_of_all))
        if p:
            several = len(resolved.probabilities) > 1
            probabilities = {
                f"probability {name!r}" if several else "probability": p.get(name)
                for name in resolved.probabilities
            }
            self._stated.append(replace(stated, stated={**stated.stated, **probabilities}))
            self.kept.append(_KeptRow(index, by, response, claim, label, p))

    def _claim_row(
        self, index: int, by: tuple[str, ...], response: str | int, claim: str | None
    ) -> ClaimRow:
        """Return a row's label for its claim, and the claim's text if there is a column of ids."""
        reader, resolved = self.reader, self.resolved
        words = claim or reader.name_if_any(index, resolved.identity) or None
        of_response = reader.response is not None
        # Without known responses, ids such as c1 can repeat, while a text identifies a claim. In
        # lists of claims the order distinguishes claims.
        is_known = of_response or (len((words or "").split()) > 1 and not reader.is_nested)
        return reader.claim_row(
            index,
            (*by, str(response) if of_response else "", words) if words and is_known else None,
            f"claim {shown(words)}" + (f" of response {response!r}" if of_response else ""),
            {"label": label_text(self.labels.meanings[index])},
            reader.name_if_any(index, resolved.text_beside_id),
        )

    def refuse_contradictions(self) -> None:
        """Leave out rows that repeat a claim.

        Raises:
            InputError: if rows of the same claim contradict each other.
        """
        response, of_models = self.reader.response, self.resolved.of_models
        alike, mend = response is None, _mend(response)
        self._repeated = repeated_rows(self._stated, alike=alike, advice=mend)
        # A row without a probability is left out, but its label can contradict another row's.
        repeated_rows(self._labeled, alike=alike, advice=mend)
        of_all = _mend_of_models(response, of_models)
        repeated_rows(self._labeled_for_all, alike=False, advice=of_all)
        for position in reversed(self._repeated):
            del self.kept[position]

    def repeated_remark(self) -> str:
        """A sentence on repeated claims, or an empty string."""
        return repeated_remark(self._stated, self._repeated)

    def number_remarks(self) -> Iterator[str]:
        """Yield sentences on the notation of probabilities, and on missing ones."""
        yield from filter(None, (share.remark() for share in self.shares))
        unanswered = self._unanswered
        for column in self.resolved.probabilities:
            if all(column not in row.p for row in self.kept):
                yield f"Column {column!r} has no values and is left out."
                unanswered -= len(self.reader)
        if unanswered:
            yield (
                f"{counted(unanswered, 'row')} without a probability {is_or_are(unanswered)} left "
                "out."
            )

    def long_rows(self, carried: Mapping[str, str]) -> list[dict[str, Any]]:
        """A row for each claim and column of probabilities, for `ClaimFrame.frame`.

        Args:
            carried: columns of the table to add, by their name in the frame.
        """
        reader, resolved = self.reader, self.resolved
        marks = {column: reader.marks([column]) for column in resolved.probabilities}
        text_columns = {"text": resolved.shown_text, "answer": resolved.answer}

        return [
            {
                "p": p,
                "label": label_value(row.label),
                "irrelevant": row.label is ClaimLabel.IRRELEVANT,
                "place": row.index,
                "response": row.response,
                "claim": row.claim,
                "by": row.by,
                "column": column,
                "taught": reader.is_taught(row.index, marks[column]),
                **{
                    what: str(reader.cell(row.index, column) or "")
                    for what, column in text_columns.items()
                    if column is not None
                },
                **{name: reader.cell(row.index, column) for name, column in carried.items()},
            }
            for row in self.kept
            for column, p in row.p.items()
        ]


def _response_remarks(
    reader: TableReader, wanted: ProbabilityColumns, resolved: _Resolved, rows: Sequence[_KeptRow]
) -> Iterator[str]:
    """Yield sentences on claims that are treated as independent."""
    response, columns = reader.response, reader.columns
    if response is None and not reader.is_nested:
        reason = "No column groups claims by response"
    elif (
        response is not None
        and wanted.group is None
        and folded(response) not in ID_OF_A_RESPONSE
        and _are_single(rows)
    ):
        of_a_model = " of a model" if resolved.of_models else ""
        reason = f"No two rows{of_a_model} share a value of {response!r}"
    else:
        return
    # A column of answers, read to show them, may be what groups their claims.
    taken = {*columns.used, *resolved.by} - {resolved.answer}
    others = [name for name in columns.names if name not in taken]
    likely = likely_column(RESPONSE, others, reader.table.rows)
    # Without such a column, there is none to name.
    mend = f"; if {likely!r} does, add {as_option('--group', likely)}" if likely else ""
    shared = None if likely else _shared_by_models(reader, resolved)
    if shared:
        mend = f"; {as_option('--group', shared)} pairs models by {shared!r}"
    yield f"{reason}, so claims are treated as independent{mend}."


def _order_remarks(reader: TableReader, resolved: _Resolved) -> Iterator[str]:
    """Yield a sentence on models whose claims have no id and are paired by their order."""
    rows = reader.table.rows
    if not resolved.of_models or resolved.claim or reader.response is None or reader.is_nested:
        return
    keys = (*resolved.by, reader.response)
    if len({tuple(cell_name(row.get(name)) for name in keys) for row in rows}) < len(rows):
        yield (
            "No column identifies claims, so models are paired by the order of their rows in a "
            f"response; {as_option('--claim', 'COLUMN')} pairs them by a column."
        )


def _shared_by_models(reader: TableReader, resolved: _Resolved) -> str | None:
    """The column of claims, or another one, in which every model has the same values.

    None if rows with the same value would then repeat a claim.
    """
    if not resolved.of_models:
        return None
    columns, rows = reader.columns, reader.table.rows
    taken = {*resolved.probabilities, resolved.label, *resolved.by}
    others = [name for name in columns.names if name not in {*columns.used, *taken}]
    for name in dict.fromkeys(filter(None, (resolved.claim, *others))):
        values: dict[tuple[str, ...], set[str]] = {}
        claims = set()
        for row in rows:
            model = tuple(str(row.get(part)) for part in resolved.by)
            values.setdefault(model, set()).add(str(row.get(name)))
            claims.add((model, str(row.get(name)), str(row.get(str(resolved.claim)))))
        first, *rest = values.values()
        once = resolved.claim is None or len(claims) == len(rows)
        if len(first) > 1 and once and all(each == first for each in rest):
            return name
    return None


def _spelling_remarks(response: str | None, rows: Sequence[_KeptRow]) -> Iterator[str]:
    """Yield a sentence on responses whose names are the same number in several spellings."""
    spellings: dict[int, dict[str, None]] = {}
    for row in rows:
        name = str(row.response)
        if response is not None and _WHOLE_NUMBER.fullmatch(name):
            spellings.setdefault(int(name.partition(".")[0]), {})[name] = None
    several = [list(names) for names in spellings.values() if len(names) > 1]
    if several:
        first, second, *_ = several[0]
        more = f" ({counted(len(several), 'such number')} in all)" if len(several) > 1 else ""
        yield (
            f"{first!r} and {second!r} in {response!r} are two responses{more}; if they are the "
            "same response, spell the number in the same way."
        )


def _list_remarks(table: FlatTable, resolved: _Resolved) -> Iterator[str]:
    """Yield sentences on lists without claims, and on columns outside lists of claims."""
    if remark := table.empty_remark():
        yield remark
    if not table.is_nested:
        return
    for column in (*resolved.probabilities, resolved.label):
        if column is not None and column not in table.within:
            yield f"{column!r} is outside the list of claims and applies to each claim of the list."


def _are_single(rows: Sequence[_KeptRow]) -> bool:
    """Return True if there are several rows, and no two with the same response and model."""
    return len({(row.by, row.response) for row in rows}) == len(rows) > 1


def part_name(value: Any) -> str:
    """Name of a model, of data, or of a cell of a study."""
    return cell_name(value) or str(value)


def _differs_within(rows: Sequence[Mapping[str, Any]], response: str, column: str) -> bool:
    """Return True if rows of a response differ in a column, such as the texts of claims."""
    first: dict[str, str] = {}
    return any(
        first.setdefault(cell_name(row.get(response)), value) != value
        for row in rows
        if (value := cell_name(row.get(column)))
    )


def _mend(response: str | None) -> str:
    """Return the fix for contradictory rows of a claim."""
    if response is None:
        return "name the column of responses with --group, or keep one row per claim"
    parted = "or name a column that distinguishes them with --by"
    return f"keep one row per claim, {parted}, or name another column of ids with --claim"


def _mend_of_models(response: str | None, models: Sequence[str]) -> str:
    """Return the fix for a claim whose label differs between models."""
    return (
        f"correct one of them, or give answers of different models different ids in {response!r} "
        f"({', '.join(map(repr, models))} does not distinguish responses)"
    )
