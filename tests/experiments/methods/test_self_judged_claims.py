"""`self-knowledge --model`: from responses to sigma in one command, counted at the server."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from calibration.self_knowledge import out_of_sample
from experiments import self_knowledge
from factormodels import Atom, FactGraph
from factormodels.extraction.language_model import Request
from factormodels.io.fact_graph_json import write_fact_graphs
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import sentences_of
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.refusals import refused

TREES = ("Alder", "Birch", "Cedar", "Damson", "Elm", "Fig", "Gorse", "Hazel")
UNSUPPORTED = ("Cedar", "Fig", "Gorse")
HELD_TRUE = ("Alder", "Birch", "Cedar", "Elm", "Hazel")
"""What the model holds true: four of five supported claims, one of three unsupported ones."""


def stage_of(question: str) -> str:
    """The stage that a question is of, by a mark that its prompt alone has."""
    for mark, stage in (
        ("List the claims", "atomizer"),
        ("Does this response decline?", "refusals"),
        ("<passages>", "factscore"),
        ("<answer>", "self-judgment"),
        ("in one word (true or false):", "self-judgment"),
    ):
        if mark in question:
            return stage
    return "question-answer pairs"


def answer_to(question: str) -> str:
    stage = stage_of(question)
    if stage == "atomizer":
        return json.dumps([{"sentence": n, "claim": text} for n, text in sentences_of(question)])
    if stage == "refusals":
        return json.dumps({"declines": "sorry" in question.lower()})
    if stage == "question-answer pairs":
        return json.dumps(
            {"question": "Which?", "answer": question.rsplit("<claim>")[-1].split()[0]}
        )
    if stage == "factscore":
        return "false" if any(name in question for name in UNSUPPORTED) else "true"
    return "true" if any(name in question for name in HELD_TRUE) else "false"


def provider(request: dict[str, Any], _: int) -> Reply:
    return Reply(answer_to(str(request["messages"][-1]["content"])), usage=(40, 2))


def well_behaved(request: Request) -> str:
    return answer_to(request.messages[-1].content)


def graphs(*, with_claims: bool) -> list[FactGraph]:
    """Four responses of two sentences, a claim each."""
    made = []
    for number in range(4):
        names = TREES[2 * number : 2 * number + 2]
        atoms = tuple(
            Atom(
                f"a{position}", f"{name} is tall.", sentence=position, label=name not in UNSUPPORTED
            )
            for position, name in enumerate(names, 1)
        )
        text = " ".join(f"{name} is tall." for name in names)
        made.append(FactGraph(f"r{number}", atoms if with_claims else (), response=text))
    return made


@pytest.fixture(autouse=True)
def few_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split the responses five times: 200 splits take longer than all questions."""
    few = {"n_splits": 5}
    monkeypatch.setattr(
        "experiments.methods.self_knowledge.out_of_sample",
        lambda *given, **named: out_of_sample(*given, **named | few),
    )


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing: figures take longer than all questions and are those of a table of answers."""
    monkeypatch.setattr("experiments.methods.self_knowledge._figures", lambda *_: {})


@pytest.fixture
def responses(keyed: Path) -> Path:
    write_fact_graphs(graphs(with_claims=True), keyed / "claims.jsonl")
    lines = [
        json.dumps({"id": graph.id, "query": "Which?", "response": graph.response})
        for graph in graphs(with_claims=False)
    ]
    (keyed / "texts.jsonl").write_text("\n".join(lines))
    (keyed / "notes").mkdir()
    (keyed / "notes" / "trees.txt").write_text("Alder, birch and elm are tall trees.")
    return keyed


def arguments(url: str, file: str, *more: str) -> list[str]:
    ask = ["--model", "openai/scripted", "--api-base", url, "--bins", "2", "--json"]
    return ["self-knowledge", file, *ask, *more]


def estimates(tables: dict[str, Any], of: str) -> dict[str, float]:
    return {
        row["quantity"]: row["estimate"] for row in tables["overall"] if row["of"].startswith(of)
    }


def calls(tables: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        row["stage"]: (row["calls"], row["cached"])
        for row in tables["cost"]
        if row["stage"] != "all"
    }


@pytest.mark.service
@pytest.mark.usefixtures("responses", "without_figures")
def test_one_command_goes_from_labeled_claims_to_sigma() -> None:
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "claims.jsonl", "--out", "out"))
        asked = Counter(
            stage_of(str(request["messages"][-1]["content"])) for request in server.requests
        )
        again = invoke(*arguments(server.url, "claims.jsonl"))
        assert len(server.requests) == asked.total()
    # Eight claims in three settings, two of which need a question.
    assert asked == {"question-answer pairs": 8, "self-judgment": 24}
    tables = json.loads(result.stdout)["tables"]
    assert calls(tables) == {stage: (count, 0) for stage, count in asked.items()}
    assert calls(json.loads(again.stdout)["tables"]) == {s: (0, n) for s, n in asked.items()}
    for of in ("direct asking", "question answering", "none of the above"):
        measured = estimates(
            tables, next(r["of"] for r in tables["overall"] if of in r["of"].lower())
        )
        assert measured["self_known"] == pytest.approx(4 / 5)
        assert measured["self_unknown"] == pytest.approx(2 / 3)
        assert measured["sigma"] == pytest.approx((1 / 3) / (2 - 4 / 5 - 2 / 3))
    # What was asked is a table that the command reads without a model.
    offline = invoke("self-knowledge", "out/answers.csv", "--bins", "2", "--json")
    assert json.loads(offline.stdout)["tables"]["overall"] == tables["overall"]


SPELLINGS = [
    *(("true", "false"), ("Yes, that is correct.", "No, it isn't true.")),
    # tests/factormodels/extraction/test_self_judgment.py reads such words without a server.
    *(
        pytest.param(*words, marks=pytest.mark.nightly)
        for words in (
            *(("Yes.", "No."), ("Correct", "Incorrect"), ("**Yes**", "**No**")),
            *(("1", "0"), ("vrai", "faux"), ("Sí", "No")),
        )
    ),
]


@pytest.mark.service
@pytest.mark.usefixtures("responses")
@pytest.mark.parametrize(("right", "wrong"), SPELLINGS)
def test_a_model_that_is_always_right_knows_all_in_whatever_words(right: str, wrong: str) -> None:
    def answers(request: dict[str, Any], _: int) -> Reply:
        question = str(request["messages"][-1]["content"])
        if stage_of(question) != "self-judgment":
            return Reply(answer_to(question))
        return Reply(wrong if any(name in question for name in UNSUPPORTED) else right)

    with ScriptedServer(answers) as server:
        result = invoke(*arguments(server.url, "claims.jsonl"))
        # None was asked for twice.
        assert len(server.requests) == 32
    document = json.loads(result.stdout)
    for row in document["tables"]["overall"]:
        if row["quantity"] in ("self_known", "self_unknown"):
            assert row["estimate"] == 1.0
    assert any("; 0 judgments missing." in each for each in document["findings"])


@pytest.mark.service
@pytest.mark.usefixtures("responses", "without_figures")
def test_an_answer_that_is_not_understood_is_missing_and_said_to_be() -> None:
    def answers(request: dict[str, Any], _: int) -> Reply:
        question = str(request["messages"][-1]["content"])
        asked = stage_of(question) == "self-judgment"
        return Reply("D" if asked and "Alder" in question else answer_to(question))

    command = ("--setting", "direct_asking")
    with ScriptedServer(answers) as server:
        result = invoke(*arguments(server.url, "claims.jsonl", *command, "--out", "out"))
    document = json.loads(result.stdout)
    sentences = [each for each in document["findings"] if "missing" in each]
    assert len(sentences) == 1
    assert (
        "1 judgment missing, of which none counts as false: the first, since the answer"
        in (sentences[0])
    )
    assert "asked for twice: 'D'" in sentences[0]
    # Three of the four supported claims that were answered; Alder is none of them.
    measured = estimates(document["tables"], "")
    assert measured["self_known"] == pytest.approx(3 / 4)
    rows = csv.DictReader(Path("out/answers.csv").read_text().splitlines())
    assert [row["text"] for row in rows if not row["direct_asking"]] == ["Alder is tall."]
    with ScriptedServer(lambda *_: Reply("D")) as server:
        nothing = invoke(
            *arguments(server.url, "claims.jsonl", *command, "--cache", "other.sqlite"),
            code=2,
        )
    assert re.search(r"nothing can be measured: .*asked for\s+twice: 'D'", nothing.stderr)


@pytest.mark.service
@pytest.mark.usefixtures("responses")
def test_responses_are_taken_apart_and_labeled_first() -> None:
    extract = ("--extract", "--documents", "notes", "--setting", "direct_asking")
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "texts.jsonl", *extract))
        asked = Counter(
            stage_of(str(request["messages"][-1]["content"])) for request in server.requests
        )
    assert asked == {"refusals": 4, "atomizer": 8, "factscore": 8, "self-judgment": 8}
    document = json.loads(result.stdout)
    assert {stage: n for stage, (n, _) in calls(document["tables"]).items()} == dict(asked)
    assert any("model's verdicts, not people's" in each for each in document["findings"])
    measured = estimates(document["tables"], "")
    assert (measured["self_known"], measured["factuality"]) == pytest.approx((4 / 5, 5 / 8))


DECLINED = FactGraph("r9", (), response="I'm sorry, I know nothing about yews. Which do you mean?")


@pytest.mark.service
def test_responses_that_decline_are_left_out_as_the_model_says(responses: Path) -> None:
    write_fact_graphs([*graphs(with_claims=True), DECLINED], responses / "claims.jsonl")
    command = ("--setting", "direct_asking")
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "claims.jsonl", *command))
        asked = Counter(
            stage_of(str(request["messages"][-1]["content"])) for request in server.requests
        )
    # What has claims does not decline, and is not asked about.
    assert asked == {"refusals": 1, "self-judgment": 8}
    sentences = json.loads(result.stdout)["findings"]
    assert any(
        "1 response of 5, without claims, that declined to answer, as openai" in sentence
        for sentence in sentences
    )
    dry = invoke(*arguments("http://127.0.0.1:1/v1", "claims.jsonl", *command, "--dry-run"))
    planned = json.loads(dry.stdout)["tables"]["calls"]
    assert {"stage": "refusals", "calls": 1} in planned
    # One that answers lacks its claims.
    other = [*graphs(with_claims=True), FactGraph("r9", (), response="Yews are old.")]
    refused("'r9' has no claims; add", self_knowledge, other, model=AnsweringModel(well_behaved))


@pytest.mark.service
def test_refusals_among_texts_are_not_taken_apart(responses: Path) -> None:
    lines = (responses / "texts.jsonl").read_text().splitlines()
    lines.append(json.dumps({"id": "r9", "query": "Which?", "response": DECLINED.response}))
    (responses / "texts.jsonl").write_text("\n".join(lines))
    extract = ("--extract", "--documents", "notes", "--setting", "direct_asking")
    for answer, sentence in (
        ('{"declines": true}', "declined to answer"),
        # What cannot be read is decided by the words of the response.
        ("Well, who knows.", "declined to answer"),
    ):

        def answers(request: dict[str, Any], number: int, answer: str = answer) -> Reply:
            question = str(request["messages"][-1]["content"])
            if stage_of(question) == "refusals" and "yews" in question:
                return Reply(answer)
            return provider(request, number)

        with ScriptedServer(answers) as server:
            cache = ("--cache", f"{len(answer)}.sqlite")
            result = invoke(*arguments(server.url, "texts.jsonl", *extract, *cache))
            asked = Counter(
                stage_of(str(request["messages"][-1]["content"])) for request in server.requests
            )
        assert asked["atomizer"] == 8
        assert any(
            sentence in sentence_text for sentence_text in json.loads(result.stdout)["findings"]
        )


@pytest.mark.service
@pytest.mark.usefixtures("responses")
def test_a_run_out_of_calls_goes_on_where_it_stopped() -> None:
    with ScriptedServer(provider) as server:
        command = arguments(server.url, "claims.jsonl", "--out", "found.json")
        invoke(*command, "--max-calls", "9", "--concurrency", "1", code=3)
        first = len(server.requests)
        assert first <= 9
        invoke(*command)
        # Nothing is asked twice.
        assert len(server.requests) == 32
    # In the dry run nothing is sent.
    dry = invoke(*arguments("http://127.0.0.1:1/v1", "claims.jsonl", "--dry-run"))
    planned = json.loads(dry.stdout)["tables"]["calls"]
    assert {"stage": "self-judgment", "calls": 24} in planned


@pytest.mark.service
@pytest.mark.usefixtures("responses")
def test_a_run_whose_account_is_exhausted_ends_and_goes_on_with_credit() -> None:
    credit = 9

    def answers(request: dict[str, Any], number: int) -> Reply:
        if number >= credit:
            body = {"error": {"message": "You exceeded it.", "code": "insufficient_quota"}}
            return Reply(raw=json.dumps(body).encode(), status=429)
        return provider(request, number)

    with ScriptedServer(answers) as server:
        command = arguments(server.url, "claims.jsonl", "--out", "found.json")
        result = invoke(*command, "--concurrency", "1", code=3)
        assert len(server.requests) == credit + 1
        assert "'openai/scripted' has nothing left to spend" in " ".join(result.stderr.split())
        credit = 1000
        invoke(*command)
        # Of what was answered nothing is asked twice: the question that was refused is.
        assert len(server.requests) == 32 + 1


def test_the_function_asks_too(tmp_path: Path) -> None:
    measured = self_knowledge(
        graphs(with_claims=True),
        model=AnsweringModel(well_behaved),
        cache=tmp_path / "answers.sqlite",
        bins=2,
    )
    assert dict(zip(measured["cost"]["stage"], measured["cost"]["calls"], strict=True)) == {
        "question-answer pairs": 8,
        "self-judgment": 24,
        "all": 32,
    }


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"documents": ["a text"]}, "add `extract`"),
        ({"extract": True, "documents": ["a text"]}, "already has claims"),
        ({"confidence": "p"}, "asks for judgments of responses"),
        ({"setting": "nearly"}, "the setting 'nearly'"),
    ],
)
def test_impossible_questions_are_refused(more: dict[str, Any], message: str) -> None:
    model = AnsweringModel(well_behaved)
    refused(message, self_knowledge, graphs(with_claims=True), model=model, **more)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"retriever": "wikipedia", "contact": "ä"}, "contact"),
        ({"retriever": "google", "max_cost": 1}, "the price of a search is unknown"),
        ({"documents": ["a text"], "search_base": "http://x"}, "`search_base` applies to"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_settings_of_web_searches_are_used(search: dict[str, Any], message: str) -> None:
    model = AnsweringModel(well_behaved)
    bare = graphs(with_claims=False)
    refused(message, self_knowledge, bare, model=model, extract=True, **search)


def test_claims_without_labels_are_refused_before_anything_is_asked() -> None:
    bare = [FactGraph("r", (Atom("a1", "It is."),), response="It is.")]
    refused("no claim has a label", self_knowledge, bare, model=AnsweringModel(well_behaved))
    refused(
        "has no claims; add",
        self_knowledge,
        graphs(with_claims=False),
        model=AnsweringModel(well_behaved),
    )
    refused("need a model to ask", self_knowledge, [{"a": 1}], extract=True)
