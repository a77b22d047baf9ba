"""Probabilities with labels from a file, a frame or responses: a row per claim and model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from experiments.evaluators.assessed_metadata import check_posteriors
from experiments.evaluators.response import METADATA_KEY
from experiments.findings.table import data_frame
from experiments.findings.text import some_of
from experiments.settings import USUAL, ColumnName, ColumnNames, Settings
from experiments.settings.columns import (
    LABEL,
    MODEL,
    PROBABILITY,
    RESPONSE,
    Columns,
    LabelColumns,
    mark_columns,
    marks_of,
)
from experiments.settings.inputs import check_named, is_dataset, read_graphs
from experiments.study.cell_names import CELL
from factormodels.claims import ClaimLabel
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
from factormodels.io.class_names import class_columns, with_class_names
from factormodels.io.fact_graph_json import fact_graph_object
from factormodels.io.labels import (
    LabelSpelling,
    comma_remark,
    label_spelling,
    meaning_remark,
)
from factormodels.io.not_used import note_cells
from factormodels.io.published.evaluation_logs import KEYS, scored_rows
from factormodels.io.published.formats import format_of
from factormodels.io.table_numbers import Notation, cell_share, notation_remark
from factormodels.io.tables import DataTable, given_classes, given_rows, read_table
from factormodels.learned_from import LEARNED_FROM, LearnedFrom, mark_of, relations_mark
from factormodels.nouns import counted, is_or_are
from factormodels.recorded_verdicts import recorded_marks, recorded_verdicts
from factormodels.words import NO_LABEL, folded
from inference import infer_batch

if TYPE_CHECKING:
    import pandas as pd

    Data = str | os.PathLike[str] | pd.DataFrame | DataTable | Iterable[Mapping[str, Any]]

_JUDGED = ("fact-graph", "factreasoner", "factreasoner-results")
"""Formats of responses that may carry verdicts."""

AS_GIVEN = "as given"
"""What posteriors of graphs that carry no verdicts are called: those of inference."""

_ROUNDINGS = {2: 2.0**-10, 4: 2.0**-23}
"""Distance from 1 to the next number of float16 and float32, by their bytes."""

IN_MEMORY = "the table"
"""What a table that is not a file is called."""


def table_of(data: Data) -> DataTable:
    """The table of a file, an embedded dataset, a data frame, or records.

    Raises:
        InputError: if the file cannot be read, or there is no row.
    """
    if isinstance(data, DataTable):
        return data
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if is_dataset(path):
            graphs = tuple(map(fact_graph_object, read_graphs(path)))
            names = tuple(dict.fromkeys(name for graph in graphs for name in graph))
            return DataTable(str(data), "fact-graph", names, graphs, (None,) * len(graphs))
        if str(path) != "-":
            check_named(path)
        return read_table(data)
    records = given_rows(data)
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            kind = type(record).__name__
            raise InputError(f"row {number} is a {kind}; give a mapping from columns to values")
    if not records:
        raise InputError(f"{IN_MEMORY} has no rows; give at least one")
    classes = given_classes(data, IN_MEMORY)
    rows = tuple(
        with_class_names(
            {str(key): value for key, value in record.items()},
            classes,
            f"{IN_MEMORY}, row {number}",
        )
        for number, record in enumerate(records, 1)
    )
    return DataTable(
        IN_MEMORY,
        "table",
        tuple(dict.fromkeys(name for row in rows for name in row)),
        rows,
        (None,) * len(rows),
        dict(class_columns(classes)),
        _roundings(data),
    )


def _roundings(frame: Any) -> dict[str, float]:
    """Distance from 1 to the next number, of the columns of float32 and float16 of a frame."""
    kinds: Any = getattr(frame, "dtypes", None)
    roundings: dict[str, float] = {}
    for name, kind in kinds.items() if hasattr(kinds, "items") else ():
        if getattr(kind, "kind", "") == "f" and kind.itemsize in _ROUNDINGS:
            roundings[str(name)] = _ROUNDINGS[kind.itemsize]
    return roundings


def judged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]]:
    """A row per claim or sample, if the records carry verdicts of such, and who gave these.

    Of fact graphs and of outputs of other tools: columns response, claim, text, answer (the whole
    response), label, and P(true) of each assessor by name and of each variant under which we
    assessed the response ourselves, None where there is none; and beside the P(true) of an assessor
    that learned from labels, the mark of `LearnedFrom`. Of logs of evaluation tools: a row per
    sample, with the columns of `scored_rows`. Another table stays as it is.

    Raises:
        InputError: if a record is malformed.
    """
    logged = _logged_table(table)
    if logged is not None:
        return logged
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    models: dict[str, None] = {}
    marked: dict[str, None] = {}
    graphs: list[FactGraph] = []
    for record, line in zip(table.rows, table.lines, strict=True):
        form = format_of(record)
        if form is None or form.name not in _JUDGED or not record.keys() >= set(form.keys):
            return table, ()
        graph: FactGraph = form.parse(record, table.source, line)
        graphs.append(graph)
        by_model = posteriors_by_model(graph, table.source)
        models |= dict.fromkeys(by_model)
        marks = marks_by_model(graph)
        marked |= dict.fromkeys(marks)
        for atom in graph.atoms:
            rows.append(
                {
                    "response": graph.id,
                    "claim": atom.id,
                    "text": atom.text,
                    "answer": graph.response,
                    "label": atom.label,
                    **{model: p[atom.id] for model, p in by_model.items() if atom.id in p},
                    **{mark_column(model): str(mark) for model, mark in marks.items()},
                }
            )
            lines.append(line)
    if not models:
        # Graphs that nobody has judged are judged as they stand.
        models = {AS_GIVEN: None}
        answers = infer_batch([graph.to_factor_graph() for graph in graphs], "auto")
        told_p = [p for a, g in zip(answers, graphs, strict=True)
                  for p in a.marginals.of_state(1)[: len(g.atoms)].tolist()]  # fmt: skip
        for row, p in zip(rows, told_p, strict=True):
            row[AS_GIVEN] = p
    marks_of_models = [mark_column(model) for model in models if model in marked]
    columns = ("response", "claim", "text", "answer", "label", *models, *marks_of_models)
    return DataTable(table.source, table.form, columns, tuple(rows), tuple(lines)), tuple(models)


def _logged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]] | None:
    """The table of a log's samples and its scorers; None where the records are of no log."""
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    for record, line in zip(table.rows, table.lines, strict=True):
        scored = scored_rows(record, table.source, line)
        if scored is None:
            return None
        rows += scored
        lines += [line] * len(scored)
    scorers = tuple(dict.fromkeys(name for row in rows for name in row if name not in KEYS))
    columns = (*KEYS, *scorers)
    return DataTable(table.source, table.form, columns, tuple(rows), tuple(lines)), scorers


