"""An assessor: a way to judge claims by prompts alone, in one question or in several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from factormodels.extraction.asking.readings import label_reading
from factormodels.extraction.asking.stage import ModelStage, each_claim, each_search
from factormodels.extraction.language_model.answers import Label
from factormodels.words import NOT_SUPPORTED

_WORD_TOKENS, _REASONING_TOKENS = 16, 1024


@dataclass(frozen=True)
class Step:
    """What is asked about each claim before its verdict.

    A claim without an answer has no verdict.

    Attributes:
        stage: the stage that asks. Its prompt may have the slots `claim`, `question`, `response`,
            `passages` (also called `knowledge`: those retrieved for the claim, or found by
            searches so far), and those that steps before fill.
        fills: the slot of the prompts after it that its answer fills; "claim" takes the claim's
            place.
        drops: the answer that takes a claim out of the score, and is then its label.
        searches: searches per claim at most, each for an answer, until an answer is empty or
            nothing new is found; 0 where the answer is not searched for.
    """

    stage: ModelStage[str]
    fills: str = ""
    drops: str = ""
    searches: int = 0


@dataclass(frozen=True)
class Assessor:
    """A way to judge a claim by prompts.

    Attributes:
        name: the name in tables, and of the stage that its verdicts are counted under.
        prompt: name of the template of its verdict.
        values: P(true) by label, in the order of the labels; None drops the claim from the score.
        reasons: whether words come before the label.
        source: the paper whose assessor this is.
        words: other words that mean a label, lower case.
        steps: what is asked before the verdict.
    """

    name: str
    prompt: str
    values: Mapping[str, float | None]
    reasons: bool = False
    source: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order."""
        return tuple(self.values)

    @property
    def searches(self) -> int:
        """Searches per claim at most; 0 where the passages of the graph are judged by."""
        return sum(step.searches for step in self.steps)

    @cached_property
    def verdict(self) -> ModelStage[Label]:
        """The stage that asks for the verdict."""
        tokens = _REASONING_TOKENS if self.reasons else _WORD_TOKENS
        return ModelStage(
            self.name,
            self.prompt,
            label_reading(self.labels, self.words),
            tokens=tokens,
            top_logprobs=5,
            # Nobody knows how long it reasons.
            usual_tokens=tokens,
            calls=each_search(self.searches) if self.searches else each_claim,
        )

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the templates of its steps and its verdict, in order."""
        return (*(step.stage.prompt for step in self.steps), self.prompt)


def unsupported_as(label: str) -> Mapping[str, str]:
    """Return a label by each verdict that the evidence does not support a claim."""
    return MappingProxyType(dict.fromkeys(NOT_SUPPORTED, label))
