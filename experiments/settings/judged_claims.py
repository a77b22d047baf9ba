"""Claims with a label and what a model says of each, from a table in anybody's columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Annotated, Any

from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgement, Setting
from experiments.settings import USUAL, ColumnName, ColumnNames, Option
from experiments.settings.columns import (
    LABEL,
    MODEL,
    RESPONSE,
    Columns,
    LabelColumns,
    mark_columns,
    marks_of,
)
from experiments.settings.labelled_claims import LabelledClaims
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_rows import (
    ClaimRow,
    cell_name,
    label_word,
    repeated_remark,
    repeated_rows,
    required_name,
)
from factormodels.io.flat_rows import FlatRow, column_names_of, flat_rows
from factormodels.io.labels import LabelSpelling, comma_remark, label_spelling, meaning_remark
from factormodels.io.not_used import note_cells
from factormodels.io.published.self_judgements import ACCURATE, RIGHT, VOTES
from factormodels.io.table_numbers import Notation, cell_number, cell_share, notation_remark
from factormodels.io.tables import DataTable
from factormodels.learned_from import LearnedFrom, mark_of
from factormodels.nouns import counted, is_or_are
from factormodels.words import ABSENT, folded, truth_of

_SETTINGS: Mapping[str, Setting] = {
    **dict.fromkeys(("direct asking", "direct", "da"), Setting.DIRECT_ASKING),
    **dict.fromkeys(("question answering", "qa"), Setting.QUESTION_ANSWERING),
    **dict.fromkeys(
        ("none of the above", "nota", "noa", "qa noa", "qa nota", "question answering noa"),
        Setting.NONE_OF_THE_ABOVE,
    ),
}

_CLAIM = ("claim id", "claim", "atom id", "atom", "subclaim", "fact")
_SENTENCE = ("sentence", "sentence index", "sentence id", "sentence number")
_SENTENCES = ("sentences", "n sentences", "num sentences")
_POSITION = ("position", "relative position")
_JUDGEMENT = ("judgement", "judgment", "self judgement", "model judgement", "judged", "answer")
_CONFIDENCE = (
    *("confidence", "self confidence", "model confidence", "verbalised confidence"),
    *("verbalized confidence", "p true", "probability", "gpt score", "llm score", "model score"),
)
_VOTES = ("votes", "answers", "samples")
_CONDITION = ("condition",)
_SETTING = ("setting",)

_MOST_NAMED = 3
"""Responses that an error names."""

_GRID = 1_000_000
"""A relative position is a place on a grid so fine that no edge of a bin is missed."""


class ClaimColumns(LabelColumns):
    """Columns of the table."""

    group: Annotated[ColumnName, USUAL] = None
    """Id of the response that the claim belongs to."""

    judgement: Annotated[ColumnNames, Option("[SETTING=]COLUMN", usual=True)] = ()
    """What the model says: correct/incorrect, yes/no, A/B/C; repeatable by setting."""

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
    """What distinguishes answers, such as with and without retrieval."""

    setting: Annotated[str | None, Option("COLUMN|NAME")] = None
    """How the model was asked: a column, or direct_asking, question_answering or
    none_of_the_above."""


@dataclass(frozen=True)
class _Layout:
    """Columns by which the files of an owner are known, and what they mean.

    Attributes:
        owner: whose files they are.
        keys: columns that these files have.
        columns: what they mean; an option that is given goes before.
    """

    owner: str
    keys: frozenset[str]
    columns: ClaimColumns


_LAYOUTS = (
    _Layout(
        "tatsu-lab/conformal-factual-lm",
        frozenset(("subclaim", "gpt-score", "annotation")),
        ClaimColumns(label="annotation", true=(RIGHT,), confidence="gpt-score", in_order=True),
    ),
    _Layout(
        "SelfCheckGPT",
        frozenset(("main_sentences", "annotation", "responses.prompt")),
        ClaimColumns(
            label="annotation", true=(ACCURATE,), votes=("responses.prompt",), in_order=True
        ),
    ),
)


@dataclass
class JudgedClaim:
    """A claim with what the model says of it, gathered from one row or several.

    Attributes:
        response: id of its response.
        claim: its id there.
        sentence: its sentence, from 1; None where its position is not known.
        sentences: number of sentences, or of places, of its response.
        label: what a person says.
        answers: what the model answered, by setting, once or several times.
        confidence: its confidence, by setting.
    """

    response: str
    claim: str
    sentence: int | None
    sentences: int | None
    label: ClaimLabel
    answers: dict[Setting, tuple[ModelJudgement, ...]] = field(default_factory=dict)
    confidence: dict[Setting, float] = field(default_factory=dict)

    def score(self, setting: Setting) -> float | None:
        """The confidence, or the share of answers that say true; None where nothing was said."""
        if setting in self.confidence:
            return self.confidence[setting]
        answers = self.answers.get(setting, ())
        if not answers:
            return None
        return sum(answer is ModelJudgement.TRUE for answer in answers) / len(answers)

    def judgement(self, setting: Setting, threshold: float | None) -> ModelJudgement | None:
        """What the model says in a setting, at a threshold of its confidence or votes.

        Without a threshold the majority of several answers decides, and as many of one as of the
        other are neither.
        """
        answers = self.answers.get(setting, ())
        if len(answers) == 1 and setting not in self.confidence:
            return answers[0]
        score = self.score(setting)
        if score is None:
            return None
        if threshold is None and score == 0.5:
            return ModelJudgement.NEITHER
        reached = score >= threshold if threshold is not None else score > 0.5
        return ModelJudgement.TRUE if reached else ModelJudgement.FALSE


@dataclass(frozen=True)
class JudgedTable:
    """The claims of a table.

    Attributes:
        groups: claims by (model, condition); empty texts where there is no such column.
        settings: what the settings in which a model was asked are called, in the paper's order.
        kind: what the model gave: "judgement", "confidence" or "votes".
        has_positions: whether claims say where they stand.
        has_sentences: whether they say so by sentences.
        remarks: what a reader must know of how the table was read.
    """

    groups: Mapping[tuple[str, str], tuple[JudgedClaim, ...]]
    settings: Mapping[Setting, str]
    kind: str
    has_positions: bool
    has_sentences: bool
    remarks: tuple[str, ...]

    def records(self, group: tuple[str, str], threshold: float | None) -> list[ClaimRecord]:
        """Claims of a group as records, judged at a threshold; None: as `judgement` says."""
        return [
            ClaimRecord(
                claim.response,
                claim.sentence or 1,
                claim.sentences or 1,
                claim.claim,
                claim.label,
                *(claim.judgement(setting, threshold) for setting in Setting),
            )
            for claim in self.groups[group]
        ]


@dataclass(frozen=True)
class _Source:
    """A column of what the model says.

    Attributes:
        column: its name.
        setting: the setting it is of; None: that of the row.
        is_confidence: whether it holds numbers.
    """

    column: str
    setting: Setting | None
    is_confidence: bool = False


def judged_claims(table: DataTable, wanted: ClaimColumns) -> JudgedTable:
    """The claims of a table, whose responses may hold lists of them (`flat_rows`).

    Args:
        table: the table.
        wanted: which columns say what.

    Raises:
        InputError: if a column is not there or cannot be told, or a cell cannot be read; the
            message names the place.
    """
    source = table.source
    names = Columns(column_names_of(table), source)
    wanted, known = _as_known(names, wanted)
    label = names.required("--label", wanted.label, LABEL, "label")
    rows: Sequence[FlatRow] = flat_rows(table, label)
    fixed = _SETTINGS.get(folded(wanted.setting)) if wanted.setting not in names.names else None
    at = _columns(names, wanted, label, rows, has_setting=fixed is None)
    answer_sources, kind = _said(names, wanted)
    _refuse_taught(names, rows, at, answer_sources, label)
    spelling = label_spelling(
        (row.values.get(label) for row in rows),
        f"{source}: column {label!r}",
        wanted.true,
        wanted.irrelevant,
    )
    setting = fixed or _untold_setting(rows, answer_sources, kind)
    # In lists of claims the order tells them apart.
    identity = None if _are_nested(rows) else at.claim or names.known(_CLAIM)
    several = at.claim is not None and kind != "confidence"
    rows, repeated = _distinct(rows, identity, at, answer_sources, spelling, several=several)
    notations: dict[str, Counter[Notation]] = {}
    groups, n_unlabelled = _gathered(
        rows, at, answer_sources, spelling, setting, notations, table.rounding
    )
    asked = {
        setting
        for claims in groups.values()
        for claim in claims
        for setting in (*claim.answers, *claim.confidence)
    }
    if not asked:
        raise InputError(
            f"{source}: no labelled claim has an answer of the model; see that "
            f"{' and '.join(repr(answer.column) for answer in answer_sources)} is filled"
        )
    if table.form != "table":
        note_cells(table.rows, {*names.used, *(answer.column for answer in answer_sources)}, source)
    is_known = fixed is not None or at.setting is not None or answer_sources[0].setting is not None
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
            *known,
            *_remarks(names, at, n_unlabelled),
            *filter(None, [repeated]),
            *_comma_remarks(rows, answer_sources, label),
            *filter(
                None,
                [
                    meaning_remark(
                        label,
                        [row.values.get(label) for row in rows],
                        spelling,
                        table.classes.get(label, ()),
                    )
                ],
            ),
            *filter(None, starmap(notation_remark, notations.items())),
        ),
    )


def _refuse_taught(
    names: Columns,
    rows: Sequence[FlatRow],
    at: ClaimColumns,
    answer_sources: Sequence[_Source],
    label: str,
) -> None:
    """Refuse labels that taught what is said of their claims: they cannot tell how right it is.

    Raises:
        InputError: if there are some, or a mark cannot be read.
    """
    marked = mark_columns(names, [row.values for row in rows])
    columns = {mark for answer in answer_sources for mark in marks_of(marked, answer.column, names)}
    taught = dict.fromkeys(
        _response(row, at)
        for row in rows
        for mark in columns
        if mark_of(row.values.get(mark), row.where) is LearnedFrom.THIS_RESPONSE
        and folded(row.values.get(label))
    )
    if taught:
        some = ", ".join([*taught][:_MOST_NAMED]) + (", ..." if len(taught) > _MOST_NAMED else "")
        raise InputError(
            f"{names.where}: labels of {counted(len(taught), 'response')} ({some}) taught what is "
            "said of their claims, and cannot judge it; give labels of other responses, or "
            "cross-fitted posteriors, which factormodels fit writes"
        )


def placed_claims(claims: LabelledClaims) -> JudgedTable:
    """Labelled claims by where they stand, of which no model says anything."""
    records = claims.records
    sentence = (
        f"{counted(len(records), 'labelled claim')} in "
        f"{len({(record.response, record.sentence) for record in records}):,} of "
        f"{counted(claims.n_sentences, 'sentence')}; {claims.n_annotated:,} of "
        f"{claims.n_responses:,} "
        "responses are annotated"
    )
    if claims.n_unlabelled:
        sentence += (
            f"; {counted(claims.n_unlabelled, 'claim')} without a label "
            f"{is_or_are(claims.n_unlabelled)} left out"
        )
    placed = tuple(
        JudgedClaim(each.response, each.claim, each.sentence, each.sentences, each.label)
        for each in records
    )
    return JudgedTable({("", ""): placed}, {}, "judgement", True, True, (f"{sentence}.",))


def judged_graphs(
    graphs: Sequence[FactGraph],
    source: str,
    confidence: Sequence[float] | None = None,
    setting: str | None = None,
) -> JudgedTable:
    """The claims of fact graphs whose metadata hold votes on their atoms, or with confidences.

    Args:
        graphs: labelled responses, such as those of the dataset `selfcheck`.
        source: what they are called.
        confidence: a number from 0 to 1 of every atom, in order, in place of votes.
        setting: how the model was asked, as the setting of `ClaimColumns`.

    Raises:
        InputError: if there are no votes and no confidences.
    """
    if confidence is None and not any(VOTES in graph.metadata for graph in graphs):
        raise InputError(f"{source}: it holds no votes on claims; name a file of claims")
    atoms = [(graph, atom) for graph in graphs for atom in graph.atoms]
    rows = tuple(
        {
            "response": graph.id,
            "sentence": atom.sentence,
            "sentences": graph.metadata["sentences"],
            "label": atom.label,
            **(
                {"votes": list(graph.metadata[VOTES][atom.id])}
                if confidence is None
                else {"confidence": confidence[number]}
            ),
        }
        for number, (graph, atom) in enumerate(atoms)
    )
    table = DataTable(source, "table", tuple(rows[0]), rows, (None,) * len(rows))
    return judged_claims(table, ClaimColumns(setting=setting))


def _as_known(names: Columns, wanted: ClaimColumns) -> tuple[ClaimColumns, tuple[str, ...]]:
    """What is wanted with what is known of the owner's layout, and what is said of that."""
    layout = next((layout for layout in _LAYOUTS if layout.keys <= set(names.names)), None)
    if layout is None:
        return wanted, ()
    known = layout.columns
    if wanted.judgement or wanted.confidence or wanted.votes:
        known = known.model_copy(update={"confidence": None, "votes": ()})
    if wanted.sentence or wanted.position:
        known = known.model_copy(update={"in_order": False})
    if wanted.label:
        known = known.model_copy(update={"true": ()})
    updates = {
        name: value
        for name in ClaimColumns.model_fields
        if (value := getattr(wanted, name)) not in (None, (), False)
    }
    known = known.model_copy(update=updates)
    meanings = {
        "label": known.label,
        "true (every other label is false)": ", ".join(known.true),
        "confidence": known.confidence,
        "votes": ", ".join(known.votes),
        "claims in order": "yes" if known.in_order else "",
    }
    sentence = "; ".join(f"{meaning}: {value}" for meaning, value in meanings.items() if value)
    return known, (f"Known as a file of {layout.owner}. {sentence[0].upper()}{sentence[1:]}.",)


