"""Reading of claims with labels and a model's judgments, from tables with any column names.

`experiments.columns.reader` finds columns and reads cells.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from calibration.self_knowledge import ModelJudgment, Setting
from experiments.columns.cells import LabelColumn
from experiments.columns.contents import likely_column
from experiments.columns.judged_table import JudgedClaim, JudgedTable
from experiments.columns.layouts import with_layout
from experiments.columns.nested_responses import rows_in_lists
from experiments.columns.nested_rows import column_names_of
from experiments.columns.options import ClaimColumns
from experiments.columns.placed_claims import LabeledClaims, claims_of_graphs, load_claims
from experiments.columns.reader import Columns, TableReader, as_option
from experiments.columns.responses import load_responses
from experiments.columns.roles import (
    CLAIM_OR_WORDS,
    CONDITION,
    CONFIDENCE,
    JUDGMENT,
    LABEL,
    MODEL,
    POSITION,
    RESPONSE,
    SENTENCE,
    SENTENCES,
    SETTING,
    SHOWN_TEXT,
    VOTES,
)
from experiments.columns.sources import table_of
from experiments.settings.inputs import is_dataset, read_graphs
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_records import looks_like_record
from factormodels.io.claim_rows import (
    label_word,
    repeated_remark,
    repeated_rows,
)
from factormodels.io.formats.registry import format_of
from factormodels.io.formats.selfcheck import VOTES as VOTES_KEY
from factormodels.io.labels import comma_remark
from factormodels.io.tables.data_table import DataTable
from factormodels.nouns import counted, is_or_are
from factormodels.words import ABSENT, folded, truth_of

if TYPE_CHECKING:
    from experiments.columns.responses import ResponsesIn
    from experiments.columns.sources import Data

_SETTINGS: Mapping[str, Setting] = {
    **dict.fromkeys(("direct asking", "direct", "da"), Setting.DIRECT_ASKING),
    **dict.fromkeys(("question answering", "qa"), Setting.QUESTION_ANSWERING),
    **dict.fromkeys(
        ("none of the above", "nota", "noa", "qa noa", "qa nota", "question answering noa"),
        Setting.NONE_OF_THE_ABOVE,
    ),
}

_PREFIX = re.compile(r"^judge?ments\.")  # "judgements" in files of earlier versions
_PLACED = {"response", "claim", "sentence", "sentences", "label", "judgments", "judgements"}
"""Keys of a claim record without a model's judgment."""

_LABELED = ("fact-graph", "factreasoner", "factscore", "factcheck-bench")
"""Formats of responses whose claims have labels but no model's judgments."""

_MOST_NAMED = 3
"""Number of responses that an error names."""

_GRID = 1_000_000
"""Number of grid positions for relative positions, fine enough for any edge of a bin."""


@dataclass(frozen=True)
class _Source:
    """A column of the model's judgments.

    Attributes:
        column: its name.
        setting: the setting of the source; None for the setting in the row.
        is_confidence: True if it contains numbers.
    """

    column: str
    setting: Setting | None
    is_confidence: bool = False


def read_judged_claims(data: Data, wanted: ClaimColumns) -> JudgedTable:
    """Read claims with a model's judgments, or with only labels and positions.

    Args:
        data: a file, the name of an embedded dataset, a data frame, or records.
        wanted: columns whose names do not show their roles.

    Raises:
        InputError: if the data cannot be read, and as `judged_claims`.
    """
    path = Path(data) if isinstance(data, str | os.PathLike) else None
    if path is not None and is_dataset(path):
        graphs = read_graphs(path)
        if any(VOTES_KEY in graph.metadata for graph in graphs):
            return judged_graphs(graphs, str(path))
        return placed_claims(claims_of_graphs(graphs, path))
    table = table_of(data)
    if _says_nothing_of_a_model(table):
        if path is not None:
            return placed_claims(load_claims(path))
        graphs = load_responses(cast("ResponsesIn", data)).graphs
        return placed_claims(claims_of_graphs(graphs, table.source))
    return judged_claims(table, wanted)


