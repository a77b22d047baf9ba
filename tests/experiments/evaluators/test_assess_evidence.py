"""The evidence of `factormodels assess`: snippets, provenance, repeated claims, the web."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments import assess
from experiments.asking.searchers import (
    RETRIEVERS,
    WEB_RETRIEVERS,
    EvidenceSettings,
    Search,
    web_retriever,
)
from experiments.asking.session import asking
from experiments.asking.settings import AskingSettings, WebSettings
from factormodels import read_many, write_many
from factormodels.errors import InputError
from factormodels.extraction.language_model import Completion, Request
from factormodels.extraction.retrieval.google import KEY_VARIABLE
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.web_server import Answer, Asked, web_server

RELEASE_LIKE = {
    "input": "Question: Tell me about the Cape Alder lighthouse.",
    "output": "The Cape Alder lighthouse was finished in 1871. It is red. It is red.",
    "topic": "Cape Alder lighthouse",
    "atoms": [
        {"id": "a0", "text": "The lighthouse was finished in 1871.", "contexts": ["c0", "c1"]},
        {"id": "a1", "text": "The lighthouse is red.", "label": "S", "contexts": ["c2"]},
        {"id": "a2", "text": "The lighthouse is  Red.", "label": "NS", "contexts": ["c3"]},
    ],
    "contexts": [
        {
            "id": name,
            "title": title,
            "text": "",
            "link": f"https://www.example.org/{name}",
            "snippet": snippet,
        }
        for name, title, snippet in (
            ("c0", "Cape Alder - Lights", "The lighthouse was finished in 1871 by the state."),
            ("c1", "Alder: a history", "It has been lit by electricity since 1934."),
            ("c2", "Paint", "The lighthouse is painted red every ten years."),
            ("c3", "More paint", "The lighthouse is painted  red every ten years."),
            ("c_q_0", "Lighthouses", "The lighthouse of Cape Alder is white and red."),
        )
    ],
}
"""A file as the release's search of Google writes them: snippets, and no texts of pages."""


@pytest.fixture
def release_like(folder: Path) -> Path:
    """The file in an empty folder that is the working directory."""
    (folder / "alder.json").write_text(json.dumps(RELEASE_LIKE))
    return folder


def row(stdout: str, name: str) -> dict[str, str]:
    """A row of the table of measures."""
    table = stdout[stdout.index("\nname ") :].splitlines()[1:]
    heading, cells = (
        re.split(r"  +", line.strip()) for line in table if line.startswith(("name", f"{name} "))
    )
    return dict(zip(heading, cells, strict=True))


def test_snippets_are_evidence_and_no_pair_is_missing(release_like: Path) -> None:
    result = invoke("assess", "alder.json", "--variant", "FR2", "--out", "out")
    (graph,) = read_many(release_like / "out/graphs.jsonl")
    counts = graph.metadata["relations"]
    # Two of three claims and four of five snippets are different.
    assert (counts["asked"], counts["missing"]) == (8, [])
    assert counts["entailment"] > 0
    assert graph.contexts[2].retrieved_for == ("a1",)
    assert float(row(result.stdout, "FR2")["Pr"]) > 0.5


@pytest.mark.parametrize(
    ("name", "contexts"), [("flaherty_google", 68), ("flaherty_wikipedia", 21)]
)
def test_no_pair_of_the_release_s_files_is_missing(
    name: str, contexts: int, folder: Path, shared_data: Path
) -> None:
    file = shared_data / "factreasoner" / f"{name}.json"
    invoke("assess", file, "--out", "out")
    (graph,) = read_many(folder / "out/graphs.jsonl")
    counts = graph.metadata["relations"]
    assert (counts["asked"], counts["missing"]) == (26 * contexts, [])
    assert counts["entailment"] > 0


def test_fr1_is_the_same_alone_and_beside_others(release_like: Path) -> None:
    alone = invoke("assess", "alder.json", "--variant", "FR1")
    variants = ("--variant", "FR1", "--variant", "FR2", "--variant", "FR3")
    beside = invoke("assess", "alder.json", *variants, "--out", "out")
    assert row(alone.stdout, "FR1") == row(beside.stdout, "FR1")
    (graph,) = read_many(release_like / "out/graphs.jsonl")
    # What was found for the question is no evidence of FR1's, nor for those that read the output.
    evidence = graph.metadata["assessment"]["FR1"]["atoms"]["a1"]["evidence"]
    assert {item["context"] for item in evidence} == {"c2"}
    again = invoke("infer", "out/graphs.jsonl", "--variant", "FR1")
    p = graph.metadata["assessment"]["FR1"]["atoms"]["a1"]["p"]
    assert f"{p:.3f}" in again.stdout


