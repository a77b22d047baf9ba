"""Recorded answers about relations: read back as written, and refused where they are damaged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factormodels import datasets
from factormodels.io.relation_record import (
    RecordedAnswer,
    RecordOrigin,
    RelationRecord,
    parse_relation_record,
    read_relation_record,
    record_text,
)
from factormodels.metadata.prompt_identity import PromptIdentity
from tests.refusals import refused

ORIGIN = RecordOrigin(
    "factcheck-bench",
    "tiny",
    3,
    "ab" * 32,
    "Q4_1",
    "llama.cpp 1",
    (PromptIdentity("relation", 2, "cd"), PromptIdentity("relation_bare", 1, "ef")),
    alternatives=20,
    order="pairs",
    seed=4,
    clock="processor time",
)
ANSWERS = (
    RecordedAnswer("", "N/A", "N/A", "relation", (-0.5, -1.5, -2.5), "", (400, 0, 2), 1.5),
    RecordedAnswer("fcb-001", "c1", "a1", "relation", (-1.0, -1.0, -1.0), "", (500, 400, 2), 0.25),
    RecordedAnswer("fcb-001", "c1", "a1", "relation_bare", None, "it says nothing", (90, 0, 16)),
)


def test_written_data_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(record_text(ORIGIN, ANSWERS), encoding="utf-8")
    assert read_relation_record(path) == RelationRecord(ORIGIN, ANSWERS)


def test_answers_are_found_by_prompt() -> None:
    record = RelationRecord(ORIGIN, ANSWERS)
    assert record.asked_prompts == ("relation", "relation_bare")
    assert record.content_free("relation") == ANSWERS[:1]
    assert record.of_prompt("relation") == {("fcb-001", "c1", "a1"): ANSWERS[1]}
    assert ANSWERS[1].shares == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert ANSWERS[2].shares is None


def test_log_probabilities_are_rounded_and_never_positive() -> None:
    answer = replace(ANSWERS[1], log_p=(-1e-9, math.log(0.123456789), -20.0))
    (read,) = parse_relation_record(record_text(ORIGIN, [answer]), "record").answers
    assert read.log_p == (0.0, round(math.log(0.123456789), 5), -20.0)


NAMES = tuple(RecordedAnswer.__dataclass_fields__)


def changed(line: int, **values: Any) -> str:
    """Text of the record with other values in one line, counted from 0."""
    lines = record_text(ORIGIN, ANSWERS).splitlines()
    value = json.loads(lines[line])
    if isinstance(value, list):
        value = [*(dict(zip(NAMES, value, strict=True)) | values).values()]
    else:
        value |= values
    lines[line] = json.dumps(value)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "record"),
        ("[]\n", "record, line 1: this is not an object"),
        (changed(0, format="other"), "record, line 1: this is not version 1 of"),
        (changed(0, version=2), "record, line 1: this is not version 1 of"),
        (changed(0, order="alphabet"), "line 1: key 'order': 'alphabet' is not one of"),
        (changed(0, prompts=[{"name": "relation"}]), "line 1: prompts"),
        (changed(1, log_p=[0.1, -1, -1]), r"line 2: key 'log_p\[0\]': 0.1 is not"),
        (changed(1, log_p=[-1, -1]), "line 2: key 'log_p'"),
        (changed(1, tokens=[1, -2, 3]), r"line 2: key 'tokens\[1\]': -2 is not"),
        (changed(2, seconds=-1), "line 3: key 'seconds': -1 is not"),
        (changed(0, extra=1), "line 1: the key 'extra' is unknown"),
        (changed(2, extra=1), "line 3: this is not a list of response, passage, claim, prompt"),
        (changed(3, prompt="relation"), "line 4: the same question was answered before"),
    ],
)
def test_a_damaged_record_is_refused(text: str, message: str) -> None:
    refused(message, parse_relation_record, text, "record")


def test_embedded_records_are_of_their_datasets() -> None:
    names = datasets.relation_records()
    assert names
    for name in names:
        record = datasets.relation_record(name)
        assert name.startswith(f"{record.origin.dataset}.{record.origin.model}")
        graphs = {graph.id: graph for graph in datasets.load(record.origin.dataset).graphs}
        for answer in record.answers:
            if answer.response:
                graph = graphs[answer.response]
                (context,) = (each for each in graph.contexts if each.id == answer.passage)
                assert answer.claim in context.retrieved_for
        known = {prompt.name for prompt in record.origin.prompts}
        assert known == set(record.asked_prompts) or not known
    refused("the record 'nothing' is unknown", datasets.relation_record, "nothing")
