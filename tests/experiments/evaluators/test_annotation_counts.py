"""Counts of annotations without claims, as annotation_stats.json of FaStfact's release has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import fastfact, run
from experiments.evaluators.annotation_counts import read_counts
from tests.refusals import refused


def group(count: int, supported: int, refuted: int, **more: int) -> dict[str, Any]:
    return {
        "count": count,
        "annotator_labels": {"supported": supported, "refuted": refuted, **more},
        "operations": {"unchanged": 3 * count, "removed": 1, "added": 2, "revised": 0},
        "agreements": {"agreed": 9, "disagreed_corrected": 3, "verification_pending": 2},
        "token_stats": {"search": 100.5},
    }


STATS = {
    "metadata": {"total_samples": 10},
    "overall": group(10, 30, 6, irrelevant=4, redundant=7),
    "grouped": {
        "by_model": {"m": group(10, 30, 6, irrelevant=4, redundant=7)},
        "by_prompt_source": {"longfact": group(4, 10, 0), "expertqa": group(6, 20, 6)},
    },
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "annotation_stats.json"
    path.write_text(json.dumps(STATS, indent=2), encoding="utf-8")
    return path


def test_counts_become_numbers_per_response_and_shares(file: Path) -> None:
    findings = fastfact(file, annotated=True)
    table = findings["counts"].set_index("statistic")
    assert table.columns.tolist() == ["Overall", "longfact", "expertqa"]
    overall = table["Overall"].to_dict()
    # 40 claims are supported, refuted or irrelevant; redundant ones are not among them.
    assert overall["claims per response"] == 4.0
    assert overall["supported, %"] == pytest.approx(75.0)
    assert overall["unsupported, %"] == pytest.approx(15.0)
    assert overall["irrelevant, %"] == pytest.approx(10.0)
    assert (overall["# unchanged"], overall["# added"]) == (3.0, 0.2)
    assert overall["verdict that people said to agree with, %"] == pytest.approx(75.0)
    assert table["longfact"]["supported, %"] == pytest.approx(100.0)
    assert findings["counts-by-model"].columns.tolist() == ["statistic", "Overall", "m"]
    assert findings["tokens"].to_dict("records") == [{"stage": "search", "tokens": 100.5}]
    for text in (
        "10 annotated responses: 1 removed, 2 added",
        "no claims",
        "7 redundant",
        "2 verd",
    ):
        assert any(text in sentence for sentence in findings.sentences), text


def test_the_study_of_table_7_reads_them(file: Path, tmp_path: Path) -> None:
    findings = run("papers/fastfact-alignment", data=file, out=str(tmp_path / "out"))
    table = findings["table-7"].set_index("statistic")
    assert table["Overall"]["supported"] == pytest.approx(75.0)
    # K' and F1@K' do not follow from sums.
    assert not {"k_prime", "f1"} & set(table.index)
    published = findings["published"].set_index("source")
    ours = published["ours"].to_dict()
    assert ours["FaStfact, table 7: % supported"] == "75.00"
    assert ours["FaStfact, table 7: F1@K', %"] == "-"
    assert published["why"].str.len().min() > 0
    embedded = run("papers/fastfact-alignment", out=str(tmp_path / "embedded"))["published"]
    assert set(embedded["ours"]) == {"other data"}
    assert set(embedded["why"]) == {"embedded data replace the paper's"}


def test_files_of_another_kind_are_left_to_other_readers(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"overall": {}, "grouped": {}}\n{"overall": {}}\n', encoding="utf-8")
    assert read_counts(path) is None
    path.write_text(json.dumps({"claims_lst": []}, indent=1), encoding="utf-8")
    assert read_counts(path) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, r"overall counts 0 responses"),
        ({"operations": {"added": -1}}, r"a number below 0"),
        ({"annotator_labels": "many"}, r"\$\.overall\.annotator_labels"),
    ],
)
def test_malformed_counts_are_refused(file: Path, change: dict[str, Any], message: str) -> None:
    stats = STATS | {"overall": {**group(10, 1, 1), **change}}
    file.write_text(json.dumps(stats, indent=2), encoding="utf-8")
    refused(message, fastfact, file, annotated=True)


@pytest.mark.shared
def test_the_releases_counts_are_those_of_its_file(shared_data: Path) -> None:
    path = shared_data / "fastfact" / "annotation_stats.json"
    table = fastfact(path, annotated=True)["counts"].set_index("statistic")
    stated = json.loads(path.read_text("utf-8"))["overall"]
    assert table["Overall"]["# revised"] == stated["operations"]["revised"] / stated["count"]
    # The findings print it with two digits.
    assert round(table["Overall"]["supported, %"], 2) == 84.27
