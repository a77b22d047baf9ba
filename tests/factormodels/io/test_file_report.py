"""`check_paths`: what a file is, holds and lacks, and every line of it that is wrong."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from factormodels.io.file_report import FileReport, check_file, check_paths
from factormodels.io.formats.registry import format_named
from factormodels.io.json import element_line
from tests.factormodels.io.formats.release_records import (
    FACT_GRAPH,
    FACTCHECK,
    FACTREASONER,
    FACTSCORE,
    FASTFACT,
    JUNK,
    KNOWN,
    LONGFACT,
    PASSAGES,
    READERS,
    RESPONSE,
    UNLI,
    lines,
    places,
    replaced,
    table,
    written,
)
from tests.refusals import refused


def numbered(record: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a copy with an id of its own, where the format has ids."""
    copied = copy.deepcopy(record)
    for key in ("q_id", "id", "wiki_bio_test_idx"):
        if key in copied:
            copied[key] = f"{copied[key]}-{number}"
    if "id" in copied.get("meta", {}):
        copied["meta"]["id"] = f"{copied['meta']['id']}x{number}"
    if "judgments" in copied:
        copied["claim"] = f"{copied['claim']}-{number}"
    return copied


def lines_file(folder: Path, records: list[Any], name: str = "data.jsonl") -> Path:
    return written(folder, lines(*records), name)


def wrong_lines(report: FileReport) -> list[int | None]:
    return [problem.line for problem in report.problems]


@pytest.mark.parametrize("name", KNOWN)
def test_a_clean_file_of_every_format(name: str, tmp_path: Path) -> None:
    records = [numbered(KNOWN[name], number) for number in range(3)]
    report = check_file(lines_file(tmp_path, records))
    assert report.format is format_named(name)
    assert report.records == 3
    assert report.problems == ()
    assert sum(report.counts.values()) >= 3
    forced = check_file(report.path, format_named(name))
    assert forced.counts == report.counts


@pytest.mark.parametrize("name", KNOWN)
def test_any_damage_to_a_line_is_reported_for_that_line_alone(name: str, tmp_path: Path) -> None:
    record = KNOWN[name]
    damages = [(path, junk) for path in places(record) for junk in JUNK if path]
    records = [numbered(record, number) for number in range(2 * len(damages))]
    # Every second line is damaged.
    for at, (steps, junk) in enumerate(damages):
        records[2 * at + 1] = replaced(records[2 * at + 1], junk, *steps)
    path = lines_file(tmp_path, records)
    report = check_file(path)
    assert report.format is format_named(name)
    assert [line for line in wrong_lines(report) if line is None or line % 2] == []
    for problem in report.problems:
        assert problem.message
        assert "\n" not in problem.message
        assert str(path) not in problem.message
    # Most damage cannot pass for data: a reader that accepted nearly all of it would be deaf.
    assert len({*wrong_lines(report)}) >= len(damages) / 2


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "factscore-passages"])
def test_reading_and_checking_agree_on_the_first_wrong_line(name: str, tmp_path: Path) -> None:
    reader = READERS[format_named(name).holds]
    records = [numbered(KNOWN[name], number) for number in range(4)]
    path = lines_file(tmp_path, records)
    reader(path)
    text = path.read_text(encoding="utf-8").split("\n")
    text[1], text[3] = text[1][: len(text[1]) // 2], text[3].replace("{", '{"x": NaN, ', 1)
    path.write_text("\n".join(text), encoding="utf-8")
    report = check_file(path)
    assert wrong_lines(report) == [2, 4]
    assert report.records == 4
    refused("line 2: ", reader, path)


@pytest.mark.parametrize("cut", range(2, 30, 3))
def test_a_truncated_file_is_wrong_in_its_last_line(cut: int, tmp_path: Path) -> None:
    path = lines_file(tmp_path, [numbered(FASTFACT, number) for number in range(3)])
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    assert wrong_lines(check_file(path)) == [3]
    packed = tmp_path / "data.jsonl.gz"
    packed.write_bytes(gzip.compress(content)[:-cut])
    (problem,) = check_file(packed).problems
    assert problem.line is None
    assert "gzip compression is damaged" in problem.message


def test_every_line_in_another_encoding_is_reported(tmp_path: Path) -> None:
    path = lines_file(tmp_path, [LONGFACT] * 4)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"ledger", "Käse".encode("latin-1"))
    lines[3] = lines[3].replace(b"ledger", b"\xff\xfe")
    path.write_bytes(b"\n".join(lines))
    report = check_file(path)
    assert wrong_lines(report) == [2, 4]
    assert report.problems[0].message == "byte 0xe4 is not UTF-8; save the file as UTF-8"
    assert report.counts == {"prompts": 2}