def _comma_remarks(
    rows: Sequence[FlatRow], answer_sources: Sequence[_Source], label: str
) -> Iterator[str]:
    """Sentences on labels and judgements that are whole numbers with a decimal comma."""
    for column in (
        label,
        *(answer.column for answer in answer_sources if not answer.is_confidence),
    ):
        if remark := comma_remark(column, (row.values.get(column) for row in rows)):
            yield remark


def _remarks(names: Columns, at: ClaimColumns, n_unlabelled: int) -> tuple[str, ...]:
    remarks = [names.remark()] if names.guessed else []
    if n_unlabelled:
        remarks.append(
            f"{counted(n_unlabelled, 'claim')} without a label {is_or_are(n_unlabelled)} left out."
        )
    if at.sentence and not at.sentences:
        remarks.append(
            "The number of sentences of a response is that of the last one with a claim, as no "
            "column says it."
        )
    if not (at.in_order or at.sentence or at.position):
        remarks.append(
            "No column says where a claim stands, so nothing is told by position: name one with "
            "--sentence or --position, or say --in-order if the claims stand in order."
        )
    return tuple(remarks)


def _columns(
    names: Columns, wanted: ClaimColumns, label: str, rows: Sequence[FlatRow], *, has_setting: bool
) -> ClaimColumns:
    """Where the columns are; None where there is none."""
    cells = [row.values for row in rows]
    nested = _are_nested(rows)
    response = (
        # An object that holds claims is a response; its own name for it need not be known.
        names.given("--group", wanted.group)
        if nested and wanted.group
        else None
        if nested
        else names.required("--group", wanted.group, RESPONSE, "response")
    )
    setting = (
        names.optional("--setting", wanted.setting, _SETTING, "setting") if has_setting else None
    )
    # A text that occurs twice is two claims, unless somebody says that it names one.
    claim = None
    if wanted.claim is not None or setting is not None:
        claim = names.optional("--claim", wanted.claim, _CLAIM, "claim")
    sentence = names.optional("--sentence", wanted.sentence, _SENTENCE, "sentence")
    position = names.optional("--position", wanted.position, _POSITION, "position")
    if wanted.in_order and (wanted.sentence or wanted.position):
        option = "--sentence" if wanted.sentence else "--position"
        raise InputError(f"--in-order and {option} both give a claim's position; leave one out")
    if wanted.in_order:
        sentence = position = None
    known_columns = {
        "label": label,
        "group": response,
        "claim": claim,
        "sentence": sentence,
        "sentences": names.optional("--sentences", wanted.sentences, _SENTENCES, "sentences"),
        "position": None if sentence else position,
        "model_column": names.filled("--model-column", wanted.model_column, MODEL, "model", cells),
        "condition": names.filled("--condition", wanted.condition, _CONDITION, "condition", cells),
        "setting": setting,
    }
    return wanted.model_copy(update=known_columns)


