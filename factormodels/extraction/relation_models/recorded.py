"""Recorded relations from another model, an annotator or an earlier run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factormodels.claims import JUDGED_KINDS, Relation, RelationKind, check_stated_kind, is_evidence
from factormodels.decoded_values import as_object, located, shown, text_field
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import looks_like_fact_graph, parse_fact_graph
from factormodels.io.json import check_keys
from factormodels.io.source.places import location
from factormodels.io.tables.records import json_records, read_content, strictly
from factormodels.validation import validated_probability
from factormodels.variants import normalized_text

_KEYS = ("source", "target", "premise", "hypothesis", "relation", "probability", "distribution")

Key = tuple[str, str]
_Recorded = tuple[Key, Key, Judgment, str]
"""Ids, texts, judgment of the pair, and its place in the file."""


@dataclass(frozen=True)
class RecordedRelations:
    """Judgments looked up by texts, or by ids if a record has no texts.

    Texts take precedence over ids, because ids such as "a1" repeat from response to response. Texts
    are compared without regard to Unicode form, case and white space.

    Attributes:
        by_texts: judgment of each (normalized premise, normalized hypothesis).
        by_ids: judgment of each (source, target).
        unrecorded: result for other pairs: None makes them missing; a probability makes them
            neutral with it, for records that omit neutral pairs.
        name: the model's name in tables and manifests.
    """

    by_texts: Mapping[Key, Judgment] = field(repr=False)
    by_ids: Mapping[Key, Judgment] = field(repr=False)
    unrecorded: float | None = None
    name: str = "recorded"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return the record of each pair; a pair without one is missing or neutral."""
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: TextPair) -> Judgment | Missing:
        recorded = self.by_texts.get(_texts_key(pair.premise, pair.hypothesis))
        if recorded is None:
            recorded = self.by_ids.get((pair.source, pair.target))
        if recorded is not None:
            return recorded
        if self.unrecorded is not None:
            return Judgment(RelationKind.NEUTRAL, self.unrecorded, "recorded")
        return Missing("no judgment of this pair is recorded")


def recorded_in_graphs(
    graphs: Iterable[FactGraph], *, unrecorded: float | None = None
) -> RecordedRelations:
    """Return the relations of fact graphs as a relation model.

    An equivalence is an entailment in both orders. A relation between nodes that both have texts is
    looked up by the texts; any other by its ids.

    Args:
        graphs: the graphs.
        unrecorded: see `RecordedRelations`.

    Raises:
        InputError: if two graphs disagree on a pair, or `unrecorded` is not a probability.
    """
    return _model((record for graph in graphs for record in _records_of(graph)), unrecorded)


def _records_of(graph: FactGraph) -> Iterator[_Recorded]:
    texts = {atom.id: atom.text for atom in graph.atoms}
    texts |= {context.id: context.content for context in graph.contexts}
    for relation in graph.relations:
        source, target = relation.source, relation.target
        where = f"graph {graph.id!r}, relation {source!r} -> {target!r}"
        yield from _both_orders(relation, (source, target), (texts[source], texts[target]), where)


def _of_one_order(stated: Sequence[float]) -> tuple[float, float, float]:
    """Return shares of entailment, contradiction and neutral, given shares of every kind of
    relation.
    """
    entails, contradicts, equates, neutral, *between_claims = stated
    excludes, needed = between_claims or (0.0, 0.0)
    # For one order of a pair, equivalence counts as entailment.
    return entails + equates, contradicts + excludes, neutral + needed


def _both_orders(relation: Relation, ids: Key, texts: Key, where: str) -> Iterator[_Recorded]:
    """Yield the judgments of a relation's pair; an equivalence entails in both orders.

    Exclusive and co-necessary relations are skipped, since relation models do not predict them.
    """
    if relation.kind in (RelationKind.EXCLUSIVE, RelationKind.CO_NECESSITY):
        return
    same = relation.kind is RelationKind.EQUIVALENCE
    shares, uncorrected = (
        None if same or stated is None else _of_one_order(stated)
        for stated in (relation.distribution, relation.uncorrected)
    )
    kind = RelationKind.ENTAILMENT if same else relation.kind
    judgment = Judgment(kind, relation.probability, "recorded", shares, uncorrected=uncorrected)
    yield ids, _texts_key(*texts), judgment, where
    if same:
        yield ids[::-1], _texts_key(*texts[::-1]), judgment, where


