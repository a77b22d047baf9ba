"""A stage that asks a language model: what a row of the table says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from factormodels.extraction.asking.schemas import Schema
from factormodels.extraction.language_model import Completion
from factormodels.extraction.prompts import PromptTemplate

CUT_OFF = "cut off at its longest"
"""What a fault says where an answer was longer than it may be."""

CLAIM_CHARACTERS = 41
"""Of a claim, on the average of 974 claims in 31 biographies (FActScore, labelled by people)."""

Read = TypeVar("Read", covariant=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an answer cannot be read.

    Attributes:
        words: what is wrong with it, in words that can be said to the model.
    """

    words: str


Reader = Callable[[Completion, PromptTemplate, Any], Read | Fault]
"""What an answer says; it is given the prompt, and what the question was about."""


@dataclass(frozen=True)
class Extent:
    """How large a response is, counted or assumed: what a dry run knows of it.

    Attributes:
        sentences: number of its sentences.
        atoms: number of its claims.
        contexts: number of its passages, equal ones counted once.
        retrieved: number of pairs of a claim and a passage retrieved for it.
        pairs: number of pairs of texts that are related.
        windows: parts in which a pair is read, on the average.
        overlap: share of a part that is read with the part after it too.
        stride: sentences per call that lists claims; None for all.
        passage_characters: characters of a passage, on the average.
        atom_characters: characters of a claim, on the average.
        response_characters: characters of the response and its question.
        found_characters: characters of what one search finds, as SAFE shows it.
    """

    sentences: int = 0
    atoms: int = 0
    contexts: int = 0
    retrieved: int = 0
    pairs: int = 0
    windows: float = 1.0
    overlap: float = 0.0
    stride: int | None = None
    passage_characters: float = 0.0
    atom_characters: float = CLAIM_CHARACTERS
    response_characters: int = 0
    found_characters: float = 0.0


@dataclass(frozen=True, slots=True)
class Calls:
    """What a stage asks about a response.

    Attributes:
        number: how often it asks.
        filled: characters that fill the prompt each time.
        besides: characters that fill the prompts of all calls together, beside these.
        listed: things that the answers list in all; None for one thing each.
        at_most: whether the number may turn out to be smaller.
    """

    number: float
    filled: float
    besides: float = 0.0
    listed: int | None = None
    at_most: bool = False


def each_claim(extent: Extent, slots: Mapping[str, str]) -> Calls:
    """A call about each claim, filled with what the slots of its prompt hold."""
    filled = extent.atom_characters + ("response" in slots) * extent.response_characters
    shown = ("passages" in slots) * extent.retrieved * extent.passage_characters
    return Calls(extent.atoms, filled, shown)


def each_search(times: int) -> Callable[[Extent, Mapping[str, str]], Calls]:
    """Return the calls of a stage that searches some times for each claim, or judges what is found.

    A search is shown what the searches before it found, a verdict all of it.
    """

    def calls(extent: Extent, slots: Mapping[str, str]) -> Calls:
        if "passages" in slots:
            return Calls(extent.atoms, extent.atom_characters + times * extent.found_characters)
        before = extent.found_characters * (times - 1) / 2
        return Calls(times * extent.atoms, extent.atom_characters + before, at_most=times > 1)

    return calls


@dataclass(frozen=True)
class ModelStage(Generic[Read]):
    """A stage that asks a language model.

    Attributes:
        name: its calls and their costs are counted under it.
        prompt: name of the prompt template.
        read: what an answer is read as; an answer with a fault is asked for once more, and then
            is a failure: missing, counted, shown, and never kept.
        tokens: tokens of the longest answer, for each part that it has.
        most_tokens: tokens of the longest answer, however many parts it has.
        top_logprobs: alternatives per token that are asked for; 0 asks for no log-probabilities.
        needs_logprobs: whether an answer without log-probabilities is of little use.
        temperature: sampling temperature; 0 is greedy.
        seed: sampling seed; None leaves it to the provider.
        usual_tokens: tokens of a usual answer, or of each thing that it lists.
        calls: the calls that it takes, by the extent of a response and the slots of its prompt.
        schema: JSON schema of an answer, to which servers with structured output hold the model;
            None where an answer is no JSON.
    """

    name: str
    prompt: str
    read: Reader[Read]
    tokens: int
    most_tokens: int | None = None
    top_logprobs: int = 0
    needs_logprobs: bool = False
    temperature: float = 0.0
    seed: int | None = 0
    usual_tokens: int = 0
    calls: Callable[[Extent, Mapping[str, str]], Calls] = each_claim
    schema: Schema | None = None

    def longest(self, parts: int) -> int:
        """Return the tokens of the longest answer of some parts."""
        tokens = self.tokens * parts
        return tokens if self.most_tokens is None else min(self.most_tokens, tokens)

    def number(self, extents: Iterable[Extent]) -> int:
        """Return the number of calls that it takes for some responses."""
        return round(sum(self.calls(extent, {}).number for extent in extents))


@dataclass(frozen=True)
class Question(Generic[Read]):
    """A question of a stage.

    Attributes:
        stage: the stage.
        fields: texts by name of slot; those for which the prompt has no slot are left out.
        about: what the reader has to know beside the answer.
        parts: number of parts that the answer has, by which its longest grows.
        sample: index among repeated samples of the same question.
        mended: what was wrong with an earlier answer, of which the rest counts: this one is asked
            for once, and counts as far as it can be read; "" where there was none.
    """

    stage: ModelStage[Read]
    fields: Mapping[str, str]
    about: Any = None
    parts: int = 1
    sample: int = 0
    mended: str = ""