def _says_nothing_of_a_model(table: DataTable) -> bool:
    """Return True if a file has labels and positions of claims, but no model's judgments."""
    first = table.rows[0]
    if looks_like_record(first):
        unjudged = not any(row.get("judgments") or row.get("judgements") for row in table.rows)
        return table.form.startswith("JSON") and unjudged and set(table.columns) <= _PLACED
    form = format_of(first)
    return (
        form is not None
        and form.name in _LABELED
        and first.keys() >= set(form.keys)
        # Factcheck-Bench has sentences there, a table of claims their number.
        and isinstance(first.get("sentences", {}), Mapping)
    )


def judged_claims(table: DataTable, wanted: ClaimColumns) -> JudgedTable:
    """The claims of a table, whose responses may contain lists of claims (`rows_in_lists`).

    Args:
        table: the table.
        wanted: columns of the roles.

    Raises:
        InputError: if a column is missing or ambiguous, or a cell cannot be read; the message names
            the place.
    """
    columns = Columns(column_names_of(table), table.source, table.rows)
    wanted, known_layout = with_layout(columns.names, wanted)
    label = columns.required(LABEL, wanted.label)
    # Claims keep the order of their list, so lists of the same model stay separate.
    rows = rows_in_lists(table, label, repeated=False)
    reader = TableReader(rows, columns)
    fixed = _SETTINGS.get(folded(wanted.setting)) if wanted.setting not in columns.names else None
    at = _resolve(reader, wanted, label, has_setting=fixed is None)
    sources, kind = _answer_sources(reader, wanted)
    _refuse_taught(reader, sources, label)
    # Before rows are left out, so that unknown words are refused everywhere.
    labels = reader.labels(label, wanted)
    setting = fixed or _default_setting(reader, sources, kind)
    judged = _JudgedRows(reader, at, sources, labels, setting)
    # In lists of claims, the order distinguishes claims.
    identity = None if reader.is_nested else at.claim or columns.known(CLAIM_OR_WORDS)
    if identity is not None and (at.claim is None or kind == "confidence"):
        judged.leave_out_repeated(identity)
    groups = judged.by_group()
    asked = {
        setting
        for claims in groups.values()
        for claim in claims
        for setting in (*claim.answers, *claim.confidence)
    }
    if not asked:
        raise InputError(
            f"{table.source}: no labeled claim has an answer of the model; fill in "
            f"{' and '.join(repr(answer.column) for answer in sources)}"
        )
    reader.note_unused([answer.column for answer in sources], records=table)
    is_known = fixed is not None or at.setting is not None or sources[0].setting is not None
    return JudgedTable(
        groups=groups,
        settings={
            setting: setting.value.replace("_", " ") if is_known else ""
            for setting in Setting
            if setting in asked
        },
        kind=kind,
        has_positions=bool(at.in_order or at.sentence or at.position),
        has_sentences=at.sentence is not None,
        remarks=(
            *known_layout,
            *_remarks(columns, at, judged.n_unlabeled),
            *filter(None, [judged.repeats]),
            *labels.remarks(),
            *_comma_remarks(reader, sources),
            *filter(None, (share.remark() for share in judged.shares.values())),
            *filter(None, [rows.empty_remark()]),
        ),
    )


def _refuse_taught(reader: TableReader, sources: Sequence[_Source], label: str) -> None:
    """Refuse labels that trained the judgments of their own claims, and cannot measure them.

    Raises:
        InputError: if there are such labels, or a mark cannot be read.
    """
    marks = reader.marks(answer.column for answer in sources)
    taught = dict.fromkeys(
        str(reader.response_name(index))
        for index in range(len(reader))
        if reader.is_taught(index, marks) and folded(reader.cell(index, label))
    )
    if taught:
        some = ", ".join([*taught][:_MOST_NAMED]) + (", ..." if len(taught) > _MOST_NAMED else "")
        raise InputError(
            f"{reader.columns.where}: labels of {counted(len(taught), 'response')} ({some}) "
            "trained the judgments of their claims, and cannot evaluate them; give labels of "
            "other responses, or cross-fitted posteriors from factormodels fit"
        )