def read_recorded(
    path: str | os.PathLike[str], *, unrecorded: float | None = None
) -> RecordedRelations:
    """Read a JSON Lines file of judgments, or the relations of a file of fact graphs, as a model.

    Each line of judgments has `relation` (entailment, contradiction, equivalence or neutral),
    `probability`, either `premise` and `hypothesis` or `source` and `target`, or all four. It may
    have `distribution`: the probabilities of the kinds by name, as in the edges of fact graphs, or
    a list for entailment, contradiction and neutral, or for entailment, contradiction, equivalence
    and neutral.

    Args:
        path: the file.
        unrecorded: see `RecordedRelations`.

    Raises:
        InputError: if the file cannot be read, a line is malformed, or two lines disagree on a
            pair.
    """
    records: list[_Recorded] = []
    for record in strictly(json_records(read_content(path, in_memory=False), path)):
        if looks_like_fact_graph(record.value):
            records += _records_of(parse_fact_graph(record.value, path, record.line))
        else:
            records += _record(record.value, location(path, record.line))
    if not records:
        raise InputError(f"{path}: the file has no judgment; give one JSON object per line")
    return _model(records, unrecorded)


def _record(obj: object, where: str) -> Iterator[_Recorded]:
    record = as_object(obj, where)
    check_keys(record, _KEYS, where)
    ids = (text_field(record, "source", where, ""), text_field(record, "target", where, ""))
    texts = (text_field(record, "premise", where, ""), text_field(record, "hypothesis", where, ""))
    if not all(ids) and not all(texts):
        raise InputError(
            f"{where}: it names no pair; give premise and hypothesis, or source and target"
        )
    kind = text_field(record, "relation", where)
    if kind not in {*JUDGED_KINDS, RelationKind.EQUIVALENCE}:
        known = ", ".join([*JUDGED_KINDS, RelationKind.EQUIVALENCE])
        raise InputError(f"{where}: the relation {shown(kind)} is unknown; use one of {known}")
    if "probability" not in record:
        raise InputError(f"{where}: the key 'probability' is missing; add it")
    with located(where):
        # `Relation` requires two different names, which a pair of texts alone lacks.
        named = ids if all(ids) and ids[0] != ids[1] else ("premise", "hypothesis")
        relation = Relation(
            *named,
            RelationKind(kind),
            record["probability"],
            _distribution(record.get("distribution")),
        )
        if relation.distribution is not None and is_evidence(relation.kind, relation.probability):
            check_stated_kind(relation.kind, relation.distribution, f"relation {kind}")
    yield from _both_orders(relation, ids, texts, where)


def _distribution(value: Any) -> Any:
    """Return a distribution in the form of `Relation`; a list of three has no equivalence."""
    if isinstance(value, list) and len(value) == len(JUDGED_KINDS):
        return (*value[:2], 0.0, value[2])
    if value is not None and not isinstance(value, list | dict):
        raise InputError(
            f"the distribution {shown(value)} is not valid; give the probabilities of "
            f"{', '.join(JUDGED_KINDS)}, as a list or by name"
        )
    return tuple(value) if isinstance(value, list) else value


def _model(records: Iterable[_Recorded], unrecorded: float | None) -> RecordedRelations:
    if unrecorded is not None:
        unrecorded = validated_probability(unrecorded, "unrecorded pairs")
    by_texts: dict[Key, Judgment] = {}
    by_ids: dict[Key, Judgment] = {}
    for ids, texts, judgment, where in records:
        table, key = (by_texts, texts) if all(texts) else (by_ids, ids)
        known = table.setdefault(key, judgment)
        if known != judgment:
            raise InputError(
                f"{where}: it states {judgment.kind} with {judgment.probability}, but an "
                f"earlier record of the same pair states {known.kind} with {known.probability}; "
                "keep one"
            )
    return RecordedRelations(by_texts, by_ids, unrecorded)


def _texts_key(premise: str, hypothesis: str) -> Key:
    return normalized_text(premise), normalized_text(hypothesis)
