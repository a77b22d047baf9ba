"""Recorded answers are read as they were written, and those of the demonstration as derived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factormodels import RelationKind, datasets
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.consensus import SAMPLES, TEMPERATURES, SampledAnswer
from factormodels.extraction.relation_models.recorded_answers import read_recorded_answers
from tests.factormodels.io.published.release_records import lines_at
from tests.refusals import refused

PAIR = TextPair("It opened in 1890.", "It opened before 1900.", "c1", "a1")
ANSWER = {"temperature": 0.7, "relation": "entailment", "text": "1890 is before 1900."}


def by_ids(**more: Any) -> dict[str, Any]:
    return {"response": "r", "source": "c1", "target": "a1", "answers": [ANSWER], **more}


def test_a_pair_is_found_by_its_texts_or_by_its_ids(tmp_path: Path) -> None:
    texts = {"premise": "It  opened in 1890. ", "hypothesis": PAIR.hypothesis, "answers": [ANSWER]}
    hotter = {"temperature": 1, "relation": "neutral"}
    held = read_recorded_answers(
        lines_at(tmp_path / "a.jsonl", texts, by_ids(target="a2", answers=[ANSWER, hotter]))
    )
    found = held.of("another", PAIR)
    assert found is not None
    expected = SampledAnswer(0.7, RelationKind.ENTAILMENT, "1890 is before 1900.")
    assert found.answers == (expected,)
    second = held.of("r", TextPair("x", "y", "c1", "a2"))
    assert second is not None
    assert second.answers[1] == SampledAnswer(1.0, RelationKind.NEUTRAL, "")
    assert held.of("another", TextPair("x", "y", "c1", "a2")) is None
    assert (held.temperatures, held.samples) == ((0.7, 1.0), 2)


def test_other_ways_are_compared_where_every_pair_has_them(tmp_path: Path) -> None:
    first = by_ids(verbalised=[0.1, 0.7, 0.2], logprobs=[0.5, 0.25, 0.25])
    second = by_ids(target="a2", logprobs=[0.33, 0.33, 0.33])
    held = read_recorded_answers(lines_at(tmp_path / "a.jsonl", first, second))
    pairs = [held.of("r", TextPair("x", "y", "c1", name)) for name in ("a1", "a2")]
    there = [pair for pair in pairs if pair is not None]
    assert held.ways(there) == ["logprobs"]
    assert held.ways(there[:1]) == ["verbalised", "logprobs"]
    assert there[0].judged["verbalised"] == Judgement(
        RelationKind.CONTRADICTION, 0.7, "verbalised", (0.1, 0.7, 0.2)
    )


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (by_ids(response=""), "it names no pair; give premise and hypothesis, or"),
        (by_ids(answers=[]), "'answers' is empty"),
        (by_ids(answers="yes"), "is not a list"),
        (by_ids(answers=[{**ANSWER, "relation": "maybe"}]), "answer 1: the relation 'maybe'"),
        (by_ids(answers=[{**ANSWER, "temperature": 3}]), "answer 1: the temperature 3 is no"),
        (by_ids(answers=[{**ANSWER, "temperature": True}]), "the temperature True is no"),
        (by_ids(answers=[{"relation": "neutral"}]), "answer 1: the key 'temperature' is missing"),
        (by_ids(answers=[{**ANSWER, "heat": 1}]), "answer 1.*heat"),
        (by_ids(verbalised=[0.5, 0.5]), r"verbalised is \[0.5, 0.5\]; give the probabilities of"),
        (by_ids(logprobs=[0.5, 0.5, 0.5]), "logprobs.*does not sum to one"),
        (by_ids(logprobs=["a", 0.5, 0.5]), "logprobs: an entry"),
        (by_ids(answer="x"), "answer"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    record: dict[str, Any], told: str, tmp_path: Path
) -> None:
    refused(told, read_recorded_answers, lines_at(tmp_path / "a.jsonl", record))


def test_two_lines_of_one_pair_are_refused_and_so_is_an_empty_file(tmp_path: Path) -> None:
    twice = lines_at(tmp_path / "twice.jsonl", by_ids(), by_ids())
    refused("an earlier line has answers to this pair too", read_recorded_answers, twice)
    empty = lines_at(tmp_path / "none.jsonl")
    refused("none.jsonl: there is nothing in it", read_recorded_answers, empty)


def test_the_answers_of_the_demonstration_are_right_more_often_when_cold() -> None:
    held = datasets.sampled_answers("demonstration")
    assert held is not None
    assert (held.temperatures, held.samples, len(held.by_ids)) == (TEMPERATURES, SAMPLES, 112)
    assert {len(pair.answers) for pair in held.by_ids.values()} == {SAMPLES}
    assert datasets.sampled_answers("factscore") is None
    # A known relation, and cold answers that are right more often than hot ones.
    known: dict[tuple[str, ...], RelationKind] = {
        (graph.id, one.source, one.target): one.kind
        for graph in datasets.load("demonstration").graphs
        for one in graph.relations
    }
    right = [
        (answer.temperature, answer.kind is known.get(key, RelationKind.NEUTRAL))
        for key, pair in held.by_ids.items()
        for answer in pair.answers
    ]
    shares = [
        sum(own for at, own in right if at == temperature) / (len(right) / len(TEMPERATURES))
        for temperature in TEMPERATURES
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] > 0.1
