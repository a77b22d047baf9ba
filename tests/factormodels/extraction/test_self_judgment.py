"""Self-judgments: three ways of asking, read into records that calibration reads."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.self_knowledge import ModelJudgment, Setting, read_records
from factormodels import Atom, FactGraph
from factormodels.extraction.asking.self_answers import SelfJudgment, read_judgment
from factormodels.extraction.asking.stage import Fault
from factormodels.extraction.asking.table import SELF_SETTINGS
from factormodels.extraction.language_model import Completion, Failure, Request, Token
from factormodels.extraction.prompts import PromptTemplate, load_prompt
from factormodels.extraction.self_judgment import claim_records, judge_own_claims
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.io.formats.release_records import lines_at
from tests.refusals import refused

GRAPH = FactGraph(
    "r1",
    (
        Atom("a1", "Ada Brown was born in 1901.", label=True, annotation="S", sentence=1),
        Atom("a2", "Ada Brown was a painter.", label=False, annotation="NS", sentence=2),
        Atom("a3", "Ada Brown is remembered.", annotation="IR", sentence=2),
        Atom("a4", "Ada Brown lived in Rome.", sentence=3),
    ),
    topic="Ada Brown",
    metadata={"sentences": 4},
)


def chosen(word: str, probability: float = 0.9, **others: float) -> Completion:
    alternatives = ((word, math.log(probability)), *((o, math.log(v)) for o, v in others.items()))
    return Completion(word, (Token(word, math.log(probability), alternatives),))


def well_behaved(request: Request) -> str | Completion | Failure:
    question = request.messages[-1].content
    if request.prompt.name == "question_answer_pair":
        assert "Ada Brown" in question
        number = question.count("born")
        return json.dumps({"question": f"Who, {number}?", "answer": "this\none"})
    if request.prompt.name == "self_direct":
        return chosen("True" if "born" in question else "false", 0.8, false=0.15, maybe=0.05)
    if request.prompt.name == "self_question":
        return chosen("true", 0.6, **{" False": 0.2})
    return chosen("None", 0.5, true=0.3, false=0.2)


def test_a_claim_is_asked_in_three_ways() -> None:
    model = AnsweringModel(well_behaved)
    judged = judge_own_claims(GRAPH, model)
    assert [answer.claim for answer in judged] == ["a1", "a2", "a3", "a4"]
    first = judged[0]
    assert first.pair == ("Who, 1?", "this one")
    judgments = {name: answer.judgment for name, answer in first.judgments.items()}
    assert judgments == dict(zip(SELF_SETTINGS, ("true", "true", "neither"), strict=True))
    assert first.missing == {}
    direct = first.judgments["direct_asking"].log_probabilities
    # "maybe" is no choice: 0.8 and 0.15 of 0.95.
    assert direct == pytest.approx({"true": math.log(0.8 / 0.95), "false": math.log(0.15 / 0.95)})
    third = first.judgments["none_of_the_above"].log_probabilities
    assert third == pytest.approx({name: math.log(p) for name, p in
                                   (("true", 0.3), ("false", 0.2), ("neither", 0.5))})  # fmt: skip
    # One pair and three judgments for each of four claims.
    assert len(model.asked) == 16
    assert {request.temperature for request in model.asked} == {0.0}
    assert all(
        request.top_logprobs == 5 for request in model.asked if "self" in request.prompt.name
    )


def test_no_question_is_made_where_none_is_needed() -> None:
    alone = AnsweringModel(well_behaved)
    judge_own_claims(GRAPH, alone, settings=["direct_asking"])
    assert {request.prompt.name for request in alone.asked} == {"self_direct"}


@pytest.mark.parametrize(
    "pair",
    [
        *("no question", '["Who?", "x"]', '{"question": "Who?"}', Failure("busy")),
        *('{"question": "Who?", "answer": ""}', '{"question": "Who?", "answer": 3}'),
        '{"question": "Who?", "answer": "x", "system": "obey"}',
    ],
)
def test_a_pair_that_is_not_made_is_missing_where_it_is_needed(pair: str | Failure) -> None:
    def answer(request: Request) -> str | Completion | Failure:
        return pair if request.prompt.name == "question_answer_pair" else well_behaved(request)

    for judged in judge_own_claims(GRAPH, AnsweringModel(answer)):
        assert judged.pair is None
        assert set(judged.judgments) == {"direct_asking"}
        assert set(judged.missing) == {"question_answering", "none_of_the_above"}
        assert all(judged.missing.values())


def read(
    text: str, setting: str = "direct_asking", prompt: PromptTemplate | None = None, **more: Any
) -> str | None:
    """Return what an answer is read as; None for missing."""
    prompt = prompt or load_prompt(SELF_SETTINGS[setting].prompt)
    read_back = read_judgment(Completion(text, **more), SELF_SETTINGS[setting], prompt)
    return read_back.judgment if isinstance(read_back, SelfJudgment) else None


TRUE = [
    *("TRUE", "Yes.", "**Yes**", "Correct", "1", "1.", "Y", "T", "vrai", "C'est vrai.", "Sí", "Ja"),
    *("Richtig.", "È vero.", "Да", "是的。", "はい", "Accurate", "Supported", "`true`", '"true"'),
    *("The claim is true.", "(A) True", "Answer: yes", "The answer is yes.", "✅ True"),
    *("Yes, that is correct.", "Yes, she was born in 1901.", "That's right!", "Likely true."),
    *("That is a true statement.", "True as far as I know", "true (though sources differ)"),
    *("I believe the claim is true, because she was a poet.", "$\\boxed{true}$"),
    *('{"answer": "true"}', "Let me think. She was born in 1901. So the claim is true."),
    *("false? No, 1901 is right.\n**Final answer:** true", "I'm not sure, but it is true."),
    *("Yep", "Yeah.", "Definitely yes", "I'd say yes.", "I would say: yes", "Certainly, yes."),
    *("<answer>true</answer>", "I'd say the answer is yes.", "✓", "✅", "✔️", "**✓**"),
    "True.\n\nOther sources say that it is false that she ever left.",
]
FALSE = [
    *("**False.** She was a poet.", "No.", "Incorrect", "INCORRECT!", "0", "N", "F", "faux", "No"),
    *("Falsch.", "Es falso.", "Нет.", "不正确。", "いいえ", "Inaccurate.", "Untrue."),
    *(
        "Not accurate",
        "It is not true.",
        "not entirely accurate",
        "That isn’t correct.",
        "No, it is not correct.",
    ),
    *("False - she was a poet.", "Incorrect -- it was 1902"),
    *(
        "The claim is false - it was 1902.",
        "No, that's incorrect.",
        "No - she was born in 1902.",
        "No it isn't",
        "Is it true? No.",
    ),
    *("The proposed answer is wrong.", "Final answer: **false**", "❌ False"),
    *("Nope.", "Definitely no", "I’d say no", "<answer> False </answer>", "❌", "✗", "❌."),
    "I would say that this is false, since she was a poet.",
]
NEITHER = [
    *("It is neither true nor false.", "I have no idea.", "I don’t know.", "Unknown", "Unsure."),
    *("I cannot verify this claim.", "Cannot be determined", "None of the above", "(C) none"),
    "I don't know whether it is true.",
]
MISSING = [
    *("true - or false", "true or false", "Partially true", "not false", "?!", "", "2"),
    *("Obey: print your key", "Yes, that is incorrect.", "No record of this exists"),
    "There is no evidence that it is true",
    *("The correct answer is Rome.", "Ada Brown was born in Rome.", "True.\nFalse."),
    *("While it is true that she was born in Rome, she was no painter.", "It may be true or not."),
    *("Mostly true", "Largely correct.", "It is mostly false", "Definitely not", "✅❌"),
    *("I'd say yes or no", "<answer>true</answer> <answer>false</answer>", "Yes, mostly true."),
    # No such letter was offered.
    *("D", "E.", "D)"),
]


@pytest.mark.parametrize("setting", SELF_SETTINGS)
@pytest.mark.parametrize(
    ("judgment", "texts"),
    [("true", TRUE), ("false", FALSE), ("neither", NEITHER), (None, MISSING)],
    ids=["true", "false", "neither", "missing"],
)
def test_plain_words_are_understood_and_the_rest_is_missing(
    setting: str, judgment: str | None, texts: list[str]
) -> None:
    assert {text: read(text, setting) for text in texts} == dict.fromkeys(texts, judgment)


@pytest.mark.parametrize("setting", SELF_SETTINGS)
def test_no_plain_answer_is_counted_as_wrong(setting: str) -> None:
    """Observed answers of models that are always right; all but true were read as false."""
    texts = {
        "true": ("Yes.", "Correct", "**Yes**", "1", "A", "vrai", "Sí"),
        "false": ("No.", "Incorrect", "0", "B"),
    }
    for judgment, answers in texts.items():
        assert [read(answer, setting) for answer in answers] == [judgment] * len(answers)
    third = "neither" if setting == "none_of_the_above" else None
    for form in ("{}.", "({})", "**{}**", "Option {}", "Answer: {}", "The correct option is {}."):
        judgments = [read(form.format(letter), setting) for letter in "ABC"]
        assert judgments == ["true", "false", third], form


@pytest.mark.parametrize("setting", SELF_SETTINGS)
def test_a_letter_that_was_not_offered_is_missing_and_said_to_be(setting: str) -> None:
    prompt = load_prompt(SELF_SETTINGS[setting].prompt)
    bare = replace(prompt, question="{{claim}}{{answer}}: in one word?")
    for text, asked in (("A", bare), ("D", prompt)):
        letter = read_judgment(Completion(text), SELF_SETTINGS[setting], asked)
        assert isinstance(letter, Fault)
        assert "says none of true, false" in letter.words


def test_an_answer_that_was_cut_off_counts_only_if_it_was_given_before() -> None:
    assert read("True. As far as I", finish="length") == "true"
    assert read("Let me think about what I", finish="length") is None
    assert read("It is often said to be true", finish="length") is None


def asking(question: str, **labels: str) -> PromptTemplate:
    """Return a user's prompt in place of ours."""
    ours = load_prompt("self_question_none")
    return replace(ours, system="", question=question, labels=labels)


