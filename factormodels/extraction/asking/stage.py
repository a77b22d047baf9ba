"""Stages that ask a language model: the fields of a row of the table of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from factormodels.extraction.asking.schemas import Schema
from factormodels.extraction.language_model import Completion
from factormodels.extraction.prompts import PromptTemplate

CUT_OFF = "cut off at its longest"
"""Text of the fault of an answer that exceeded the maximum length."""

CLAIM_CHARACTERS = 41
"""Mean number of characters of 974 claims in 31 biographies (FActScore, human labels)."""

Read = TypeVar("Read", covariant=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why an answer cannot be parsed.

    Attributes:
        words: the reason, in words that are also sent to the model.
    """

    words: str


Reader = Callable[[Completion, PromptTemplate, Any], Read | Fault]
"""Parser of an answer, given the prompt and the subject of the question."""


@dataclass(frozen=True)
class Extent:
    """The size of a response, counted or assumed, from which a dry run predicts calls.

    Attributes:
        sentences: number of its sentences.
        atoms: number of its claims.
        contexts: number of its distinct passages and its sampled answers.
        retrieved: number of pairs of a claim and a passage retrieved for it.
        pairs: number of pairs of texts that are related.
        windows: mean number of windows in which a pair is read.
        overlap: share of a window that the next one repeats.
        stride: sentences per call that lists claims; None for all.
        passage_characters: mean characters of a passage.
        atom_characters: mean characters of a claim.
        response_characters: characters of the response and its question.
        found_characters: characters of the results of a search, as SAFE shows them.
        question_characters: characters of the question.
        samples: number of sampled answers among the contexts.
        unasked_samples: number of these that have not been requested yet.
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
    question_characters: int = 0
    samples: int = 0
    unasked_samples: int = 0


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a stage for a response.

    Attributes:
        number: number of calls.
        filled: characters that fill the prompt of each call.
        besides: further characters that fill the prompts of all calls together.
        listed: total number of items that the answers list; None for one item per answer.
        at_most: whether the number is an upper bound.
    """

    number: float
    filled: float
    besides: float = 0.0
    listed: int | None = None
    at_most: bool = False


def each_claim(extent: Extent, slots: Mapping[str, str]) -> Calls:
    """Return one call per claim, filled with the slots of its prompt."""
    filled = extent.atom_characters + ("response" in slots) * extent.response_characters
    shown = ("passages" in slots) * extent.retrieved * extent.passage_characters
    return Calls(extent.atoms, filled, shown)


def each_search(times: int) -> Callable[[Extent, Mapping[str, str]], Calls]:
    """Return a function for the calls of a stage that searches, or judges the results.

    Each search is shown the results of the earlier searches; a verdict is shown all of them.
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
        name: name under which its calls and costs are counted.
        prompt: name of the prompt template.
        read: parser of an answer. A fault is asked about once more, and is then a failure: missing,
            counted, shown, and never cached.
        tokens: maximum tokens of an answer, for each part of it.
        most_tokens: maximum tokens of an answer, regardless of the number of parts.
        top_logprobs: number of alternatives per token to request; 0 requests no log-probabilities.
        needs_logprobs: whether an answer without log-probabilities is of little use.
        temperature: sampling temperature; 0 is greedy.
        seed: sampling seed; None leaves it to the provider.
        usual_tokens: tokens of a typical answer, or of each item that it lists.
        calls: number of calls, given the extent of a response and the slots of its prompt.
        schema: JSON schema of an answer, enforced by servers with structured output; None if the
            answer is not JSON.
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
        """Return the maximum tokens of an answer with `parts` parts."""
        tokens = self.tokens * parts
        return tokens if self.most_tokens is None else min(self.most_tokens, tokens)

    def number(self, extents: Iterable[Extent]) -> int:
        """Return the number of calls for the given responses."""
        return round(sum(self.calls(extent, {}).number for extent in extents))


@dataclass(frozen=True)
class Question(Generic[Read]):
    """A question of a stage.

    Attributes:
        stage: the stage.
        fields: texts by name of slot; texts without a slot in the prompt are ignored.
        about: subject of the question, for the parser.
        parts: number of parts of the answer, to which its maximum length is proportional.
        sample: index among repeated samples of the same question.
        mended: fault of an earlier, partly parsed answer. Such a question is asked once, and as
            much of its answer as can be parsed counts; "" if there was no fault.
    """

    stage: ModelStage[Read]
    fields: Mapping[str, str]
    about: Any = None
    parts: int = 1
    sample: int = 0
    mended: str = ""
