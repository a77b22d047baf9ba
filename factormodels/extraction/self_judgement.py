"""What a model says of its own claims: directly, by question and answer, with none of the above."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, ModelJudgement
from factormodels.errors import InputError
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import Completion, Failure, LanguageModel, Request
from factormodels.extraction.language_model.answers import unreadable
from factormodels.extraction.language_model.truth_answers import read_truth, truth_words
from factormodels.extraction.prompts import PromptTemplate
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.stages.asking import Question, ask_all
from factormodels.fact_graph import FactGraph

STAGE = "self-judgement"
PAIR_STAGE = "question-answer pairs"
PAIR_PROMPT = "question_answer_pair"

_WORD_TOKENS = 16
_PAIR_TOKENS = 256
_TOP_LOGPROBS = 5


@dataclass(frozen=True)
class SelfSetting:
    """A way to ask a model about its own claim.

    Attributes:
        name: the name that records have.
        prompt: name of its template.
        choices: judgements by the word that the model is asked for.
        needs_pair: whether a question and an answer made from the claim are judged, in place of
            the claim itself.
    """

    name: str
    prompt: str
    choices: Mapping[str, ModelJudgement]
    needs_pair: bool


_TWO = MappingProxyType({"true": ModelJudgement.TRUE, "false": ModelJudgement.FALSE})

SETTINGS: Mapping[str, SelfSetting] = MappingProxyType(
    {
        one.name: one
        for one in (
            SelfSetting("direct_asking", "self_direct", _TWO, needs_pair=False),
            SelfSetting("question_answering", "self_question", _TWO, needs_pair=True),
            SelfSetting(
                "none_of_the_above",
                "self_question_none",
                MappingProxyType({**_TWO, "none": ModelJudgement.NEITHER}),
                needs_pair=True,
            ),
        )
    }
)
"""The settings of the Self-Known paper, section 3, by name."""


@dataclass(frozen=True, slots=True)
class SelfJudgement:
    """What a model says of a claim in one setting.

    Attributes:
        judgement: "true", "false" or "neither".
        log_probabilities: natural logarithms of the choices' probabilities, by judgement,
            normalized over the choices, as `label_shares` computes them; a choice that has none is
            left out. Empty where the log-probabilities of the answer cannot be used, or it makes no
            choice.
        unusable: why the log-probabilities cannot be used; "" where they can, or are not needed.
    """

    judgement: str
    log_probabilities: Mapping[str, float]
    unusable: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SelfJudgedClaim:
    """What a model says of a claim.

    Attributes:
        claim: id of the atom.
        judgements: by name of setting; a setting that is missing has none.
        missing: why a setting has no judgement, by its name.
        pair: the question and the answer made from the claim; None where none were needed or made.
    """

    claim: str
    judgements: Mapping[str, SelfJudgement]
    missing: Mapping[str, str]
    pair: tuple[str, str] | None = None


def judge_own_claims(
    graph: FactGraph,
    model: LanguageModel,
    *,
    settings: Sequence[str] = tuple(SETTINGS),
) -> tuple[SelfJudgedClaim, ...]:
    """What the model that wrote a response says of its claims, in order.

    An answer that says that it is neither, or cannot be told, is "neither", as in the paper; one
    that is not understood is missing.

    Args:
        graph: the claims; its topic, or else its query, tells what they are about.
        model: the model that wrote the response; it makes the questions too.
        settings: names of `SETTINGS`.

    Raises:
        InputError: if there is no such setting.

    Source: Self-Known paper, section 3 and appendix B.
    """
    wanted = [_named(name) for name in settings]
    topic = graph.topic or graph.query
    pairs: list[tuple[str, str] | Failure | None] = [None] * len(graph.atoms)
    if any(setting.needs_pair for setting in wanted):
        pairs = [*_pairs(graph.atoms, topic, model)]
    questions = [
        (setting, atom, pair)
        for atom, pair in zip(graph.atoms, pairs, strict=True)
        for setting in wanted
    ]

    async def ask(
        question: tuple[SelfSetting, Atom, tuple[str, str] | Failure | None],
    ) -> SelfJudgement | Failure:
        setting, atom, pair = question
        if not setting.needs_pair:
            fields = {"topic": topic, "claim": atom.text}
        elif isinstance(pair, tuple):
            fields = {"question": pair[0], "answer": pair[1]}
        else:
            return pair or Failure("no question was made from the claim")
        prompt = prompts_of(model)[setting.prompt]
        request = Request(
            messages=prompt.render(**fields),
            prompt=prompt.identity,
            stage=STAGE,
            max_tokens=_WORD_TOKENS,
            top_logprobs=_TOP_LOGPROBS,
            seed=0,
            fault=lambda one: _fault(one, setting, prompt),
        )
        answer = await model.complete(request)
        return answer if isinstance(answer, Failure) else read_judgement(answer, setting, prompt)

    answers = run_until_done(each(ask, questions))
    found = zip(questions, answers, strict=True)
    by_claim: list[list[tuple[str, SelfJudgement | Failure]]] = [[] for _ in graph.atoms]
    for place, ((setting, _, _), answer) in enumerate(found):
        by_claim[place // len(wanted)].append((setting.name, answer))
    return tuple(
        SelfJudgedClaim(
            atom.id,
            {name: answer for name, answer in given if isinstance(answer, SelfJudgement)},
            {name: answer.reason for name, answer in given if isinstance(answer, Failure)},
            pair if isinstance(pair, tuple) else None,
        )
        for atom, pair, given in zip(graph.atoms, pairs, by_claim, strict=True)
    )


def read_judgement(
    answer: Completion, setting: SelfSetting, prompt: PromptTemplate
) -> SelfJudgement | Failure:
    """Judgement that an answer to a prompt gives in a setting, or why none can be read.

    Plain words for true and false are understood beside those that the prompt asks for, as
    `read_truth` says. What is not understood is a failure, and never counts as false.
    """
    own = dict(zip(prompt.words(tuple(setting.choices)), setting.choices.values(), strict=True))
    words = truth_words(own, f"{prompt.system}\n{prompt.question}")
    found = read_truth(answer, words, prompt.after)
    if found is None:
        return unreadable(answer, _fault_of(setting, prompt))
    shares = zip(words.offered, found.distribution or (), strict=found.distribution is not None)
    return SelfJudgement(
        found.name,
        {str(judgement): math.log(share) for judgement, share in shares if share > 0.0},
        "" if found.unusable is None else str(found.unusable),
    )


def _fault(answer: Completion, setting: SelfSetting, prompt: PromptTemplate) -> str:
    understood = isinstance(read_judgement(answer, setting, prompt), SelfJudgement)
    return "" if understood else _fault_of(setting, prompt)


def _fault_of(setting: SelfSetting, prompt: PromptTemplate) -> str:
    return f"it says none of {', '.join(prompt.words(tuple(setting.choices)))}"


def claim_records(graph: FactGraph, judged: Iterable[SelfJudgedClaim]) -> list[dict[str, Any]]:
    """Records of claims that `calibration.self_knowledge` reads, as JSON objects.

    A claim without a human label has no record; a setting that is missing is left out of one.

    Args:
        graph: the claims with their labels; metadata `sentences`: number of the response's
            sentences.
        judged: what the model says of them.

    Raises:
        InputError: if a labelled claim does not say which sentence it is from, the response does
            not say how many it has, or a judged claim is not in the graph.
    """
    atoms = {atom.id: atom for atom in graph.atoms}
    records = []
    for one in judged:
        if one.claim not in atoms:
            raise InputError(f"response {graph.id!r} has no claim {one.claim!r}; give its graph")
        atom = atoms[one.claim]
        label = human_label(atom)
        if label is None:
            continue
        records.append(
            {
                "response": graph.id,
                "sentence": _sentence(graph, atom),
                "sentences": _sentences(graph),
                "claim": atom.id,
                "label": label,
                "judgements": {name: said.judgement for name, said in one.judgements.items()},
                "log_probabilities": {
                    name: dict(said.log_probabilities)
                    for name, said in one.judgements.items()
                    if said.log_probabilities
                },
            }
        )
    return records


def _pairs(
    atoms: Sequence[Atom], topic: str, model: LanguageModel
) -> list[tuple[str, str] | Failure]:
    questions = [
        Question({"topic": topic, "claim": atom.text}, _read_pair, _PAIR_TOKENS) for atom in atoms
    ]
    return ask_all(model, PAIR_PROMPT, PAIR_STAGE, questions)


def _read_pair(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict) or value.keys() != {"question", "answer"}:
        return None
    texts = [" ".join(text.split()) for text in value.values() if isinstance(text, str)]
    if len(texts) != len(value) or not all(texts):
        return None
    return " ".join(value["question"].split()), " ".join(value["answer"].split())


def human_label(atom: Atom) -> str | None:
    """S, NS or IR, as a person said of a claim; None where nobody did."""
    if atom.annotation in {"S", "NS", "IR"}:
        return atom.annotation
    return None if atom.label is None else "S" if atom.label else "NS"


def _sentence(graph: FactGraph, atom: Atom) -> int:
    if atom.sentence is None:
        raise InputError(
            f"claim {atom.id!r} of response {graph.id!r} does not say which sentence it is from; "
            "give 'sentence', counted from 1"
        )
    return atom.sentence


def _sentences(graph: FactGraph) -> int:
    count = graph.metadata.get("sentences")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(
            f"response {graph.id!r} does not say how many sentences it has; give 'sentences' in "
            "its metadata"
        )
    return count


def _named(name: str) -> SelfSetting:
    if name not in SETTINGS:
        raise InputError(f"the setting {name!r} is unknown; use one of {', '.join(SETTINGS)}")
    return SETTINGS[name]
