"""Conversion of responses with verdicts, and of logs, to tables with a column for each judge."""

from __future__ import annotations

from typing import Any

from experiments.columns.assessed_metadata import METADATA_KEY, check_posteriors
from factormodels.claims import Atom, ClaimLabel, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.log_rows import KEYS
from factormodels.io.formats.logs import scored_rows
from factormodels.io.formats.registry import format_of
from factormodels.io.tables.data_table import DataTable
from factormodels.metadata.learned_from import LEARNED_FROM, LearnedFrom, relations_mark
from factormodels.metadata.recorded_verdicts import recorded_marks, recorded_verdicts
from factormodels.variants import between_claims
from factormodels.words import IRRELEVANT, STATEMENTS, folded
from inference import infer_batch

_JUDGED = ("fact-graph", "factreasoner", "factreasoner-results")
"""Formats of responses that can have verdicts."""

ENTAILED_BY = "entailed_by"
"""Column of the claims that entail a claim, for graphs with relations between claims."""

_TRUE_OR_FALSE = frozenset(("s", "ns", *STATEMENTS))
"""Annotations of claims that readers give a label, in lower case."""

AS_GIVEN = "as given"
"""Name of posteriors from inference, for graphs without verdicts."""


def judged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]]:
    """Convert records with verdicts to a row per claim or sample, with remarks on the judges.

    Fact graphs and outputs of other tools give the columns response, claim, text, answer (the whole
    response), label, and P(true) of each assessor by name and of each assessed variant, or None;
    and for an assessor that learned from labels, the mark of `LearnedFrom`. If a graph has
    entailments between claims, the column `ENTAILED_BY` lists the claims that entail each claim.
    Logs of evaluation tools give a row per sample, with the columns of `scored_rows`. Any other
    table is unchanged.

    Raises:
        InputError: if a record is malformed.
    """
    # Verdicts and samples are lists and objects, which plain tables do not have.
    if not any(isinstance(cell, list | dict) for cell in table.rows[0].values()):
        return table, ()
    logged = _logged_table(table)
    if logged is not None:
        return logged
    rows: list[dict[str, Any]] = []
    lines: list[int | None] = []
    models: dict[str, None] = {}
    marked: dict[str, None] = {}
    graphs: list[FactGraph] = []
    relates = False
    for record, line in zip(table.rows, table.lines, strict=True):
        form = format_of(record)
        if form is None or form.name not in _JUDGED or not record.keys() >= set(form.keys):
            return table, ()
        graph: FactGraph = form.read(record, table.source, line)
        graphs.append(graph)
        by_model = posteriors_by_model(graph, table.source)
        models |= dict.fromkeys(by_model)
        marks = marks_by_model(graph)
        marked |= dict.fromkeys(marks)
        labels = labels_of(graph)
        entailing = entailing_claims(graph)
        relates |= bool(entailing)
        for atom in graph.atoms:
            rows.append(
                {
                    "response": graph.id,
                    "claim": atom.id,
                    "text": atom.text,
                    "answer": graph.response,
                    "label": labels[atom.id],
                    **{model: p[atom.id] for model, p in by_model.items() if atom.id in p},
                    **{mark_column(model): str(mark) for model, mark in marks.items()},
                    ENTAILED_BY: entailing.get(atom.id, []),
                }
            )
            lines.append(line)
    if not models:
        # Judge graphs without verdicts as given.
        models = {AS_GIVEN: None}
        answers = infer_batch([graph.to_factor_graph() for graph in graphs], "auto")
        posteriors = [
            p
            for answer, graph in zip(answers, graphs, strict=True)
            for p in answer.marginals.of_state(1)[: len(graph.atoms)].tolist()
        ]
        for row, p in zip(rows, posteriors, strict=True):
            row[AS_GIVEN] = p
    marks_of_models = [mark_column(model) for model in models if model in marked]
    columns = ("response", "claim", "text", "answer", "label", *models, *marks_of_models)
    if relates:
        columns = (*columns, ENTAILED_BY)
    return DataTable(table.source, table.form, columns, tuple(rows), tuple(lines)), tuple(models)


def _logged_table(table: DataTable) -> tuple[DataTable, tuple[str, ...]] | None:
    """The table of a log's samples and scorers; None if the records are not a log."""
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


def entailing_claims(graph: FactGraph) -> dict[str, list[str]]:
    """Ids of the claims that entail each claim of a graph, by id; claims without such are missing.

    Relations with probability below 1/2 are ignored. Equivalent claims entail each other.
    """
    entailing: dict[str, list[str]] = {}
    for relation in between_claims(graph):
        if relation.probability < 0.5:
            continue
        if relation.kind in (RelationKind.ENTAILMENT, RelationKind.EQUIVALENCE):
            entailing.setdefault(relation.target, []).append(relation.source)
        if relation.kind is RelationKind.EQUIVALENCE:
            entailing.setdefault(relation.source, []).append(relation.target)
    return entailing


def posteriors_by_model(graph: FactGraph, source: str) -> dict[str, dict[str, float | None]]:
    """P(true) of the claims of a response, by tool and assessed variant.

    Args:
        graph: the response.
        source: its file, for messages.

    Raises:
        InputError: if its metadata of an assessment are missing or malformed.
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
    """Marks of the labels that trained the posteriors of a response, by the names of
    `posteriors_by_model`.

    Posteriors from relations, among them `AS_GIVEN`, have the mark of the relation model.
    """
    marks = recorded_marks(graph)
    of_relations = relations_mark(graph)
    if of_relations is not None:
        marks |= dict.fromkeys((*graph.metadata.get(METADATA_KEY, {}), AS_GIVEN), of_relations)
    return marks


def labels_of(graph: FactGraph) -> dict[str, bool | str | None]:
    """Labels of the claims of a response as table cells, by id.

    If a claim is annotated as true or false and has no label, the labels of the response were
    removed, and its irrelevant claims have none either.
    """
    removed = any(
        atom.label is None and folded(atom.annotation or "") in _TRUE_OR_FALSE
        for atom in graph.atoms
    )
    return {atom.id: atom.label if removed else label_of(atom) for atom in graph.atoms}


def label_of(atom: Atom) -> bool | str | None:
    """The label of a claim as a table cell, or the word for an irrelevant claim."""
    if atom.label is None and (atom.annotation or "").casefold() in IRRELEVANT:
        return str(ClaimLabel.IRRELEVANT)
    return atom.label


def mark_column(model: str) -> str:
    """Name of the column that marks the training labels of a model's probabilities."""
    return f"{model}_{LEARNED_FROM}"
