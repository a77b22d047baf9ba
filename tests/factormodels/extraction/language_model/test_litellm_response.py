"""Thoughts before an answer are no part of it, and their tokens are not the answer's."""

from __future__ import annotations

import pytest

from factormodels.extraction.language_model.litellm_response import without_reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Perhaps neutral.</think>entailment", "entailment"),
        ("<think>\nPerhaps\n</think>\n\nentailment\n", "entailment"),
        ("\n<THINKING>a</THINKING> <think>b</think> yes", "yes"),
        ("[THINK]no[/THINK]yes", "yes"),
        ("<seed:think>no</seed:think>yes", "yes"),
        # Where the server puts the beginning of the thoughts into the question.
        ("Perhaps neutral.\n</think>\n\nentailment", "entailment"),
        ("<|channel|>analysis<|message|>no<|end|><|start|>assistant"
         "<|channel|>final<|message|>yes", "yes"),
        ("<think>It goes on and", ""),
        ("<think></think>", ""),
    ],
)  # fmt: skip
def test_thoughts_are_taken_off(text: str, answer: str) -> None:
    assert without_reasoning(text) == (answer, True)


@pytest.mark.parametrize(
    "text",
    ["entailment", " yes\n", '[{"claim": "The tag </think> ends thoughts."}]', "I <think> so"],
)
def test_an_answer_without_thoughts_stays(text: str) -> None:
    assert without_reasoning(text) == (text, False)