def placed_claims(claims: LabeledClaims) -> JudgedTable:
    """Labeled claims by position, without judgments of a model."""
    records = claims.records
    sentence = (
        f"{counted(len(records), 'labeled claim')} in "
        f"{len({(record.response, record.sentence) for record in records}):,} of "
        f"{counted(claims.n_sentences, 'sentence')}; {claims.n_annotated:,} of "
        f"{claims.n_responses:,} "
        "responses are annotated"
    )
    if claims.n_unlabeled:
        sentence += (
            f"; {counted(claims.n_unlabeled, 'claim')} without a label "
            f"{is_or_are(claims.n_unlabeled)} left out"
        )
    placed = tuple(
        JudgedClaim(each.response, each.claim, each.sentence, each.sentences, each.label)
        for each in records
    )
    return JudgedTable({("", ""): placed}, {}, "judgment", True, True, (f"{sentence}.",))


def judged_graphs(
    graphs: Sequence[FactGraph],
    source: str,
    confidence: Sequence[float] | None = None,
    setting: str | None = None,
) -> JudgedTable:
    """The claims of fact graphs with votes on atoms in their metadata, or with given confidences.

    Args:
        graphs: labeled responses, such as those of the dataset `selfcheck`.
        source: name of the responses.
        confidence: a number from 0 to 1 for every atom, in order, instead of votes.
        setting: setting in which the model was asked, as in `ClaimColumns`.

    Raises:
        InputError: if there are no votes and no confidences.
    """
    if confidence is None and not any(VOTES_KEY in graph.metadata for graph in graphs):
        raise InputError(f"{source}: it contains no votes on claims; name a file of claims")
    atoms = [(graph, atom) for graph in graphs for atom in graph.atoms]
    rows = tuple(
        {
            "response": graph.id,
            "sentence": atom.sentence,
            "sentences": graph.metadata["sentences"],
            "text": atom.text,
            "label": atom.label,
            **(
                {"votes": list(graph.metadata[VOTES_KEY][atom.id])}
                if confidence is None
                else {"confidence": confidence[number]}
            ),
        }
        for number, (graph, atom) in enumerate(atoms)
    )
    table = DataTable(source, "table", tuple(rows[0]), rows, (None,) * len(rows))
    return judged_claims(table, ClaimColumns(setting=setting))


def _comma_remarks(reader: TableReader, sources: Sequence[_Source]) -> Iterator[str]:
    """Yield sentences on judgments that are whole numbers with a decimal comma."""
    for answer in sources:
        if not answer.is_confidence:
            cells = (reader.cell(index, answer.column) for index in range(len(reader)))
            if remark := comma_remark(answer.column, cells):
                yield remark


def _remarks(columns: Columns, at: ClaimColumns, n_unlabeled: int) -> tuple[str, ...]:
    remarks = [columns.remark()] if columns.guessed else []
    if n_unlabeled:
        remarks.append(
            f"{counted(n_unlabeled, 'claim')} without a label {is_or_are(n_unlabeled)} left out."
        )
    if at.sentence and not at.sentences:
        remarks.append(
            "The number of sentences of a response is the last sentence with a claim, because "
            "no column gives it."
        )
    if not (at.in_order or at.sentence or at.position):
        remarks.append(
            "No column has the position of a claim, so nothing is reported by position: name one "
            "with --sentence or --position, or use --in-order if the claims are in order."
        )
    return tuple(remarks)


