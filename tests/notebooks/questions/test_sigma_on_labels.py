"""Sigma against human labels: counts by hand, users' files, and what the pages of findings keep."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.analyses.user_data import DATA_FILE, VARIABLE
from factormodels import datasets
from notebooks.questions.sigma_on_labels import sigma_on_labels
from tests.pages import findings

DOCS = Path(__file__).resolve().parents[3] / "docs"
KEPT = DOCS / "results" / "sigma-on-labels"

QUICK: Any = {"splits": 4, "n_bootstrap": 5, "sweep": (0.1, 0.5)}
VOTES = ("SelfCheckGPT",)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the current one, without a file that says where data are."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shares(claims: list[tuple[bool, bool]]) -> dict[str, float]:
    """Return what (supported, judged correct) make of SK, SU, sigma and the factuality."""
    known = [judged for right, judged in claims if right]
    unknown = [not judged for right, judged in claims if not right]
    first, other = sum(known) / len(known), sum(unknown) / len(unknown)
    return {
        "self_known": first,
        "self_unknown": other,
        "sigma": (1 - other) / (2 - first - other),
        "factuality": len(known) / len(claims),
        "false_positives": len(unknown) - sum(unknown),
        "false_negatives": len(known) - sum(known),
    }


def voted(threshold: float) -> Iterator[tuple[bool, bool]]:
    for graph in datasets.load("selfcheck").graphs:
        for atom in graph.atoms:
            votes = graph.metadata["votes"][atom.id]
            yield atom.label is True, votes.count("Y") / len(votes) >= threshold


def overall(frame: Any, subject: str) -> Any:
    rows = frame[(frame["subject"] == subject) & (frame["position"] == "overall")]
    assert len(rows) == 1
    return rows.iloc[0]


def test_votes_are_counted_at_every_threshold() -> None:
    tables = sigma_on_labels(embedded=VOTES, **QUICK).tables
    caption = tables["in-sample"].caption
    assert "Without NQ and MATH: datasets.self-judged in factormodels-data.yaml" in caption
    row = overall(tables["in-sample"].frame, "SelfCheckGPT")
    for name, value in shares(list(voted(0.5))).items():
        # Quotients of whole numbers, to rounding.
        assert row[name] == pytest.approx(value, abs=1e-12)
    swept: Any = tables["thresholds"].frame.set_index("threshold")
    for threshold in (0.1, 0.5):
        for name, value in shares(list(voted(threshold))).items():
            assert swept.loc[threshold, name] == pytest.approx(value, abs=1e-12)


def test_files_of_confidences_and_of_asked_models_are_subjects(folder: Path) -> None:
    answers = []
    for at in range(6):
        marks = zip((1.0, 0.9, 0.6), ("Y", "NY"[at % 2], "YN"[at % 2]), strict=True)
        claims: list[dict[str, Any]] = [
            {"subclaim": "t", "gpt-score": sure, "annotation": mark} for sure, mark in marks
        ]
        answers.append({"original-output": "x", "claims": claims})
    (folder / "nq.json").write_text(json.dumps({"data": answers}))
    asked: list[dict[str, Any]] = [
        {"response": f"r{at % 5}", "sentence": 1 + at % 2, "sentences": 2, "claim": f"c{at}"}
        | {"label": "S" if at % 3 else "NS"}
        | {"judgments": {"direct_asking": ["true", "false"][at % 4 == 0],
                          "none_of_the_above": ["true", "neither"][at % 5 == 0]}}
        for at in range(40)
    ]  # fmt: skip
    (folder / "asked.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in asked))
    (folder / DATA_FILE).write_text(
        "datasets: {self-judged: {NQ: nq.json, ours: asked.jsonl}}", encoding="utf-8"
    )
    tables = sigma_on_labels(embedded=VOTES, **QUICK).tables
    frame = tables["in-sample"].frame
    assert f"Without MATH: datasets.self-judged in {DATA_FILE}" in tables["in-sample"].caption
    every: Any = [claim for answer in answers for claim in answer["claims"]]
    judged = [(claim["annotation"] == "Y", claim["gpt-score"] >= 0.9) for claim in every]
    expected = {
        "NQ": shares(judged),
        "ours, direct asking": shares(
            [
                (record["label"] == "S", record["judgments"]["direct_asking"] == "true")
                for record in asked
            ]
        ),
        "ours, none of the above": shares(
            [
                (record["label"] == "S", record["judgments"]["none_of_the_above"] == "true")
                for record in asked
            ]
        ),
    }
    for subject, values in expected.items():
        row = overall(frame, subject)
        for name, value in values.items():
            assert row[name] == pytest.approx(value, abs=1e-12), (subject, name)
    # Judgments have no threshold.
    assert set(tables["thresholds"].frame["subject"]) == {"NQ", "SelfCheckGPT"}


def kept(stem: str) -> list[dict[str, str]]:
    with (KEPT / f"{stem}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_kept_votes_and_tests_are_those_of_the_data() -> None:
    (row,) = (
        row
        for row in kept("in-sample")
        if row["subject"] == "SelfCheckGPT" and row["position"] == "overall"
    )
    for name, value in shares(list(voted(0.5))).items():
        assert float(row[name]) == pytest.approx(value, abs=1e-9)


@pytest.mark.slow
def test_the_answer_is_what_is_kept(shared_data: Path) -> None:
    folder = shared_data / "self_judged"
    Path("factormodels-data.yaml").write_text(
        f"datasets: {{self-judged: {{NQ: {folder}/nq_subclaims_with_scores.jsonl, "
        f"MATH: {folder}/MATH_subclaims_with_scores.jsonl}}}}"
    )
    # In sample alone: intervals and splits are drawn and take long.
    tables = sigma_on_labels(splits=2, n_bootstrap=2).tables
    for stem in ("in-sample", "thresholds"):
        made = tables[stem].frame.to_dict("records")
        assert len(made) == len(kept(stem))
        for row, other in zip(made, kept(stem), strict=True):
            for name in ("sigma", "factuality", "self_known", "self_unknown", "clustered"):
                value, wanted = float(row[name]), float(other[name] or "nan")
                assert value == pytest.approx(wanted, abs=1e-9, nan_ok=True), (row, name)


def test_the_equation_stands_where_the_section_says() -> None:
    section = findings().split("## Does σ predict factuality?\n")[1].split("\n## ")[0]
    assert (KEPT / "sigma.png").is_file()
    assert "](sigma-on-labels/sigma.png)" in section
    # How often the equation stands.
    swept = kept("thresholds")
    standing = [row for row in swept if float(row["clustered"]) >= 0.05]
    assert f"Of {len(swept)} pairs " in section
    assert {(row["subject"], float(row["threshold"])) for row in standing} == {
        ("NQ", 0.7), ("NQ", 0.8), ("MATH", 0.9), ("SelfCheckGPT", 0.1)
    }  # fmt: skip
