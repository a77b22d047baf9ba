"""The table of stages: a row for each prompt, with the calls it takes and the answer it reads."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import Any

import jsonschema
import pytest

from factormodels.extraction.asking.loop import ask_all, request_of
from factormodels.extraction.asking.stage import Extent, ModelStage, Question
from factormodels.extraction.asking.table import (
    ASSESSORS,
    CLAIM_FAILURES,
    MISSING_CLAIMS,
    PADDING,
    QUERIES,
    REFUSAL,
    RELATION,
    SAMPLED_ANSWER,
    STAGES,
)
from factormodels.extraction.language_model import Completion, Failure, Request
from factormodels.extraction.prompts import Example, load_prompt, prompt_names
from factormodels.extraction.sentences import Chunk
from tests.factormodels.extraction.models import AnsweringModel

EXTENT = Extent(
    *(7, 50, 6, 100),
    stride=2,
    pairs=300,
    passage_characters=400.0,
    atom_characters=40.0,
    response_characters=900,
    found_characters=600.0,
)
"""A response of 7 sentences, two a call, with 50 claims and 6 passages."""

ABOUT: dict[str, Any] = {
    "atomizer": Chunk(1, ("One is odd.",)),
    "preverify": Chunk(1, ("One is odd.",)),
    "preverify_in_response": Chunk(1, ("One is odd.",)),
    "claim_failures": 4,
    "padding": 2,
}
"""What the reader of an answer has to know beside it, as in the example of the prompt."""


def _answered(answer: str, _: Request) -> str:
    """Return the answer to whatever is asked."""
    return answer


def test_every_prompt_is_asked_by_a_row() -> None:
    assert {stage.prompt for stage in STAGES} == set(prompt_names())
    rows = Counter((stage.name, stage.prompt) for stage in STAGES)
    assert set(rows.values()) == {1}


@pytest.mark.parametrize(
    "stage",
    [stage for stage in STAGES if load_prompt(stage.prompt).examples],
    ids=lambda row: f"{row.name}-{row.prompt}",
)
def test_the_examples_of_a_prompt_are_read_by_its_row(stage: ModelStage[Any]) -> None:
    for example in load_prompt(stage.prompt).examples:
        reading = _reading(stage, example, example.answer)
        assert not isinstance(reading, Failure), reading


def _reading(stage: ModelStage[Any], example: Example, answer: str) -> Any:
    """Return what an answer to the question of an example is read as."""
    question = _question_of(stage, example)
    (reading,) = ask_all(AnsweringModel(partial(_answered, answer)), [question])
    return reading


def _question_of(stage: ModelStage[Any], example: Example) -> Question[Any]:
    about = ABOUT.get(stage.prompt)
    if isinstance(about, Chunk):
        lines = [line for line in example.fields["sentences"].splitlines() if line]
        texts = tuple(line.partition(": ")[2] for line in lines)
        about = Chunk(int(lines[0].partition(":")[0]), texts)
    slots = load_prompt(stage.prompt).slots
    return Question(stage, {**dict.fromkeys(slots, ""), **example.fields}, about)


def test_rows_whose_prompts_ask_for_json_have_a_schema() -> None:
    asked = {name for name in prompt_names() if "JSON" in load_prompt(name).system}
    assert {stage.prompt for stage in STAGES if stage.schema is not None} == asked


@pytest.mark.parametrize(
    "stage",
    [stage for stage in STAGES if stage.schema is not None],
    ids=lambda row: f"{row.name}-{row.prompt}",
)
def test_an_answer_held_to_its_schema_is_read_as_the_example_is(stage: ModelStage[Any]) -> None:
    for example in load_prompt(stage.prompt).examples:
        schema = stage.schema
        assert schema is not None
        (key, *_) = schema["properties"]
        value = json.loads(example.answer)
        # The strict mode of providers knows no list but in an object.
        content = {key: value} if isinstance(value, list) else value
        jsonschema.validate(content, schema)
        reading = _reading(stage, example, json.dumps(content))
        assert reading == _reading(stage, example, example.answer)
        request = request_of(AnsweringModel(partial(_answered, "")), _question_of(stage, example))
        # Tokens that a schema forces would count as improbable where log-probabilities are read.
        assert request.schema == ("" if stage.top_logprobs else json.dumps(schema))


# Every text is an answer to the question of a response.
FORMED = [stage for stage in STAGES if stage is not SAMPLED_ANSWER]


@pytest.mark.parametrize("stage", FORMED, ids=lambda row: f"{row.name}-{row.prompt}")
def test_an_answer_of_another_form_is_a_failure(stage: ModelStage[Any]) -> None:
    prompt = load_prompt(stage.prompt)
    fields = dict.fromkeys(prompt.slots, "text")
    about = ABOUT.get(stage.prompt)
    model = AnsweringModel(lambda _: Completion("I would rather not say.", finish="length"))
    (failure,) = ask_all(model, [Question(stage, fields, about)])
    assert isinstance(failure, Failure)
    assert failure.unread
    assert "I would rather not say." in failure.reason
    # The same is said to the model, so that it can say it better.
    (asked,) = model.asked
    assert asked.fault_of(Completion("I would rather not say.")) != ""


def test_rows_state_their_calls() -> None:
    calls = {
        (stage.name, stage.prompt): stage.calls(EXTENT, load_prompt(stage.prompt).slots)
        for stage in STAGES
    }
    numbers = {key: call.number for key, call in calls.items()}
    assert numbers["atomizer", "atomizer"] == numbers["pre-verification", "preverify"] == 4
    assert numbers["summarizer", "summary"] == 6
    assert numbers["claim failures", "claim_failures"] == 2
    assert numbers["claim failures", "missing_claims"] == numbers["refusals", "refusal"] == 1
    assert (
        numbers["relations", RELATION.prompt] == numbers["claim relations", "claim_relation"] == 300
    )
    assert numbers["safe-search", "safe_query"] == 250
    assert [key[0] for key, call in calls.items() if call.at_most] == ["safe-search"]
    # A verdict is shown the claim, and its own passages.
    verdict = calls["factscore", "assess_factscore"]
    assert (verdict.number, verdict.filled, verdict.besides) == (50, 40.0, 100 * 400.0)
    assert calls["own-knowledge", "assess_own_knowledge"].besides == 0
    assert calls["safe", "assess_safe"].filled == 40.0 + 5 * 600.0


def test_the_longest_answer_grows_with_its_parts() -> None:
    assert (QUERIES.longest(1), CLAIM_FAILURES.longest(3), PADDING.longest(2)) == (100, 120, 80)
    assert STAGES[0].longest(2) == 800
    assert STAGES[0].longest(1000) == 8000
    assert MISSING_CLAIMS.longest(1) == 2000


def test_a_text_without_a_slot_is_left_out_and_a_slot_without_a_text_is_named() -> None:
    model = AnsweringModel(lambda _: '{"declines": true}')
    fields = {"question": "Who?", "response": "Sorry.", "claim": "never shown"}
    assert ask_all(model, [Question(REFUSAL, fields)]) == [True]
    assert "never shown" not in str(model.asked[0].messages)


def test_steps_of_assessors_fill_slots_that_prompts_after_them_have() -> None:
    for assessor in ASSESSORS.values():
        known = {"claim", "question", "response", "passages", "knowledge"}
        for step in assessor.steps:
            assert load_prompt(step.stage.prompt).slots.keys() <= known
            known |= {step.fills} - {""}
        assert load_prompt(assessor.prompt).slots.keys() <= known