def _resolve(
    reader: TableReader, wanted: ClaimColumns, label: str, *, has_setting: bool
) -> ClaimColumns:
    """Find the column of each role, or None, and set the reader's column of responses."""
    columns, rows = reader.columns, reader.table.rows
    if not reader.is_nested:
        reader.response = columns.required(RESPONSE, wanted.group)
    elif wanted.group:
        # An object that holds claims is a response; its own name for it need not be known.
        reader.response = columns.given("--group", wanted.group)
    setting = columns.optional(SETTING, wanted.setting) if has_setting else None
    # A text that occurs twice is two claims, unless an option names it as the id.
    claim = None
    if wanted.claim is not None or setting is not None:
        claim = columns.optional(CLAIM_OR_WORDS, wanted.claim)
    sentence = columns.optional(SENTENCE, wanted.sentence)
    position = columns.optional(POSITION, wanted.position)
    if wanted.in_order and (wanted.sentence or wanted.position):
        option = "--sentence" if wanted.sentence else "--position"
        raise InputError(f"--in-order and {option} both set a claim's position; leave one out")
    if wanted.in_order:
        sentence = position = None
    known_columns = {
        "label": label,
        "group": reader.response,
        "claim": claim,
        "sentence": sentence,
        "sentences": columns.optional(SENTENCES, wanted.sentences),
        "position": None if sentence else position,
        "model_column": columns.filled(MODEL, rows, wanted.model_column),
        "condition": columns.filled(CONDITION, rows, wanted.condition),
        "setting": setting,
    }
    return wanted.model_copy(update=known_columns)


def _answer_sources(reader: TableReader, wanted: ClaimColumns) -> tuple[tuple[_Source, ...], str]:
    """Columns of the model's judgments, and their kind."""
    columns = reader.columns
    n_given = sum(map(bool, (wanted.judgment, wanted.confidence, wanted.votes)))
    if n_given > 1:
        raise InputError(
            "--judgment, --confidence and --votes exclude each other; give one of them"
        )
    if wanted.judgment:
        return tuple(_judgment(columns, text) for text in wanted.judgment), "judgment"
    if wanted.confidence:
        column = columns.given("--confidence", wanted.confidence)
        return (_Source(column, None, is_confidence=True),), "confidence"
    if wanted.votes:
        return tuple(_Source(columns.given("--votes", name), None) for name in wanted.votes), (
            "votes"
        )
    settings = [
        _Source(name, setting)
        for name in columns.names
        if (setting := _SETTINGS.get(folded(_PREFIX.sub("", name)))) is not None
    ]
    if settings:
        return tuple(settings), "judgment"
    for role in (JUDGMENT, VOTES, CONFIDENCE):
        # A column named "answer" may be the one that groups claims.
        if columns.known(role) in (None, reader.response):
            continue
        known_column = columns.required(role)
        source = _Source(known_column, None, is_confidence=role is CONFIDENCE)
        return (source,), role.meaning
    raise InputError(
        f"{columns.where}: no column is recognized as the model's judgments; "
        f"{_naming_judgments(reader)}; it has {columns.listed()}"
    )


def _naming_judgments(reader: TableReader) -> str:
    """Return advice on naming the column of the model's judgments, with a suggested column."""
    others = [name for name in reader.columns.names if name not in reader.columns.used]
    for role in (CONFIDENCE, JUDGMENT):
        likely = likely_column(role, others, reader.table.rows)
        if likely is not None:
            return f"name it, as in {as_option(role.option, likely)}"
    return "name it with --judgment, --confidence or --votes"


def _judgment(columns: Columns, text: str) -> _Source:
    setting, equals, column = text.partition("=")
    if not equals or text in columns.names:
        return _Source(columns.given("--judgment", text), None)
    if folded(setting) not in _SETTINGS:
        raise InputError(
            f"--judgment {text}: {setting!r} is not a setting; use one of {', '.join(Setting)}"
        )
    return _Source(columns.given("--judgment", column), _SETTINGS[folded(setting)])