def posteriors_by_model(graph: FactGraph, source: str) -> dict[str, dict[str, float | None]]:
    """P(true) of the claims of a response by who judged them: other tools, and our variants.

    Args:
        graph: the response.
        source: its file, for messages.

    Raises:
        InputError: if its metadata lack, or garble, what an assessment has.
    """
    by_model = {
        name: {atom: verdict.p_true for atom, verdict in verdicts.items()}
        for name, verdicts in recorded_verdicts(graph).items()
    }
    if METADATA_KEY in graph.metadata:
        check_posteriors(graph, source)
    for variant, view in graph.metadata.get(METADATA_KEY, {}).items():
        unanswered = view.get("unanswered", ())
        by_model[variant] = {
            atom: None if atom in unanswered else judged["p"]
            for atom, judged in view.get("atoms", {}).items()
        }
    return by_model


def marks_by_model(graph: FactGraph) -> dict[str, LearnedFrom]:
    """Labels that taught the posteriors of a response, by the names of `posteriors_by_model`.

    Posteriors from relations, among them `AS_GIVEN`, have the mark of the relation model.
    """
    marks = recorded_marks(graph)
    of_relations = relations_mark(graph)
    if of_relations is not None:
        marks |= dict.fromkeys((*graph.metadata.get(METADATA_KEY, {}), AS_GIVEN), of_relations)
    return marks


