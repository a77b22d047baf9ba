"""FaStfact on one's own responses: counted at the server, scored by hand, failures apart."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from experiments import fastfact
from experiments.evaluators.display.fastfact_tables import guaranteed_threshold
from factormodels import FactGraph, InputError, read_many
from factormodels.claims import Atom
from factormodels.extraction.fastfact import FASTFACT_KEY
from factormodels.extraction.language_model import Completion, Failure, Request, Token
from factormodels.extraction.preverification import ShownContext
from factormodels.extraction.retrieval.chunks import ChunkSettings
from factormodels.extraction.retrieval.document_pages import build_document_pages
from factormodels.extraction.retrieval.documents import Document
from factormodels.extraction.retrieval.google import KEY_VARIABLE
from factormodels.io.fact_graph_json import write_fact_graphs
from factormodels.selection import templates_of
from tests.experiments.conftest import invoke, write_batch
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.questions import claim_of, question_of, sentences_of
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.factormodels.extraction.web_server import Answer, Asked, web_server
from tests.refusals import refused

RESPONSES = {
    "r0": "Alder is tall. Birch is white. Cedar is red. Damson is sweet.",
    "r1": "Elm is gone. Fig is sweet. Gorse is yellow.",
}

SAID = {
    "Alder": ("supported", 0.999),
    "Birch": ("supported", 0.9),
    "Cedar": ("non-supported", 0.999),
    "Damson": ("irrelevant", 0.999),
    "Elm": ("unsure", 0.999),
    "Fig": ("likely supported", 0.5),
    "Gorse": ("supported", 0.5),
}
"""What the extracting model says of each sentence, and how surely."""

VERDICTS = {"Birch": "refuted", "Elm": "insufficient", "Fig": "supported", "Gorse": ""}
"""What the verifier says; nothing that could be read of the last, "supported" of others."""


SHY = "I would rather not say."


def stage_of(question: str) -> str:
    return "pre-verification" if "List and judge" in question else "fastfact"


def listed(question: str) -> list[tuple[str, dict[str, float]]]:
    """The tokens of an answer that lists the sentences as claims."""
    tokens: list[tuple[str, dict[str, float]]] = []
    for number, sentence in sentences_of(question):
        label, probability = SAID[sentence.split()[0]]
        tokens += [(f"{number} | {sentence} | ", {}), (label, {label: probability}), ("\n", {})]
    return tokens


def verdict_on(question: str) -> str:
    verdict = VERDICTS.get(claim_of(question).split()[0], "supported")
    return f"So it is. Verdict: {verdict}" if verdict else SHY


def provider(request: dict[str, Any], _: int) -> Reply:
    question = question_of(request)
    if stage_of(question) == "fastfact":
        return Reply(verdict_on(question), usage=(50, 5))
    tokens = listed(question)
    return Reply("".join(token for token, _ in tokens), tokens, usage=(100, 30))


def readable(request: dict[str, Any], number: int) -> Reply:
    """The provider, with a verdict on every claim."""
    reply = provider(request, number)
    return replace(reply, text="Verdict: conflicting") if reply.text == SHY else reply


def answer(request: Request) -> Completion:
    """The scripted provider, called as a function."""
    question = request.messages[-1].content
    if stage_of(question) == "fastfact":
        return Completion(verdict_on(question))
    tokens = [Token(text, math.log(of.get(text, 1.0))) for text, of in listed(question)]
    return Completion("".join(token.text for token in tokens), tuple(tokens))


NOTES = {"Trees": "Alder, birch, cedar and elm are trees.", "Fruit": "Fig and damson are sweet."}


@pytest.fixture
def notes(keyed: Path) -> Path:
    """Responses, documents, and a key in the environment."""
    documents = {f"{title}.txt": text for title, text in NOTES.items()}
    write_batch(keyed, RESPONSES, documents, query="Which plants?")
    return keyed


def arguments(url: str, *more: str) -> list[str]:
    model = ["--model", "openai/scripted", "--api-base", url]
    return ["fastfact", "batch.jsonl", *model, "--documents", "notes", *more]


def rows_of(result: Any, table: str, key: str) -> dict[str, Any]:
    return {row[key]: row for row in json.loads(result.stdout)["tables"][table]}


@pytest.mark.service
@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(("stride", "chunks"), [("all", 2), ("2", 4), ("1", 7)])
def test_calls_by_stage_are_those_that_the_server_counts(stride: str, chunks: int) -> None:
    options = ("--stride", str(stride), "--audit", "1", "--json")
    with ScriptedServer(readable) as server:
        first = rows_of(invoke(*arguments(server.url, *options)), "cost", "stage")
        counted = Counter(stage_of(question_of(request)) for request in server.requests)
        again = rows_of(invoke(*arguments(server.url, *options)), "cost", "stage")
        assert len(server.requests) == counted.total()
    # Four claims are unsure or not sure enough; the three that are skipped are audited, all.
    assert counted == {"pre-verification": chunks, "fastfact": 7}
    for stage, formula in (("pre-verification", chunks), ("fastfact", 4)):
        row = first[stage]
        assert (row["calls"], row["cached"], row["failures"]) == (counted[stage], 0, 0)
        assert row["needed"] == row["answers"] == counted[stage]
        # N/w, rounded up, and pM; the audit is beside it.
        assert (row["formula"], row["needed"] - row["audit"]) == (formula, formula)
        # Answers from the cache cost nothing anew, and the same tokens.
        assert (again[stage]["calls"], again[stage]["cached"]) == (0, counted[stage])
        assert again[stage]["prompt_tokens"] == row["prompt_tokens"]
        assert again[stage]["completion_tokens"] == row["completion_tokens"]
    assert first["pre-verification"]["prompt_tokens"] == 100 * chunks
    assert first["fastfact"]["completion_tokens"] == 5 * 7
    assert first["searches"]["needed"] == 7
    assert first["searches"]["formula"] == 4


@pytest.mark.service
@pytest.mark.usefixtures("notes")
def test_a_farewell_and_a_line_that_is_not_clear_cost_no_response() -> None:
    def chatty(request: dict[str, Any], number: int) -> Reply:
        reply = readable(request, number)
        if stage_of(question_of(request)) == "fastfact":
            return reply
        text = str(reply.text).replace("| unsure", "| no idea")
        return replace(reply, text=f"{text}\nLet me know if you need anything else!")

    with ScriptedServer(chatty) as server:
        result = invoke(*arguments(server.url, "--json"))
        asked = Counter(stage_of(question_of(request)) for request in server.requests)
    rows = rows_of(result, "responses", "response")
    assert {name: (row["claims"], row["unread_lines"]) for name, row in rows.items()} == {
        "r0": (4, 0),
        "r1": (2, 1),
    }
    # The chunk with the unclear line was asked about twice.
    assert asked["pre-verification"] == 3
    assert rows_of(result, "cost", "stage")["pre-verification"]["needed"] == 3


@pytest.mark.service
@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("failing", [("r1",), ("r0", "r1")])
def test_the_cost_of_failed_responses_is_counted(failing: tuple[str, ...]) -> None:
    def refusing(request: dict[str, Any], number: int) -> Reply:
        question = question_of(request)
        word = {"r0": "Alder is", "r1": "Elm is"}
        if stage_of(question) == "pre-verification" and any(word[n] in question for n in failing):
            return Reply(SHY, usage=(100, 30))
        return provider(request, number)

    prices = ("--price-in", "10", "--price-out", "100")
    with ScriptedServer(refusing) as server:
        result = invoke(*arguments(server.url, *prices, "--json"), code=1)
        asked = [
            request for request in server.requests if stage_of(question_of(request)) != "fastfact"
        ]
    row = rows_of(result, "cost", "stage")["pre-verification"]
    # Each failing response was asked about twice, in vain, and paid for.
    assert len(asked) == 2 + len(failing)
    assert (row["calls"], row["failures"]) == (2 - len(failing), len(failing))
    assert (row["prompt_tokens"], row["completion_tokens"]) == (100 * len(asked), 30 * len(asked))
    paid = len(asked) * (100 * 10 + 30 * 100) / 1e6
    assert row["cost"] == pytest.approx(paid)
    assert row["per_response"] == pytest.approx(paid / 2)
    with ScriptedServer(refusing) as server:
        shown = invoke(*arguments(server.url, *prices), code=1)
    assert "failed responses' answers" in shown.stdout


@pytest.mark.service
@pytest.mark.usefixtures("notes")
def test_the_terminal_shows_scores_failures_and_costs() -> None:
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "--k-prime", "3"))
    # r0: one supported, two not, one irrelevant; r1: one supported, one not, one not read.
    assert re.search(r"^r0 +1 +2 +1 +0 +0\.333 +3 ", result.stdout, re.M)
    assert re.search(r"^r1 +1 +1 +0 +1 +0\.500 +3 ", result.stdout, re.M)
    assert "Missing in 1 response: 1 verdict, the claims of 0 chunks and 0 lines" in result.stdout
    assert re.search(r"^pre-verification +2 +2 +0 +2 +0 +0 +200 +60 ", result.stdout, re.M)
    # What could not be read was asked for once more, in vain, and was paid for twice.
    assert re.search(r"^fastfact +4 +4 +0 +3 +0 +1 +250 +25 ", result.stdout, re.M)
    recall = 2 / (1 + math.exp(0.1 * 2))
    f1 = [2 * p * recall / (p + recall) for p in (1 / 3, 1 / 2)]
    assert re.search(rf"^ *2 +2 +{sum(f1) / 2:.3f} +\[", result.stdout, re.M)
    # SAFE: N + 2M + qM extracting calls and M verifying, over both responses.
    assert re.search(r"^SAFE +28 +7 +7 +35$", result.stdout, re.M)


@pytest.mark.service
def test_without_a_count_by_people_there_is_a_curve_and_no_score(notes: Path) -> None:
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "--out", "tables"))
    assert "K', the human number of claims, is unknown for 2 responses" in result.stdout
    header, *lines = (notes / "tables" / "responses.csv").read_text().splitlines()
    column = header.split(",").index("f1")
    assert [line.split(",")[column] for line in lines] == ["", ""]
    header, *lines = (notes / "tables" / "curve.csv").read_text().splitlines()
    assert header == "k_prime,precision,recall,f1"
    for line in lines:
        k, precision, recall, f1 = map(float, line.split(","))
        each = 2 / (1 + math.exp(0.1 * abs(1 - k)))
        assert precision == pytest.approx((1 / 3 + 1 / 2) / 2)
        assert recall == pytest.approx(each)
        assert f1 == pytest.approx(sum(2 * p * each / (p + each) for p in (1 / 3, 1 / 2)) / 2)


@pytest.mark.service
def test_a_run_goes_on_where_it_was_left(notes: Path) -> None:
    def failing(request: dict[str, Any], number: int) -> Reply:
        question = question_of(request)
        if stage_of(question) == "pre-verification" and "Elm" in question:
            return Reply("down", status=400)
        return provider(request, number)

    with ScriptedServer(failing) as server:
        result = invoke(*arguments(server.url, "--out", "o"), code=1)
    assert "r1 failed: no claims were extracted" in result.stdout
    assert [graph.id for graph in read_many(notes / "o" / "graphs.jsonl")] == ["r0"]
    (notes / "answers.sqlite").unlink()
    with ScriptedServer(provider) as server:
        result = invoke(*arguments(server.url, "--out", "o"))
        questions = [question_of(request) for request in server.requests]
    # The first response is taken from the store, so that only the second is asked about.
    assert not any("Alder is tall" in question for question in questions)
    graphs = read_many(notes / "o" / "graphs.jsonl")
    assert [graph.id for graph in graphs] == ["r0", "r1"]
    claims = graphs[1].metadata[FASTFACT_KEY]["claims"]
    assert [claim["verdict"] for claim in claims.values()] == ["insufficient", "supported", ""]
    assert "rather not" in claims["a3"]["missing"]


@pytest.mark.service
def test_searches_of_the_web_are_those_that_its_server_counts(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "serper-key-0123456789")

    def web(asked: Asked, _: int) -> Answer:
        if asked.path.startswith("/page"):
            text = "Birch, elm, fig and gorse are plants that grow in many lands. " * 200
            return Answer(f"<html><body><p>{text}</p></body></html>")
        hits = [
            {"title": f"p{n}", "link": f"{searched.url}/page{n}", "snippet": ""} for n in range(9)
        ]
        return Answer(json.dumps({"organic": hits}))

    with ScriptedServer(readable) as server, web_server(web) as searched:
        model = ("--model", "openai/scripted", "--api-base", server.url)
        web_there = ("--search-base", f"{searched.url}/search", "--allow-private-hosts")
        command = ("fastfact", "batch.jsonl", *model, "--retriever", "google", *web_there)
        result = invoke(*command, "--out", "o", "--json")
        cost = rows_of(result, "cost", "stage")
        assert cost["searches"]["needed"] == searched.paths().count("/search") == 4
        # Five pages per claim, all claims finding the same, each fetched once.
        pages = [path for path in searched.paths() if path.startswith("/page")]
        assert len(pages) == len(set(pages)) == 5
    for graph in read_many(notes / "o" / "graphs.jsonl"):
        for atom in graph.atoms:
            shown = [context for context in graph.contexts if atom.id in context.retrieved_for]
            assert len(shown) <= 10
            assert all(len(passage.text.split()) <= 250 for passage in shown)


def test_a_chunk_is_shown_without_the_rest_of_the_response() -> None:
    shown: tuple[tuple[ShownContext, bool], ...] = (("chunk", False), ("response", True))
    for context, others in shown:
        model = AnsweringModel(answer)
        fastfact(text=RESPONSES["r0"], model=model, documents=NOTES, stride="2", context=context)
        asked = [request for request in model.asked if request.stage == "pre-verification"]
        assert len(asked) == 2
        assert ("Alder" in asked[1].messages[-1].content) == others
        assert "Cedar" in asked[1].messages[-1].content


def test_theta_says_what_is_skipped_and_the_audit_what_that_costs() -> None:
    def judged_at(**options: Any) -> Any:
        graphs = [FactGraph(name, (), response=text) for name, text in RESPONSES.items()]
        return fastfact(graphs, model=AnsweringModel(answer), documents=NOTES, **options)

    assert judged_at(theta=0.995)["claims"]["skipped"].sum() == 3
    assert judged_at(theta=1.0)["claims"]["skipped"].sum() == 0
    assert judged_at(theta=0.45)["claims"]["skipped"].sum() == 5
    audited = judged_at(audit=1.0)
    # Cedar was skipped as wrong and Damson as irrelevant; the verifier supports both.
    (row,) = audited["audit"].to_dict("records")
    assert (row["skipped"], row["claims"], row["wrong"]) == (3, 3, 2)
    assert row["share"] == pytest.approx(2 / 3)
    interval = binomtest(2, 3).proportion_ci(0.95, "exact")
    assert (row["lower"], row["upper"]) == pytest.approx((interval.low, interval.high))
    types = audited["claims"].set_index("text")["type"]
    assert (types["Cedar is red."], types["Damson is sweet."]) == ("supported", "supported")
    # Of four definite labels that were verified two are wrong: no theta keeps that below 1%.
    chosen = guaranteed_threshold(audited["claims"], 0.01)
    assert chosen is not None
    assert chosen.skipped == 0
    # After the calls, which are paid, a sentence: no claim was verified from which to choose.
    assert guaranteed_threshold(audited["claims"].iloc[:0], 0.01) is None


def test_missing_answers_are_not_false_claims() -> None:
    def lost(request: Request) -> Completion | Failure:
        question = request.messages[-1].content
        if stage_of(question) == "fastfact":
            return Completion("I would rather not say.")
        return Failure("status 500") if "Cedar" in question else answer(request)

    judged = fastfact(
        text=RESPONSES["r1"], model=AnsweringModel(lost), documents=NOTES, k_prime=3, theta=1.0
    )
    (row,) = judged["responses"].to_dict("records")
    assert (row["supported"], row["unsupported"], row["missing"]) == (0, 0, 3)
    assert math.isnan(row["f1"])
    assert math.isnan(row["precision"])
    part = fastfact(
        text=RESPONSES["r0"], model=AnsweringModel(lost), documents=NOTES, k_prime=1, stride="2"
    )
    (row,) = part["responses"].to_dict("records")
    assert (row["missing_chunks"], row["supported"], row["missing"]) == (1, 1, 1)
    assert row["f1"] == 1.0


def test_models_are_ranked_with_intervals_by_what_people_counted() -> None:
    graphs = [
        FactGraph(
            f"{model}-{number}",
            (),
            response=RESPONSES[name],
            metadata={"model": model, "benchmark": f"b{number}", "people": 2 + number},
        )
        for model, name in (("one", "r0"), ("two", "r1"))
        for number in range(3)
    ]
    judged = fastfact(graphs, model=AnsweringModel(answer), documents=NOTES, k_prime="people")
    whole = judged["summary"][judged["summary"]["benchmark"] == "all"].set_index("model")
    for model, precision in (("one", 1 / 3), ("two", 1 / 2)):
        recalls = [2 / (1 + math.exp(0.1 * abs(1 - k))) for k in (2, 3, 4)]
        f1 = [2 * precision * r / (precision + r) for r in recalls]
        mean = sum(f1) / 3
        spread = math.sqrt(sum((score - mean) ** 2 for score in f1) / 2 / 3)
        assert whole.loc[model, "f1"] == pytest.approx(mean)
        # 4.302653 is the 97.5% point of Student's t with two degrees of freedom.
        # No resample of three responses is above the best of them.
        upper = min(mean + 4.302653 * spread, max(f1))
        assert whole.loc[model, "f1_upper"] == pytest.approx(upper, abs=1e-6)
    assert len(judged["summary"]) == 2 + 6
    assert judged["summary"]["f1"].is_monotonic_decreasing


def test_padding_does_not_pay_as_nobody_counted_it() -> None:
    """Eighty true claims and two false ones rank below nine and one, where people find ten."""
    from calibration.claims.counts import f1_at_k_prime

    padded, honest = f1_at_k_prime([80, 9], [2, 1], [10, 10], 0.1)
    assert padded < honest

    def many(request: Request) -> Completion:
        question = request.messages[-1].content
        if stage_of(question) == "fastfact":
            return Completion("Verdict: refuted" if "wrong" in question else "Verdict: supported")
        listed = (f"{n} | {text} | unsure" for n, text in sentences_of(question))
        return Completion("\n".join(listed))

    def response(right: int, wrong: int) -> str:
        return " ".join(["It is right."] * right + ["It is wrong."] * wrong)

    texts = [response(80, 2), response(9, 1)]
    judged = fastfact(text=texts, model=AnsweringModel(many), documents=["It."], k_prime=10)
    assert judged["responses"]["f1"].tolist() == pytest.approx([padded, honest])
    unknown = fastfact(text=texts, model=AnsweringModel(many), documents=["It."])
    assert unknown["responses"]["f1"].isna().all()
    assert unknown["summary"]["f1"].isna().all()


def test_documents_are_read_as_pages_and_pieces() -> None:
    long = " ".join(f"Sentence {number} tells of beech and time." for number in range(200))
    documents = [
        Document(f"p{n}", f"l{n}", f"{long} Page {n} on beech {'beech ' * n}") for n in range(9)
    ]
    documents.append(Document("other", "o", "Nothing of the kind."))
    retriever = build_document_pages(documents, pages=5, top_k=10, chunks=ChunkSettings(250, 40))
    (retrieved,) = retriever.retrieve(["beech time"])
    assert len(retrieved.passages) == 10
    assert len({passage.link for passage in retrieved.passages}) <= 5
    assert max(len(passage.text.split()) for passage in retrieved.passages) <= 250
    refused("holds no text", build_document_pages, [Document("", "", " ")], pages=5, top_k=1,
            chunks=ChunkSettings())  # fmt: skip


def test_an_evaluation_is_saved_and_read_back(tmp_path: Path) -> None:
    judged = fastfact(
        text=RESPONSES["r0"], model=AnsweringModel(answer), documents=NOTES, k_prime=3
    )
    assert repr(judged).startswith("fastfact: the responses\n1 response, 4 claims")
    files = judged.save(tmp_path / "kept")
    assert {file.name for file in files} >= {"responses.csv", "claims.csv", "graphs.jsonl"}
    (graph,) = read_many(tmp_path / "kept" / "graphs.jsonl")
    assert [atom.text for atom in graph.atoms] == judged["claims"]["text"].tolist()


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "FaStfact asks a language model; name one with --model"),
        ("--model openai/x --target-error 0.1", "add --audit 1"),
        ("--model openai/x", "there is no source of evidence; give --documents"),
        ("--model openai/x --retriever given", "--retriever 'given' is unknown"),
        ("--model openai/x --documents notes --context x", "--context x is unknown"),
        ("--model openai/x --documents notes --k-prime kp", "'kp' is not a number"),
        ("--model openai/x --documents notes --by modl", "--by"),
        ("--model openai/x --documents notes --domain people", "--domain applies only with --core"),
        (
            "--model openai/x --documents notes --no-faithfulness",
            "--no-faithfulness applies only with --core",
        ),
        ("--model openai/x --documents notes --overlap 300", "make overlap small"),
        ("--model openai/x --documents notes --gamma 0", "--gamma 0: give more than 0"),
        ("--model openai/x --documents notes --stride 0", "--stride '0' is not"),
        ("--model openai/x --documents notes --prompts notes", "holds no prompt"),
        ("--model openai/x --retriever google --max-cost 1", "--price-search"),
        ("--model openai/x --documents notes --price-search 1", "--price-search applies to"),
        ("--model openai/x --documents notes --contact me", "--contact applies to web searches"),
        ("--model openai/x --documents notes --retry-failed", "name it with --out"),
        ("--annotated --k-prime 3", "has no effect with --annotated"),
        ("--annotated --model openai/x", "has no effect with --annotated"),
    ],
)
def test_input_that_does_not_fit_is_one_sentence(options: str, message: str) -> None:
    assert (
        message in invoke("fastfact", "batch.jsonl", *options.split(), "--dry-run", code=2).stderr
    )


@pytest.mark.usefixtures("notes")
def test_a_dry_run_counts_and_sends_nothing() -> None:
    result = invoke(*arguments("http://127.0.0.1:9/v1", "--stride", "2", "--dry-run"))
    assert re.search(r"^pre-verification +4$", result.stdout, re.M)
    # Seven sentences with 4.2 claims each, rounded by response: SAFE takes N + 4M calls.
    assert re.search(r"^SAFE +97 +30 +30 +127$", result.stdout, re.M)
    assert re.search(r"^FactScore +7 +30 +0 +37$", result.stdout, re.M)
    assert not Path("answers.sqlite").exists()
    more = ("--failure-types", "--core", "--core-relations", "model")
    whole = invoke(*arguments("http://127.0.0.1:9/v1", *more, "--dry-run")).stdout
    # One call for forty claims of each response, and one each for missing claims.
    assert re.search(r"^claim failures +4$", whole, re.M)
    # Each of 13 and of 17 claims with the others, its sentence and the bleached claims.
    templates = len(templates_of("people"))
    pairs = sum(n * (n + templates) for n in (13, 17))
    assert re.search(rf"^core relations +{pairs:,}$", whole, re.M)
    assert "lists its own claims" not in whole
    graph = FactGraph("r", (Atom("a1", "Alder is tall."),), response="Alder is tall. It is green.")
    dry = fastfact([graph], model=AnsweringModel(answer), documents=NOTES, dry_run=True)
    assert any("its own claims, 8 by that count; the 1 of the data" in s for s in dry.sentences)


def test_a_response_that_declines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SAID, "I'm", ("non-supported", 0.9))
    texts = ["Alder is tall.", "I'm sorry, I cannot answer that."]
    judged = fastfact(text=texts, model=AnsweringModel(answer), documents=NOTES)
    (remark,) = [each for each in judged.sentences if "to answer" in each]
    assert remark.startswith("1 response declines to answer (")
    whole = fastfact(text=texts[:1], model=AnsweringModel(answer), documents=NOTES)
    assert not [each for each in whole.sentences if "to answer" in each]


def test_a_count_that_is_none_is_refused() -> None:
    graph = FactGraph("r", (), response="Alder is tall.", metadata={"k_prime": "many"})
    with pytest.raises(
        InputError, match="response 'r': column 'k_prime' is 'many', which is not a number"
    ):
        fastfact(graph, model=AnsweringModel(answer), documents=NOTES)


def test_recorded_verdicts_can_be_judged_again(tmp_path: Path) -> None:
    judged = fastfact(text=RESPONSES["r0"], model=AnsweringModel(answer), documents=NOTES)
    write_fact_graphs(judged.graphs, tmp_path / "g.jsonl")
    again = fastfact(tmp_path / "g.jsonl", model=AnsweringModel(answer), documents=NOTES)
    assert again["claims"].equals(judged["claims"])


FAILURES = [
    {"claim": 1, "failures": []},
    {"claim": 2, "failures": ["ambiguous", "subjective"]},
    {"claim": 3, "failures": ["inter-sentence", "ambiguous"]},
]


def judging(request: Request) -> Completion:
    """Answer as the scripted provider does, and judge claims."""
    if request.prompt.name == "claim_failures":
        return Completion(json.dumps(FAILURES))
    if request.prompt.name == "missing_claims":
        lacking = {"claim": "Gorse is spiny.", "reason": "extractor"}
        return Completion(json.dumps([lacking]))
    return answer(request)


def test_failures_of_extracted_claims_are_counted_and_shown_on_a_page(tmp_path: Path) -> None:
    model = AnsweringModel(judging)
    graph = FactGraph("r1", (), response=RESPONSES["r1"])
    options: dict[str, Any] = {"documents": ["Fig."], "cache": tmp_path / "a.sqlite"}
    judged = fastfact(graph, model=model, failure_types=True, **options)
    rows = {(row["category"], row["failure"]): row
            for row in judged["claim_failures"].to_dict("records")}  # fmt: skip
    counts = {key: row["count"] for key, row in rows.items()}
    # A claim with two failures of a category counts once in it.
    assert counts["unverifiable", "all"] == 2
    assert counts["unverifiable", "ambiguous"] == 2
    assert counts["unverifiable", "subjective"] == 1
    assert counts["redundant", "all"] == counts["redundant", "inter-sentence"] == 1
    assert rows["missing", "extractor"]["share"] == pytest.approx(1 / 3)
    assert sum(request.stage == "claim failures" for request in model.asked) == 2
    text = judged.report(tmp_path / "page.html").read_text()
    assert "Gorse is yellow." in text
    assert "the human number of claims, is unknown" in text


def test_a_judge_that_leaves_a_claim_out_is_not_believed(tmp_path: Path) -> None:
    def short(request: Request) -> Completion:
        if request.prompt.name == "claim_failures":
            return Completion(json.dumps(FAILURES[:2]))
        return judging(request)

    graph = FactGraph("r1", (), response=RESPONSES["r1"])
    options: dict[str, Any] = {"documents": ["Fig."], "cache": tmp_path / "a.sqlite"}
    judged = fastfact(graph, model=AnsweringModel(short), failure_types=True, **options)
    table = judged["claim_failures"]
    assert table is not None
    assert table["unanswered"].tolist() == [1] * len(table)
    assert table.loc[table["category"] == "redundant", "claims"].tolist() == [0, 0, 0]
