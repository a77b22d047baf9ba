"""Assessors: judges of claims that consist of prompts alone, with one or more questions."""

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
    """A question about each claim before its verdict.

    A claim without an answer has no verdict.

    Attributes:
        stage: the stage that asks. Its prompt may have the slots `claim`, `question`, `response`,
            `passages` (also called `knowledge`: the passages retrieved for the claim, or found by
            searches so far), and slots that earlier steps fill.
        fills: slot of the later prompts that receives the answer; "claim" replaces the claim.
        drops: the answer that excludes a claim from the score, and then becomes its label.
        searches: maximum number of searches per claim, one for each answer, until an answer is
            empty or a search finds nothing new; 0 if the answer is not searched for.
    """

    stage: ModelStage[str]
    fills: str = ""
    drops: str = ""
    searches: int = 0


@dataclass(frozen=True)
class Assessor:
    """A way to judge a claim by prompts.

    Attributes:
        name: the name in tables, and of the stage that counts its verdicts.
        prompt: name of the template of its verdict.
        values: P(true) by label, in the order of the labels; None excludes the claim from the
            score.
        reasons: whether reasoning precedes the label.
        source: the paper that describes the assessor.
        words: other words that mean a label, lower case.
        steps: questions before the verdict.
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
        """Maximum number of searches per claim; 0 if claims are judged by the graph's passages."""
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
            # The length of the reasoning is unknown.
            usual_tokens=tokens,
            calls=each_search(self.searches) if self.searches else each_claim,
        )

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the templates of its steps and its verdict, in order."""
        return (*(step.stage.prompt for step in self.steps), self.prompt)


def unsupported_as(label: str) -> Mapping[str, str]:
    """Return a mapping from each verdict of missing support to a label."""
    return MappingProxyType(dict.fromkeys(NOT_SUPPORTED, label))
