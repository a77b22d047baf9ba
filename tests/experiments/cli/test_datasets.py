"""`factormodels datasets`: the group of commands, and `datasets check` as a person sees it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from experiments.results.rows import read_rows
from factormodels import datasets
from tests.experiments.conftest import EXAMPLE, invoke, study_file
from tests.factormodels.io.published.release_records import (
    CONFLICTBANK,
    FACTOR,
    LONGFACT,
    UNLI,
)


def lines(folder: Path, name: str, *records: object) -> None:
    (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))


def test_datasets_are_listed_with_counts() -> None:
    result = invoke("datasets")
    line = next(line for line in result.stdout.splitlines() if line.startswith("factcheck-bench "))
    # 94 responses, 678 claims, 631 of them labelled.
    assert line.split()[1:4] == ["94", "678", "631"]
    assert line.split()[-1] == "Apache-2.0"


@pytest.mark.parametrize("name", datasets.names())
def test_a_dataset_shows_its_card(name: str) -> None:
    result = invoke("datasets", name)
    card = datasets.card(name)
    for text in (card.title, card.description, card.licence, *card.notes):
        assert text in result.stdout


def test_a_name_alone_shows_the_card() -> None:
    card = invoke("datasets", "demonstration")
    assert card.stdout == invoke("datasets", "show", "demonstration").stdout
    assert "licence: Apache-2.0" in card.stdout


def test_an_unknown_dataset_is_one_sentence() -> None:
    result = invoke("datasets", "demonstrations", code=2)
    assert "'demonstrations' is unknown" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "factcheck-bench" in result.stderr


def test_a_clean_folder(folder: Path) -> None:
    (folder / "graph.json").write_text(json.dumps(EXAMPLE))
    lines(folder, "longfact-concepts_accounting.jsonl", LONGFACT, LONGFACT)
    (folder / "NOTES.md").write_text("x")
    result = invoke("datasets", "check", folder)
    assert result.stdout.splitlines() == [
        f"{folder}/graph.json: fact graphs (fact-graph; this project; IBM/FactReasoner)",
        "  holds    1 record, 1 response, 1 atom (1 false), 2 contexts, "
        "2 relations (1 entailment, 1 contradiction)",
        "",
        f"{folder}/longfact-concepts_accounting.jsonl: LongFact prompts "
        "(longfact; google-deepmind/long-form-factuality, longfact)",
        "  holds    2 records, 2 prompts",
        "",
        "not looked at, being no data: NOTES.md",
        "2 files, nothing wrong",
    ]


def test_every_wrong_line_is_shown_up_to_a_number(folder: Path) -> None:
    bad = {**CONFLICTBANK, "default_claim": ""}
    lines(folder, "qa.jsonl", CONFLICTBANK, *[bad] * 30)
    result = invoke("datasets", "check", "qa.jsonl", "--show", "3", code=2)
    wrong = [line for line in result.stdout.splitlines() if line.startswith("  wrong")]
    said = "key 'default_claim' is empty; give its text or drop the record"
    assert wrong == [
        *(f"  wrong    qa.jsonl:{line}: {said}" for line in (2, 3, 4)),
        "  wrong    and 27 more",
    ]
    assert result.stdout.endswith("1 file, 1 with something wrong\n")
    every = invoke("datasets", "check", "qa.jsonl", "--show", "100", code=2).stdout
    assert every.count(said) == 30


def test_what_cannot_be_checked_is_one_sentence(folder: Path) -> None:
    lines(folder, "odd.jsonl", {"claims_list": [], "response": "x", "modell": "y"})
    result = invoke("datasets", "check", "odd.jsonl", code=2)
    assert "odd.jsonl: of no known format" in result.stdout
    assert "the nearest is fastfact-bench, of which it lacks claims_lst" in result.stdout
    forced = invoke("datasets", "check", "odd.jsonl", "--format", "fastfact-bench", code=2)
    assert "  wrong    odd.jsonl:1: the key" in forced.stdout
    for arguments, words in {
        ("odd.jsonl", "--format", "fastfact"): "the format 'fastfact' is unknown",
        ("absent.jsonl",): "absent.jsonl: there is no such file",
    }.items():
        result = invoke("datasets", "check", *arguments, code=2)
        assert words in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("dress", ["lines", "table"])
def test_published_files_run_in_studies(dress: str, folder: Path) -> None:
    if dress == "lines":
        lines(folder, "data", CONFLICTBANK, CONFLICTBANK)
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(FACTOR))
        writer.writeheader()
        writer.writerows([FACTOR, FACTOR])
        (folder / "data").write_text(text.getvalue())
    path = study_file(folder, "study: s\ndatasets: [{path: data}]\nvariants: [FR1, FR2]\n")
    invoke("run", path)
    rows_read = read_rows(folder / "results" / "s" / "rows.parquet")
    assert len(rows_read) == (12 if dress == "lines" else 16)
    assert rows_read.error.isna().all()


def test_what_is_no_response_is_refused_by_a_study(folder: Path) -> None:
    lines(folder, "data.jsonl", LONGFACT)
    path = study_file(folder, "study: s\ndatasets: [{path: data.jsonl}]\n")
    result = invoke("run", path, code=2)
    assert "it holds prompts and no response; use read_prompts" in result.stderr


def test_other_commands_take_published_files(folder: Path) -> None:
    header, row = ",".join(FACTOR), ",".join(f'"{value}"' for value in FACTOR.values())
    (folder / "factor.csv").write_text(f"{header}\n{row}\n{row}\n")
    assert "a4" in invoke("infer", "factor.csv", "--response", "factor-002").stdout
    invoke("convert", "factor.csv", "graphs.jsonl")
    lines(folder, "asked.jsonl", {"question": "Who?", "response": "Ada paints.", "model": "m"})
    (folder / "notes").mkdir()
    (folder / "notes" / "ada.txt").write_text("Ada paints birds.")
    invoke("assess", "asked.jsonl", "--documents", "notes")
    lines(folder, "pairs.jsonl", UNLI)
    assert "use read_judged_pairs" in invoke("infer", "pairs.jsonl", code=2).stderr
