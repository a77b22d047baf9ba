"""`select` on responses without labels, without claims, and with the settings of Core."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import select
from factormodels import FactGraph
from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.extraction.language_model import Completion, Request, Token
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.io import read_many
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.selection import Core, subclaims_of
from factormodels.selection import select as select_claims
from factormodels.selection.bleached import templates_of
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

TEXT = "Ada built the bridge in 1890. The bridge was built by Ada in 1890. It carries trains."


def graph(*texts: str, response: str = TEXT) -> FactGraph:
    atoms = tuple(Atom(f"a{n}", text, sentence=1) for n, text in enumerate(texts, 1))
    return FactGraph("r", atoms, response=response, metadata={"sentences": 3})


def test_a_text_is_taken_apart_and_repetitions_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(TEXT, encoding="utf-8")
    result = invoke("select", str(path), "--weights", "uniform", "--out", str(tmp_path / "out"))
    assert "2 of 3 claims of 1 response count" in result.stdout
    assert "each sentence counts as a claim" in result.stdout
    rows = (tmp_path / "out" / "selection.csv").read_text("utf-8").splitlines()
    assert len(rows) == 4
    assert sum("related to" in row for row in rows) == 1
    shown = invoke("select", str(path), "--weights", "uniform", "--json")
    tables = json.loads(shown.stdout)["tables"]
    assert [row["selected"] for row in tables["selection"]].count(True) == 2


def test_sentences_of_a_refusal_are_no_claims() -> None:
    refusal = FactGraph("q2", (), response="I'm sorry, but I cannot answer that.")
    answers = FactGraph("q1", (), response=TEXT)
    selected = select([answers, refusal], weights="uniform")
    assert selected["responses"]["response"].tolist() == ["q1"]
    expected = "1 response declines to answer (q2): without claims, and left out."
    assert expected in selected.sentences
    refused("every response declines to answer", select, [refusal], weights="uniform")


def test_claims_without_labels_are_those_that_core_selects() -> None:
    response = graph("Ada built the bridge.", "The bridge was built by Ada.", "It carries trains.")
    selected = select(
        [response, replace(response, id="s", atoms=(), response="")], weights="uniform"
    )
    expected = select_claims(subclaims_of(response), Core(LexicalRelations())).chosen
    claims: Any = selected["selection"]
    assert claims[claims["selected"]]["claim"].tolist() == [claim.id for claim in expected]
    assert "true_before" in selected["responses"]
    assert "1 of 2 responses is empty and left out: id s." in selected.sentences


def test_a_share_of_faithful_claims_is_kept() -> None:
    response = "The bridge opened in 1890."
    response_graph = graph("The bridge opened in 1890.", "Cows eat green grass.", response=response)
    free = select([response_graph], weights="uniform")
    bound = select([response_graph], weights="uniform", share=1.0)
    assert free["responses"]["selected"].tolist() == [2]
    assert bound["responses"]["selected"].tolist() == [1]
    claims: Any = bound["selection"]
    assert claims.set_index("claim").loc["a2", "because"] == "too few would be faithful"


def test_epsilon_and_a_cap_take_off_what_informs_little() -> None:
    response_graph = graph("Ada built the bridge in 1890.", "It carries trains.")
    plain: Any = select([response_graph], epsilon=0.0)["selection"]
    less: Any = select([response_graph], epsilon=0.25)["selection"]
    for before, after in zip(plain["weight"], less["weight"], strict=True):
        assert after == pytest.approx(before - 0.25, abs=1e-12)
    much = select([response_graph], epsilon=1e3)
    assert much["responses"]["selected"].tolist() == [0]
    assert set(much["selection"]["because"]) == {"it informs of nothing"}
    assert (
        select([response_graph], cap="lexical")["selection"]["weight"].tolist()
        == plain["weight"].sub(0.01).tolist()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 2.0}, "give 1 or less"),
        ({"labels": ["LABEL_0"]}, "write LABEL=RELATION"),
        ({"labels": ["LABEL_0=yes"]}, "the relation one of entailment"),
        ({"relations": "nli"}, "is unknown"),
        ({"cap": "nil:x"}, "`cap='nil:x'` is unknown"),
        ({"weight": "uniform"}, "did you mean 'weights'"),
    ],
)
def test_a_mistake_is_one_sentence(options: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        select([graph("A.")], **options)
    assert message in str(caught.value)


def test_the_biographies_without_their_labels(shared_data: Path) -> None:
    labeled = [
        graph
        for graph in read_many(shared_data / "factscore_chatgpt" / "ChatGPT.jsonl")
        if graph.atoms
    ][:5]
    bare = [
        replace(graph, atoms=tuple(replace(a, label=None, annotation=None) for a in graph.atoms))
        for graph in labeled
    ]
    with_labels, without = select(labeled), select(bare)
    names = ["response", "claims", "selected", "status"]
    assert with_labels["responses"][names].equals(without["responses"][names])
    assert "true before" not in [c.title for c in without.tables["responses"].columns]


PAIRS = (
    ("Ada built the bridge in 1890.", "The bridge was built by Ada in 1890."),
    ("The bridge was built by Ada in 1890.", "Ada built the bridge in 1890."),
)


def judged_pairs(request: Request) -> str | Completion:
    """Say that two sentences entail each other, and that trains are beside the question."""
    question = request.messages[-1].content
    if request.prompt.name == "safe_relevance":
        claim = question.rpartition("<claim>")[2]
        return json.dumps({"relevant": "trains" not in claim})
    entailed = any(first in question.partition("<hypothesis>")[0] and two in
               question.partition("<hypothesis>")[2] for first, two in PAIRS)  # fmt: skip
    word, other = ("entailment", "neutral") if entailed else ("neutral", "entailment")
    token = Token(word, math.log(0.9), ((word, math.log(0.9)), (other, math.log(0.1))))
    return Completion(word, (token,))


def test_a_language_model_says_who_entails_whom_and_what_is_relevant() -> None:
    model = AnsweringModel(judged_pairs)
    graph = FactGraph("r", (), response=TEXT, query="Who built the bridge?")
    selected = select([graph], weights="uniform", model=model)
    assert selected["responses"]["selected"].tolist() == [2]
    assert selected.settings["relations"] == "model"
    # Every ordered pair of three claims is asked once.
    assert len(model.asked) == 6
    assert selected["cost"][["stage", "calls"]].to_numpy().tolist() == [["relations", 6]]
    dry = select([graph], weights="uniform", model=model, relevance=model, dry_run=True)
    assert len(model.asked) == 6
    calls: dict[str, int] = dict(dry["calls"].itertuples(index=False))
    assert calls == {"relevance": 3, "relations": 6}
    # Each claim is also compared with every bleached claim for its weight.
    dry = select([graph], model=model, domain="things", dry_run=True)
    bleached = len(templates_of("things"))
    calls = dict(dry["calls"].itertuples(index=False))
    assert calls == {"relations": 6 + 3 * bleached}
    assert len(model.asked) == 6
    narrow = select([graph], weights="uniform", model=model, relevance=model)
    assert len(model.asked) == 2 * 6 + 3
    claims: Any = narrow["selection"]
    assert narrow["responses"]["selected"].tolist() == [1]
    assert "trains" not in claims[claims["selected"]]["text"].iloc[0]
    trains = claims["text"].str.contains("trains")
    assert claims.loc[trains, "because"].item() == "irrelevant to the question"


def test_unreadable_answers_leave_a_response_out_and_the_rest_is_selected() -> None:
    def answer(request: Request) -> str | Completion:
        shown = request.messages[-1].content
        return "I cannot say." if "Zeppelin" in shown else judged_pairs(request)

    readable = FactGraph("r", (Atom("a1", "Ada built the bridge in 1890."),), response=TEXT)
    unreadable = FactGraph("z", (Atom("a1", "A Zeppelin flew."),), response="A Zeppelin flew.")
    how: dict[str, Any] = {"domain": "things", "model": AnsweringModel(answer), "probe": False}
    selected = select([readable, unreadable], **how)
    assert selected["responses"]["response"].tolist() == ["r"]
    assert selected.incomplete
    (sentence,) = [each for each in selected.sentences if "not known which claims" in each]
    assert sentence.endswith("could be read: z.")
    assert not select([readable], **how).incomplete
    alone = select([unreadable], **how)
    assert (alone.incomplete, dict(alone.tables)) == (True, {})


def test_a_graded_model_gives_the_weights_and_the_other_caps() -> None:
    model = AnsweringModel(judged_pairs)
    graph = FactGraph("r", (Atom("a1", "Ada built the bridge in 1890."),), response=TEXT)
    selected = select([graph], domain="things", model=model, graded="lexical")
    assert any("graded model lexical" in each for each in selected.sentences)
    plain = select([graph], domain="things", relations="lexical")
    # Nothing is entailed by a bleached claim, so that the cap leaves the lexical weight.
    assert selected["selection"]["weight"].tolist() == pytest.approx(
        plain["selection"]["weight"].tolist()
    )


def test_a_seed_is_refused_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(TEXT, encoding="utf-8")
    result = invoke("select", str(path), "--seed", "3", code=2)
    assert "seed affects only intervals of labeled claims" in " ".join(result.stderr.split())


LABELED = FactGraph(
    "r",
    (Atom("a1", "Ada built the bridge.", sentence=1, label=True),
     Atom("a2", "It carries trains.", sentence=2, label=False)),
    query="Who built the bridge?",
    response="Ada built the bridge. It carries trains.",
    metadata={"sentences": 2},
)  # fmt: skip


def test_labeled_responses_are_written_claim_by_claim_too(tmp_path: Path) -> None:
    write_fact_graphs([LABELED], tmp_path / "own.jsonl")
    out = tmp_path / "out"
    options = ("--weights", "uniform")
    invoke("select", tmp_path / "own.jsonl", *options, "--out", out)
    written = {path.name for path in out.iterdir()}
    assert {"selection.csv", "responses.csv", "findings.json", "sentences.csv"} <= written
    assert {"kept-by-sentence.pdf", "graphs.jsonl"} <= written
    shown = invoke("select", tmp_path / "own.jsonl", *options, "--json")
    sentences = json.loads(shown.stdout)["tables"]["sentences"]
    assert [(row["sentence"], row["claims"], row["true"]) for row in sentences] == [
        ("1", 1, 1.0),
        ("2", 1, 0.0),
        ("all", 2, 0.5),
    ]


def test_the_claims_that_count_are_responses_that_say_how_long_they_are(tmp_path: Path) -> None:
    bare = replace(LABELED, metadata={})
    path = tmp_path / "counting.jsonl"
    select([bare, replace(LABELED, id="s")], weights="uniform").save(path)
    first, second = read_many(path)
    assert first.metadata["sentences"] == second.metadata["sentences"] == 2
    shown = invoke("self-knowledge", path, "--bins", "2").stdout
    assert "4 labeled claims in 4 of 4 sentences" in shown


def test_relevance_counts_in_the_tables_of_labeled_claims() -> None:
    selected = select([LABELED], weights="uniform", relevance=AnsweringModel(judged_pairs))
    assert selected["sentences"]["kept"].tolist() == [1, 0, 0.5]
    # Of the second sentence no claim counts, so that none can be true.
    assert math.isnan(selected["sentences"]["true_kept"][1])
