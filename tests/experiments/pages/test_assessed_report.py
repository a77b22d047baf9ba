"""Pages of assessed responses, without a study around them, say what the file says."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import report
from experiments.evaluators.marked_texts import deciding_sentences, marked_response
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.pages.assessed import report_of_graphs
from experiments.pages.pages import worst_verdict
from factormodels import (
    Atom,
    Context,
    FactGraph,
    Relation,
    RelationKind,
    datasets,
    read_many,
)
from inference import get_backend
from tests.experiments.conftest import invoke

ASSESS = ("assess", "demonstration", "--variant", "FR1", "--variant", "FR2")


@pytest.mark.slow
def test_pages_show_the_posteriors_of_the_file(folder: Path) -> None:
    invoke(*ASSESS, "--out", "o")
    said = invoke("report", "o/graphs.jsonl").stdout
    assert "graphs-report/index.html: 15 pages" in said
    assert invoke("report", "o").stdout == said
    graphs = read_many(folder / "o" / "graphs.jsonl")
    index = (folder / "o" / "graphs-report" / "index.html").read_text()
    for number, graph in enumerate(graphs, 1):
        name = f"response-{number:04}.html"
        assert name in index
        page = (folder / "o" / "graphs-report" / name).read_text()
        for view in graph.metadata["assessment"].values():
            for found in view["atoms"].values():
                assert f"{found['p']:.3f}" in page
    third = report("o/graphs.jsonl", out="third", response=[graphs[2].id])
    assert third["pages"]["page"][0] == "third/index.html"
    assert sorted(path.name for path in (folder / "third").iterdir()) == [
        "index.html",
        "response-0001.html",
    ]


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
    assert [path.name for path in Path("o-report").iterdir()] == ["index.html"]
    page = Path("o-report/index.html").read_text()
    assert "0.877" in page
    assert "factscore" in page
    assert "factscore: the answer is empty" in visible(page)


def visible(page: str) -> str:
    """What a page shows, white space made single."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def headings(page: str) -> list[str]:
    return [visible(one) for one in re.findall(r"(?s)<h[12].*?</h[12]>", page)]


LONG = (
    "The chronicle of the town has many entries on its mills, its markets and its mayors. "
    "In 1890 the bridge over the river opened to carts. It was painted green later on."
)


@pytest.fixture
def assessed(folder: Path) -> str:
    """The page of one response, some relations and answers of stages of which are missing."""
    text = "# Answer\n\n**The bridge opened in 1890.** It is the longest of all bridges.\n"
    claims = ("The bridge opened in 1890.", "The bridge is the longest.", "Nobody said this.")
    atoms = [
        Atom(f"a{n}", claim, sentence=n + 1 if n < 3 else None) for n, claim in enumerate(claims, 1)
    ]
    graph = FactGraph(
        "bridge",
        tuple(atoms),
        (Context("c1", LONG, title="Chronicle", retrieved_for=("a1", "a2", "a3")),),
        (
            Relation("c1", "a1", RelationKind.ENTAILMENT, 0.95),
            Relation("c1", "a2", RelationKind.CONTRADICTION, 0.9),
        ),
        query="When was it built?",
        response=text,
        metadata={
            "atoms": {"failures": [[4, "the answer was cut off"]]},
            "queries": {"failures": [["a3", "status 500"]]},
            "relations": {
                **{"model": "m", "asked": 3, "least": 0.5, "entailment": 1, "contradiction": 1},
                **{"neutral": 0, "made_neutral": 0, "missing": [["c1", "a3", "filtered"]]},
            },
        },
    )
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    found = replace(graph, metadata={**graph.metadata, "assessment": assess_graph(graph, [view])})
    (path,) = report_of_graphs([found], "answer", folder / "pages")
    assert path == folder / "pages" / "index.html"
    return path.read_text()


def test_the_page_of_one_response_speaks_of_it_and_of_no_study(assessed: str) -> None:
    shown = visible(assessed)
    assert shown.startswith("bridge · assessment")
    assert "Assessment of a response" in shown
    for word in ("study", "cell", "unit", "report", "95%", "spread"):
        assert not re.search(rf"\b{word}s?\b", shown, re.I), word
    first, second, *others = headings(assessed)
    # It opens on the claims.
    assert (first, second) == ("bridge", "Claims")
    assert others[:4] == ["The response", "Evidence, claim by claim", "Measures", "What is missing"]


def test_what_failed_is_said(assessed: str) -> None:
    shown = visible(assessed)
    assert "Not everything was answered. 3 answers are missing" in shown
    for reason in (
        "atoms: the answer was cut off (1: 4)",
        "queries: status 500 (1: a3)",
        "relations: filtered (1: c1 → a3)",
    ):
        assert reason in shown
    assert "Nothing is known of this claim" in shown
    # A bar is drawn for what is known alone.
    assert assessed.count('class="filled"') == 2
    # Two claims have a verdict, one of them true; the third may be either.
    assert re.search(r"FR2 1 1 0 0\.500 0\.333.0\.667", shown), shown