def mark_column(model: str) -> str:
    """Name of the column that tells from which labels a model's probabilities were learned."""
    return f"{model}_{LEARNED_FROM}"


def name_of(data: Data) -> str:
    """What data are called: the name of the file, or `IN_MEMORY`."""
    return Path(data).name if isinstance(data, str | os.PathLike) else IN_MEMORY


_DATA = ("dataset", "data", "benchmark", "split")
_RESPONSE = ("response", "response id")
_CLAIM = ("claim id", "claim", "atom id", "atom")
_CLAIM_TEXT = (
    *("claim text", "atom text", "subclaim", "fact", "atomic fact", "statement", "proposition"),
)
_ANY_TEXT = ("text", "content")
"""Names of columns of texts, which may be of claims or of whole responses."""


class TaughtSettings(Settings):
    """What becomes of probabilities that labels of the same response taught."""

    leave_out_taught: bool = False
    """Leave out responses whose own labels taught the probabilities, as files of `fit` and `apply`
    mark them; otherwise such labels are refused."""


class ProbabilityColumns(LabelColumns):
    """Columns of the table."""

    p: Annotated[ColumnNames, USUAL] = ()
    """Probability of being true; repeat it for several models."""

    group: Annotated[ColumnName, USUAL] = None
    """The response that the claim belongs to; without one, every claim is its own."""

    by: Annotated[ColumnNames, USUAL] = ()
    """What to score separately: model, dataset; repeatable."""

    claim: ColumnName = None
    """Id of the claim within its response, used to pair models."""


