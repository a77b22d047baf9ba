"""Logs of Inspect, promptfoo and lm-evaluation-harness, each in the form that its tool writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from experiments.methods.estimate import estimate
from experiments.methods.score import score
from factormodels.io.formats.lm_eval_log import CHOICE
from factormodels.io.formats.logs import scored_rows
from tests.factormodels.io.formats.release_records import lines_at
from tests.refusals import refused

INSPECT: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"task": "towns", "model": "openai/small"},
    "samples": [
        {
            "id": f"q{number}",
            "epoch": 1,
            "input": "Where is the mill?",
            "target": "In Sella.",
            "output": {"completion": "In Sella."},
            "scores": {
                "judge": {"value": share, "explanation": "as the letters say"},
                "model_graded_qa": {"value": "C" if share > 0.5 else "I"},
                "length": {"value": 240},
            },
        }
        for number, share in enumerate((0.9, 0.2, 0.7, 0.8, 0.4, 0.6))
    ],
}
PROMPTFOO: dict[str, Any] = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "results": [
            {
                "testIdx": test,
                "promptIdx": prompt,
                "provider": {"id": "openai:small", "label": ""},
                "vars": {"town": "Sella"},
                "response": {"output": f"Answer {test}."},
                "success": True,
                "score": 0.25 * (test + prompt),
                "namedScores": {"grounded": 0.5},
                "gradingResult": {"pass": True, "score": 0.5, "reason": ""},
            }
            for test in range(3)
            for prompt in range(2)
        ],
    },
}


def choice(number: int, logs: tuple[float, ...], right: float) -> dict[str, Any]:
    """A line of a multiple-choice task, whose numbers the harness writes as texts."""
    listed = [[str(each), "False"] for each in logs]
    return {
        "doc_id": number,
        "doc": {"question": "?"},
        "target": "0",
        "resps": [listed],
        "filtered_resps": listed,
        "filter": "none",
        "metrics": ["acc"],
        "acc": right,
    }


HARNESS = [
    choice(0, (-1.0, -2.0, -3.0), 1.0),
    choice(1, (-700.0, -701.0), 0.0),
    *(choice(number, (-1.0, -1.0 - number), float(number % 2)) for number in range(2, 8)),
]


def only(record: dict[str, Any]) -> dict[str, Any]:
    rows = scored_rows(record, "samples.jsonl", 1)
    assert rows is not None
    assert len(rows) == 1
    return rows[0]


def test_inspect_has_a_row_a_sample_and_a_column_for_every_scorer_of_shares() -> None:
    rows = scored_rows(INSPECT, "log.json", None)
    assert rows is not None
    assert rows[1] == {
        **{"response": "q1", "claim": "1", "model": "openai/small", "text": "In Sella."},
        **{"judge": 0.2, "model_graded_qa": 0.0},
    }
    assert len(rows) == 6


def test_promptfoo_has_a_row_for_every_test_and_prompt() -> None:
    rows = scored_rows(PROMPTFOO, "out.json", None)
    assert rows is not None
    assert [(row["response"], row["claim"], row["score"]) for row in rows[:3]] == [
        *(("0", "0", 0.0), ("0", "1", 0.25), ("1", "0", 0.25)),
    ]
    assert rows[2]["text"] == "Answer 1."
    assert rows[2]["grounded"] == 0.5
    assert rows[2]["model"] == "openai:small"


def test_the_harness_says_how_probable_the_chosen_answer_is_and_whether_it_is_right() -> None:
    first = only(HARNESS[0])
    assert first[CHOICE] == pytest.approx(1 / (1 + math.exp(-1) + math.exp(-2)))
    assert first["label"] is True
    second = only(HARNESS[1])
    assert (second["response"], second["label"]) == ("1", False)
    generated = {"doc_id": 3, "filtered_resps": ["Sella"], "filter": "strict-match",
                 "metrics": ["exact_match"], "exact_match": 1.0}  # fmt: skip
    row = only(generated)
    assert (row["claim"], row["exact_match"], row["text"]) == ("strict-match", 1.0, "Sella")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"eval": {}, "samples": [{"id": 1, "scores": {}}]}, "no sample of this log has a score"),
        ({"eval": {}, "samples": {}}, r"\$\.samples: {} is not a list"),
        ({"eval": 3, "samples": []}, r"\$\.eval: 3 is not a JSON object"),
        ({"results": {"results": [3]}}, r"results\[0\]"),
        ({"doc_id": 1, "filtered_resps": "yes"}, "filtered_resps"),
    ],
)
def test_malformed_input_is_reported_with_its_place(record: Any, message: str) -> None:
    refused(f"log.json.*{message}", scored_rows, record, "log.json", None)


@pytest.mark.parametrize("record", [3, {}, {"results": []}, {"p": 0.5, "label": True}])
def test_another_record_is_no_log(record: Any) -> None:
    assert scored_rows(record, "log.json", None) is None


def test_estimate_takes_a_log_and_labels_from_a_sheet(tmp_path: Path) -> None:
    log = lines_at(tmp_path / "log.json", INSPECT)
    sheet = tmp_path / "labels.csv"
    sheet.write_text("response,claim,label\nq0,1,yes\nq1,1,no\nq3,1,yes\nq4,1,yes\n", "utf-8")
    estimated = estimate(log, labels=(str(sheet),), quantities=("share",), p=("judge",))
    row = estimated.tables["estimates"].frame.iloc[0]
    assert row["predictions"] == pytest.approx(0.6)
    assert row["labels"] == pytest.approx(0.75)


def test_score_takes_the_lines_of_the_harness(tmp_path: Path) -> None:
    scores = score(lines_at(tmp_path / "samples.jsonl", *HARNESS))
    p = [only(each)[CHOICE] for each in HARNESS]
    y = [1.0, 0.0, *(float(number % 2) for number in range(2, 8))]
    brier = sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / len(p)
    row = scores.tables["scores"].frame.iloc[0]
    assert row["brier"] == pytest.approx(brier)