def test_a_claim_made_twice_is_judged_once_and_counted_twice(release_like: Path) -> None:
    result = invoke("assess", "alder.json", "--out", "out")
    assert "3 atoms, 2 labeled" in result.stdout
    assert "1 claim repeated" in result.stdout
    (graph,) = read_many(release_like / "out/graphs.jsonl")
    assert graph.atom_ids == ("a0", "a1")
    assert graph.metadata["assessment"]["FR2"]["measures"]["n_atoms"] == 3
    # One of the two labels of the same claim is wrong whatever it is.
    assert float(row(result.stdout, "FR2")["accuracy"]) == 0.5
    assessed = assess(release_like / "alder.json")
    claims = assessed["claims"].set_index("claim")
    assert list(claims.index) == ["a0", "a1", "a2"]
    assert claims.p["a1"] == claims.p["a2"]
    assert claims.label["a1"] != claims.label["a2"]
    assert assessed["summary"].precision[0] == pytest.approx((assessed["claims"].p > 0.5).mean())


def test_fr1_without_provenance_is_refused(release_like: Path) -> None:
    record: dict[str, Any] = json.loads((release_like / "alder.json").read_text())
    for atom in record["atoms"]:
        atom["contexts"] = []
    (release_like / "none.json").write_text(json.dumps(record))
    result = invoke("assess", "none.json", "--variant", "FR1", "--variant", "FR2", code=2)
    assert "the claim that a passage was retrieved for" in result.output


def test_the_least_probability_is_an_option(release_like: Path) -> None:
    invoke("assess", "alder.json", "--out", "all", "--least", "0")
    invoke("assess", "alder.json", "--out", "none", "--least", "1")
    kinds = []
    for name in ("all", "none"):
        (graph,) = read_many(release_like / f"{name}/graphs.jsonl")
        counts = graph.metadata["relations"]
        kinds.append(counts["entailment"] + counts["contradiction"])
    assert kinds[0] > kinds[1] == 0
    invoke("assess", "alder.json", "--least", "1.5", code=2)


@pytest.mark.usefixtures("release_like")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--retriever bing", "use one of given, local, dense, wikipedia, google"),
        ("--retriever googel", "did you mean 'google'"),
        ("--question-contexts", "--question-contexts: --retriever given searches nothing"),
        ("--summarize", "--summarize needs a language model"),
        ("--retriever dense", "--retriever dense needs an embedding model; give --embeddings"),
        ("--retriever dense --embeddings x", "there is no such folder, and the model 'x' has no"),
        ("--retriever local --embeddings x/y", "--embeddings is for --retriever dense"),
        ("--retriever local --search-base http://x", "--search-base"),
        ("--model openai/x --api-base localhost:8000", "such as http://127.0.0.1:8000/v1"),
        ("--retriever local --contact a@b.org", "--contact applies to web searches"),
        ("--price-search 0.1", "--price-search applies to web searches, not to given"),
        ("--top-k 2", "--top-k: --retriever given searches nothing"),
        ("--core --core-relations lexcal", "--core-relations 'lexcal' is unknown"),
        ("--retriever wikipedia --contact ä", "contact"),
        ("--retriever google --max-cost 1", "the price of a search is unknown"),
        (
            "--documents notes --embeddings openai/x --max-cost 1",
            "the price of 'openai/x' is unknown; give --price-embeddings",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: str, message: str) -> None:
    assert message in " ".join(
        invoke("assess", "alder.json", *options.split(), code=2).output.split()
    )


def wikipedia(asked: Asked, articles: Mapping[str, str]) -> Answer:
    """The API of a Wikipedia that finds all its articles for everything."""
    if asked.query.get("list") == "search":
        hits = [{"title": title, "snippet": "in <b>short</b>"} for title in articles]
        return Answer(json.dumps({"query": {"search": hits}}))
    title = asked.query["titles"]
    page = {"title": title, "extract": articles[title], "fullurl": f"https://w.example/{title}"}
    return Answer(json.dumps({"query": {"pages": [page]}}))


