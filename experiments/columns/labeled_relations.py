"""Reading of human relations: responses with them, and tables with a model's probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.validation import Floats, Integers
from experiments.columns.reader import TableReader
from experiments.columns.roles import (
    HUMAN_RELATION,
    PAIR_CLAIM,
    PAIR_PASSAGE,
    PAIR_RESPONSE,
    RELATION_SHARES,
)
from experiments.columns.sources import table_of
from experiments.settings.inputs import graphs_of
from factormodels.claims import JUDGED_KINDS, Atom, RelationKind, validated_distribution
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factcheck_bench import read_factcheck_bench, recognize
from factormodels.io.json import read_json_lines
from factormodels.io.relation_table import left_to_neutral
from factormodels.io.tables.numbers import cell_share
from factormodels.metadata.evidence_source import RELATIONS_KEY
from factormodels.metadata.learned_from import ResponseIdentity, identity_of
from factormodels.words import STANCES, folded

if TYPE_CHECKING:
    from experiments.columns.sources import Data
    from experiments.settings.inputs import Responses


@dataclass(frozen=True, eq=False)
class LabeledRelations:
    """A model's probabilities of relations of n pairs, with the human relations.

    Attributes:
        p: probabilities of entailment, contradiction and neutral, float64 (n, 3).
        y: column of the human relation, int64 (n,).
        responses: response of each pair, (n,), or the claim if a table has no responses.
        taught: identities of the responses.
        relations: name of the model; empty if not recorded.
        remarks: remarks on reading the data.
        missing: number of labeled pairs that the model did not answer.
        shared: number of excluded pairs whose answers have only the probability of their own
            relation.
    """

    p: Floats
    y: Integers
    responses: tuple[str, ...]
    taught: tuple[ResponseIdentity, ...]
    relations: str = ""
    remarks: tuple[str, ...] = ()
    missing: int = 0
    shared: int = 0


def read_labeled_relations(data: Data) -> LabeledRelations:
    """Read pairs from a table with a claim, a passage, probabilities and a human relation.

    Rows without a human relation or without probabilities are left out and counted. Without a
    column of neutral, its probability is the remainder of entailment and contradiction.

    Args:
        data: the table: its file (CSV, TSV, Excel, JSON, JSON Lines, Parquet or Arrow), a data
            frame, or records.

    Raises:
        InputError: if it cannot be read or lacks a column, a relation or probability is invalid, or
            the probabilities of a row do not sum to 1.
    """
    reader = TableReader(table_of(data))
    columns = reader.columns
    claim, passage = columns.required(PAIR_CLAIM), columns.required(PAIR_PASSAGE)
    label = columns.required(HUMAN_RELATION)
    entailment, contradiction = map(columns.required, RELATION_SHARES[:2])
    neutral = columns.optional(RELATION_SHARES[2])
    response = columns.optional(PAIR_RESPONSE)
    shares = dict(zip(JUDGED_KINDS, (entailment, contradiction, neutral), strict=True))
    rows: list[tuple[str, str, tuple[float, float, float], int]] = []
    unlabeled = unanswered = 0
    known_pairs: dict[tuple[str, str, str], int] = {}
    for index in range(len(reader)):
        kind = _relation(reader.cell(index, label), reader.locate(index, label))
        distribution = _distribution(reader, index, shares)
        if kind is None or distribution is None:
            unlabeled += kind is None
            unanswered += kind is not None
            continue
        text = reader.name(index, claim, "claim")
        group = text if response is None else reader.name(index, response, "response")
        pair = group, text, reader.name_if_any(index, passage)
        if pair in known_pairs:
            raise InputError(
                f"{reader.locate(index)}: row {known_pairs[pair] + 1} has the same response, "
                "claim and passage; keep one of them"
            )
        known_pairs[pair] = index
        rows.append((group, text, distribution, JUDGED_KINDS.index(kind)))
    if not rows:
        raise InputError(
            f"{reader.table.source}: no row has both a human relation and probabilities; label "
            "some rows"
        )
    claims: dict[str, dict[str, None]] = {}
    for group, text, *_ in rows:
        claims.setdefault(group, {})[text] = None
    identities = tuple(
        identity_of(FactGraph(name, tuple(Atom(text, text) for text in texts)))
        for name, texts in claims.items()
    )
    remarks = [columns.remark()]
    if response is None:
        remarks.append(
            "No column is recognized as the response: pairs of a claim stay in the same fold, and "
            "claims count as independent."
        )
    if neutral is None:
        remarks.append(
            "No column is recognized as neutral: its probability is 1 minus entailment and "
            "contradiction."
        )
    if unlabeled:
        remarks.append(f"Rows without a human relation (left out): {unlabeled:,}.")
    return LabeledRelations(
        np.array([distribution for *_, distribution, _ in rows]),
        np.array([column for *_, column in rows], dtype=np.int64),
        tuple(group for group, *_ in rows),
        identities,
        remarks=tuple(filter(None, remarks)),
        missing=unanswered,
    )


def _relation(value: Any, where: str) -> RelationKind | None:
    """The relation in a cell; None if empty; an equivalence counts as an entailment."""
    if not (word := folded(value)):
        return None
    kind = STANCES.get(word)
    kind = RelationKind.ENTAILMENT if kind is RelationKind.EQUIVALENCE else kind
    if kind not in JUDGED_KINDS:
        raise InputError(
            f"{where}: {shown(value)} is not a relation of a passage to a claim; use one of "
            f"{', '.join(JUDGED_KINDS)}, in a column 'human relation' if this column has labels "
            "of claims"
        )
    return kind


def _distribution(
    reader: TableReader, index: int, columns: dict[RelationKind, str | None]
) -> tuple[float, float, float] | None:
    """The probabilities of a row, or None."""
    known: dict[str, float] = {}
    for kind, column in columns.items():
        if column is None:
            continue
        where_cell = reader.locate(index, column)
        share, _ = cell_share(reader.cell(index, column), where_cell, "a probability")
        if share is not None:
            known[kind] = share
    if not known:
        return None
    where = reader.locate(index)
    if columns[RelationKind.NEUTRAL] is None and len(known) == len(columns) - 1:
        known[RelationKind.NEUTRAL] = left_to_neutral(known, where)
    lacking = [kind for kind in columns if kind not in known]
    if lacking:
        raise InputError(
            f"{where}: the probability of {' and '.join(lacking)} is missing; give all three, or "
            "none"
        )
    stated = validated_distribution(known, where)
    return None if stated is None else (stated[0], stated[1], stated[3])


def judged_responses(responses: Responses) -> tuple[FactGraph, ...]:
    """Responses with human relations; irrelevant passages are neutral.

    Args:
        responses: fact graphs, a table of relations, Factcheck-Bench's file, or another file of
            responses.

    Raises:
        InputError: as `graphs_of`, or if a model judged the relations.
    """
    graphs: Iterable[FactGraph]
    if isinstance(responses, str | Path) and _is_factcheck_bench(Path(responses)):
        # Irrelevant passages, which other readers drop, are labels here.
        graphs = read_factcheck_bench(responses, {"irrelevant": (RelationKind.NEUTRAL, 1.0)})
    else:
        graphs = graphs_of(responses)
    graphs = tuple(graphs)
    for graph in graphs:
        facts = graph.metadata.get(RELATIONS_KEY)
        if isinstance(facts, dict) and "model" in facts:
            raise InputError(
                f"response {graph.id!r}: its relations are answers of {facts['model']}; give "
                "human relations"
            )
    return graphs


def _is_factcheck_bench(path: Path) -> bool:
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    first = next(iter(read_json_lines(path)), None)
    return first is not None and isinstance(first[1], dict) and recognize(first[1])