class _JudgedRows:
    """The rows of a table as claims with judgments.

    Args:
        reader: the table.
        at: the columns of the roles.
        sources: columns of the model's judgments.
        labels: the labels.
        default_setting: the setting of judgments without a stated one.

    Attributes:
        shares: the columns of confidences.
        repeats: a sentence on repeated claims, or an empty string.
        n_unlabeled: number of rows without a label.
    """

    def __init__(
        self,
        reader: TableReader,
        at: ClaimColumns,
        sources: Sequence[_Source],
        labels: LabelColumn,
        default_setting: Setting,
    ) -> None:
        self.reader, self.at, self.sources, self.labels = reader, at, sources, labels
        self.default_setting = default_setting
        self.shares = {
            answer.column: reader.shares(answer.column, "a confidence")
            for answer in sources
            if answer.is_confidence
        }
        self.repeats = ""
        self.n_unlabeled = 0
        self._left_out = frozenset[int]()

    def leave_out_repeated(self, identity: str) -> None:
        """Leave out rows that repeat a claim, and record a sentence on them.

        Args:
            identity: the column that identifies a claim within its response.

        Raises:
            InputError: if two rows of a claim differ in the label or in the model's judgment.
        """
        at, reader = self.at, self.reader
        around = (at.model_column, at.condition, at.sentence, at.position, at.setting)
        claims = []
        for index in range(len(reader)):
            name, response = reader.name_if_any(index, identity), str(reader.response_name(index))
            row_identity = (*(reader.name_if_any(index, each) for each in around), response, name)
            stated = {
                answer.column: folded(reader.cell(index, answer.column)) for answer in self.sources
            }
            claims.append(
                reader.claim_row(
                    index,
                    row_identity if name else None,
                    f"claim {shown(name)} of response {response!r}",
                    {"label": label_word(self.labels.meanings[index])} | stated,
                )
            )
        mend = "keep one row per claim"
        if at.claim is None:
            mend += f", or give --claim {identity!r} if the rows of a claim are several answers"
        repeated = repeated_rows(claims, alike=False, advice=mend)
        self._left_out, self.repeats = frozenset(repeated), repeated_remark(claims, repeated)

    def by_group(self) -> dict[tuple[str, str], tuple[JudgedClaim, ...]]:
        """The claims by (model, condition), numbered within their response.

        A claim may have more than one row.

        Raises:
            InputError: if a cell cannot be read, or rows of a claim have different labels.
        """
        at, reader = self.at, self.reader
        texts = reader.columns.quietly(SHOWN_TEXT)
        groups: dict[tuple[str, str], dict[str, dict[str, JudgedClaim]]] = {}
        orders: dict[tuple[Any, ...], dict[str, int]] = {}
        lengths: Counter[tuple[Any, ...]] = Counter()
        for index in range(len(reader)):
            if index in self._left_out:
                continue
            group = (
                reader.name(index, at.model_column, "model") if at.model_column else "",
                reader.name(index, at.condition, "condition") if at.condition else "",
            )
            response = str(reader.response_name(index))
            claims = groups.setdefault(group, {}).setdefault(response, {})
            key = f"row {index}" if at.claim is None else reader.name(index, at.claim, "claim")
            earlier = orders.setdefault((group, response), {})
            order = earlier.setdefault(key, len(earlier) + 1)
            sentence = order if at.in_order else _sentence(reader, index, at)
            length = _length(reader, index, at, sentence)
            lengths[group, response] = max(lengths[group, response], length)
            label = self.labels.meanings[index]
            if label is None:
                self.n_unlabeled += 1
                continue
            text = "" if texts is None else reader.name_if_any(index, texts)
            claim = claims.setdefault(
                key, JudgedClaim(response, key, sentence, None, label, text=text)
            )
            if claim.label != label:
                raise InputError(
                    f"{reader.locate(index)}: claim {key!r} of response {response!r} is {label} "
                    f"here and {claim.label} earlier; give each claim a single label"
                )
            self._judge(claim, index)
        # The last row of a response determines its length.
        return {
            group: tuple(
                replace(
                    claim,
                    claim=f"a{number}" if at.claim is None else claim.claim,
                    sentences=lengths[group, response] or None,
                )
                for response, claims in responses.items()
                for number, claim in enumerate(claims.values(), 1)
            )
            for group, responses in groups.items()
        }

    def _judge(self, claim: JudgedClaim, index: int) -> None:
        """Add the judgments of a row to its claim."""
        for answer in self.sources:
            setting = answer.setting or self._setting(index)
            if answer.is_confidence:
                confidence = self.shares[answer.column].read(index)
                if confidence is not None:
                    claim.confidence[setting] = confidence
            elif answers := _answers(self.reader, index, answer.column):
                claim.answers[setting] = (*claim.answers.get(setting, ()), *answers)

    def _setting(self, index: int) -> Setting:
        column = self.at.setting
        if column is None:
            return self.default_setting
        word = self.reader.cell(index, column)
        if folded(word) not in _SETTINGS:
            raise InputError(
                f"{self.reader.locate(index, column)}: {shown(word)} is not a setting; use one of "
                f"{', '.join(Setting)}"
            )
        return _SETTINGS[folded(word)]