def test_the_sentence_that_decides_is_shown(assessed: str) -> None:
    rows = [visible(one) for one in re.findall(r'(?s)<td class="text">.*?</td>', assessed)]
    decides = "… In 1890 the bridge over the river opened to carts. …"
    assert f"The bridge opened in 1890. supported for {decides}" in rows
    assert any(one == f"Chronicle — {decides}" for one in rows)


def test_claims_are_marked_in_the_response(assessed: str) -> None:
    (text,) = re.findall(r'(?s)<p class="response">(.*?)</p>', assessed)
    assert re.findall(r'<mark class="(\w+)">(.*?)</mark>', text) == [
        ("supported", "The bridge opened in 1890."),
        ("contradicted", "It is the longest of all bridges."),
    ]
    assert re.findall(r'href="#atom-(\d)" title="[^"]*">(\w+)</a>', text) == [
        ("1", "a1"),
        ("2", "a2"),
    ]
    # All of the text is there, and what is not in it is said.
    assert visible(re.sub(r"<sup>.*?</sup>", "", text)) == (
        "# Answer ** The bridge opened in 1890. ** It is the longest of all bridges."
    )
    assert "Not found in the text: a3 ." in visible(assessed)


def test_the_first_page_of_several_lists_them_with_what_they_lack(folder: Path) -> None:
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    graphs = [
        replace(graph, metadata={**graph.metadata, "assessment": assess_graph(graph, [view])})
        for graph in datasets.load("demonstration").graphs[:2]
    ]
    paths = report_of_graphs(graphs, "two", folder / "pages")
    shown = visible(paths[0].read_text())
    assert len(paths) == 3
    assert "Assessment of 2 responses" in shown
    for word in ("study", "cell", "unit"):
        assert not re.search(rf"\b{word}s?\b", shown, re.I), word
    assert headings(paths[1].read_text())[1] == "Claims"


def test_a_whole_number_beyond_64_bits_is_a_log_z_of_a_file(folder: Path) -> None:
    view = AssessmentView("FR2", "implication", get_backend("exact"))
    graph = datasets.load("demonstration").graphs[0]
    facts = assess_graph(graph, [view])
    facts["FR2"] |= {"log_z": -(10**30), "log_z_lower": -(10**30)}
    found = replace(graph, metadata={**graph.metadata, "assessment": facts})
    (path,) = report_of_graphs([found], "one", folder / "pages")
    assert "Claims" in headings(path.read_text())


def test_a_sentence_decides_by_what_is_rare() -> None:
    """Names that stand everywhere do not decide."""
    passage = (
        "Ada Byron was the only child of Lord Byron. She married in July 1835. "
        "Her notes, which she wrote late, are famous."
    )
    others = [f"Ada Byron {what} in London." for what in ("lived", "studied", "sang", "rode")]
    asked = [(passage, "Ada Byron married in 1835.", RelationKind.ENTAILMENT)]
    asked += [(text, "Ada Byron sang.", RelationKind.ENTAILMENT) for text in others]
    found = deciding_sentences(asked)
    assert found == ["… She married in July 1835. …", *others]


def test_texts_without_a_sentence_have_none() -> None:
    assert deciding_sentences([("", "A claim.", RelationKind.ENTAILMENT)]) == [""]
    assert deciding_sentences([]) == []
    pieces, nowhere = marked_response(FactGraph("r", (Atom("a1", "A claim."),)))
    assert (pieces, nowhere) == ([], [0])


def test_files_that_were_not_assessed_are_refused(folder: Path) -> None:
    (folder / "g.json").write_text('{"format": "factormodels/fact-graph", "version": 1}')
    invoke("convert", "demonstration", "given.jsonl")
    result = invoke("report", "given.jsonl", code=2)
    assert "'demo-01-marie-curie' was not assessed; give what" in result.stderr
    result = invoke("report", "given.jsonl", "--only", "variant=FR1", code=2)
    assert "--data and --only are for the folder of a run" in result.stderr
    invoke(*ASSESS, "--response", "demo-01-marie-curie", "--out", "o")
    (folder / "o" / "graphs.jsonl").rename(folder / "o.jsonl")
    (folder / "o-report").mkdir()
    (folder / "o-report" / "mine.txt").write_text("mine")
    result = invoke("report", "o.jsonl", code=2)
    assert "holds something other than a report" in result.stderr


def test_a_sentence_has_the_mark_of_its_least_supported_claim() -> None:
    given = ("supported", "unknown", "undecided", "contradicted")
    cards: list[Any] = [{"verdict": verdict} for verdict in given]
    for number, verdict in enumerate(given, 1):
        assert worst_verdict(cards, range(number)) == verdict