def test_every_wrong_row_of_a_table_is_reported(tmp_path: Path) -> None:
    rows = [numbered(UNLI, number) for number in range(6)]
    rows[1]["unli"], rows[3]["hyp"], rows[4]["pre"] = "NaN", " ", "Two\nlines."
    report = check_file(written(tmp_path, table(*rows), "data.csv"))
    assert wrong_lines(report) == [3, 5]
    assert report.problems[0].message.startswith("$.unli: the probability nan is not between")
    assert report.counts == {"pairs": 4}


def test_repeated_ids_and_things_that_are_no_objects(tmp_path: Path) -> None:
    report = check_file(lines_file(tmp_path, [{**FACT_GRAPH, "id": "x"}] * 2 + [5]))
    assert [(p.line, p.message) for p in report.problems] == [
        (2, "the id 'x' is given twice (line 1); give each its own"),
        (3, "5 is not an object; give one object per record"),
    ]


def test_wrong_labels_are_reported_with_those_there_are(tmp_path: Path) -> None:
    wrong = copy.deepcopy(FASTFACT)
    wrong["claims_lst"][0]["annotator_label"] = "suported"
    (first,) = check_file(lines_file(tmp_path, [FASTFACT, wrong])).problems
    assert (first.line, "claims_lst[0]" in first.message) == (2, True)
    assert "'suported' is not a label; use null or one of supported, unsupported" in first.message


def test_missing_answers_are_counted(tmp_path: Path) -> None:
    bare = {key: value for key, value in FASTFACT.items() if key != "model"}
    unlabeled = copy.deepcopy(bare)
    unlabeled["claims_lst"][1] |= {"annotator_label": None, "verification_result": None}
    report = check_file(lines_file(tmp_path, [FASTFACT, unlabeled, {**bare, "claims_lst": []}]))
    assert report.problems == ()
    assert report.missing == (
        "key 'model': absent or null in 2 of 3",
        "key 'claims_lst[].annotator_label': absent or null in 1 of 6",
        "key 'claims_lst[].verification_result': absent or null in 3 of 6",
        "labels: 1 of 4 atoms have none",
        "contexts: 1 of 4 atoms have none",
        "atoms: 1 of 3 responses have none",
    )
    graph = copy.deepcopy(FACT_GRAPH)
    del graph["nodes"][1]["text"]
    # The relation tells that the context is the atom's, although nothing says so of its retrieval.
    assert check_file(lines_file(tmp_path, [graph])).missing == (
        "key 'nodes[].text': absent or null in 1 of 2",
        "texts: 1 of 1 contexts have none",
    )
    columns = ("claims", "claims_factuality_label", "auto_evidence", "stance_claim_autoEvid")
    sentences = {**FACTCHECK["sentences"], "sentence2": {key: [] for key in columns}}
    report = check_file(lines_file(tmp_path, [{**FACTCHECK, "sentences": sentences}]))
    assert report.missing == ("key 'sentences{}.auto_evidence_url': absent or null in 1 of 2",)


def test_passages_belong_beside_biographies(tmp_path: Path) -> None:
    lines_file(tmp_path, [FACTSCORE], "bios.jsonl")
    ((alone,), _) = check_paths([tmp_path])
    assert "companion: no file of factscore-passages was checked with it" in alone.missing
    lines_file(tmp_path, [PASSAGES], "passages.jsonl")
    (bios, passages), _ = check_paths([tmp_path])
    assert bios.missing[-1] == "companion: 3 of 3 atoms have no line of factscore-passages"
    assert passages.counts == {"atoms with passages": 1, "passages": 1}
    texts = ("Ada Example is a painter.", "She was born in Ulm.", "Ulm is a town.")
    lines_file(tmp_path, [{**PASSAGES, "sent": text} for text in texts], "passages.jsonl")
    (bios, _), _ = check_paths([tmp_path])
    assert not any("companion" in lacks for lacks in bios.missing)


