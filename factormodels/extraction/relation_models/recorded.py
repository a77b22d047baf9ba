"""Recorded relations: what another model, an annotator or an earlier run said of each pair."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factormodels.claims import RelationKind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import as_object, location, shown, text_field
from factormodels.io.json_text import check_keys, read_json_lines
from factormodels.validation import validated_probability
from factormodels.variants import normalised_text

JUDGED_KINDS = (RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL)

_KEYS = ("source", "target", "premise", "hypothesis", "relation", "probability", "distribution")
_SUM_TOLERANCE = 1e-6

Key = tuple[str, str]


@dataclass(frozen=True)
class RecordedRelations:
    """Judgements looked up by texts, and by ids where a record has no texts.

    Texts go before ids, because ids such as "a1" repeat from response to response. They are
    compared up to Unicode form, case and white space.

    Attributes:
        by_texts: judgement of each (normalised premise, normalised hypothesis).
        by_ids: judgement of each (source, target).
        unrecorded: what is said of other pairs: None makes them missing; a probability makes them
            neutral with it, for records that leave neutral pairs out.
        name: the model's name in tables and manifests.
    """

    by_texts: Mapping[Key, Judgement] = field(repr=False)
    by_ids: Mapping[Key, Judgement] = field(repr=False)
    unrecorded: float | None = None
    name: str = "recorded"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
        """Record of each pair; a pair without one is missing or neutral."""
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: TextPair) -> Judgement | Missing:
        found = self.by_texts.get(_texts_key(pair.premise, pair.hypothesis))
        if found is None:
            found = self.by_ids.get((pair.source, pair.target))
        if found is not None:
            return found
        if self.unrecorded is not None:
            return Judgement(RelationKind.NEUTRAL, self.unrecorded, "recorded")
        return Missing("no judgement of this pair is recorded")


def recorded_in_graphs(
    graphs: Iterable[FactGraph], *, unrecorded: float | None = None
) -> RecordedRelations:
    """Relations of fact graphs as a relation model.

    An equivalence is an entailment in both orders. A relation between nodes that both have texts
    is looked up by them; any other by its ids.

    Args:
        graphs: the graphs.
        unrecorded: see `RecordedRelations`.

    Raises:
        InputError: if two graphs say different things of one pair, or `unrecorded` is not a
            probability.
    """
    records: list[tuple[Key, Key, Judgement, str]] = []
    for graph in graphs:
        texts = {atom.id: atom.text for atom in graph.atoms}
        texts |= {context.id: context.content for context in graph.contexts}
        for relation in graph.relations:
            kind, ends = relation.kind, [(relation.source, relation.target)]
            if kind is RelationKind.EQUIVALENCE:
                kind, ends = RelationKind.ENTAILMENT, [*ends, (relation.target, relation.source)]
            shares = None
            if relation.distribution is not None and kind is relation.kind:
                entails, contradicts, equates, neutral = relation.distribution
                # Equivalence is no answer about one order of a pair; it entails.
                shares = entails + equates, contradicts, neutral
            judgement = Judgement(kind, relation.probability, "recorded", shares)
            for source, target in ends:
                where = f"graph {graph.id!r}, relation {source!r} -> {target!r}"
                texts_key = _texts_key(texts[source], texts[target])
                records.append(((source, target), texts_key, judgement, where))
    return _model(records, unrecorded)


def read_recorded(
    path: str | os.PathLike[str], *, unrecorded: float | None = None
) -> RecordedRelations:
    """Judgements of a JSON Lines file as a relation model.

    Each line has `relation` (entailment, contradiction or neutral), `probability`, either
    `premise` and `hypothesis` or `source` and `target`, or all four, and may have `distribution`,
    the probabilities of entailment, contradiction and neutral.

    Args:
        path: the file.
        unrecorded: see `RecordedRelations`.

    Raises:
        InputError: if the file cannot be read, a line is malformed, or two lines say different
            things of one pair.
    """
    records = [_record(obj, path, line) for line, obj in read_json_lines(path)]
    if not records:
        raise InputError(f"{path}: the file holds no judgement; give one JSON object per line")
    return _model(records, unrecorded)


def _record(
    obj: object, path: str | os.PathLike[str], line: int
) -> tuple[Key, Key, Judgement, str]:
    where = location(path, line)
    record = as_object(obj, where)
    check_keys(record, _KEYS, where)
    ids = (text_field(record, "source", where, ""), text_field(record, "target", where, ""))
    texts = (text_field(record, "premise", where, ""), text_field(record, "hypothesis", where, ""))
    if not all(ids) and not all(texts):
        raise InputError(
            f"{where}: it names no pair; give premise and hypothesis, or source and target"
        )
    kind = text_field(record, "relation", where)
    if kind not in JUDGED_KINDS:
        known = ", ".join(JUDGED_KINDS)
        raise InputError(f"{where}: the relation {shown(kind)} is unknown; use one of {known}")
    if "probability" not in record:
        raise InputError(f"{where}: the key 'probability' is missing; add it")
    probability = validated_probability(record["probability"], where)
    distribution = _distribution(record.get("distribution"), where)
    judgement = Judgement(RelationKind(kind), probability, "recorded", distribution)
    return ids, _texts_key(*texts), judgement, where


def _distribution(value: Any, where: str) -> tuple[float, float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != len(JUDGED_KINDS):
        raise InputError(
            f"{where}: the distribution {shown(value)} is not a list of three probabilities; give "
            "those of entailment, contradiction and neutral"
        )
    first, second, third = (validated_probability(p, f"{where}: distribution") for p in value)
    if abs(first + second + third - 1.0) > _SUM_TOLERANCE:
        raise InputError(f"{where}: the distribution {value} does not sum to one; correct it")
    return first, second, third


def _model(
    records: Iterable[tuple[Key, Key, Judgement, str]], unrecorded: float | None
) -> RecordedRelations:
    if unrecorded is not None:
        unrecorded = validated_probability(unrecorded, "unrecorded pairs")
    by_texts: dict[Key, Judgement] = {}
    by_ids: dict[Key, Judgement] = {}
    for ids, texts, judgement, where in records:
        table, key = (by_texts, texts) if all(texts) else (by_ids, ids)
        held = table.setdefault(key, judgement)
        if held != judgement:
            raise InputError(
                f"{where}: it says {judgement.kind} with {judgement.probability}, and an earlier "
                f"record of the same pair {held.kind} with {held.probability}; keep one"
            )
    return RecordedRelations(by_texts, by_ids, unrecorded)


def _texts_key(premise: str, hypothesis: str) -> Key:
    return normalised_text(premise), normalised_text(hypothesis)
