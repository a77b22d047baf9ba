"""`factormodels datasets`: the embedded ones, and a check of files as a person sees it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from experiments.study.rows import read_rows
from factormodels import datasets
from tests.experiments.conftest import EXAMPLE, invoke, study_file
from tests.factormodels.io.formats.release_records import (
    FASTFACT,
    LONGFACT,
    MINICHECK,
    UNLI,
)


def lines(folder: Path, name: str, *records: object) -> None:
    (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))


def test_datasets_are_listed_with_counts() -> None:
    result = invoke("datasets")
    line = next(line for line in result.stdout.splitlines() if line.startswith("factcheck-bench "))
    # 94 responses, 678 claims, 631 of them labeled.
    assert line.split()[1:4] == ["94", "678", "631"]
    assert "Apache-2.0" in line


@pytest.mark.parametrize("name", datasets.names())
def test_a_dataset_shows_its_card(name: str) -> None:
    result = invoke("datasets", name)
    card = datasets.card(name)
    for text in (card.title, card.description, card.license, *card.notes):
        assert text in result.stdout


def test_an_unknown_dataset_is_one_sentence() -> None:
    result = invoke("datasets", "demonstrations", code=2)
    assert "'demonstrations' is unknown" in result.stderr
    assert "factcheck-bench" in result.stderr


def test_a_clean_folder(folder: Path) -> None:
    (folder / "graph.json").write_text(json.dumps(EXAMPLE))
    lines(folder, "longfact-concepts_accounting.jsonl", LONGFACT, LONGFACT)
    (folder / "NOTES.md").write_text("x")
    result = invoke("datasets", folder)
    lines_shown = [line.split("  ") for line in result.stdout.splitlines()[3:5]]
    assert [[cell.strip() for cell in line if cell.strip()] for line in lines_shown] == [
        [
            f"{folder}/graph.json",
            "fact-graph",
            "fact graphs (this project; IBM/FactReasoner)",
            "1 record, 1 response, 1 atom (1 false), 2 contexts, 2 relations (1 entailment, "
            "1 contradiction)",
            "0",
        ],
        [
            f"{folder}/longfact-concepts_accounting.jsonl",
            "longfact",
            "LongFact prompts (google-deepmind/long-form-factuality, longfact)",
            "2 records, 2 prompts",
            "0",
        ],
    ]
    assert result.stdout.splitlines()[-2:] == [
        "- Skipped, because they are not data files: NOTES.md.",
        "- 2 files, nothing wrong.",
    ]


def test_every_wrong_line_is_reported(folder: Path) -> None:
    bad = {**MINICHECK, "claim": ""}
    lines(folder, "scores.jsonl", MINICHECK, *[bad] * 30)
    result = invoke("datasets", "scores.jsonl", "--out", "out", code=1)
    message = "$.claim is empty; give its text or drop the record"
    assert result.stdout.count(message) == 30
    content = json.loads((folder / "out" / "findings.json").read_text())
    assert content["incomplete"]
    problems = [{"file": "scores.jsonl", "line": line, "wrong": message} for line in range(2, 32)]
    assert content["tables"]["problems"] == problems
    assert "- 1 file, 1 with something wrong." in result.stdout


def test_an_impossible_check_is_one_sentence(folder: Path) -> None:
    lines(folder, "odd.jsonl", {"claims_list": [], "response": "x", "modell": "y"})
    result = invoke("datasets", "odd.jsonl", code=1)
    assert "its format is unknown" in result.stdout
    assert "the nearest is fastfact-bench, of which it lacks claims_lst" in result.stdout
    forced = invoke("datasets", "odd.jsonl", "--format", "fastfact-bench", code=1)
    assert "the key" in forced.stdout
    for arguments, words in {
        ("odd.jsonl", "--format", "fastfact"): "the format 'fastfact' is unknown",
        ("absent.jsonl",): "absent.jsonl: there is no such file",
    }.items():
        assert words in invoke("datasets", *arguments, code=2).stderr


@pytest.mark.parametrize("dress", ["lines", "table"])
def test_published_files_run_in_studies(dress: str, folder: Path) -> None:
    if dress == "lines":
        lines(folder, "data", FASTFACT, FASTFACT)
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(MINICHECK))
        writer.writeheader()
        writer.writerows([MINICHECK, {**MINICHECK, "claim": "Ada Example lived in Ulm."}])
        (folder / "data").write_text(text.getvalue())
    path = study_file(folder, "study: s\ndatasets: [{path: data}]\nvariants: [FR1, FR2]\n")
    invoke("run", path)
    rows_read = read_rows(folder / "results" / "s" / "rows.parquet")
    assert len(rows_read) == (8 if dress == "lines" else 4)
    assert rows_read.error.isna().all()


def test_invalid_responses_are_refused_by_a_study(folder: Path) -> None:
    lines(folder, "data.jsonl", LONGFACT)
    path = study_file(folder, "study: s\ndatasets: [{path: data.jsonl}]\n")
    result = invoke("run", path, code=2)
    assert "it holds prompts and no response; use read_prompts" in result.stderr


def test_other_commands_take_published_files(folder: Path) -> None:
    rows = "One.,Ada paints.,0.9,r1\nTwo.,Ada sings.,0.4,r2\nTwo.,Ada flies.,0.2,r2\n"
    (folder / "scores.csv").write_text(f"doc,claim,raw_prob,response\n{rows}")
    assert "a2" in invoke("infer", "scores.csv", "--response", "r2").stdout
    invoke("convert", "scores.csv", "graphs.jsonl")
    lines(folder, "asked.jsonl", {"question": "Who?", "response": "Ada paints.", "model": "m"})
    (folder / "notes").mkdir()
    (folder / "notes" / "ada.txt").write_text("Ada paints birds.")
    invoke("assess", "asked.jsonl", "--documents", "notes")
    lines(folder, "pairs.jsonl", UNLI)
    assert "use read_judged_pairs" in invoke("infer", "pairs.jsonl", code=2).stderr


JUDGED = {"prompt": "Who?", "judged_answers": [{"text": "She.", "verdict": True}], "model": "m"}


def test_labels_that_no_reader_knows_are_named(folder: Path) -> None:
    lines(folder, "odd.jsonl", JUDGED, JUDGED)
    message = "Not used: judged_answers (2, with labels); also model."
    result = invoke("datasets", "odd.jsonl")
    assert "- 1 file, nothing wrong in what is read." in result.stdout
    assert f"- {message}" in result.stdout
    content = json.loads(invoke("datasets", "odd.jsonl", "--json").stdout)
    assert content["findings"][-1] == message
    assert content["not_used"] == [
        {"file": "odd.jsonl", "key": "judged_answers", "count": 2, "holds": ["labels", "responses"]}
    ]
    refusal = invoke("infer", "odd.jsonl", code=2)
    assert "it is read as prompts, without responses" in refusal.stderr
    assert message.removesuffix(".") in refusal.stderr


def test_every_command_ends_on_what_it_did_not_use(folder: Path) -> None:
    lines(folder, "told.jsonl", {"question": "q", "response": "It is.", "label": "S", "id": "a"})
    assert invoke("infer", "told.jsonl").stdout.rstrip().endswith("- Not used: label (1).")
    table = "response,claim,label,p,evidence\nr1,a1,1,0.9,Text\nr2,a1,0,0.2,\n"
    (folder / "t.csv").write_text(table)
    content = json.loads(invoke("score", "t.csv", "--json").stdout)
    assert content["findings"][-1] == "Not used: evidence (1)."
    rows = json.loads(invoke("self-knowledge", "t.csv", "--confidence", "p", "--json").stdout)
    assert rows["not_used"] == [
        {"file": "t.csv", "key": "evidence", "count": 1, "holds": ["evidence"]}
    ]
    (folder / "plain.csv").write_text(table.replace("evidence", "remark"))
    assert "not_used" not in json.loads(invoke("score", "plain.csv", "--json").stdout)
