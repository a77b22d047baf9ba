"""Parsers of answers: JSON, texts, labels. An answer that cannot be parsed is a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from factormodels.discourse import Sense, sense_named
from factormodels.errors import InputError
from factormodels.extraction.asking.schemas import listed
from factormodels.extraction.asking.stage import CUT_OFF, Fault, Reader
from factormodels.extraction.language_model import Completion
from factormodels.extraction.language_model.answers import (
    SUREST,
    Label,
    contradicts_itself,
    json_values,
    read_stated,
)
from factormodels.extraction.language_model.log_probabilities import OPENNESS
from factormodels.extraction.prompts import NO_WORDS, PromptTemplate

Read = TypeVar("Read")


def json_reading(
    of_value: Callable[[Any, Any], Read | None],
    of_text: Callable[[str, Any], Read | None] = lambda _text, _about: None,
) -> Reader[Read]:
    """Return a parser of JSON answers, which may repeat the same value.

    Args:
        of_value: result for a JSON value and the subject of the question; None if the value is not
            of the requested kind.
        of_text: result for an answer without such a value that states the same in another form;
            None if it does not.
    """

    def value_in(text: str, about: Any) -> Read | None:
        if contradicts_itself(text):
            return None
        values = [of_value(value, about) for value in json_values(text)]
        readings = [value for value in values if value is not None]
        if not readings:
            return of_text(text, about)
        return readings[0] if all(reading == readings[0] for reading in readings) else None

    def read(answer: Completion, _prompt: PromptTemplate, about: Any) -> Read | Fault:
        if answer.finish == "length":
            return Fault(f"it was {CUT_OFF}")
        reading = value_in(answer.text, about)
        return Fault("its form is not the requested one") if reading is None else reading

    return read


def whole_text(answer: Completion, _prompt: PromptTemplate, _about: Any) -> str | Fault:
    """Return the text of an answer, which must not be empty."""
    return answer.text.strip() or Fault("it is empty")


def text_at(key: str, *, or_empty: bool = False) -> Reader[str]:
    """Return a parser of an object with one text, in which white space becomes single spaces.

    Args:
        key: key of the text.
        or_empty: whether an empty text is an answer.
    """

    def of_value(value: Any, _about: Any) -> str | None:
        text = value.get(key) if isinstance(value, dict) else None
        words = " ".join(text.split()) if isinstance(text, str) else ""
        return words if words or (or_empty and isinstance(text, str)) else None

    return json_reading(of_value)


def flag_at(key: str) -> Reader[bool]:
    """Return a parser of an object with a true or false value."""

    def of_value(value: Any, _about: Any) -> bool | None:
        stated = value.get(key) if isinstance(value, dict) else None
        return stated if isinstance(stated, bool) else None

    return json_reading(of_value)


def choice_at(key: str, true: str, false: str) -> Reader[str]:
    """Return a parser of an object with a true or false value, given as a word for each."""
    flag = flag_at(key)

    def read(answer: Completion, prompt: PromptTemplate, about: Any) -> str | Fault:
        stated = flag(answer, prompt, about)
        return stated if isinstance(stated, Fault) else true if stated else false

    return read


def label_reading(
    labels: Sequence[str], words: Mapping[str, str] = NO_WORDS, openness: float = OPENNESS
) -> Reader[Label]:
    """Return a parser of a label, with its probability among the labels.

    Args:
        labels: the labels, lower case.
        words: other words that mean one of the labels, lower case.
        openness: maximum width of the interval of a label's probability.
    """

    def read(answer: Completion, prompt: PromptTemplate, _about: Any) -> Label | Fault:
        label = prompt.read_label(answer, labels, words, openness)
        return Fault(prompt.label_fault(answer, labels, words)) if label is None else label

    return read


def stated_label(labels: Sequence[str]) -> Reader[tuple[str, float]]:
    """Return a parser of a label and the confidence that the model states."""

    def read(answer: Completion, prompt: PromptTemplate, _about: Any) -> tuple[str, float] | Fault:
        words = prompt.words(labels)
        relation = read_stated(answer.text, words)
        if relation is None:
            return Fault("it does not give one relation and one confidence")
        return labels[words.index(relation[0])], relation[1]

    return read


def sense_of(value: Any, _about: Any) -> tuple[Sense | None, float] | None:
    """Return the sense and its probability; the sense is None if the claims are unrelated."""
    if not isinstance(value, dict):
        return None
    name, confidence = value.get("relation"), value.get("confidence")
    if not isinstance(name, str) or isinstance(confidence, bool):
        return None
    if not isinstance(confidence, int | float) or not 0.0 <= confidence <= 1.0:
        return None
    if name.strip().casefold() == "none":
        return None, float(confidence)
    try:
        return sense_named(name), min(float(confidence), SUREST)
    except InputError:
        return None


def question_and_answer(value: Any, _about: Any) -> tuple[str, str] | None:
    """Return the question and the answer that were made from a claim."""
    if not isinstance(value, dict) or value.keys() != {"question", "answer"}:
        return None
    texts = [" ".join(text.split()) for text in value.values() if isinstance(text, str)]
    if len(texts) != len(value) or not all(texts):
        return None
    return " ".join(value["question"].split()), " ".join(value["answer"].split())


def texts_of(value: Any, most: int) -> list[str] | None:
    """Return the first `most` texts of a list."""
    value = listed(value, "sentences")
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(text, str) and text.strip() for text in value):
        return None
    return [" ".join(text.split()) for text in value[:most]]