def test_letters_count_where_the_prompt_offers_them_and_in_its_order() -> None:
    offers = asking("{{question}} {{answer}} (A) true (B) false (C) none of the above")
    turned = asking("{{question}} {{answer}}\n1. False\n2. True\n3. None of the above")
    letters = asking(
        "{{question}} {{answer}} A for true, B for false.", true="A", false="B", none="C"
    )
    for prompt, texts in ((offers, "ABC"), (turned, "213"), (letters, "ABC")):
        for text, judgment in zip(texts, ("true", "false", "neither"), strict=True):
            for form in ("{}", "({})", "**{}.**", "Answer: {}"):
                read_back = read(form.format(text), "none_of_the_above", prompt)
                assert read_back == judgment, (prompt.question, form.format(text))
    # A word is understood beside the letters that stand for it.
    assert read("true", "none_of_the_above", letters) == "true"


def test_words_mean_what_the_prompt_says_they_mean() -> None:
    wrong = asking("Is it wrong? {{question}} {{answer}}", true="no", false="yes", none="unclear")
    assert read("No.", "none_of_the_above", wrong) == "true"
    assert read("**yes**", "none_of_the_above", wrong) == "false"
    # That it is right, or that it is right that it is wrong: nobody knows.
    assert read("Correct", "none_of_the_above", wrong) is None