def probability_frame(
    table: DataTable,
    columns: ProbabilityColumns,
    *,
    labelled: bool = True,
    judges: bool = False,
) -> tuple[pd.DataFrame, list[str]]:
    """Probabilities, labels, groups, models and data in columns of known names, and remarks.

    Columns: p, y (True, False, or None without a label that counts), irrelevant (whether a label
    says that it does not count), place (row of the table), group, claim, by (values of
    `columns.by`), column (which p) and taught (whether labels of the response taught p). What parts
    models and data is in `attrs`, for `model_parts`.

    Args:
        table: the table.
        columns: which columns are what, where their names do not tell.
        labelled: whether it must have labels.
        judges: whether models judge the same responses, so that a claim has one label under all.

    Raises:
        InputError: if a column is missing, a cell is no probability or label, or rows of one claim
            state different things.
    """
    names = Columns(table.columns, table.source)
    chosen = [names.given("--p", name) for name in columns.p]
    unlabelled = labelled and columns.label is None and names.known(LABEL) is None
    lacking = {"label": "--label"} if unlabelled else {}
    probabilities = chosen or [
        names.required("--p", None, PROBABILITY, "probability", lacking=lacking)
    ]
    label = names.optional("--label", columns.label, LABEL, "label")
    if label is None and labelled:
        label = names.required("--label", columns.label, LABEL, "label")
    group = names.filled("--group", columns.group, RESPONSE, "response", table.rows)
    claim = names.filled("--claim", columns.claim, _CLAIM, "claim", table.rows)
    # What a claim says identifies it where nothing else does.
    text_column = names.known((*_CLAIM_TEXT, "text")) if claim and group else None
    if text_column in (None, claim) or not _differs_within(
        table.rows, str(group), str(text_column)
    ):
        # It is the id itself, or what the whole response says.
        text_column = None
    text = claim or names.filled("", None, _CLAIM_TEXT, "claim text", table.rows)
    if text is None and group is not None:
        texts = names.filled("", None, _ANY_TEXT, "claim text", table.rows)
        if texts is not None and _differs_within(table.rows, group, texts):
            text = texts
        else:
            names.guessed.pop("claim text", None)
    by = [names.given("--by", name) for name in columns.by]
    if not by and len(probabilities) == 1:
        known = [n for n in names.names if folded(n) in {*MODEL, *_DATA} or n in CELL]
        # Those that hold more than one value.
        by = [name for name in known if len({str(row.get(name)) for row in table.rows}) > 1]
        if by:
            names.guessed["model"] = ", ".join(by)
    # Elsewhere a model may have written the responses, and its claims have labels of their own.
    of_models = [name for name in by if judges and folded(name) in MODEL]
    labels = [None if label is None else row.get(label) for row in table.rows]
    where = f"{table.source}: column {label!r}"
    spelling = labels_spelling(labels, where, columns, labelled=labelled)
    rows: list[dict[str, Any]] = []
    claims: list[ClaimRow] = []
    labels_alone: list[ClaimRow] = []
    labels_of_all: list[ClaimRow] = []
    marked = mark_columns(names, table.rows)
    marks = {column: marks_of(marked, column, names) for column in probabilities}
    needed = [name for name in (*by, group, claim) if name is not None]
    unanswered = 0
    notations = {column: Counter[Notation]() for column in probabilities}
    for index, row in enumerate(table.rows):
        meaning = None if spelling is None else spelling.read(labels[index])
        answers: dict[str, float] = {}
        for column in probabilities:
            p, notation = cell_share(
                row.get(column),
                table.place(index, column),
                "a probability",
                table.rounding.get(column, 0.0),
            )
            notations[column].update(notation)
            if p is None:
                unanswered += 1
            else:
                answers[column] = p
        if not answers and (
            meaning is None or not all(cell_name(row.get(name)) for name in needed)
        ):
            continue
        key = tuple(
            # Columns of a study's own rows may be empty.
            part_name(row.get(name)) if name in CELL else _name(table, index, name, name)
            for name in by
        )
        owner = index if group is None else _name(table, index, group, "response")
        claim_id = None if claim is None else _name(table, index, claim, "claim")
        wording = claim_id or cell_name(row.get(text or "")) or None
        # Of unknown responses many may have a claim c1; words are those of one claim.
        identity = wording if group is not None or len((wording or "").split()) > 1 else None
        of_label = ClaimRow(
            None if identity is None else (*key, "" if group is None else str(owner), identity),
            f"claim {shown(wording)}" + ("" if group is None else f" of response {owner!r}"),
            {"label": label_word(meaning)},
            row,
            table.place(index),
            "" if text_column is None else cell_name(row.get(text_column)),
        )
        if meaning is not None:
            labels_alone.append(of_label)
            if identity is not None and group is not None and of_models:
                # Whatever a model says of it, a claim has one label.
                data = tuple(part for part, name in zip(key, by, strict=True)
                             if name not in of_models)  # fmt: skip
                of_all = (*data, str(owner), identity, of_label.text)
                labels_of_all.append(replace(of_label, claim=of_all))
        if not answers:
            continue
        of_answers = {
            _probability_of(name, probabilities): answers.get(name) for name in probabilities
        }
        claims.append(replace(of_label, stated={**of_label.stated, **of_answers}))
        rows.append(
            {
                "p": answers,
                "y": truth(meaning),
                "irrelevant": meaning is ClaimLabel.IRRELEVANT,
                "place": index,
                "group": owner,
                "claim": claim_id,
                "by": key,
                "taught": {
                    column: any(
                        mark_of(row.get(mark), table.place(index, mark))
                        is LearnedFrom.THIS_RESPONSE
                        for mark in marks[column]
                    )
                    for column in answers
                },
            }
        )
    if not rows:
        raise InputError(f"{table.source}: column {probabilities[0]!r} holds no probability")
    repeated = repeated_rows(claims, alike=group is None, mend=_mend(group))
    # A row without a probability is left out, but its label may contradict that of another row.
    repeated_rows(labels_alone, alike=group is None, mend=_mend(group))
    repeated_rows(labels_of_all, alike=False, mend=_mend_of_models(group, of_models))
    remark = repeated_remark(claims, repeated)
    for position in reversed(repeated):
        del rows[position]
    frame = data_frame(
        [
            {**row, "p": p, "column": column, "taught": row["taught"][column]}
            for row in rows
            for column, p in row["p"].items()
        ]
    )
    remarks = [names.remark()] if names.guessed else []
    remarks += filter(None, [remark, comma_remark(str(label), labels)])
    if label is not None and spelling is not None:
        classes = table.classes.get(label, ())
        remarks += filter(None, [meaning_remark(label, labels, spelling, classes)])
    remarks += filter(None, starmap(notation_remark, notations.items()))
    for column in probabilities:
        if all(column not in row["p"] for row in rows):
            remarks.append(f"Column {column!r} has no value: it is left out.")
            unanswered -= len(table.rows)
    if unanswered:
        remarks.append(
            f"{counted(unanswered, 'row')} without a probability {is_or_are(unanswered)} left out."
        )
    if group is None:
        remarks.append(
            "No column says which claims are of one response, so claims are taken as independent; "
            "name it with --group."
        )
        frame.attrs["ungrouped"] = True
    elif columns.group is None and folded(group) not in _RESPONSE and _are_single(rows):
        remarks.append(
            f"No two rows have one value of {group!r}, so claims are taken as independent; if "
            "another column says which are of one response, name it with --group."
        )
    frame.attrs["used"] = [*names.used, *by]
    frame.attrs["by"] = by
    frame.attrs["columns"] = probabilities
    return frame, remarks