def _are_nested(rows: Sequence[FlatRow]) -> bool:
    return all(row.parent is not None for row in rows)


def _said(names: Columns, wanted: ClaimColumns) -> tuple[tuple[_Source, ...], str]:
    """Columns of what the model says, and what that is."""
    n_given = sum(map(bool, (wanted.judgement, wanted.confidence, wanted.votes)))
    if n_given > 1:
        raise InputError(
            "--judgement, --confidence and --votes are three forms of what the model says; give one"
        )
    if wanted.judgement:
        return tuple(_judgement(names, text) for text in wanted.judgement), "judgement"
    if wanted.confidence:
        column = names.given("--confidence", wanted.confidence)
        return (_Source(column, None, is_confidence=True),), "confidence"
    if wanted.votes:
        return tuple(_Source(names.given("--votes", name), None) for name in wanted.votes), "votes"
    settings = [
        _Source(name, setting)
        for name in names.names
        if (setting := _SETTINGS.get(folded(name.removeprefix("judgements.")))) is not None
    ]
    if settings:
        return tuple(settings), "judgement"
    for known, kind in ((_JUDGEMENT, "judgement"), (_VOTES, "votes"), (_CONFIDENCE, "confidence")):
        known_column = names.optional("", None, known, kind)
        if known_column is not None:
            return (_Source(known_column, None, is_confidence=kind == "confidence"),), kind
    raise InputError(
        f"{names.where}: no column is known to hold what the model says of its claims; name it "
        "with --judgement, --confidence or --votes; it has "
        f"{', '.join(names.names)}"
    )