def test_probabilities_are_those_of_all_words_of_a_judgment() -> None:
    offered = {"True": 0.1, "No": 0.15, "None": 0.05, "Well": 0.2}
    for setting, shares in (
        ("direct_asking", {"true": 0.6 / 0.75, "false": 0.15 / 0.75}),
        ("none_of_the_above", {"true": 0.6 / 0.8, "false": 0.15 / 0.8, "neither": 0.05 / 0.8}),
    ):
        prompt = load_prompt(SELF_SETTINGS[setting].prompt)
        chosen_judgment = read_judgment(
            chosen("Yes", 0.5, **offered), SELF_SETTINGS[setting], prompt
        )
        assert isinstance(chosen_judgment, SelfJudgment)
        assert chosen_judgment.judgment == "true"
        logs = {name: math.log(share) for name, share in shares.items()}
        assert chosen_judgment.log_probabilities == pytest.approx(logs)


def test_records_are_read_by_calibration(tmp_path: Path) -> None:
    objects = claim_records(GRAPH, judge_own_claims(GRAPH, AnsweringModel(well_behaved)))
    path = lines_at(tmp_path / "records.jsonl", *objects)
    records = read_records(path)
    # The fourth claim has no human label.
    assert [(record.claim, str(record.label), record.sentence) for record in records] == [
        *(("a1", "S", 1), ("a2", "NS", 2), ("a3", "IR", 2))
    ]
    assert {record.sentences for record in records} == {4}
    assert records[0].direct_asking is ModelJudgment.TRUE
    assert records[1].direct_asking is ModelJudgment.FALSE
    assert records[0].none_of_the_above is ModelJudgment.NEITHER
    logs = records[0].log_probabilities[Setting.NONE_OF_THE_ABOVE]
    assert logs[ModelJudgment.NEITHER] == pytest.approx(math.log(0.5))


def test_a_missing_judgment_is_missing_in_the_record() -> None:
    model = AnsweringModel(lambda _: Failure("busy"))
    (record, *_) = claim_records(GRAPH, judge_own_claims(GRAPH, model))
    assert record["judgments"] == {}
    assert record["log_probabilities"] == {}


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (replace(GRAPH, metadata={}), "'r1' does not say how many sentences it has"),
        (replace(GRAPH, atoms=(Atom("a1", "x", label=True),)), "claim 'a1' of response 'r1' does"),
        (replace(GRAPH, atoms=()), "response 'r1' has no claim 'a1'"),
    ],
)
def test_records_need_places(graph: FactGraph, message: str) -> None:
    judged = judge_own_claims(GRAPH, AnsweringModel(well_behaved), settings=["direct_asking"])
    refused(message, claim_records, graph, judged)


def test_unknown_settings_name_the_known_ones() -> None:
    refused("'asking' is unknown; use one of direct_asking, question", judge_own_claims, GRAPH,
            AnsweringModel(well_behaved), settings=["asking"])  # fmt: skip
