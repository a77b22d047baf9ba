"""Records of claims and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibration.self_knowledge import (
    ClaimLabel,
    ClaimRecord,
    ModelJudgment,
    Setting,
    read_records,
    write_records,
)
from tests.calibration.self_knowledge.claims import random_records
from tests.factormodels.io.formats.release_records import lines_at
from tests.refusals import refused

LINE: dict[str, Any] = {
    "response": "r1",
    "sentence": 2,
    "sentences": 6,
    "claim": "a4",
    "label": "NS",
    "judgments": {"direct_asking": "true", "none_of_the_above": None},
}


def test_records_survive_a_file(tmp_path: Path) -> None:
    records = random_records(0)
    write_records(records, tmp_path / "records.jsonl")
    assert read_records(tmp_path / "records.jsonl") == records


def test_a_line_is_read_as_documented(tmp_path: Path) -> None:
    (record,) = read_records(lines_at(tmp_path / "records.jsonl", LINE))
    assert record == ClaimRecord(
        "r1", 2, 6, "a4", ClaimLabel.UNSUPPORTED, direct_asking=ModelJudgment.TRUE
    )
    assert record.position == pytest.approx(1 / 3, abs=1e-15)
    assert record.judgment("direct_asking") is ModelJudgment.TRUE
    earlier = {"judgements" if key == "judgments" else key: value for key, value in LINE.items()}
    assert read_records(lines_at(tmp_path / "earlier.jsonl", earlier)) == [record]
    assert record.judgment(Setting.NONE_OF_THE_ABOVE) is None


def test_log_probabilities_survive_a_file(tmp_path: Path) -> None:
    logs = {"direct_asking": {"true": -0.25, "false": -3}}
    path = lines_at(tmp_path / "records.jsonl", {**LINE, "log_probabilities": logs})
    records = read_records(path)
    assert records[0].log_probabilities == {
        Setting.DIRECT_ASKING: {ModelJudgment.TRUE: -0.25, ModelJudgment.FALSE: -3.0}
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
    refused("direct_asking, question_answering, none_of_the_above", record.judgment, "asking")