def without_taught(
    frame: pd.DataFrame,
    labelled: Any,
    source: str,
    settings: TaughtSettings,
    remarks: list[str],
) -> pd.DataFrame:
    """The frame without responses whose own labels taught its probabilities.

    Args:
        frame: as `probability_frame` makes it.
        labelled: bool (n,), which of its rows have a label that is to be used.
        source: what the data are called.
        settings: whether such responses may be left out.
        remarks: what is left out is added to them.

    Raises:
        InputError: if such a response has a label and is not to be left out, or none is left.
    """
    taught = frame["group"].isin(frame.loc[frame["taught"], "group"])
    if not taught.any():
        return frame
    named = frame.loc[taught & labelled, "group"].unique().tolist()
    if named and not settings.leave_out_taught:
        raise InputError(
            f"{source}: labels of {counted(len(named), 'response')} ({some_of(named)}) taught the "
            "probabilities, and cannot judge or correct them; give labels of other responses, or "
            "cross-fitted posteriors, which factormodels fit writes, or leave these responses out "
            "with --leave-out-taught"
        )
    left_out = frame.loc[taught, "group"].unique().tolist()
    if taught.all():
        raise InputError(
            f"{source}: labels of all {counted(len(left_out), 'response')} taught the "
            "probabilities; give other responses, or cross-fitted posteriors, which factormodels "
            "fit writes"
        )
    remarks.append(
        f"{counted(len(left_out), 'response')} ({some_of(left_out)}) "
        f"{'is' if len(left_out) == 1 else 'are'} left out: their labels taught the probabilities."
    )
    kept = frame[~taught].reset_index(drop=True)
    kept.attrs.update(frame.attrs)
    return kept


