"""Datasets in their owners' formats: what a record becomes, and how its file is known."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from factormodels import FactGraph, read, read_many
from factormodels.extraction.text_match import text_match
from factormodels.io import read_judged_pairs, read_prompts
from factormodels.io.formats.items import JudgedPair, Prompt
from factormodels.io.formats.registry import format_named, format_of, formats, nearest_format
from tests.factormodels.io.formats.release_records import (
    DERIVED,
    ELI5,
    FASTFACT,
    KNOWN,
    LONGFACT,
    QUESTION,
    READERS,
    RECORDS,
    RESPONSE,
    SELF_JUDGED,
    SELFCHECK,
    UNLI,
    lines,
    replaced,
    table,
    written,
)
from tests.refusals import refused


def labels(graph: FactGraph) -> list[tuple[str, bool | None, str | None]]:
    return [(atom.text, atom.label, atom.annotation) for atom in graph.atoms]


@pytest.mark.parametrize("name", KNOWN)
def test_a_record_is_known_by_its_keys_in_any_dress(name: str, tmp_path: Path) -> None:
    record = KNOWN[name]
    known = format_of(record)
    assert known is not None
    assert known.name == name
    for other in ({"something": 1, "else": 2}, [record], None):
        assert format_of(other) is None
    assert [form.name for form in formats()].count(name) == 1
    if known.holds == "passages":
        return
    reader: Any = READERS[known.holds]
    texts = {
        "lines.jsonl": lines(record),
        "one.json": json.dumps(record, indent=2),
        "array.json": json.dumps([record], indent=1),
    }
    if all(isinstance(value, str) for value in record.values()):
        texts |= {"table.csv": table(record), "table.tsv": table(record, delimiter="\t")}
    recognized = []
    for file, text in texts.items():
        (item,) = reader(written(tmp_path, text, file))
        packed = tmp_path / f"{file}.gz"
        packed.write_bytes(gzip.compress(text.encode()))
        assert reader(packed) == reader(tmp_path / file)
        recognized.append(item)
    # But for the names, which come from the file, all are the same.
    assert len({getattr(item, "query", getattr(item, "text", "")) for item in recognized}) == 1


def test_biographies_that_were_derived_are_read_with_their_figures(tmp_path: Path) -> None:
    (graph,) = read_many(written(tmp_path, lines(DERIVED)))
    assert [(a.id, a.label, a.sentence) for a in graph.atoms] == [("a1", True, 1), ("a2", False, 1)]
    assert [r.distribution for r in graph.relations] == [
        pytest.approx((0.4012, 0.0113, 0.0, 0.5875)),
        pytest.approx((0.025, 0.0017, 0.0, 0.9733)),
    ]
    figures = text_match(graph)
    assert figures is not None
    assert figures.tolist() == [[1.0, 0.6667, 0.5], [0.5, 0.25, 0.0]]
    older = {key: value for key, value in DERIVED.items() if key != "texts"}
    (graph,) = read_many(written(tmp_path, lines(older)))
    assert text_match(graph) is None
    for damage in ({"evidence": [[1]]}, {"atoms": [[1, "X"]]}, {"texts": [1, 2]}):
        path = written(tmp_path, lines(DERIVED | damage))
        refused("this is not a biography in the form of the embedded dataset", read_many, path)


# Whether a response abstains VeriScore says too, under the same key.
@pytest.mark.parametrize("kept", [{}, {"abstained": False}])
def test_claims_of_fastfact_are_those_that_people_kept(
    tmp_path: Path, kept: dict[str, bool]
) -> None:
    (graph,) = read_many(written(tmp_path, lines(FASTFACT | kept)))
    assert labels(graph) == [
        ("Ada Example painted.", True, "supported"),
        ("Ada Example lived in Ulm.", False, "not enough evidence"),
    ]
    assert [(c.id, c.title, c.text, c.retrieved_for) for c in graph.contexts] == [
        ("c1", "Painters", "Ada Example\npainted birds.", ("a1",)),
        ("c2", "Ulm", "Ulm is a town.", ("a1", "a2")),
    ]
    assert graph.relations == ()
    assert graph.metadata == {
        "question_id": "bio_3",
        "prompt_source": "factscore_bio",
        "model": "a-model",
        "verifier": {"a1": "refuted"},
        "prelabel": {"a1": "unsure"},
        "removed": 1,
    }
    assert (graph.query, graph.response) == (FASTFACT["question"], FASTFACT["response"])


def test_fastfact_without_claims_or_labels(tmp_path: Path) -> None:
    nothing_left = {"claim": "None.", "annotation_status_details": {"status": "no_valid_claims"}}
    pending = {"claim": "A claim.", "annotator_label": None, "verification_result": None}
    loose = {"claim": "B.", "verification_result": {"verification_context": "A passage."}}
    records = [
        {**FASTFACT, "claims_lst": [nothing_left]},
        {**FASTFACT, "claims_lst": [pending, loose]},
    ]
    empty, unlabeled = read_many(written(tmp_path, lines(*records)))
    assert empty.atoms == ()
    assert labels(unlabeled) == [("A claim.", None, None), ("B.", None, None)]
    assert [(c.text, c.title) for c in unlabeled.contexts] == [("A passage.", "")]


def test_questions_of_expertqa_are_prompts(tmp_path: Path) -> None:
    asked = {"question": "How?", "annotator_id": "1", "metadata": {"field": "Bridges"}}
    (prompt,) = read_prompts(written(tmp_path, lines(asked), "r1.jsonl"))
    assert prompt == Prompt("r1", "How?", "Bridges")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # A row over several lines is counted as it stands.
        (table({**UNLI, "pre": "One\nand\ntwo."}, UNLI, {**UNLI, "hyp": ""}),
         r"line 6: \$\.hyp is empty"),
        (table(UNLI) + "1,2\n", "line 3: the row has 2 cells for 5 columns"),
        (table(UNLI) + '1,"open', "line 3: it is not a row"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_by_its_line(text: str, words: str, tmp_path: Path) -> None:
    refused(rf"f\.csv, {words}", read_judged_pairs, written(tmp_path, text, "f.csv"))


def test_sentences_of_selfcheck_have_labels_and_votes(tmp_path: Path) -> None:
    (graph,) = read_many(written(tmp_path, lines(SELFCHECK)))
    assert (graph.id, graph.response) == ("wikibio-62464", SELFCHECK["main_passage"])
    assert labels(graph) == [
        ("Ada Example painted.", True, "accurate"),
        ("She lived in Ulm.", False, "minor_inaccurate"),
    ]
    assert [atom.sentence for atom in graph.atoms] == [1, 2]
    assert graph.metadata == {"sentences": 2, "votes": {"a1": "YNY", "a2": "NNN"}}


def test_samples_of_selfcheck_concern_every_sentence(tmp_path: Path) -> None:
    samples = ["She wrote.", " ", "She painted.", "She painted."]
    owners = {
        "gpt3_text": SELFCHECK["main_passage"],
        "gpt3_sentences": SELFCHECK["main_sentences"],
        "annotation": SELFCHECK["annotation"],
        "wiki_bio_test_idx": 1,
    }
    rows = ({**SELFCHECK, "sample_passages": samples}, {**owners, "gpt3_text_samples": samples})
    graphs = read_many(written(tmp_path, lines(*rows)))
    for graph in graphs:
        assert graph.atom_ids == ("a1", "a2")
        assert [(c.id, c.text, c.prior, c.retrieved_for) for c in graph.contexts] == [
            ("s1", "She wrote.", 0.5, ("a1", "a2")),
            ("s2", "She painted.", 0.5, ("a1", "a2")),
            ("s3", "She painted.", 0.5, ("a1", "a2")),
        ]
        assert graph.sample_ids == {"s1", "s2", "s3"}
    assert [graph.response for graph in graphs] == [SELFCHECK["main_passage"]] * 2
    assert "votes" not in graphs[1].metadata
    bad = {**SELFCHECK, "sample_passages": ["She wrote.", 3]}
    message = r"\$\.sample_passages\[1\]: 3 is not text"
    refused(message, read_many, written(tmp_path, lines(bad)))
    fewer = {**owners, "annotation": ["accurate"]}
    message = "there are 2 sentences and 1 annotation; give each of every sentence"
    refused(message, read_many, written(tmp_path, lines(fewer)))


def test_claims_of_self_judged_answers_have_a_confidence(tmp_path: Path) -> None:
    # Space after a letter occurs; S is "subjective", and not right.
    many = {"data": [SELF_JUDGED, SELF_JUDGED]}
    graphs = read_many(written(tmp_path, json.dumps(many, indent=1), "nq.jsonl"))
    assert [graph.id for graph in graphs] == ["nq-1", "nq-2"]
    for graph in graphs:
        assert labels(graph) == [("She painted.", True, "Y"), ("She was of Ulm.", False, "S")]
        assert graph.query == SELF_JUDGED["prompt"]
        assert graph.metadata == {"confidence": {"a1": 1.0, "a2": 0.7}}
    many["data"][1] = replaced(SELF_JUDGED, "X", "claims", 0, "annotation")
    path = written(tmp_path, json.dumps(many), "nq.json")
    refused(r"\$\.data\[1\]\.claims\[0\]\.annotation: 'X' is not an annotation", read_many, path)


def test_pairs_of_unli(tmp_path: Path) -> None:
    path = written(tmp_path, table(UNLI), "dev.csv")
    expected = JudgedPair("p-1", "A man sings.", "A man performs.", 0.945, "2")
    assert read_judged_pairs(path) == (expected,)
    copied = {"premise": "A man sings.", "hypothesis": "A man performs.", "label": 0.945}
    (pair,) = read_judged_pairs(written(tmp_path, lines(copied), "copy.jsonl"))
    assert pair == JudgedPair("copy", "A man sings.", "A man performs.", 0.945)


@pytest.mark.parametrize(
    ("records", "name", "expected"),
    [
        (
            [LONGFACT, {"prompt": "Two?"}],
            "longfact-objects_world-religions.jsonl",
            [
                ("longfact-objects_world-religions-001", "What is a ledger?", "world religions"),
                ("longfact-objects_world-religions-002", "Two?", "world religions"),
            ],
        ),
        ([QUESTION], "v.jsonl", [("v", "Why is it blue?", "eli5")]),
        ([ELI5], "e.jsonl", [("5l", "Why is it blue?\nThe sky.", "explainlikeimfive")]),
        ([{"q_id": 9, "question_text": "Why?", "answer1": "x"}], "l.jsonl", [("9", "Why?", "")]),
        ([RESPONSE], "r.jsonl", [("r", "Who was Ada Example?", "")]),
    ],
)
def test_prompts(
    records: Sequence[Any], name: str, expected: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    read_back = read_prompts(written(tmp_path, lines(*records), name))
    assert [(prompt.id, prompt.text, prompt.topic) for prompt in read_back] == expected


def test_queries_of_factreasoners_files_are_prompts(tmp_path: Path) -> None:
    record = {"input": "What of Vikings?", "output": "x", "atoms": [], "contexts": []}
    assert [p.text for p in read_prompts(written(tmp_path, lines(record)))] == ["What of Vikings?"]
    path = written(tmp_path, lines(record, {**record, "input": ""}))
    refused("line 2: response 'data-002' has no query", read_prompts, path)


@pytest.mark.parametrize(
    ("reader", "record", "words"),
    [
        (read_many, LONGFACT, "line 1: it holds prompts and no response; use read_prompts"),
        (read, UNLI, "it holds pairs of texts and no response; use read_judged_pairs"),
        (read_many, RECORDS["factscore-passages"], "it holds passages and no response"),
        (read_prompts, UNLI, "line 1: it holds no prompt"),
        (read_judged_pairs, LONGFACT, "line 1: it holds no pair of texts"),
        (read_prompts, {"prompt": " "}, r"line 1: \$\.prompt is empty"),
        (read_prompts, {**ELI5, "q_id": [1]}, r"line 1: \$\.q_id: \[1\] is not a name"),
    ],
)
def test_missing_contents_of_a_file_are_reported(
    reader: Any, record: Any, words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, lines(record, record))
    refused(f"^{re.escape(str(path))}.*{words}", reader, path)


def test_ids_are_unique_and_formats_named(tmp_path: Path) -> None:
    path = written(tmp_path, lines(ELI5, ELI5))
    refused("line 2: the id '5l' belongs to another prompt too", read_prompts, path)
    refused(r"'longfacts' is unknown \(did you mean 'longf", format_named, "longfacts")
    path = written(tmp_path, "one,two\n1,2\n", "x.csv")
    refused("neither JSON nor a table of a known dataset", read_prompts, path)
    refused("holds no record", read_judged_pairs, written(tmp_path, "pre,hyp,unli\n", "x.csv"))


def test_a_damaged_record_is_not_taken_for_another_format(tmp_path: Path) -> None:
    cut = {key: value for key, value in FASTFACT.items() if key != "claims_lst"}
    path = written(tmp_path, lines(FASTFACT, cut))
    refused("line 2: the key 'claims_lst' is missing", read_many, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"prompt": "x"}, {]', r"data\.jsonl, line 1: column 20 is not JSON"),
        ('[\n{"prompt": "x"},\n{"prompt": NaN}\n]', r"line 3: NaN is not a JSON number"),
        ('[\n{"prompt": "x"}\n] 5', r"line 3: column 3 is not JSON \(Extra data\)"),
        ('[\n{"prompt": "x"}', r"line 2: column 16 is not JSON"),
    ],
)
def test_damaged_arrays_are_refused_at_their_line(text: str, words: str, tmp_path: Path) -> None:
    refused(words, read_prompts, written(tmp_path, text))


def test_few_keys_of_a_large_record_are_compared_with_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    def counting(_: str, possible: list[str], **__: object) -> list[str]:
        compared.append(len(possible))
        return []

    monkeypatch.setattr("difflib.get_close_matches", counting)
    nearest_format({f"k{number}": [] for number in range(5000)})
    assert max(compared) <= 200