def test_unknown_formats_are_reported_with_the_nearest(tmp_path: Path) -> None:
    path = lines_file(tmp_path, [{"responce": "x", "claims_lst": [], "modell": "y"}])
    report = check_file(path)
    assert (report.format, report.records) == (None, 1)
    (problem,) = report.problems
    assert "the nearest is fastfact-bench, of which it lacks response" in problem.message
    for text, words in {
        "one,two\n1,2\n": "its keys or columns are ['one', 'two']; choose a format with",
        "just a text": "its keys or columns are ['just a text']",
        "[1, 2]": "no key or column was found",
        "": "the file is empty",
        "pre,hyp\nx,y\n": "the nearest is unli, of which it lacks unli",
    }.items():
        path.write_text(text, encoding="utf-8")
        assert words in check_file(path).problems[0].message


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = lines_file(tmp_path, [RESPONSE, {"question": "Q?"}])
    ((report,), _) = check_paths([path], "fastfact-bench")
    assert [p.message for p in report.problems] == [
        "the key 'claims_lst' is missing; add it",
        "the key 'response' is missing; add it",
    ]
    refused("the format 'fastfact' is unknown", check_paths, [path], "fastfact")


@pytest.mark.parametrize("text", ["pre,hyp,unli\n", "no table at all"])
def test_a_table_without_rows_is_wrong(text: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    (problem,) = check_file(path, format_named("unli")).problems
    assert problem.message == "it holds no record; name another file"


def test_folders_are_looked_through(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "LICENSE").write_text("x", encoding="utf-8")
    refused("the folder contains no data file", check_paths, [tmp_path])
    whole = written(tmp_path, table(UNLI), "data.csv").read_bytes()
    (inner / "b.csv.gz").write_bytes(gzip.compress(whole))
    reports, passed = check_paths([tmp_path, tmp_path / "data.csv"])
    assert [report.path.name for report in reports] == ["data.csv", "b.csv.gz"]
    assert {report.format for report in reports} == {format_named("unli")}
    assert [path.name for path in passed] == ["LICENSE"]
    refused("there is no such file", check_paths, [tmp_path / "absent.json"])


def test_errors_in_one_json_value_have_its_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(FACT_GRAPH, indent=1).replace("0.9", "1e999"), encoding="utf-8")
    (problem, *_) = check_file(path, format_named("fact-graph")).problems
    assert problem.line == 13
    assert "1e999 is too large" in problem.message


def test_a_wrong_element_of_one_json_value_has_its_line(tmp_path: Path) -> None:
    wrong: dict[str, Any] = copy.deepcopy(FACTREASONER)
    wrong["atoms"] += [{"id": "a9", "text": 5}]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(wrong, indent=1), encoding="utf-8")
    (problem,) = check_file(path).problems
    assert problem.message == "$.atoms[3].text: 5 is not text; put text there"
    after = path.read_text(encoding="utf-8").splitlines()[problem.line or 0 :]
    assert after[:2] == ['   "id": "a9",', '   "text": 5']
    # Where the message names no element, the value as a whole is meant.
    path.write_text(json.dumps({**FACTREASONER, "topic": 5}), encoding="utf-8")
    (problem,) = check_file(path).problems
    assert (problem.line, "$.topic" in problem.message) == (1, True)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": 1}', '{"a": [1, 2]}', '{"a": [1', "{1: 2}"]
)
def test_an_element_that_is_not_there_has_no_line(text: str) -> None:
    assert element_line(text, "a", 2) is None
    assert element_line(text, "b", 0) is None


def test_the_shared_files_are_clean(shared_data: Path) -> None:
    folders = ["factcheck_bench", "factscore_dev", "factreasoner"]
    reports, _ = check_paths([shared_data / name for name in folders])
    assert [report.format.name for report in reports if report.format] == [
        *("factcheck-bench", "factscore", "factscore-passages", "fact-graph"),
        *["factreasoner"] * 3,
    ]
    assert all(report.problems == () for report in reports)
    bench, bios = reports[0].counts, reports[1].counts
    assert (bench["responses"], bench["true"], bench["false"], bench["unlabeled"]) == (
        *(94, 472, 159, 47),
    )
    assert (bios["responses"], bios["atoms"]) == (31, 974)


def test_one_of_several_names_of_a_key_suffices(tmp_path: Path) -> None:
    row = {"responses": "It is old.", "sampled_responses": ["It is old."]}
    named = {**row, "prompts": "Is it old?"}
    (missing, _) = check_file(lines_file(tmp_path, [named, row])).missing
    assert missing == "key 'prompt': absent or null in 1 of 2"
    result = {"data": {key: [value] for key, value in named.items()}}
    assert not [
        each for each in check_file(lines_file(tmp_path, [result])).missing if "key" in each
    ]
