"""FacTool, RefChecker, ExpertQA, WiCE, UQLM and Ragas: labels, verdicts and passages as read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factormodels import FactGraph, read_many
from factormodels.io.file_report import check_file
from factormodels.io.formats.ragas import passages_of
from factormodels.io.formats.registry import format_of
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from tests.factormodels.io.formats.release_records import (
    EXPERTQA,
    FACTOOL,
    FACTOOL_OUTPUT,
    RAGAS,
    RAGAS_TURNS,
    REFCHECKER,
    UQLM,
    WICE,
    lines,
    replaced,
    table,
    written,
)
from tests.refusals import refused


def read_lines(folder: Path, *records: Any) -> list[FactGraph]:
    return read_many(written(folder, lines(*records)))


def labels(graph: FactGraph) -> list[tuple[str, bool | None]]:
    return [(atom.text, atom.label) for atom in graph.atoms]


def p_true(graph: FactGraph) -> dict[str, dict[str, float | None]]:
    return {
        name: {atom: verdict.p_true for atom, verdict in verdicts.items()}
        for name, verdicts in recorded_verdicts(graph).items()
    }


def passages(graph: FactGraph) -> list[tuple[str, tuple[str, ...]]]:
    return [(context.text, context.retrieved_for) for context in graph.contexts]


def test_claims_of_factool_keep_their_labels(tmp_path: Path) -> None:
    (graph,) = read_lines(tmp_path, FACTOOL)
    assert labels(graph) == [
        ("Ada Example painted.", True),
        ("Ada Example lived in Ulm.", False),
        ("Ada Example was kind.", None),
    ]
    assert (graph.query, graph.response) == ("Who was Ada Example?", "She painted in Ulm.")
    assert graph.metadata == {"factual": False}
    none: dict[str, Any] = {**FACTOOL, "claims": [], "label": "null"}
    (empty,) = read_lines(tmp_path, none)
    assert (empty.atoms, empty.metadata) == ((), {})


def test_sums_and_papers_of_factool_are_texts(tmp_path: Path) -> None:
    sums = [{"claim": {"math_calculation": "2 + 2", "calculated_answer": "5"}, "label": False}]
    papers = [
        {"paper_title": "On Tarns", "paper_author(s)": "N. Aas", "paper_pub_year": "1999"}
        | {"label": "true"}
    ]
    sum_, paper = read_lines(
        tmp_path, {**FACTOOL, "claims": sums}, {**FACTOOL, "claims": papers, "id": 7}
    )
    assert labels(sum_) == [("2 + 2 = 5", False)]
    assert labels(paper) == [("On Tarns, N. Aas, 1999", True)]
    assert paper.id == "7"
    wrong = {**FACTOOL, "claims": [{"claim": "It is.", "label": "often"}]}
    refused("label.*'often' is not a label; give true, false or null", read_lines, tmp_path, wrong)


def test_verdicts_and_evidence_of_factool(tmp_path: Path) -> None:
    (graph,) = read_lines(tmp_path, FACTOOL_OUTPUT)
    assert p_true(graph) == {"factool": {"a1": 1.0, "a2": 0.0}}
    assert passages(graph) == [("She painted birds.", ("a1",)), ("She lived in Bonn.", ("a2",))]
    assert [context.link for context in graph.contexts] == ["https://a.example", ""]
    assert graph.metadata["correction"] == {"a2": "She lived in Bonn."}
    assert [atom.label for atom in graph.atoms] == [None, None]


def test_each_version_of_factools_output_is_read(tmp_path: Path) -> None:
    (line,) = FACTOOL_OUTPUT["detailed_information"]
    flat = {
        **line,
        "evidences": [
            {"evidence": "She painted birds.", "source": "https://a.example"},
            {"evidence": "She lived in Bonn.", "source": "None"},
        ],
        "claim_level_factuality": [None, {"factuality": "True"}],
    }
    code = {"response": "return 1", "claim": "return 1", "claim_level_factuality": False}
    sums = {
        "response": "4",
        "claims": [{"math_calculation": "2 + 2", "calculated_answer": "4"}, None],
        "claim_level_factuality": [True, None],
    }
    failed, coded, summed = read_lines(tmp_path, flat, code, sums)
    # Evidence in a row does not say which claim it was found for, and one per claim looks alike.
    assert passages(failed) == [("She painted birds.", ()), ("She lived in Bonn.", ())]
    assert p_true(failed) == {"factool": {"a2": 1.0}}
    assert (labels(coded), p_true(coded)) == ([("return 1", None)], {"factool": {"a1": 0.0}})
    assert (labels(summed), p_true(summed)) == ([("2 + 2 = 4", None)], {"factool": {"a1": 1.0}})
    short = {**line, "claim_level_factuality": [None]}
    refused("2 claims and 1 entry of 'claim_level_factuality'", read_lines, tmp_path, short)


def test_triplets_of_refchecker(tmp_path: Path) -> None:
    (graph,) = read_lines(tmp_path, REFCHECKER)
    assert graph.id == "7"
    assert labels(graph) == [
        ("Ada Example painted birds", True),
        ("Ada Example lived in Ulm", None),
        ("Ada Example lived in Rome", False),
    ]
    assert p_true(graph) == {"refchecker: nli": {"a1": 0.5}}
    assert passages(graph) == [("Ada Example painted birds.", ())]
    assert graph.metadata["extractor"] == "claude2"
    two = {**REFCHECKER, "gpt4_response_kg": [{"triplet": ["It", "is", "red"]}]}
    assert [graph.id for graph in read_lines(tmp_path, two)] == ["7-claude2", "7-gpt4"]
    bad = replaced([REFCHECKER], "maybe", 0, "claude2_response_kg", 0, "human_label")
    refused("'maybe' is not a label; use Entailment, Neutral", read_lines, tmp_path, *bad)


def test_outputs_of_refchecker(tmp_path: Path) -> None:
    old = {
        "response": "It is red.",
        "question": "What is it?",
        "reference": "It is a red bridge.",
        "triplets": [["It", "is", "red"], ["It", "is", "long"]],
        "ys": ["Entailment", "Contradiction"],
        "Y": {"Entailment": 0.5},
    }
    new = {
        "response": "It is red.",
        "claims": [{"format": "subsentence", "content": "It is red", "attributed_sent_ids": ["1"]}],
        "ys": [["Neutral", "Entailment", "Contradiction"]],
    }
    first, second = read_lines(tmp_path, old, new)
    assert p_true(first) == {"refchecker": {"a1": 1.0, "a2": 0.0}}
    assert (first.query, passages(first)) == ("What is it?", [("It is a red bridge.", ())])
    assert labels(second) == [("It is red", None)]
    # As RefChecker merges the parts of a reference: one that entails the claim decides.
    assert p_true(second) == {"refchecker": {"a1": 1.0}}
    refused("2 claims and 1 label", read_lines, tmp_path, {**old, "ys": ["Neutral"]})


def test_answers_of_expertqa(tmp_path: Path) -> None:
    answers = {**EXPERTQA["answers"], "bing": {"answer_string": "No.", "claims": None}}
    about = {"field": "Bridges"}
    graph, bing = read_lines(tmp_path, {**EXPERTQA, "answers": answers, "metadata": about})
    assert (graph.id, bing.id) == ("data-gpt4", "data-bing")
    assert (graph.query, graph.topic, bing.response) == ("Who was Ada Example?", "Bridges", "No.")
    assert labels(graph) == [
        ("She painted.", True),
        ("She lived in Ulm.", False),
        ("She was kind.", None),
    ]
    assert passages(graph) == [("[1] https://a.example She painted birds.", ("a1",))]
    assert p_true(graph) == {"expertqa: fact score": {"a1": 0.75}}
    assert graph.metadata["support"] == {"a1": "Complete"}
    path = ("answers", "gpt4", "claims", 0, "correctness")
    refused(
        "'so so' is not a label", read_lines, tmp_path, *replaced([EXPERTQA], "so so", 0, *path)
    )


def test_parts_of_a_claim_of_wice_are_one_response(tmp_path: Path) -> None:
    def part(name: str, label: str) -> dict[str, Any]:
        return {**WICE, "claim": f"Claim {name}.", "label": label, "meta": {"id": name}}

    whole, parts = read_lines(
        tmp_path,
        WICE,
        part("dev2-0", "supported"),
        part("dev2-1", "partially_supported"),
        part("dev2-10", "not_supported"),
    )
    assert (whole.id, whole.topic) == ("dev1", "Ada Example")
    assert labels(whole) == [("Ada Example lived in Rome.", False)]
    assert [(c.title, c.text) for c in whole.contexts] == [
        ("Painters", "Ada Example painted birds.\nShe lived in Ulm.")
    ]
    assert parts.id == "dev2"
    assert [label for _, label in labels(parts)] == [True, None, False]
    assert [owners for _, owners in passages(parts)] == [("a1", "a2", "a3")]


def test_scores_of_uqlm_in_every_form(tmp_path: Path) -> None:
    rows = [UQLM, {**UQLM, "response": "She sang.", "claims_data": UQLM["claims_data"][:1]}]
    columns = {key: [row[key] for row in rows] for key in ("prompt", "response", "claims_data")}
    indexed = {key: dict(zip("01", values, strict=True)) for key, values in columns.items()}
    nested = {"data": {f"{key}s": values for key, values in columns.items()}, "metadata": {}}
    nested["data"]["claims_data"] = nested["data"].pop("claims_datas")
    texts = [{**row, "claims_data": repr(row["claims_data"])} for row in rows]
    for text in (lines(*rows), json.dumps(indexed), json.dumps(nested), table(*texts)):
        first, second = read_many(written(tmp_path, text))
        assert labels(first) == [
            ("Ada Example painted.", None),
            ("Ada Example lived in Ulm.", None),
        ]
        assert p_true(first) == {"uqlm: entailment": {"a1": 0.9, "a2": 0.25}}
        assert first.metadata["removed"] == ["a2"]
        assert (second.query, second.response) == ("Who was Ada Example?", "She sang.")
        assert p_true(second) == {"uqlm: entailment": {"a1": 0.9}}


def test_sampled_responses_of_uqlm_are_contexts_in_every_form(tmp_path: Path) -> None:
    rows = [
        {"prompt": "Who?", "response": "She.", "sampled_responses": ["He.", "She."]},
        {"prompt": "When?", "response": "Now.", "sampled_responses": ["Now.", "Now."]},
    ]
    nested = {
        "data": {
            "prompts": [row["prompt"] for row in rows],
            "responses": [row["response"] for row in rows],
            "sampled_responses": [row["sampled_responses"] for row in rows],
            "semantic_negentropy": [0.5, 1.0],
        },
        "metadata": {},
    }
    texts = [{**row, "sampled_responses": repr(row["sampled_responses"])} for row in rows]
    for text in (lines(*rows), json.dumps(nested), table(*texts)):
        graphs = read_many(written(tmp_path, text))
        for graph, row in zip(graphs, rows, strict=True):
            assert (graph.query, graph.response) == (row["prompt"], row["response"])
            assert [context.text for context in graph.contexts] == row["sampled_responses"]
            assert graph.sample_ids == {"s1", "s2"}
    scored = {**UQLM, "sampled_responses": ["She wrote."]}
    (graph,) = read_lines(tmp_path, scored)
    assert [(c.text, c.retrieved_for) for c in graph.contexts] == [("She wrote.", ("a1", "a2"))]
    nested["data"]["sampled_responses"] = [["He."]]
    refused("'prompts' has 2 entries and 'sampled_responses' 1", read_lines, tmp_path, nested)


def test_a_scorer_beyond_probabilities_is_not_read(tmp_path: Path) -> None:
    graph_scores = [
        {"claim": "A.", "original_response": True, "page_rank": 0.5, "laplacian_centrality": 0.4},
        {"claim": "B.", "original_response": False, "page_rank": 0.1, "laplacian_centrality": 0.3},
    ]
    large = [{"claim": "C.", "page_rank": None, "laplacian_centrality": 12.0}]
    first, second = read_lines(
        tmp_path, {**UQLM, "claims_data": graph_scores}, {**UQLM, "claims_data": large}
    )
    # A claim of the samples alone is no claim of the response.
    assert labels(first) == [("A.", None)]
    assert p_true(first) == {"uqlm: page_rank": {"a1": 0.5}}
    assert p_true(second) == {}
    assert second.metadata["scores_not_read"] == ["laplacian_centrality"]
    uneven = {"data": {"responses": ["x"], "claims_data": [[], []]}}
    refused("'responses' has 1 entries and 'claims_data' 2", read_lines, tmp_path, uneven)


@pytest.mark.parametrize(
    "record",
    [RAGAS, {"question": "q", "answer": "She painted.", "contexts": RAGAS["retrieved_contexts"]}],
)
def test_passages_of_ragas_are_of_the_whole_response(
    record: dict[str, Any], tmp_path: Path
) -> None:
    for text in (lines(record), table({key: str(value) for key, value in record.items()})):
        (graph,) = read_many(written(tmp_path, text))
        assert passages(graph) == [("Ada Example painted birds.", ()), ("Ulm is a town.", ())]
        assert graph.atoms == ()
        assert graph.response


def test_conversations_and_statements_of_ragas(tmp_path: Path) -> None:
    (graph,) = read_lines(tmp_path, RAGAS_TURNS)
    assert graph.response == "I will look.\n\nShe painted."
    assert passages(graph) == [("Ada Example painted birds.", ())]
    assert p_true(graph) == {"ragas": {"a1": 1.0}}


def test_passages_of_a_cell() -> None:
    def texts(value: object) -> list[str]:
        return [context.text for context in passages_of(value, "t")]

    assert texts(None) == texts("") == texts([]) == texts([" ", None]) == []
    assert texts("One passage, with [1].") == ["One passage, with [1]."]
    assert texts('["A.", "B."]') == texts("['A.', 'B.']") == ["A.", "B."]
    assert texts("['A.' \"B's.\"\n 'C.']") == ["A.", "B's.", "C."]
    refused("not a list; save the table", passages_of, "[np.str_('A.')]", "t")
    assert texts([{"page_content": "A.", "metadata": {}}, {"text": "B."}]) == ["A.", "B."]
    refused("5 is not a list", passages_of, 5, "t")
    refused("has no text", passages_of, [{"x": "y"}], "t")


def test_unknown_labels_are_counted_by_word(tmp_path: Path) -> None:
    report = check_file(written(tmp_path, lines(REFCHECKER), "refs.jsonl"))
    assert (report.counts["true"], report.counts["false"]) == (1, 1)
    assert "labels: 1 of 3 atoms have none (1 Neutral)" in report.missing


def test_records_with_a_response_are_no_prompts() -> None:
    for record, name in (
        ({"prompt": "p", "response": "r"}, "responses"),
        ({"question": "q", "response": "r", "claims": []}, "responses"),
        ({"prompt": "p", "response": "r", "claims": [{"text": "x", "p": 1}]}, "responses"),
        ({"question": "q", "answers": {"a": {"text": ["x"]}}}, "prompts"),
    ):
        form = format_of(record)
        assert form is not None
        assert form.name == name
