"""Judgments of a model on its own claims in the settings of the Self-Known paper.

Source: Self-Known paper, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from factormodels.claims import ModelJudgment
from factormodels.extraction.asking.stage import Fault, ModelStage
from factormodels.extraction.language_model import Completion
from factormodels.extraction.language_model.truth_answers import read_truth, truth_words
from factormodels.extraction.prompts import PromptTemplate

SELF_JUDGMENT = "self-judgment"
"""Name of the stage that counts the calls of all settings."""


@dataclass(frozen=True)
class SelfSetting:
    """A way to ask a model about its own claim.

    Attributes:
        name: name in records.
        prompt: name of its template.
        choices: judgments by the word that the model is asked for.
        needs_pair: whether a question and an answer made from the claim are judged instead of the
            claim itself.
    """

    name: str
    prompt: str
    choices: Mapping[str, ModelJudgment]
    needs_pair: bool

    @cached_property
    def stage(self) -> ModelStage[SelfJudgment]:
        """The stage that asks in this setting."""
        return ModelStage(
            SELF_JUDGMENT, self.prompt, partial(_read, self), tokens=16, top_logprobs=5
        )


@dataclass(frozen=True, slots=True)
class SelfJudgment:
    """The judgment of a model on a claim in one setting.

    Attributes:
        judgment: "true", "false" or "neither".
        log_probabilities: natural logarithms of the choices' probabilities, by judgment,
            normalized over the choices, as `label_shares` computes them; choices without a
            probability are left out. Empty if the log-probabilities of the answer are unusable or
            the answer makes no choice.
        unusable: reason why the log-probabilities are unusable; "" if they are usable or not
            needed.
    """

    judgment: str
    log_probabilities: Mapping[str, float]
    unusable: str = field(default="", compare=False)


def read_judgment(
    answer: Completion, setting: SelfSetting, prompt: PromptTemplate
) -> SelfJudgment | Fault:
    """Return the judgment in an answer to a prompt of a setting, or the reason why it has none.

    Plain words for true and false are accepted besides the words that the prompt asks for, as in
    `read_truth`. An answer that is not understood is a fault, and never counts as false.
    """
    asked_for = prompt.words(tuple(setting.choices))
    meanings = dict(zip(asked_for, setting.choices.values(), strict=True))
    words = truth_words(meanings, f"{prompt.system}\n{prompt.question}")
    label = read_truth(answer, words, prompt.after)
    if label is None:
        return Fault(f"it says none of {', '.join(asked_for)}")
    shares = zip(words.offered, label.distribution or (), strict=label.distribution is not None)
    return SelfJudgment(
        label.name,
        {str(judgment): math.log(share) for judgment, share in shares if share > 0.0},
        "" if label.unusable is None else str(label.unusable),
    )


def _read(
    setting: SelfSetting, answer: Completion, prompt: PromptTemplate, _about: Any
) -> SelfJudgment | Fault:
    return read_judgment(answer, setting, prompt)
