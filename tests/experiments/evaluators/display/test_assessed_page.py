"""The page of `assess`: every response with its claims, what decides them, and what is missing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import assess
from experiments.evaluators.display import assessed_page
from experiments.evaluators.display.assessed_page import listed_responses
from experiments.evaluators.response import AssessmentView, assess_graph
from experiments.findings.findings import Findings
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, datasets
from factormodels.variants import variant
from inference import get_backend, infer
from tests.experiments.conftest import invoke
from tests.experiments.pages.reported import listed, read_page

HOSTILE = (
    "</script><script>alert(1)</script><!-- \u2028 \u202e"
    '"><img src=x onerror=alert(1)> &amp; \ud83d'
)
"""A text that would end the data, run, fetch or turn a line if it were taken for anything else."""

OFFLINE: dict[str, Any] = {"relations": "lexical", "retriever": "given", "atoms": "given"}


def assessed(graph: FactGraph, *variants: str) -> FactGraph:
    """Return a response with its assessment by the exact backend."""
    views = [AssessmentView(name, "implication", get_backend("exact")) for name in variants]
    return replace(graph, metadata={**graph.metadata, "assessment": assess_graph(graph, views)})


@pytest.fixture
def bridge() -> FactGraph:
    """A response of two sentences; a relation and answers of two stages are missing."""
    texts = ("The bridge opened in 1890.", "The bridge is the longest.", "Nobody said this.")
    long = "The town has many mills. In 1890 the bridge opened to carts. It was painted later on."
    return FactGraph(
        "q-17/β",
        tuple(
            Atom(f"a{n}", text, sentence=n + 1 if n < 3 else None)
            for n, text in enumerate(texts, 1)
        ),
        (
            Context("c1", long, title="Chronicle", retrieved_for=("a1", "a2", "a3")),
            Context("c2", "There are longer bridges.", retrieved_for=("a2",)),
        ),
        (
            Relation("c1", "a1", RelationKind.ENTAILMENT, 0.95),
            Relation("c1", "a2", RelationKind.CONTRADICTION, 0.6),
            Relation("c2", "a2", RelationKind.CONTRADICTION, 0.9),
        ),
        query="When was it built?",
        response="# Answer\n\n**The bridge opened in 1890.** It is the longest of all bridges.\n",
        metadata={
            "atoms": {"failures": [[4, "the answer was cut off"]]},
            "queries": {"failures": [["a3", "status 500"]]},
            "relations": {
                **{"model": "m", "asked": 4, "least": 0.5, "entailment": 1, "contradiction": 2},
                **{"neutral": 0, "made_neutral": 0, "missing": [["c1", "a3", "filtered"]]},
            },
        },
    )


def page_of(tmp_path: Path, *graphs: FactGraph, **more: Any) -> Path:
    """Return the page of responses that were assessed."""
    findings = Findings(
        "answers", listed=lambda: listed_responses(graphs, **more), command="assess"
    )
    return findings.report(tmp_path / "page.html")


def test_the_page_holds_every_id_claim_posterior_and_verdict(tmp_path: Path) -> None:
    assessed = assess(Path("demonstration"), **OFFLINE, variant=["FR1", "FR2"])
    data = listed(assessed.report(tmp_path / "page.html"))
    assert [answer["title"] for answer in data["answers"]] == ["FR1", "FR2"]
    shown = {
        (data["answers"][position]["title"], entry["id"], claim["id"]): (claim["text"], p)
        for entry in data["responses"]
        for claim in entry["claims"]
        for position, p in enumerate(claim["p"])
    }
    claims = assessed["claims"]
    assert len(shown) == len(claims) > 200
    for row in claims.itertuples():
        text, p = shown[row.variant, row.response, row.claim]
        assert text == row.text
        assert p == pytest.approx(row.p, abs=1e-10)
    graphs = {graph.id: graph for graph in assessed.graphs}
    for entry in data["responses"]:
        assert "".join(piece for piece, _ in entry["pieces"]) == graphs[entry["id"]].response
        assert entry["query"] == graphs[entry["id"]].query
        ids = [passage["id"] for passage in entry["passages"]]
        assert ids == list(graphs[entry["id"]].context_ids)
    # A passage that several claims share stands once.
    assert len(data["passages"]) == len(
        {c.content + c.title for g in graphs.values() for c in g.contexts}
    )


def test_without_a_passage_the_posterior_is_that_of_the_graph_without_it(
    tmp_path: Path, bridge: FactGraph
) -> None:
    data = listed(page_of(tmp_path, assessed(bridge, "FR1", "FR3")))
    (entry,) = data["responses"]
    compared = 0
    for claim in entry["claims"]:
        for item in claim.get("evidence", ()):
            passage = entry["passages"][item["passage"]]["id"]
            for kind, (without, change) in zip(("FR1", "FR3"), item["effects"], strict=True):
                seen = variant(bridge, kind)
                gone = {passage, f"{passage}@{claim['id']}"}
                less = replace(
                    seen,
                    contexts=tuple(context for context in seen.contexts if context.id not in gone),
                    relations=tuple(
                        relation for relation in seen.relations if relation.source not in gone
                    ),
                )
                with_it, rest = (
                    infer(graph.to_factor_graph("implication"), "exact").marginals[claim["id"]][1]
                    for graph in (seen, less)
                )
                assert without == pytest.approx(rest, abs=1e-8)
                assert change == pytest.approx(with_it - rest, abs=1e-8)
                compared += 1
    assert compared == 6
    (first,) = entry["claims"][0]["evidence"]
    assert first["sentence"] == "… In 1890 the bridge opened to carts. …"


def test_claims_are_marked_where_they_are_made_and_the_unknown_has_no_posterior(
    tmp_path: Path, bridge: FactGraph
) -> None:
    data = listed(page_of(tmp_path, assessed(bridge, "FR2")))
    (entry,) = data["responses"]
    assert [(text, made) for text, made in entry["pieces"] if made] == [
        ("The bridge opened in 1890.", [0]),
        ("It is the longest of all bridges.", [1]),
    ]
    assert entry["claims"][2]["p"] == [None]
    # Nothing of it is known: the missing answers leave everything open.
    low, high = entry["claims"][2]["ranges"][0]
    assert low < 0.1
    assert high > 0.9


def test_missing_answers_are_on_top_by_stage_with_their_responses(
    tmp_path: Path, bridge: FactGraph
) -> None:
    other = assessed(replace(bridge, id="other"), "FR2")
    lost = [("gone", "an outage cut off calls: refused")]
    path = page_of(tmp_path, assessed(bridge, "FR2"), other, without_result=lost)
    page = read_page(path)
    section = page.only("section", id="failures")
    rows = [[cell.text for cell in row.children] for row in section.only("tbody").children]
    assert rows == [
        ["no result", "an outage cut off calls: refused", "1", "gone"],
        ["atoms", "the answer was cut off", "2", "q-17/β, other"],
        ["queries", "status 500", "2", "q-17/β, other"],
        ["relations", "filtered", "2", "q-17/β, other"],
    ]
    assert [link.attributes["href"] for link in section.all("a")] == ["#r-0", "#r-1"] * 3
    ids = [child.attributes.get("id") for child in page.only("main").children]
    assert ids[:2] == ["failures", "responses"]
    assert [failure[0] for failure in listed(path)["responses"][0]["failures"]] == [
        "atoms: the answer was cut off",
        "queries: status 500",
        "relations: filtered",
    ]


def test_words_of_assessors_and_claims_that_count_are_listed(
    tmp_path: Path, bridge: FactGraph
) -> None:
    verdicts = {"a1": {"label": "S", "p": 0.8}, "a2": {"label": "irrelevant", "p": None}}
    facts = {"model": "m", "verdicts": verdicts, "missing": [["a3", "no answer"]]}
    more = {"assessors": {"veriscore": facts}, "core": {"kept": ["a1"]}}
    graph = assessed(replace(bridge, metadata={**bridge.metadata, **more}), "FR2")
    data = listed(page_of(tmp_path, graph))
    assert [answer["title"] for answer in data["answers"]] == ["FR2", "veriscore"]
    claims = data["responses"][0]["claims"]
    assert [claim["p"][1] for claim in claims] == [0.8, None, None]
    assert [claim.get("said") for claim in claims] == [["", "S"], ["", "irrelevant"], None]
    assert data["selections"] == ["core"]
    assert [claim.get("kept") for claim in claims] == [["core"], None, None]


def test_page_without_any_result_says_why(tmp_path: Path) -> None:
    page = read_page(page_of(tmp_path, without_result=[("q1", "an outage"), ("q2", "an outage")]))
    (row,) = page.only("section", id="failures").only("tbody").children
    assert [cell.text for cell in row.children] == ["no result", "an outage", "2", "q1, q2"]


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    # An id is made of whole characters.
    name = HOSTILE.removesuffix("\ud83d")
    graph = FactGraph(
        name,
        (Atom(name, HOSTILE),),
        (Context("c1", HOSTILE, title=HOSTILE, link="javascript:alert(1)"),),
        (Relation("c1", name, RelationKind.ENTAILMENT, 0.9),),
        query=HOSTILE,
        response=HOSTILE,
        topic=HOSTILE,
        metadata={"queries": {"failures": [["c1", HOSTILE]]}},
    )
    path = page_of(tmp_path, assessed(graph, "FR2"))
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"<script\b", text, re.I)) == 3
    assert "\u2028" not in text.partition('id="listed-data"')[2].partition("</script>")[0]
    data = listed(path)
    (entry,) = data["responses"]
    assert entry["id"] == entry["claims"][0]["id"] == name
    for shown in (entry["query"], entry["claims"][0]["text"], data["passages"][0]["text"]):
        assert shown == HOSTILE
    assert "link" not in data["passages"][0]
    page = read_page(path)
    assert page.all("img") == page.all("iframe") == page.all("link") == []
    for element in page.all():
        assert not [key for key in element.attributes if key.startswith("on") or key == "src"]


def test_a_page_fetches_and_sends_nothing_and_runs_two_scripts(
    tmp_path: Path, bridge: FactGraph
) -> None:
    path = page_of(tmp_path, assessed(bridge, "FR2"))
    page = read_page(path)
    (policy,) = (
        element.attributes["content"]
        for element in page.all("meta")
        if element.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for name in ("default-src", "base-uri", "form-action"):
        assert rules[name] == "'none'"
    assert re.fullmatch(r"'sha256-[^']+' 'sha256-[^']+'", rules["script-src"])
    assert not re.findall(r"https?://", re.sub(r"http://www\.w3\.org/\S+", "", path.read_text()))


def test_settings_that_differ_stand_folded_under_the_names_of_their_options(folder: Path) -> None:
    invoke(
        *("assess", "demonstration", "--response", "demo-05-apollo-11", "--variant", "FR1"),
        *("--backend", "lbp", "--damping", "0.3", "--report", "page.html"),
    )
    page = read_page(folder / "page.html")
    settings = page.only("details", id="settings")
    shown = dict(
        zip(
            (element.text for element in settings.all("dt")),
            (element.text for element in settings.all("dd")),
            strict=True,
        )
    )
    assert shown == {
        "--response": "demo-05-apollo-11",
        "--variant": "FR1",
        "--backend": "lbp",
        "--damping": "0.3",
    }


def test_more_responses_than_a_page_lists_are_the_most_doubtful(
    tmp_path: Path, bridge: FactGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure = FactGraph(
        "sure",
        (Atom("a1", "A claim."),),
        (Context("c1", "A claim."),),
        (Relation("c1", "a1", RelationKind.ENTAILMENT, 0.99),),
    )
    monkeypatch.setattr(assessed_page, "MOST_LISTED", 1)
    path = page_of(tmp_path, assessed(sure, "FR2"), assessed(bridge, "FR2"))
    assert [entry["id"] for entry in listed(path)["responses"]] == [bridge.id]
    text = " ".join(read_page(path).only("main").text.split())
    assert "Listed are 1 of 2 responses; factormodels report FILE --response ID" in text


def test_a_claim_that_was_said_before_is_listed_too(tmp_path: Path) -> None:
    texts = "The tower is old. It fell in 1911. The tower is old."
    data = listed(
        assess(text=[texts], documents=["The tower is old."]).report(tmp_path / "page.html")
    )
    (entry,) = data["responses"]
    assert [claim.get("same") for claim in entry["claims"]] == [None, None, "a1"]
    assert entry["claims"][2]["p"] == entry["claims"][0]["p"]
    assert [made for _, made in entry["pieces"] if made] == [[0], [1], [2]]


def test_the_terminal_shows_claims_of_one_response_and_twenty_of_many() -> None:
    words = ("assess", "demonstration", *(x for k, v in OFFLINE.items() for x in (f"--{k}", v)))
    printed = invoke(*words, "--response", "demo-05-apollo-11").stdout
    graph = next(g for g in datasets.load("demonstration").graphs if g.id == "demo-05-apollo-11")
    for atom in graph.atoms:
        assert atom.text in printed
    assert "doubtful" not in printed
    content = json.loads(invoke(*words, "--json").stdout)["tables"]
    doubtful = content["doubtful"]
    least = sorted(row["p"] for row in content["claims"])[:20]
    assert [row["p"] for row in doubtful] == least
    many = invoke(*words).stdout
    _, _, rest = many.partition("The 20 most doubtful of ")
    for row in doubtful:
        assert row["text"][:60] in rest
    # Below them the first responses alone, so that the claims stay on the screen.
    assert "and 4 more of 14 rows" in rest


def test_the_terminal_shows_of_one_response_the_sentence_that_decides(folder: Path) -> None:
    (folder / "answer.txt").write_text("The tower is old. It fell in 1911.")
    long = "The weather is mild here in summer, and cold in winter, with much snow. " * 4
    (folder / "notes").mkdir()
    (folder / "notes/one.txt").write_text(f"{long}The tower is an old one, it is said. {long}")
    printed = invoke("assess", "answer.txt", "--documents", "notes").stdout
    assert "… The tower is an old one, it is said. …" in printed
    assert "The weather is mild" not in printed


def test_the_head_of_the_page_names_the_relation_model_and_what_a_lexical_one_is(
    tmp_path: Path,
) -> None:
    long = "Nobody sells as many cars as the company does, " + "and it has for years " * 9
    graph = FactGraph(
        "r1",
        (Atom("a1", f"{long}in Rome."),),
        (Context("c1", f"{long}in Paris.", retrieved_for=("a1",)),),
    )
    result = assess([graph], variant="FR1", **OFFLINE)
    assert "words, not meaning" in result.sentences[0]
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    head = page[page.index("<header>") : page.index("<nav")]
    assert "Relation model: lexical." in head
    assert "words, not meaning" in head
    # A table of evidence has the whole text of a claim, and its id in a column of its own.
    evidence = result["evidence"]
    assert list(evidence["claim_text"]) == [graph.atoms[0].text]
    assert list(evidence["claim"]) == ["a1"]
    assert evidence["of"][0].startswith("a1: Nobody sells")
    facts = {**result.graphs[0].metadata["relations"], "model": "recorded"}
    other = replace(graph, metadata={"relations": facts})
    shown = listed_responses([assessed(other, "FR1")])
    assert (shown.lead, shown.cautions) == (("Relation model: recorded.",), ())