def _judgement(names: Columns, text: str) -> _Source:
    setting, equals, column = text.partition("=")
    if not equals or text in names.names:
        return _Source(names.given("--judgement", text), None)
    if folded(setting) not in _SETTINGS:
        raise InputError(
            f"--judgement {text}: {setting!r} is not a setting; use one of {', '.join(Setting)}"
        )
    return _Source(names.given("--judgement", column), _SETTINGS[folded(setting)])


def _distinct(
    rows: Sequence[FlatRow],
    identity: str | None,
    at: ClaimColumns,
    answer_sources: Sequence[_Source],
    spelling: LabelSpelling,
    *,
    several: bool,
) -> tuple[Sequence[FlatRow], str]:
    """Rows without those that repeat a claim, and a sentence on these.

    Args:
        rows: the rows.
        identity: the column that identifies a claim within its response; None: there is none.
        at: where the columns are.
        said: columns of what the model says.
        spelling: of the labels.
        several: whether rows of one claim are several answers, which may be alike.

    Raises:
        InputError: if two rows of one claim differ in its label or in what the model says.
    """
    if identity is None or several:
        return rows, ""
    around = (at.model_column, at.condition, at.sentence, at.position, at.setting)
    claims = []
    for row in rows:
        name, response = cell_name(row.values.get(identity)), _response(row, at)
        row_identity = (
            *(cell_name(row.values.get(column or "")) for column in around),
            response,
            name,
        )
        claims.append(
            ClaimRow(
                row_identity if name else None,
                f"claim {shown(name)} of response {response!r}",
                {"label": label_word(spelling.read(row.values.get(str(at.label))))}
                | {
                    answer.column: folded(row.values.get(answer.column))
                    for answer in answer_sources
                },
                row.values,
                row.where,
            )
        )
    mend = "keep one row of each claim"
    if at.claim is None:
        mend += f", or say --claim {identity!r} if rows of one claim are several answers"
    repeated = repeated_rows(claims, alike=False, mend=mend)
    left = [row for number, row in enumerate(rows) if number not in set(repeated)]
    return left, repeated_remark(claims, repeated)