@pytest.mark.service
def test_a_search_of_one_s_own_is_asked_once_for_claims_and_question(release_like: Path) -> None:
    articles = {"Cape Alder": "The lighthouse was finished in 1871."}
    options = ["--retriever", "wikipedia", "--question-contexts", "--contact", "me@example.org"]
    with web_server(lambda asked, _: wikipedia(asked, articles)) as server:
        options += ["--search-base", f"{server.url}/w/api.php"]
        refused = invoke("assess", "alder.json", *options, code=1)
        assert "--allow-private-hosts" in " ".join(refused.output.split())
        assert server.asked == []
        invoke("assess", "alder.json", *options, "--allow-private-hosts", "--out", "o")
        # Two different claims and the question are searched for, one page is read.
        assert len(server.asked) == 4
        assert "me@example.org" in server.asked[0].headers["user-agent"]
        searched = {
            request.query["srsearch"] for request in server.asked if "srsearch" in request.query
        }
        assert "Question Tell me about the Cape Alder lighthouse." in searched
        del server.asked[:]
        invoke("assess", "alder.json", *options, "--allow-private-hosts", "--out", "p")
        assert server.asked == []
    assert (release_like / "o/graphs.jsonl").read_text() == (
        release_like / "p/graphs.jsonl"
    ).read_text()
    (graph,) = read_many(release_like / "o/graphs.jsonl")
    assert graph.metadata["retrieval"]["queries"] == 3
    assert [context.title for context in graph.contexts] == ["Cape Alder"]


@pytest.mark.service
def test_a_search_of_google_is_paid_once_though_a_page_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "serper-key-0123456789")
    monkeypatch.chdir(folder)
    texts = [f"Bridge number {i} opened in {1890 + i}." for i in range(10)]
    (folder / "answer.txt").write_text(" ".join(texts))

    def script(asked: Asked, _: int) -> Answer:
        if asked.path == "/gone":
            return Answer(status=404)
        if asked.path == "/page":
            return Answer("<html><body><p>Bridge number 3 opened in 1893.</p></body></html>")
        hits = [
            {"title": path, "link": f"{server.url}/{path}", "snippet": f"on {path}"}
            for path in ("page", "gone")
        ]
        return Answer(json.dumps({"organic": hits}))

    options = ["--retriever", "google", "--allow-private-hosts"]
    with web_server(script) as server:
        options += ["--search-base", f"{server.url}/search"]
        for name in ("1", "2", "3"):
            invoke("assess", "answer.txt", *options, "--out", str(name))
        assert server.paths().count("/search") == 10
        assert sorted(set(server.paths())) == ["/gone", "/page", "/search"]
        assert len(server.asked) == 12
    invoke("assess", "answer.txt", *options, "--replay", "--out", "r")
    assert len({(folder / f"{name}/graphs.jsonl").read_text() for name in "123r"}) == 1


def test_a_search_of_another_name_is_never_wikipedia_s() -> None:
    web = {name for name, entry in RETRIEVERS.items() if not entry.reads_documents}
    assert web == set(WEB_RETRIEVERS)
    with asking(AskingSettings(dry_run=True)) as session:
        search = Search(EvidenceSettings(), WebSettings(), session)
    assert web_retriever("wikipedia", search, top_k=1).name == "wikipedia"
    with pytest.raises(InputError, match=r"'wikipedai' is unknown.*did you mean 'wikipedia'"):
        web_retriever("wikipedai", search, top_k=1)


def test_summaries_take_the_place_of_passages() -> None:
    def answer(request: Request) -> str | Completion:
        if request.stage == "summarizer":
            red = "red" in request.messages[-1].content.rpartition("<passage>")[2]
            content = {"summary": "The bridge is red." if red else None, "confidence": 0.5}
            return json.dumps(content)
        return '{"relation": "entailment", "confidence": 0.9}'

    assessed = assess(
        text="The bridge is red.",
        documents=["The bridge, says a traveler, is red all over.", "A bridge has ends."],
        model=AnsweringModel(answer),
        atoms="sentences",
        method="verbalized",
        summarize=True,
    )
    (graph,) = assessed.graphs
    assert [(c.text, c.prior) for c in graph.contexts] == [("The bridge is red.", 0.99 * 0.5)]
    assert len(graph.metadata["summaries"]["dropped"]) == 1
    assert graph.metadata["relations"]["asked"] == 1
    # Half as reliable, the passage moves the claim by less than it would alone (implication, by
    # hand: odds of 0.495 * 0.9 + 0.505 * 0.9 to 0.495 * 0.1 + 0.505 * 0.9).
    weight = 0.99 * 0.5
    true = weight * 0.9 + (1 - weight) * 0.9
    false = weight * 0.1 + (1 - weight) * 0.9
    assert assessed["claims"].p[0] == pytest.approx(true / (true + false), abs=1e-9)