def _are_single(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are several rows, and no two of one response and model."""
    return len({(row["by"], row["group"]) for row in rows}) == len(rows) > 1


def _name(table: DataTable, index: int, column: str, what: str) -> str:
    return required_name(table.rows[index].get(column), table.place(index, column), what)


def part_name(value: Any) -> str:
    """Name of a part of a table: of a model, of data, or of a cell of a study."""
    return cell_name(value) or str(value)


def _differs_within(rows: Sequence[Mapping[str, Any]], group: str, column: str) -> bool:
    """Whether some rows of one response differ in a column, as in the texts of their claims."""
    first: dict[str, str] = {}
    return any(
        first.setdefault(cell_name(row.get(group)), value) != value
        for row in rows
        if (value := cell_name(row.get(column)))
    )


def _probability_of(column: str, probabilities: Sequence[str]) -> str:
    return "probability" if len(probabilities) == 1 else f"probability {column!r}"


def _mend(group: str | None) -> str:
    """What to do about rows of one claim that differ."""
    if group is None:
        return "name the column of the responses with --group, or keep one row of each claim"
    parted = "or part the rows by a column that tells them apart with --by"
    return f"keep one row of each claim, {parted}, or name another column of ids with --claim"


def _mend_of_models(group: str | None, models: Sequence[str]) -> str:
    """What to do about a claim whose label differs between models."""
    return (
        f"correct one of them, or give answers of different models ids of their own in {group!r} "
        f"({', '.join(map(repr, models))} alone does not tell responses apart)"
    )


def judged_frame(
    data: Data, columns: ProbabilityColumns, *, labelled: bool = True, judges: bool = False
) -> tuple[pd.DataFrame, DataTable, list[str]]:
    """What `probability_frame` makes of data, the table that they are, and remarks.

    Of records that carry verdicts, the probabilities are those of everybody who gave some, where
    no column is named.

    Raises:
        InputError: as `table_of`, `judged_table` and `probability_frame`.
    """
    table, assessors = judged_table(table_of(data))
    asked = columns if columns.p else columns.model_copy(update={"p": assessors})
    frame, remarks = probability_frame(table, asked, labelled=labelled, judges=judges)
    # Other records have become columns of ours.
    if not assessors and table.form != "table":
        note_cells(table.rows, frame.attrs["used"], table.source)
    return frame, table, remarks


def labels_spelling(
    values: Sequence[Any], where: str, columns: LabelColumns, *, labelled: bool = True
) -> LabelSpelling | None:
    """How labels are spelled; None if there is none and there need not be.

    Raises:
        InputError: for words of no known spelling and, if there must be labels, if there is none.
    """
    if not labelled and all(folded(value) in NO_LABEL for value in values):
        return None
    return label_spelling(values, where, columns.true, columns.irrelevant)


def read_labels(
    values: Sequence[Any], where: str, columns: LabelColumns, *, labelled: bool = True
) -> list[ClaimLabel | None]:
    """Labels in whatever words a column has them, None where there is none.

    Raises:
        InputError: as `labels_spelling`.
    """
    spelling = labels_spelling(values, where, columns, labelled=labelled)
    return [None if spelling is None else spelling.read(value) for value in values]


def truth(told: ClaimLabel | None) -> bool | None:
    """Whether a label says that a claim is true; None if there is none that counts."""
    return None if told in (None, ClaimLabel.IRRELEVANT) else told is ClaimLabel.SUPPORTED


def model_parts(frame: pd.DataFrame, remarks: list[str]) -> dict[str, pd.DataFrame]:
    """The frame by data, with the models in a column; what parts responses is data.

    Raises:
        InputError: if two models, or two sets of data, have one name.
    """
    by: list[str] = frame.attrs["by"]
    of_data = [
        index
        for index, name in enumerate(by)
        if folded(name) in _DATA
        or frame.assign(part=[key[index] for key in frame["by"]])
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
        return ", ".join(key[index] for index in places)

    rest = [index for index in range(len(by)) if index not in of_data]
    models = [
        ", ".join(filter(None, (joined(key, rest), column if several else "")))
        for key, column in zip(frame["by"], frame["column"], strict=True)
    ]
    single = frame.attrs["columns"][0]
    data = [joined(key, of_data) for key in frame["by"]]
    named = frame.assign(model=[model or single for model in models], data=data)
    first: dict[tuple[str, str], Sequence[str]] = {}
    for key, model, of in zip(frame["by"], models, data, strict=True):
        if tuple(first.setdefault((of, model), key)) != tuple(key):
            earlier, later = (" and ".join(map(repr, each)) for each in (first[of, model], key))
            raise InputError(
                f"--by {','.join(by)}: rows with {earlier} and rows with {later} have one name, "
                f"{', '.join(key)!r}; give them values that tell them apart without the commas"
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
