"""Models that know the answers of the probe, with a bias, for tests."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from factormodels.extraction.asking.table import RELATION
from factormodels.extraction.language_model import Completion, Request, Token
from factormodels.extraction.probe.questions import probe_pairs
from factormodels.extraction.probe.table import (
    CLAIM_RELATIONS,
    FAILURES_OF_CLAIMS,
    MISSING_FROM_CLAIMS,
    PRE_VERIFICATIONS,
    PRE_VERIFICATIONS_IN_RESPONSE,
    REFUSALS,
    RELEVANCES,
    ProbeQuestion,
    probe_named,
    probes,
)
from factormodels.extraction.prompts import load_prompt

LABELS = ("entailment", "contradiction", "neutral")


@cache
def right_answers() -> Mapping[str, str]:
    """The right answer to each question of each probe, by the texts of its conversation."""
    answers: dict[str, str] = {}
    for probe in probes().values():
        asked_together: dict[object, list[ProbeQuestion]] = {}
        for question in probe.questions:
            asked_together.setdefault(question.texts, []).append(question)
        prompt = load_prompt(RELATION.prompt if probe.stage is None else probe.stage.prompt)
        for questions in asked_together.values():
            question = questions[0]
            fields = {slot: question.fields.get(slot) or "(none)" for slot in prompt.slots}
            asked = (message.content for message in prompt.render(**fields))
            answers["\n".join(asked)] = answer_meaning(probe.name, questions)
    return answers


def conversation(request: Request) -> str:
    """The texts of a conversation, as `right_answers` has them."""
    return "\n".join(message.content for message in request.messages)


def answer_meaning(name: str, questions: Sequence[ProbeQuestion]) -> str:
    """An answer of a stage that is read as the right one to each question of a call."""
    question = questions[0]
    if name in (PRE_VERIFICATIONS, PRE_VERIFICATIONS_IN_RESPONSE):
        return f"1 | {question.fields['response']} | {question.label}"
    if name == FAILURES_OF_CLAIMS:
        wrong = [[] if each.label == "none" else [each.label] for each in questions]
        return json.dumps([{"claim": n, "failures": names} for n, names in enumerate(wrong, 1)])
    if name == MISSING_FROM_CLAIMS:
        missing = [] if question.label == "none" else [question.label]
        return json.dumps([{"claim": "Something else.", "reason": reason} for reason in missing])
    if name == CLAIM_RELATIONS:
        return json.dumps({"relation": question.kind, "confidence": 0.9})
    if name == RELEVANCES:
        return json.dumps({"relevant": question.label == "relevant"})
    if name == REFUSALS:
        return json.dumps({"declines": question.label == "declines"})
    stage = probe_named(name).stage
    prompt = load_prompt(RELATION.prompt if stage is None else stage.prompt)
    return f"{prompt.after} {prompt.labels.get(question.label, question.label)}".strip()


def fenced(text: str, tag: str) -> str:
    """Text between the last tags of a name in a question."""
    return text.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def right_label(question: str) -> str:
    """The right relation of a pair of the probe; empty of other texts."""
    texts = (fenced(question, "premise"), fenced(question, "hypothesis"))
    return next((p.label for p in probe_pairs() if (p.premise, p.claim) == texts), "")


def shares(label: str, evidence: float, bias: Sequence[float]) -> dict[str, float]:
    """Softmax of the bias, and of the evidence for a label, by label, the likeliest first."""
    logits = [b + evidence * (each == label) for each, b in zip(LABELS, bias, strict=True)]
    total = math.fsum(map(math.exp, logits))
    shares = {name: math.exp(value) / total for name, value in zip(LABELS, logits, strict=True)}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def completion_of(probabilities: Mapping[str, float]) -> Completion:
    """An answer of one token with its alternatives, the first of them given."""
    listed = tuple((name, math.log(share)) for name, share in probabilities.items())
    return Completion(listed[0][0], (Token(*listed[0], listed),))


def related(
    evidence: float = 3.0,
    bias: Sequence[float] = (0.0, 0.0, 0.0),
    label: Callable[[str], str] = right_label,
) -> Callable[[Request], Completion]:
    """Answers to questions about relations with evidence for the right label, and a bias.

    Args:
        evidence: what the logit of the right label has more.
        bias: what the logit of each label has whatever is asked.
        label: the label that there is evidence for, by the question.
    """

    def answer(request: Request) -> Completion:
        return completion_of(shares(label(request.messages[-1].content), evidence, bias))

    return answer


def orders_of(question: str) -> str:
    """The label that the passage of a question names; else the right one."""
    quoted = re.findall("|".join(LABELS), fenced(question, "premise"))
    return quoted[-1] if quoted else right_label(question)