@pytest.mark.service
def test_embeddings_find_documents(folder: Path) -> None:
    pytest.importorskip("litellm", reason="litellm, of the extra llm, is not installed")
    (folder / "notes").mkdir()
    (folder / "notes" / "red.txt").write_text("The bridge is red.")
    (folder / "notes" / "sea.txt").write_text("The sea is blue.")
    (folder / "answer.txt").write_text("The bridge is red.")

    def script(asked: Asked, _: int) -> Answer:
        texts = json.loads(asked.body)["input"]
        rows = [
            {
                "object": "embedding",
                "index": i,
                "embedding": [float(text.count("red")), float(text.count("blue")), 0.1],
            }
            for i, text in enumerate(texts)
        ]
        body = {
            "object": "list",
            "data": rows,
            "model": "m",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        return Answer(json.dumps(body))

    options = ["--documents", "notes", "--embeddings", "openai/some", "--top-k", "1"]
    with web_server(script) as server:
        options += ["--embeddings-base", f"{server.url}/v1"]
        invoke("assess", "answer.txt", *options, "--out", "o")
        asked = len(server.asked)
        invoke("assess", "answer.txt", *options, "--out", "p")
        assert len(server.asked) == asked == 2
    (graph,) = read_many(folder / "o/graphs.jsonl")
    assert graph.metadata["retrieval"]["retriever"] == "dense"
    assert [context.text for context in graph.contexts] == ["The bridge is red."]
    assert len(list((folder / "notes" / ".embeddings").iterdir())) == 1


def test_passages_of_a_response_judge_its_claims_and_no_other_s(folder: Path) -> None:
    """Passages that were retrieved for a question serve every claim of its own response."""
    row_ = {"user_input": "The bridge?", "response": "The bridge of Ulm is red. It is long."}
    rows = [
        {**row_, "retrieved_contexts": ["The bridge of Ulm is red."]},
        {**row_, "retrieved_contexts": ["A mill ground rye."]},
    ]
    (folder / "ragas.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    given = assess(folder / "ragas.jsonl", retriever="given")
    first, second = given.graphs
    assert [context.text for context in first.contexts] == ["The bridge of Ulm is red."]
    assert [context.text for context in second.contexts] == ["A mill ground rye."]
    p = given["claims"].set_index(["response", "claim"]).p
    assert p["ragas-001", "a1"] > 0.6 > p["ragas-002", "a1"]
    by_default = assess(folder / "ragas.jsonl")
    assert list(by_default["claims"].p) == list(given["claims"].p)


def test_findings_and_page_name_files_that_are_not_searched(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tower.txt").write_text("The tower of Ulm is high.")
    (notes / "scan.docx").write_text("unread")
    (notes / "empty.txt").write_text("\n")
    judged = assess(text="The tower of Ulm is high.", documents=notes)
    named = [sentence for sentence in judged.sentences if sentence.startswith(f"{notes}")]
    assert [sentence.rpartition(": ")[2] for sentence in named] == ["scan.docx.", "empty.txt."]
    judged.report(tmp_path / "page.html")
    assert "scan.docx" in (tmp_path / "page.html").read_text()


def test_relations_of_the_data_that_assess_does_not_use_are_reported(tmp_path: Path) -> None:
    table = tmp_path / "relations.csv"
    table.write_text(
        "response,claim,passage,relation,probability,claim text,passage text\n"
        "r1,a1,p1,contradiction,0.95,The bridge is old.,The bridge is old and long.\n"
        "r1,a2,p1,neutral,0.8,It is red.,The bridge is old and long.\n"
    )
    result = assess(table)
    (reported,) = (line for line in result.sentences if "not used" in line)
    assert reported.startswith("2 relations of")
    assert "`factormodels infer`" in reported
    # Recorded relations are the data's own, and posteriors show that they are used.
    graphs = tmp_path / "graphs.jsonl"
    write_many(read_many(table), graphs)
    recorded = assess(graphs, relations=f"recorded:{graphs}")
    assert not any("not used" in line for line in recorded.sentences)
    by_words, by_file = result["claims"]["p"].tolist(), recorded["claims"]["p"].tolist()
    assert by_file[0] < 0.5 < by_words[0]
