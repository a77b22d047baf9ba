"""Assessors that judge atoms by prompting alone: the baselines that graph models are compared with.

The input is the atoms and contexts of a graph model, and the output is a probability of being true
for each atom, so that both appear in the same table. The assessors are rows of
`factormodels.extraction.asking.table.ASSESSORS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.errors import InputError
from factormodels.extraction.asking.assessor import Assessor, Step
from factormodels.extraction.asking.loop import ask_all, ask_one
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.asking.table import ASSESSORS
from factormodels.extraction.concurrency import MOST_WAITING, each, run_until_done
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.language_model.answers import Label
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import counted_fallbacks
from factormodels.extraction.retrieval.base import Retriever
from factormodels.extraction.retrieval.web import WebRetriever
from factormodels.fact_graph import FactGraph
from factormodels.samples import is_sample

LABEL_ALONE = "label alone"
"""Origin of a verdict whose label has no probability."""

_SHOWN_CHARACTERS = 1000
"""Maximum characters shown of a passage that a search found."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of an assessor on an atom.

    Attributes:
        atom: id of the atom.
        label: the label; "" if there is none.
        probability: probability of the label among the labels; None if log-probabilities give none.
        p_true: P(true) of the label or, with log-probabilities, its mean over all labels; None if
            the atom is dropped or missing.
        missing: reason why there is no label; "" if there is one.
        unusable: reason why the label has no probability; "" if it has one, or there is no label.
        text: the judged claim, which steps before the verdict may have rewritten.
        queries: queries of an assessor that searches, in order.
    """

    atom: str
    label: str = ""
    probability: float | None = None
    p_true: float | None = None
    missing: str = ""
    unusable: str = field(default="", compare=False)
    text: str = field(default="", compare=False)
    queries: tuple[str, ...] = field(default=(), compare=False)

    @property
    def dropped(self) -> bool:
        """True if the label excludes the atom from the score."""
        return bool(self.label) and self.p_true is None


@dataclass
class _Case:
    """An atom whose verdict is being determined.

    Attributes:
        atom: the atom.
        fields: texts by slot of the prompts, except for the passages.
        passages: passages retrieved for the atom, or found by searches so far.
        queries: queries so far.
        label: answer that excludes the atom from the score; empty if there was none.
        missing: reason why it can have no verdict; empty if there is none.
    """

    atom: Atom
    fields: dict[str, str]
    passages: list[Context]
    queries: list[str] = field(default_factory=list)
    label: str = ""
    missing: str = ""

    @property
    def open(self) -> bool:
        """True if its verdict is still to be determined."""
        return not (self.label or self.missing)

    def shown(self) -> dict[str, str]:
        """Return the texts by slot of the prompts, including the passages."""
        passages = shown_passages(self.passages)
        return {**self.fields, "passages": passages, "knowledge": passages}


def assess(
    graph: FactGraph,
    assessor: str | Assessor,
    model: LanguageModel,
    retriever: Retriever | None = None,
    *,
    all_contexts: bool = False,
    expected: bool = False,
    concurrency: int = MOST_WAITING,
) -> tuple[Verdict, ...]:
    """Return an assessor's verdict on every atom, in order.

    If a step before the verdict fails, or a search is not answered, the verdict is missing, with
    the reason.

    Args:
        graph: the atoms and contexts; relations are not used.
        assessor: a name of `ASSESSORS`, or another assessor.
        model: the language model that judges.
        retriever: retriever for an assessor that searches; others judge by the contexts.
        all_contexts: whether every atom is judged with all contexts rather than with those
            retrieved for it.
        expected: whether P(true) is averaged over the labels by their probabilities, if
            log-probabilities are usable; otherwise it is the value of the label alone, as in the
            papers.
        concurrency: maximum number of atoms that wait for the model at a time.

    Raises:
        InputError: for an unknown assessor, or one that searches without a retriever.
    """
    known = assessor if isinstance(assessor, Assessor) else get_assessor(assessor)
    if known.searches and retriever is None:
        raise InputError(
            f"the assessor {known.name!r} searches by itself; give the retriever that it searches"
        )
    if isinstance(retriever, WebRetriever):
        retriever = retriever.checking(graph.response)
    asked = {"question": graph.query, "response": graph.response}
    cases = [
        _Case(
            atom,
            {**asked, "claim": atom.text},
            [
                context
                for context in graph.contexts
                if not known.searches
                # An answer that a model invented must not be shown as a passage of a source.
                and not is_sample(context)
                and (all_contexts or atom.id in context.retrieved_for)
            ],
        )
        for atom in graph.atoms
    ]
    for step in known.steps:
        _ask_step(step, cases, model, retriever)

    async def judge(case: _Case) -> Verdict:
        question = Question(known.verdict, case.shown())
        answer = await ask_one(model, question) if case.open else None
        return _verdict(known, case, answer, expected)

    return tuple(run_until_done(each(judge, cases, concurrency)))


def _ask_step(
    step: Step, cases: Sequence[_Case], model: LanguageModel, retriever: Retriever | None
) -> None:
    """Ask the question of a step about all atoms whose verdict is still to be determined."""
    waiting = [case for case in cases if case.open]
    if step.searches and retriever is not None:
        for _ in range(step.searches):
            # Without a new passage, the next question would be the same.
            waiting = _searched(_answers(step, waiting, model), retriever)
        return
    for case, answer in _answers(step, waiting, model):
        if step.drops and answer == step.drops:
            case.label = answer
        elif step.fills:
            case.fields[step.fills] = answer


def _answers(step: Step, cases: Sequence[_Case], model: LanguageModel) -> list[tuple[_Case, str]]:
    """Return the atoms with an answer, and the answers; mark the others as missing."""
    questions = [Question(step.stage, case.shown()) for case in cases]
    answered = []
    for case, answer in zip(cases, ask_all(model, questions), strict=True):
        if isinstance(answer, Failure):
            case.missing = f"{step.stage.name}: {answer.reason}"
        else:
            answered.append((case, answer))
    return answered


def _searched(wanted: Iterable[tuple[_Case, str]], retriever: Retriever) -> list[_Case]:
    """Search, and return the atoms for which something new was found."""
    # Repeating a search finds nothing new.
    fresh = [(case, text) for case, text in wanted if text and text not in case.queries]
    answers = retriever.retrieve([text for _, text in fresh]) if fresh else []
    remaining = []
    for (case, query), answer in zip(fresh, answers, strict=True):
        case.queries.append(query)
        if not answer.searched:
            case.missing = f"a search was not answered: {answer.failures[0]}"
        passages = list(case.passages)
        for passage in answer.passages:
            text = (passage.snippet or passage.text)[:_SHOWN_CHARACTERS]
            if text not in {context.text for context in passages}:
                passages.append(
                    Context(
                        f"{case.atom.id}.{len(passages) + 1}",
                        text,
                        title=passage.title,
                        link=passage.link,
                        retrieved_for=(case.atom.id,),
                    )
                )
        if case.open and len(passages) > len(case.passages):
            remaining.append(case)
        case.passages = passages
    return remaining


def _verdict(
    assessor: Assessor, case: _Case, answer: Label | Failure | None, expected: bool
) -> Verdict:
    text, queries = case.fields["claim"], tuple(case.queries)
    if not isinstance(answer, Label):
        missing = case.missing if answer is None else answer.reason
        return Verdict(case.atom.id, case.label, missing=missing, text=text, queries=queries)
    p_true = assessor.values[answer.name]
    if expected and p_true is not None and answer.distribution is not None:
        p_true = _expected(assessor, answer.distribution)
    return Verdict(
        case.atom.id,
        answer.name,
        answer.probability,
        p_true,
        unusable="" if answer.unusable is None else str(answer.unusable),
        text=text,
        queries=queries,
    )


def _expected(assessor: Assessor, distribution: tuple[float, ...]) -> float:
    """Return P(true) averaged over the labels that do not exclude the atom."""
    kept = [
        (value, share)
        for value, share in zip(assessor.values.values(), distribution, strict=True)
        if value is not None
    ]
    return math.fsum(value * share for value, share in kept) / math.fsum(share for _, share in kept)


def assessor_facts(
    assessor: Assessor, model: LanguageModel, verdicts: Iterable[Verdict]
) -> dict[str, Any]:
    """Return metadata on an assessor: its verdicts by id of atom, its model and its prompt.

    `fallbacks` counts the verdicts without a probability of their label, by the reason. An assessor
    with several steps also has `prompts`, and `claims`: by id of atom, the text that was judged and
    the queries.
    """
    listed, prompts = list(verdicts), prompts_of(model)
    facts: dict[str, Any] = {
        "model": model.name,
        "prompt": prompts.identity_of(assessor.prompt),
        "verdicts": {
            verdict.atom: {
                "label": verdict.label,
                "probability": verdict.probability,
                "p": verdict.p_true,
            }
            for verdict in listed
            if not verdict.missing
        },
        **verdict_fallbacks(listed),
        "missing": [[verdict.atom, verdict.missing] for verdict in listed if verdict.missing],
    }
    if assessor.steps:
        facts["prompts"] = [prompts.identity_of(name) for name in assessor.prompts]
        facts["claims"] = {
            verdict.atom: {"text": verdict.text, "queries": list(verdict.queries)}
            for verdict in listed
        }
    return facts


def verdict_fallbacks(verdicts: Iterable[Verdict]) -> dict[str, list[list[Any]]]:
    """Return metadata with the counts of verdicts without a probability, by the reason."""
    return counted_fallbacks(
        (LABEL_ALONE, verdict.unusable) for verdict in verdicts if verdict.unusable
    )


def posteriors(verdicts: tuple[Verdict, ...]) -> dict[str, float]:
    """Return P(true) by id of atom, without missing verdicts and dropped atoms."""
    return {verdict.atom: verdict.p_true for verdict in verdicts if verdict.p_true is not None}


def shown_passages(contexts: Iterable[Context]) -> str:
    """Return numbered passages for a prompt, without empty ones."""
    return "\n".join(
        f"[{number}] {context.title}: {text}" if context.title else f"[{number}] {text}"
        for number, context in enumerate(contexts, 1)
        if (text := context.content)
    )


def get_assessor(name: str) -> Assessor:
    """Return the assessor with a given name.

    Raises:
        InputError: if no assessor has that name.
    """
    if name not in ASSESSORS:
        without_search = [assessor.name for assessor in ASSESSORS.values() if not assessor.searches]
        searching = [assessor.name for assessor in ASSESSORS.values() if assessor.searches]
        raise InputError(
            f"the assessor {name!r} is unknown; use one of {', '.join(without_search)}, or "
            f"{', '.join(searching)} if claims are searched for"
        )
    return ASSESSORS[name]
