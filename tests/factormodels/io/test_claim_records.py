"""Records of claims and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    ModelJudgement,
    Setting,
    read_records,
    write_records,
)
from tests.calibration.self_knowledge.claims import random_records
from tests.factormodels.io.published.release_records import lines_at
from tests.refusals import refused

LINE: dict[str, Any] = {
    "response": "r1",
    "sentence": 2,
    "sentences": 6,
    "claim": "a4",
    "label": "NS",
    "judgements": {"direct_asking": "true", "none_of_the_above": None},
}


def test_records_survive_a_file(tmp_path: Path) -> None:
    records = random_records(0)
    write_records(records, tmp_path / "records.jsonl")
    assert read_records(tmp_path / "records.jsonl") == records


def test_a_line_is_read_as_documented(tmp_path: Path) -> None:
    (record,) = read_records(lines_at(tmp_path / "records.jsonl", LINE))
    assert record == ClaimRecord(
        "r1", 2, 6, "a4", ClaimLabel.UNSUPPORTED, direct_asking=ModelJudgement.TRUE
    )
    assert record.position == pytest.approx(1 / 3, abs=1e-15)
    assert record.judgement("direct_asking") is ModelJudgement.TRUE
    assert record.judgement(Setting.NONE_OF_THE_ABOVE) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "X"}, r"line 1: key 'label' is 'X'; use one of S, NS, IR"),
        ({"sentence": 7}, r"line 1: .*sentence 7 of 6 does not exist"),
        ({"sentence": 0}, r"sentence is 0; give a whole number from 1"),
        ({"sentence": True}, r"sentence is True; give a whole number from 1"),
        ({"sentences": "6"}, r"sentences is '6'; give a whole number from 1"),
        ({"claim": ""}, r"the id '' of a claim of response 'r1'"),
        ({"judgements": {"asking": "true"}}, r"the key 'asking' is unknown; .*'direct_asking'"),
        ({"judgements": {"direct_asking": "maybe"}}, r"'direct_asking' is 'maybe'; use one of"),
        ({"judgements": {"direct_asking": True}}, r"True is not text"),
        ({"judgements": ["true"]}, r"is not a JSON object"),
        ({"log_probabilities": {"asking": {}}}, r"key 'log_probabilities' is 'asking'; use one of"),
        ({"log_probabilities": {"direct_asking": 1}}, r"'direct_asking'.* is not a JSON object"),
        ({"log_probabilities": {"direct_asking": {"maybe": -1.0}}}, r"'maybe'; use one of true"),
        ({"log_probabilities": {"direct_asking": {"true": 0.1}}}, r"0.1 is not a logarithm of a"),
        ({"log_probabilities": {"direct_asking": {"true": "-1"}}}, r"'-1' is not a logarithm of a"),
        ({"labels": "S"}, r"the key 'labels' is unknown; did you mean 'label'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    refused(message, read_records, lines_at(tmp_path / "records.jsonl", {**LINE, **change}))
    for key in ("response", "sentence", "sentences", "claim", "label"):
        line = {name: value for name, value in LINE.items() if name != key}
        path = lines_at(tmp_path / "records.jsonl", line)
        refused(f"the key '{key}' is missing", read_records, path)


def test_log_probabilities_survive_a_file(tmp_path: Path) -> None:
    logs = {"direct_asking": {"true": -0.25, "false": -3}}
    path = lines_at(tmp_path / "records.jsonl", {**LINE, "log_probabilities": logs})
    records = read_records(path)
    assert records[0].log_probabilities == {
        Setting.DIRECT_ASKING: {ModelJudgement.TRUE: -0.25, ModelJudgement.FALSE: -3.0}
    }
    write_records(records, path)
    assert read_records(path) == records
    assert json.loads(path.read_text())["log_probabilities"] == logs


def test_lines_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    path = lines_at(tmp_path / "records.jsonl", LINE, LINE)
    refused("line 2: response 'r1' has the claim 'a4' on line 1", read_records, path)
    lines_at(path, LINE, {**LINE, "claim": "a5", "sentences": 7})
    refused("has 7 sentences here and 6 on line 1", read_records, path)
    path.write_text("\n")
    refused("holds no record", read_records, path)
    refused("there is no such file", read_records, tmp_path / "absent.jsonl")


def test_an_unknown_setting_lists_the_known_ones() -> None:
    record = ClaimRecord("r", 1, 1, "a", ClaimLabel.SUPPORTED)
    refused("direct_asking, question_answering, none_of_the_above", record.judgement, "asking")
