"""Own evidence: whose passages each scope finds, and the rows that are kept."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from experiments.asking.own_documents import own_documents
from factormodels import datasets, write_many
from factormodels.errors import InputError
from notebooks.questions.own_evidence import own_evidence, sampled, searched

pytestmark = pytest.mark.slow

KEPT = Path(__file__).resolve().parents[3] / "docs" / "results" / "own-evidence"

TOWNS = ("Ulm", "Bonn", "Trier", "Jena", "Essen", "Kiel")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Six persons of SelfCheckGPT's form, with a true and a false sentence each."""
    records = []
    for number, town in enumerate(TOWNS):
        true = f"She lived in {town} for years."
        false = f"She painted {number + 3} doors."
        records.append(
            {
                "wiki_bio_test_idx": number,
                "main_passage": f"{true} {false}",
                "main_sentences": [true, false],
                "annotation": ["accurate", "major_inaccurate"],
                "responses": {"prompt": [["Yes"], ["No"]]},
                "sample_passages": [f"In {town} she lived for years.", f"She left {town} late."],
            }
        )
    path = tmp_path / "selfcheck.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_own_passages_are_those_sampled_for_the_response(file: Path) -> None:
    graphs = sampled(file)
    texts = {
        name: {each.text for each in documents}
        for name, documents in own_documents(None, graphs).documents.items()
    }
    for graph in searched(graphs, "own", 3):
        assert {context.text for context in graph.contexts} <= texts[graph.id]
    others = [
        context.text
        for graph in searched(graphs, "all", 3)
        for context in graph.contexts
        if context.text not in texts[graph.id]
    ]
    assert others


def test_rows_are_of_all_data_and_both_scopes(file: Path, tmp_path: Path) -> None:
    checked = tmp_path / "factcheck-bench.jsonl"
    write_many(datasets.load("factcheck-bench").graphs[:20], checked)
    made = own_evidence(data=(checked,), selfcheck=(file,), folds=2)
    neighbors = made.tables["neighbors"].frame
    pairs = set(zip(neighbors["used"], neighbors["learned"], strict=True))
    names = ("factcheck-bench", "selfcheck")
    assert pairs == {(used, learned) for used in names for learned in names}
    scope = made.tables["scope"].frame
    assert scope["scope"].tolist() == ["own", "all"] * 2
    for stem, table in made.tables.items():
        with (KEPT / f"{stem}.csv").open(encoding="utf-8") as kept:
            assert next(csv.reader(kept)) == [*map(str, table.frame.columns)], stem


def test_a_file_without_sampled_passages_is_refused(file: Path) -> None:
    record = json.loads(file.read_text().splitlines()[0])
    del record["sample_passages"]
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match="line 1: there is no list 'sample_passages'"):
        sampled(file)