def _gathered(
    rows: Sequence[FlatRow],
    at: ClaimColumns,
    answer_sources: Sequence[_Source],
    spelling: LabelSpelling,
    untold: Setting,
    notations: dict[str, Counter[Notation]],
    rounding: Mapping[str, float],
) -> tuple[dict[tuple[str, str], tuple[JudgedClaim, ...]], int]:
    """The claims of rows, in which a claim may stand more than once, by (model, condition).

    Args:
        rows: the rows.
        at: where the columns are.
        said: columns of what the model says.
        spelling: of the labels.
        untold: the setting of what no column says it of.
        notations: where it is counted how confidences are written, by column.
        rounding: of columns of coarse numbers, as `DataTable` has it.

    Returns:
        The claims, numbered within their response, and how many rows have no label.
    """
    groups: dict[tuple[str, str], dict[str, dict[str, JudgedClaim]]] = {}
    seen: dict[tuple[Any, ...], dict[str, int]] = {}
    lengths: Counter[tuple[Any, ...]] = Counter()
    n_unlabelled = 0
    for number, row in enumerate(rows):
        group = (
            _name(row, at.model_column, "model") if at.model_column else "",
            _name(row, at.condition, "condition") if at.condition else "",
        )
        name = _response(row, at)
        claims = groups.setdefault(group, {}).setdefault(name, {})
        key = f"row {number}" if at.claim is None else _name(row, at.claim, "claim")
        orders = seen.setdefault((group, name), {})
        order = orders.setdefault(key, len(orders) + 1)
        sentence = order if at.in_order else _sentence(row, at)
        lengths[group, name] = max(lengths[group, name], _length(row, at, sentence))
        label = spelling.read(row.values.get(str(at.label)))
        if label is None:
            n_unlabelled += 1
            continue
        claim = claims.setdefault(key, JudgedClaim(name, key, sentence, None, label))
        if claim.label != label:
            raise InputError(
                f"{row.where}: claim {key!r} of response {name!r} is {label} here and "
                f"{claim.label} before; give each claim one label"
            )
        for answer in answer_sources:
            setting = answer.setting or _setting(row, at.setting, untold)
            value = row.values.get(answer.column)
            location = f"{row.where}: column {answer.column!r}"
            if answer.is_confidence:
                confidence, notation = cell_share(
                    value, location, "a confidence", rounding.get(answer.column, 0.0)
                )
                notations.setdefault(answer.column, Counter()).update(notation)
                if confidence is not None:
                    claim.confidence[setting] = confidence
            elif answers := _answers(value, location):
                claim.answers[setting] = (*claim.answers.get(setting, ()), *answers)
    # How long a response is, its last row tells.
    return {
        group: tuple(
            replace(claim, claim=f"a{number}", sentences=lengths[group, name] or None)
            for name, claims in responses.items()
            for number, claim in enumerate(claims.values(), 1)
        )
        for group, responses in groups.items()
    }, n_unlabelled


