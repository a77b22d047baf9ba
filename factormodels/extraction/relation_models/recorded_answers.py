"""Recorded answers: what a language model said of pairs when it was asked several times."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from factormodels.claims import RelationKind, likeliest_kind
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import Judgement, Origin, TextPair
from factormodels.extraction.relation_models.consensus import KINDS, SampledAnswer
from factormodels.io.json_records import (
    as_object,
    list_field,
    located,
    record_at,
    shown,
    text_field,
)
from factormodels.io.json_text import check_keys
from factormodels.io.records import Record, json_records, read_content, strictly
from factormodels.validation import validated_probability
from factormodels.variants import normalised_text

WAYS: tuple[Origin, ...] = ("verbalised", "logprobs")
"""Further ways to ask about a pair, whose probabilities a record may have beside the answers."""

_KEYS = ("response", "source", "target", "premise", "hypothesis", "answers", *WAYS)

_HOTTEST = 2.0
_ROUNDED = 0.011
"""How far probabilities that were rounded to two digits may be from a sum of one."""

Key = tuple[str, ...]


class AnsweredPair(NamedTuple):
    """What was said of one pair.

    Attributes:
        answers: what was sampled, in order.
        judged: by way of `WAYS` what that gave; ways that are not recorded are not there.
    """

    answers: tuple[SampledAnswer, ...]
    judged: Mapping[Origin, Judgement]


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers looked up by texts, and by ids where a record has no texts.

    Attributes:
        by_texts: what was said of each (normalised premise, normalised hypothesis).
        by_ids: what was said of each (response, source, target).
        temperatures: those that answers were sampled at, ascending.
        samples: answers of the pair that has most.
    """

    by_texts: Mapping[Key, AnsweredPair] = field(repr=False)
    by_ids: Mapping[Key, AnsweredPair] = field(repr=False)
    temperatures: tuple[float, ...]
    samples: int

    def of(self, response: str, pair: TextPair) -> AnsweredPair | None:
        """What was said of a pair of a response; None of one that is not recorded."""
        found = self.by_texts.get(_texts_key(pair.premise, pair.hypothesis))
        return found or self.by_ids.get((response, pair.source, pair.target))

    def ways(self, pairs: Iterable[AnsweredPair]) -> list[Origin]:
        """The ways of `WAYS` by which each of some pairs was judged."""
        every = [set(pair.judged) for pair in pairs]
        return [way for way in WAYS if every and all(way in own for own in every)]


def read_recorded_answers(path: str | os.PathLike[str]) -> RecordedAnswers:
    """Recorded answers of a JSON Lines file, a line for each pair.

    A line names its pair by `premise` and `hypothesis`, or by `response`, `source` and `target`, or
    by all. Its `answers` are objects with `temperature`, `relation` (entailment, contradiction or
    neutral) and, if there is one, the `text` of the answer. It may have `verbalised` and
    `logprobs`: the probabilities of the three relations in this order, as the model states them and
    as its log-probabilities have them.

    Args:
        path: the file.

    Raises:
        InputError: if the file cannot be read, a line is malformed, or two lines are of one pair.
    """
    return recorded_answers_of(strictly(json_records(read_content(path, held=False), path)), path)


def recorded_answers_of(
    records: Iterable[Record], source: str | os.PathLike[str]
) -> RecordedAnswers:
    """Recorded answers of JSON records, as `read_recorded_answers` has them."""
    by_texts: dict[Key, AnsweredPair] = {}
    by_ids: dict[Key, AnsweredPair] = {}
    for record in records:
        value, where = record_at(record.value, source, record.line)
        check_keys(value, _KEYS, where)
        ids = tuple(text_field(value, name, where, "") for name in _KEYS[:3])
        texts = tuple(text_field(value, name, where, "") for name in _KEYS[3:5])
        if not all(texts) and not all(ids):
            raise InputError(
                f"{where}: it names no pair; give premise and hypothesis, or response, source and "
                "target"
            )
        pair = AnsweredPair(tuple(_answers(value, where)), dict(_judged(value, where)))
        table, key = (by_texts, _texts_key(*texts)) if all(texts) else (by_ids, ids)
        if key in table:
            raise InputError(f"{where}: an earlier line has answers to this pair too; join the two")
        table[key] = pair
    every = [*by_texts.values(), *by_ids.values()]
    temperatures = {one.temperature for pair in every for one in pair.answers}
    return RecordedAnswers(
        by_texts, by_ids, tuple(sorted(temperatures)), max(len(pair.answers) for pair in every)
    )


def _answers(record: Mapping[str, Any], where: str) -> Iterator[SampledAnswer]:
    listed = list_field(record, "answers", where)
    if not listed:
        raise InputError(f"{where}: 'answers' is empty; give one or more")
    for number, each in enumerate(listed, 1):
        place = f"{where}, answer {number}"
        answer = as_object(each, place)
        check_keys(answer, ("temperature", "relation", "text"), place)
        kind = text_field(answer, "relation", place)
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise InputError(f"{place}: the relation {shown(kind)} is unknown; use one of {known}")
        if "temperature" not in answer:
            raise InputError(f"{place}: the key 'temperature' is missing; add it")
        temperature = answer["temperature"]
        numeric = isinstance(temperature, int | float) and not isinstance(temperature, bool)
        if not numeric or not 0.0 <= temperature <= _HOTTEST:
            raise InputError(
                f"{place}: the temperature {shown(temperature)} is no number from 0 to "
                f"{_HOTTEST:g}; give what the answer was sampled at"
            )
        text = text_field(answer, "text", place, "")
        yield SampledAnswer(float(temperature), RelationKind(kind), text)


def _judged(record: Mapping[str, Any], where: str) -> Iterator[tuple[Origin, Judgement]]:
    for way in WAYS:
        value = record.get(way)
        if value is None:
            continue
        if not isinstance(value, list) or len(value) != len(KINDS):
            raise InputError(
                f"{where}: {way} is {shown(value)}; give the probabilities of {', '.join(KINDS)}"
            )
        with located(f"{where}, {way}"):
            entails, contradicts, neutral = (validated_probability(p, "an entry") for p in value)
            if abs(entails + contradicts + neutral - 1.0) > _ROUNDED:
                raise InputError(f"{shown(value)} does not sum to one; give all three")
        shares = entails, contradicts, neutral
        yield way, Judgement(*likeliest_kind(*shares), way, shares)


def _texts_key(*texts: str) -> Key:
    return tuple(normalised_text(text) for text in texts)
