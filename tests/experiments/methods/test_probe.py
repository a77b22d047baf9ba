"""`factormodels probe`: what a model's answers are worth, and what a correction does."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from experiments import assess, probe
from experiments.asking import probing
from experiments.asking.probing import UnansweredProbeError
from experiments.cli.main import TERMINATED
from factormodels import Atom, Context, FactGraph
from factormodels.extraction.language_model import Completion, Failure, Request, Token
from factormodels.extraction.probe.table import RELATIONS, probes
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.probe.scripted import (
    completion_of,
    conversation,
    orders_of,
    related,
    right_answers,
    right_label,
    shares,
)
from tests.factormodels.extraction.questions import question_of
from tests.factormodels.extraction.server import Reply, ScriptedServer, label_reply
from tests.refusals import refused


def row(findings: Any, name: str = RELATIONS) -> dict[str, Any]:
    frame = findings["probe"].set_index("probe")
    return dict(frame.loc[name])


def test_a_model_that_knows_the_answers_is_evidence() -> None:
    findings = probe(model=AnsweringModel(related()))
    assert row(findings)["correct"] == 36
    # ln(1 + 2 exp(-3)), the same for every pair.
    assert row(findings)["log_loss"] == pytest.approx(math.log1p(2 * math.exp(-3)), rel=1e-9)
    assert not findings.incomplete
    # Without a bias there is nothing to correct.
    assert row(findings)["correction"] == ""
    assert findings.sentences == ("Probe: answering finds 36 of 36 relations; log loss 0.09.",)


@pytest.mark.parametrize("method", ["logprobs", "verbalized", "samples"])
def test_a_dry_run_counts_every_call(method: Any) -> None:
    def answer(request: Request) -> Completion:
        if "confidence" in request.messages[-1].content:
            return Completion(json.dumps({"relation": "neutral", "confidence": 0.9}))
        return related()(request)

    asked: Any = {"method": method, "stages": (RELATIONS, "factscore", "relevance")}
    findings = probe(model=AnsweringModel(answer), **asked)
    (made,) = findings["cost"].query("stage == 'probe'")["calls"]
    (planned,) = probe(model=AnsweringModel(answer), dry_run=True, **asked)["calls"]["calls"]
    assert planned == made
    if method == "logprobs":
        # 36 questions a stage, three without content, and three of a stage with
        # log-probabilities asked twice.
        assert made == 36 + 3 + 3 + 36 + 3 + 36
    # The plan of an evaluation has the same number.
    claims = [FactGraph("r", (Atom("a1", "Trains cross."),), (Context("c1", "Trains cross."),))]
    plan = assess(
        claims, model=AnsweringModel(answer), probe=True, dry_run=True, method=method,
        assessors=["factscore"],
    )["calls"].set_index("stage")["calls"]  # fmt: skip
    assert plan["probe"] == made - 36


def test_a_bias_is_found_corrected_and_told() -> None:
    findings = probe(model=AnsweringModel(related(bias=(0.0, 5.0, 0.0))))
    raw, corrected = row(findings)["log_loss"], row(findings)["corrected_log_loss"]
    # Without content the answer is the bias alone, so that the correction takes all of it away.
    assert corrected == pytest.approx(math.log1p(2 * math.exp(-3)), rel=1e-6)
    assert raw > 1.0
    assert findings.sentences[0] == (
        "Probe: answering finds 36 of 36 relations (12 as given); log loss 0.09, corrected."
    )
    used = findings["probe_corrections"].set_index("correction")["used"]
    assert used.to_dict() == {"probe": True, "batch": False}
    assert not findings.incomplete


def test_without_a_correction_the_same_model_is_no_evidence() -> None:
    model = AnsweringModel(related(bias=(0.0, 5.0, 0.0)))
    findings = probe(model=model, relation_correction="none")
    assert findings.sentences[0] == (
        "Probe: answering finds 12 of 36 relations, all called contradiction; log loss 1.42: its "
        "relations are no evidence."
    )
    assert findings.sentences[-1] == "With `relation_correction` probe, 36 of 36 answers are right."
    assert findings.incomplete
    confusion = findings["probe_confusion"]
    assert set(confusion["answer"]) == {"contradiction"}
    assert confusion["number"].tolist() == [12, 12, 12]


def test_a_model_that_reads_nothing_is_no_evidence_however_corrected() -> None:
    findings = probe(model=AnsweringModel(related(evidence=0.0, bias=(1.0, 0.0, 0.0))))
    assert "its relations are no evidence" in findings.sentences[0]
    assert "`model`" in findings.sentences[-1]
    assert findings.incomplete


def test_orders_that_are_obeyed_are_counted() -> None:
    findings = probe(model=AnsweringModel(related(label=orders_of)))
    assert (row(findings)["obeyed"], row(findings)["orders"]) == (6, 6)
    assert "It obeys 6 of 6 passages that tell it what to answer." in findings.sentences
    kinds = findings["probe_kinds"].set_index("kind")
    assert kinds.loc["order", "correct"] == 0
    # A model that always says contradiction obeys nothing: it says so without the order too.
    model = AnsweringModel(related(0.0, (0.0, 5.0, 0.0)))
    constant = probe(model=model, relation_correction="none")
    assert row(constant)["obeyed"] == 0


def test_answers_that_cannot_be_read_are_left_out_and_reported() -> None:
    def answer(request: Request) -> Completion:
        question = request.messages[-1].content
        if right_label(question) == "neutral":
            return Completion("I would rather not say.")
        return completion_of(shares(right_label(question), 3.0, (0.0, 0.0, 0.0)))

    findings = probe(model=AnsweringModel(answer))
    # The best constant answer is right in 12 of the 24 that were read.
    assert (row(findings)["answered"], row(findings)["correct"]) == (24, 24)
    assert any("12 answers of the probe could not be used" in line for line in findings.sentences)
    assert not findings.incomplete


def test_nothing_that_can_be_read_is_no_evidence() -> None:
    findings = probe(model=AnsweringModel(lambda _: "Hm."))
    assert "answers none of 36 questions" in findings.sentences[0]
    assert findings.incomplete


def test_an_outage_is_no_verdict_on_the_model() -> None:
    model = AnsweringModel(lambda _: Failure("the server is away", outage=True))
    with pytest.raises(UnansweredProbeError, match="the server is away"):
        probe(model=model)
    # Nobody answers the first question: the others are not asked.
    assert len(model.asked) < 5


def test_log_probabilities_are_weighed() -> None:
    def answer(request: Request) -> Completion:
        completion = completion_of(
            shares(right_label(request.messages[-1].content), 3.0, (0, 0, 0))
        )
        (token,) = completion.tokens
        if request.sample:
            return Completion(completion.text, (Token(token.text, token.log_probability - 0.5),))
        return completion

    findings = probe(model=AnsweringModel(answer))
    facts = dict(findings["probe_log_probabilities"].iloc[0])
    assert (facts["answers"], facts["given"], facts["spelled"], facts["usable"]) == (39, 39, 39, 36)
    assert (facts["least_listed"], facts["most_listed"], facts["above_one"]) == (3, 3, 0)
    assert facts["largest_sum"] == pytest.approx(1.0, rel=1e-9)
    # The same text; the probability of its token is smaller by a factor of exp(-.5).
    assert (facts["repeated"], facts["same"]) == (3, 3)
    most = math.exp(3) / (math.exp(3) + 2)
    assert facts["largest_change"] <= most * (1 - math.exp(-0.5)) + 1e-12
    assert facts["largest_change"] > 0.1


def test_log_probabilities_that_sum_to_more_than_one_are_counted() -> None:
    def answer(request: Request) -> Completion:
        label = right_label(request.messages[-1].content) or "neutral"
        if not request.top_logprobs:
            return Completion(f'{{"relation": "{label}", "confidence": 0.9}}')
        return Completion(label, (Token(label, -0.1, ((label, -0.1), ("other", -0.2))),))

    findings = probe(model=AnsweringModel(answer))
    facts = dict(findings["probe_log_probabilities"].iloc[0])
    assert facts["above_one"] == 39
    assert "sum to more than 1" in facts["unusable"]


def test_every_stage_can_be_probed() -> None:
    def answer(request: Request) -> Completion:
        if "<premise>" in request.messages[-1].content:
            return related()(request)
        return Completion(right_answers()[conversation(request)])

    findings = probe(model=AnsweringModel(answer), stages="all")
    frame = findings["probe"].set_index("probe")
    assert list(frame.index) == list(probes())
    assert (frame["correct"] == frame["questions"]).all()
    assert not findings.incomplete


def test_the_lexical_model_can_be_probed_too() -> None:
    findings = probe(relations="lexical")
    assert row(findings)["questions"] == 36
    assert "cost" not in findings.tables
    refused("is unknown", probe, relations="lexical", stages="relation")
    refused("needs a language model", probe, stages="factscore")
    refused("--relation-correction|`relation_correction='x'", probe, relation_correction="x")


def biased(request: dict[str, Any], _: int) -> Reply:
    """Answer of a server whose model knows the labels and prefers one."""
    probabilities = shares(right_label(question_of(request)), 3.0, (0.0, 4.0, 0.0))
    label, *others = probabilities
    return label_reply(label, probabilities[label], {each: probabilities[each] for each in others})


@pytest.mark.service
@pytest.mark.usefixtures("keyed")
def test_answers_are_asked_once_counted_and_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer(biased) as server:
        given = ("probe", "--model", "openai/scripted", "--api-base", server.url)
        first = invoke(*given)
        # 36 pairs, three without content, and three again.
        assert len(server.requests) == 42
        again = invoke(*given)
        assert len(server.requests) == 42
        invoke(*given, "--dry-run")
        assert len(server.requests) == 42
    assert "finds 36 of 36 relations (12 as given)" in first.stdout
    assert "probe" in first.stdout
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = invoke(*given, "--replay")
    assert replayed.stdout == again.stdout
    other = invoke("probe", "--model", "openai/other", "--replay", code=1)
    assert "The cache has no answers to 1 of 1 probes." in other.stdout


@pytest.mark.service
@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("raised", "code", "begun"),
    [
        (KeyboardInterrupt(), 130, "factormodels: interrupted; "),
        (SystemExit(TERMINATED), 143, "factormodels: stopped by the system (SIGTERM); "),
    ],
)
def test_a_probe_that_is_stopped_says_what_is_kept_and_how_to_go_on(
    raised: BaseException, code: int, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise raised

    with ScriptedServer(biased) as server:
        given = ("probe", "--model", "openai/scripted", "--api-base", server.url)
        with monkeypatch.context() as patched:
            # Behind the last answer, before any finding.
            patched.setattr(probing, "_refuse_outage", stopped)
            errors = invoke(*given, code=code).stderr
        asked = len(server.requests)
        assert f"{begun}{asked} answers of this run in answers.sqlite; repeat the command" in errors
        invoke(*given, code=0)
        # Nothing is asked twice.
        assert len(server.requests) == asked