def _setting(row: FlatRow, column: str | None, untold: Setting) -> Setting:
    if column is None:
        return untold
    word = row.values.get(column)
    if folded(word) not in _SETTINGS:
        raise InputError(
            f"{row.where}: column {column!r}: {shown(word)} is not a setting; use one of "
            f"{', '.join(Setting)}"
        )
    return _SETTINGS[folded(word)]


def _untold_setting(
    rows: Sequence[FlatRow], answer_sources: Sequence[_Source], kind: str
) -> Setting:
    """Setting of judgements of which it is not said: the third if there are three of them."""
    three = any(
        ModelJudgement.NEITHER
        in _answers(row.values.get(answer.column), f"{row.where}: column {answer.column!r}")
        for row in rows
        for answer in answer_sources
        if kind == "judgement"
    )
    return Setting.NONE_OF_THE_ABOVE if three else Setting.DIRECT_ASKING


def _name(row: FlatRow, column: str, what: str) -> str:
    return required_name(row.values.get(column), f"{row.where}, column {column!r}", what)


def _response(row: FlatRow, at: ClaimColumns) -> str:
    return str(row.parent) if at.group is None else _name(row, at.group, "response")


def _sentence(row: FlatRow, at: ClaimColumns) -> int | None:
    """Index of the claim's sentence, or its place on the grid; None where neither is told."""
    if at.sentence is not None:
        return _whole(row, at.sentence)
    if at.position is None:
        return None
    location = f"{row.where}: column {at.position!r}"
    position = _number(row.values.get(at.position), location, "a relative position")
    # Percents and shares cannot be told apart in (0, 1]; no response begins at one percent only.
    share = position / 100 if position > 1 else position
    if not 0 <= share <= 1:
        raise InputError(f"{location}: {position:g} is not a position; give a share or percents")
    return max(1, round(share * _GRID))


