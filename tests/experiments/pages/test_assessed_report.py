"""The page of assessed responses, made from their file, says what the file says."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import report
from experiments.evaluators.display.marked_texts import deciding_sentences, marked_response
from experiments.evaluators.response import AssessmentView, assess_graph
from factormodels import (
    Atom,
    FactGraph,
    RelationKind,
    datasets,
    read_many,
)
from factormodels.io.fact_graph_json import write_fact_graphs
from inference import get_backend
from tests.experiments.conftest import invoke
from tests.experiments.pages.reported import listed, read_page

ASSESS = ("assess", "demonstration", "--variant", "FR1", "--variant", "FR2")


def test_the_page_lists_what_the_file_says(folder: Path) -> None:
    write_fact_graphs(datasets.load("demonstration").graphs[:4], folder / "given.jsonl")
    command, _, *variants = ASSESS
    invoke(command, "given.jsonl", *variants, "--out", "o", "--report", "page.html")
    assert invoke("report", "o/graphs.jsonl").stdout == "- o/graphs-report.html: 4 responses\n"
    assert invoke("report", "o").stdout == "- o/report.html: 4 responses\n"
    data = listed(folder / "o/report.html")
    # The run that assessed them lists the same.
    assert data == listed(folder / "page.html") == listed(folder / "o/graphs-report.html")
    graphs = read_many(folder / "o" / "graphs.jsonl")
    assert [entry["id"] for entry in data["responses"]] == [graph.id for graph in graphs]
    some = report("o/graphs.jsonl", out="third.html", response=[graphs[2].id])
    assert some["page"].to_dict("records") == [{"page": "third.html", "responses": 1}]
    assert [entry["id"] for entry in listed(folder / "third.html")["responses"]] == [graphs[2].id]


def test_readers_names_are_on_the_page(folder: Path) -> None:
    invoke(*ASSESS, "--response", "demo-01-marie-curie", "--out", "o")
    invoke("report", "o", "--rename", "FR1=retrieved passages")
    answers = listed(folder / "o" / "report.html")["answers"]
    assert [each["title"] for each in answers] == ["retrieved passages", "FR2"]


@pytest.mark.usefixtures("folder")
def test_verdicts_and_what_is_missing_are_shown() -> None:
    import json

    invoke(*ASSESS, "--response", "demo-01-marie-curie", "--out", "o")
    record = json.loads(Path("o/graphs.jsonl").read_text())
    verdicts = {"a1": {"label": "true", "probability": 0.8, "p": 0.87654}}
    (metadata,) = [value for key, value in record.items() if key == "metadata"]
    metadata["assessors"] = {
        "factscore": {
            "model": "x/y",
            "prompt": {},
            "verdicts": verdicts,
            "missing": [["a2", "the answer is empty"]],
        }
    }
    Path("o.jsonl").write_text(json.dumps(record))
    invoke("report", "o.jsonl")
    data = listed(Path("o-report.html"))
    assert [answer["title"] for answer in data["answers"]] == ["FR1", "FR2", "factscore"]
    (entry,) = data["responses"]
    assert [claim["p"][2] for claim in entry["claims"][:2]] == [0.87654, None]
    assert entry["failures"] == [["factscore: the answer is empty", ["a2"]]]
    page = read_page(Path("o-report.html"))
    (row,) = page.only("section", id="failures").only("tbody").children
    assert [cell.text for cell in row.children] == [
        *("factscore", "the answer is empty", "1", "demo-01-marie-curie")
    ]
    # The measures are over the claims that all have judged.
    assert "are left out of all rows" in page.only("section", id="found").text


def test_a_whole_number_beyond_64_bits_is_a_log_z_of_a_file(folder: Path) -> None:
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    graph = datasets.load("demonstration").graphs[0]
    facts = assess_graph(graph, [view])
    facts["FR2"] |= {"log_z": -(10**30), "log_z_lower": -(10**30)}
    changed = replace(graph, metadata={**graph.metadata, "assessment": facts})
    write_fact_graphs([changed], folder / "one.jsonl")
    invoke("report", "one.jsonl")
    assert len(listed(folder / "one-report.html")["responses"]) == 1


def test_evidence_of_a_passage_that_is_not_there_is_refused(folder: Path) -> None:
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    graph = datasets.load("demonstration").graphs[0]
    facts = assess_graph(graph, [view])
    facts["FR2"]["atoms"]["a1"]["evidence"][0]["context"] = "c99"
    write_fact_graphs(
        [replace(graph, metadata={**graph.metadata, "assessment": facts})], folder / "one.jsonl"
    )
    errors = invoke("report", "one.jsonl", code=2).stderr
    assert (
        "assessment.FR2.atoms.a1.evidence.0: there is no context 'c99'; assess it again" in errors
    )


def test_a_sentence_decides_by_what_is_rare() -> None:
    """Names that stand everywhere do not decide."""
    passage = (
        "Ada Byron was the only child of Lord Byron. She married in July 1835. "
        "Her notes, which she wrote late, are famous."
    )
    others = [f"Ada Byron {what} in London." for what in ("lived", "studied", "sang", "rode")]
    asked = [(passage, "Ada Byron married in 1835.", RelationKind.ENTAILMENT)]
    asked += [(text, "Ada Byron sang.", RelationKind.ENTAILMENT) for text in others]
    sentences = deciding_sentences(asked)
    assert sentences == ["… She married in July 1835. …", *others]


def test_the_subject_of_a_response_does_not_decide() -> None:
    """The subject is in every claim, and passages name it once and go on with a pronoun."""
    long = "The Panama Canal is about 80 kilometres long. Its locks lift ships above the sea."
    asked = [
        (long, "The Panama Canal has no locks.", RelationKind.CONTRADICTION),
        (long, "The Panama Canal is about 190 kilometres long.", RelationKind.CONTRADICTION),
        ("It opened in 1914.", "The Panama Canal opened in 1914.", RelationKind.ENTAILMENT),
        ("France began it.", "France began the Panama Canal.", RelationKind.ENTAILMENT),
    ]
    assert deciding_sentences(asked) == [
        "… Its locks lift ships above the sea.",
        "The Panama Canal is about 80 kilometres long. …",
        "It opened in 1914.",
        "France began it.",
    ]


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        (
            "A quiz. Which desert is the largest? Answer: the Sahara. Next.",
            "… Which desert is the largest? Answer: the Sahara. …",
        ),
        (
            "Dr. J. K. Ward of the U.S. Army found the largest desert. He went home.",
            "Dr. J. K. Ward of the U.S. Army found the largest desert. …",
        ),
        ("Ruhe. Am 3. Mai: the largest desert.", "… Am 3. Mai: the largest desert."),
        ('"The largest desert!" He went.', '"The largest desert!" …'),
        ("水。The largest desert「大」。水。", "… The largest desert「大」。 …"),
    ],
)
def test_a_sentence_is_whole(passage: str, sentence: str) -> None:
    asked = [(passage, "The largest desert is the Sahara.", RelationKind.CONTRADICTION)]
    assert deciding_sentences(asked) == [sentence]


def test_sentences_of_a_long_text_are_split_in_linear_time() -> None:
    seconds = []
    for length in (2_000, 20_000):
        begin = time.process_time()
        deciding_sentences([("Why? " * length, "Because.", RelationKind.ENTAILMENT)])
        seconds.append(time.process_time() - begin)
    # Quadratic time would be a hundred times as long.
    assert seconds[1] < 30 * seconds[0] + 0.1


def test_texts_without_a_sentence_have_none() -> None:
    assert deciding_sentences([("", "A claim.", RelationKind.ENTAILMENT)]) == [""]
    assert deciding_sentences([]) == []
    assert marked_response(FactGraph("r", (Atom("a1", "A claim."),))) == ()


def test_files_that_were_not_assessed_are_refused(folder: Path) -> None:
    (folder / "g.json").write_text('{"format": "factormodels/fact-graph", "version": 1}')
    invoke("convert", "demonstration", "given.jsonl")
    result = invoke("report", "given.jsonl", code=2)
    assert "'demo-01-marie-curie' was not assessed; give what" in result.stderr
    result = invoke("report", "given.jsonl", "--variant", "FR1", code=2)
    assert "--variant is for the folder of a run; drop it" in result.stderr
    result = invoke("report", "given.jsonl", "--response", "demo-1", code=2)
    assert "the response 'demo-1' is unknown" in result.stderr