def _default_setting(reader: TableReader, sources: Sequence[_Source], kind: str) -> Setting:
    """Default setting of judgments: the third if there are three kinds of judgments."""
    three = kind == "judgment" and any(
        ModelJudgment.NEITHER in _answers(reader, index, answer.column)
        for index in range(len(reader))
        for answer in sources
    )
    return Setting.NONE_OF_THE_ABOVE if three else Setting.DIRECT_ASKING


def _sentence(reader: TableReader, index: int, at: ClaimColumns) -> int | None:
    """Index of the claim's sentence, or its position on the grid; None if unknown."""
    if at.sentence is not None:
        return _whole(reader, index, at.sentence)
    if at.position is None:
        return None
    position = reader.number(index, at.position, "a relative position")
    # Percents and shares are indistinguishable in (0, 1]; treat these values as shares.
    share = position / 100 if position > 1 else position
    if not 0 <= share <= 1:
        where = reader.locate(index, at.position)
        raise InputError(f"{where}: {position:g} is not a position; give a share or a percentage")
    return max(1, round(share * _GRID))


def _length(reader: TableReader, index: int, at: ClaimColumns, sentence: int | None) -> int:
    """Return the number of positions of the response, as far as this row states it."""
    if at.sentence is not None and at.sentences is not None:
        length = _whole(reader, index, at.sentences)
        if sentence is not None and sentence > length:
            where = reader.locate(index)
            raise InputError(f"{where}: sentence {sentence} of {length} does not exist; correct it")
        return length
    return _GRID if at.position is not None else sentence or 0


def _whole(reader: TableReader, index: int, column: str) -> int:
    value = reader.number(index, column, "a number of sentences")
    if value < 1 or not value.is_integer():
        where = reader.locate(index, column)
        raise InputError(f"{where}: {value:g} is not a sentence's position; count from 1")
    return int(value)


def _answers(reader: TableReader, index: int, column: str) -> list[ModelJudgment]:
    """Judgments in a cell, which may be a list, without missing ones."""
    value = reader.cell(index, column)
    several: Iterable[Any] = [value]
    if isinstance(value, list):
        several = value
    elif isinstance(value, str) and re.search(r"[|;]", value):
        several = re.split(r"[|;]", value)
    judgments = []
    for word in several:
        if folded(word) in ABSENT:
            continue
        # The column comes from questions with the options A, B and C.
        truth = truth_of(word, letters=True)
        if truth is None:
            raise InputError(
                f"{reader.locate(index, column)}: {shown(word)} is not a judgment; write correct "
                "or incorrect, yes or no, true or false, or A, B or C; leave the cell empty "
                "without a judgment"
            )
        judgments.append(truth)
    return judgments