def _length(row: FlatRow, at: ClaimColumns, sentence: int | None) -> int:
    """How many places the response has, as far as this row tells."""
    if at.sentence is not None and at.sentences is not None:
        length = _whole(row, at.sentences)
        if sentence is not None and sentence > length:
            raise InputError(
                f"{row.where}: sentence {sentence} of {length} does not exist; mend it"
            )
        return length
    return _GRID if at.position is not None else sentence or 0


def _whole(row: FlatRow, column: str) -> int:
    location = f"{row.where}: column {column!r}"
    value = _number(row.values.get(column), location, "a number of sentences")
    if value < 1 or not value.is_integer():
        raise InputError(f"{location}: {value:g} is not a sentence's position; count from 1")
    return int(value)


def _number(value: Any, location: str, what: str) -> float:
    try:
        number, _ = cell_number(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{location}: {shown(value)} is not a number; give {what}") from None
    if not math.isfinite(number):
        raise InputError(f"{location}: {shown(value)} is not finite; give {what}")
    return number


def _answers(value: Any, location: str) -> list[ModelJudgement]:
    """Judgements in a cell: one, or a list of several; those that are absent left out."""
    several: Iterable[Any] = [value]
    if isinstance(value, list):
        several = value
    elif isinstance(value, str) and re.search(r"[|;]", value):
        several = re.split(r"[|;]", value)
    judgements = []
    for word in several:
        if folded(word) in ABSENT:
            continue
        # Whoever writes such a column has offered A, B and C.
        truth = truth_of(word, letters=True)
        if truth is None:
            raise InputError(
                f"{location}: {shown(word)} is not a judgement; write correct or incorrect, yes or "
                "no, true or false, or A, B or C; empty where there is none"
            )
        judgements.append(truth)
    return judgements
