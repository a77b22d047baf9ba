"""Unused content of a file is noted by its keys, and reported in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factormodels.io import read_many
from factormodels.io.file_report import check_file
from factormodels.io.formats.registry import formats
from factormodels.io.not_used import (
    Notes,
    key_tree,
    not_used_records,
    not_used_sentence,
    note_cells,
    note_record,
    noting,
)
from tests.factormodels.io.formats.release_records import KNOWN, RESPONSE, lines, written


def noted(record: Any, *paths: str) -> Notes:
    with noting() as notes:
        note_record(record, key_tree(paths), "f.json")
    return notes


def test_labels_within_and_evidence_are_counted_and_come_first() -> None:
    record = {
        "response": "It is red.",
        "model": "m",
        "contexts": ["A.", "B."],
        "claims": [{"text": "It is.", "label": True}, {"text": "It is red.", "label": None}],
    }
    notes = noted([record, record], "response")
    message = "Not used: contexts (4), claims (4, with labels); also model."
    assert not_used_sentence(notes) == message
    assert not_used_records(notes) == [
        {"file": "f.json", "key": "contexts", "count": 4, "holds": ["evidence"]},
        {"file": "f.json", "key": "claims", "count": 4, "holds": ["claims", "labels"]},
    ]


def test_nothing_is_said_where_only_facts_about_a_record_are_left() -> None:
    record = {"response": "It.", "model": "m", "response_id": 3, "num_claims": 2, "labels": []}
    assert not_used_sentence(noted(record, "response")) == ""
    assert not_used_sentence(noted({"response": "It.", "evidence": None}, "response")) == ""


def test_keys_below_a_key_that_is_used_in_part() -> None:
    record = {"claims": [{"claim": "A.", "verdict": "yes"}], "by": {"x": {"label": 1, "n": 2}}}
    assert not_used_sentence(noted(record, "claims[].claim", "by{}.n")) == (
        "Not used: claims.verdict (1), by.label (1)."
    )
    assert not_used_sentence(noted(record, "claims", "by{}.*")) == ""
    spelled = {"gpt4_kg": [{"t": 1}], "gold_label": True}
    assert not_used_sentence(noted(spelled, "*_kg[].t")) == "Not used: gold_label (1)."


@pytest.mark.parametrize(
    "name", ["human_label", "isSupported", "retrievedDocuments", "p", "model_score", "Ground-Truth"]
)
def test_names_are_taken_apart_into_words(name: str) -> None:
    assert not_used_sentence(noted({name: [1, 2, 3]})) == f"Not used: {name} (3)."


def test_columns_of_a_table_and_of_lists_in_it() -> None:
    rows = [
        {"id": 1, "evidence": "Text.", "statement": "It is.", "claims": [{"y": 1, "gold": 0}]},
        {"id": 2, "evidence": float("nan"), "statement": "It.", "claims": [{"y": 1, "gold": 1}]},
    ]
    with noting() as notes:
        note_cells(rows, ("id", "y"), "t.csv")
    assert not_used_sentence(notes) == "Not used: claims.gold (2), evidence (1)."
    with noting() as notes:
        note_cells(rows, ("id", "evidence"), "t.csv")
    assert not_used_sentence(notes) == "Not used: claims (2, with labels)."


def test_notes_are_of_the_outermost_block_and_of_none_without(tmp_path: Path) -> None:
    path = written(tmp_path, lines({**RESPONSE, "evidence": ["A."]}))
    read_many(path)
    with noting() as outer:
        with noting() as inner:
            read_many(path)
        assert inner == {}
    assert not_used_sentence(outer) == "Not used: evidence (1)."
    with noting() as first:
        read_many(path)
        read_many(written(tmp_path, lines({**RESPONSE, "label": True}), "b.jsonl"))
    assert not_used_sentence(first) == (
        f"Not used of {path}: evidence (1); of {tmp_path / 'b.jsonl'}: label (1)."
    )


@pytest.mark.parametrize("name", KNOWN)
def test_records_as_published_leave_nothing_unsaid(name: str, tmp_path: Path) -> None:
    """The keys of every format are declared: those of its records, and no others."""
    report = check_file(written(tmp_path, lines(KNOWN[name])))
    left = {key for key, kind in report.not_used.items() if kind.matters}
    assert left <= {"sampled_responses"}, left
    form = report.format
    assert form is not None
    if form.closed:
        return
    record = {**KNOWN[name], "extra_verdicts": [{"label": True}, {"label": False}]}
    if "*" in (form.used_keys or {}) or form.name == "veriscore-output":
        return
    report = check_file(written(tmp_path, json.dumps(record)))
    assert report.not_used["extra_verdicts"].count == 2


def test_every_open_format_declares_its_keys() -> None:
    for form in formats():
        assert (form.used_keys is None) == form.closed
