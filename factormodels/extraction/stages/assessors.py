"""Assessors that judge atoms by prompting alone: the baselines that graph models are compared with.

The same atoms and contexts go in as into a graph model, and a probability of being true comes out
for each atom, so that both stand in the same table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.errors import InputError
from factormodels.extraction.concurrency import MOST_WAITING, each, run_until_done
from factormodels.extraction.language_model import Failure, LanguageModel, Request
from factormodels.extraction.language_model.answers import unreadable
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.relation_models.base import counted_fallbacks
from factormodels.extraction.stages.asking import identity_of
from factormodels.fact_graph import FactGraph
from factormodels.words import NOT_SUPPORTED

_WORD_TOKENS = 16
_REASONING_TOKENS = 1024
_TOP_LOGPROBS = 5
LABEL_ALONE = "label alone"
"""Origin of a verdict whose label has no probability."""

_SUPPORTED, _CONTRADICTED = "supported", "contradicted"


@dataclass(frozen=True)
class Assessor:
    """A way to judge an atom by a prompt.

    Attributes:
        name: the name in tables.
        prompt: name of its template.
        values: P(true) by label, in the order of the labels; None drops the atom from the score.
        reads_evidence: whether it is shown passages.
        reasons: whether words come before the label.
        source: the paper whose assessor this is.
        words: other words that mean a label, lower case.
    """

    name: str
    prompt: str
    values: Mapping[str, float | None]
    reads_evidence: bool = True
    reasons: bool = False
    source: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order."""
        return tuple(self.values)

    @property
    def max_tokens(self) -> int:
        """The longest answer, in tokens."""
        return _REASONING_TOKENS if self.reasons else _WORD_TOKENS


_THREE = MappingProxyType({_SUPPORTED: 1.0, _CONTRADICTED: 0.0, "undecided": 0.5})


def unsupported_as(label: str) -> Mapping[str, str]:
    """Return a label by each verdict that the evidence does not support a claim."""
    return MappingProxyType(dict.fromkeys(NOT_SUPPORTED, label))


ASSESSORS: Mapping[str, Assessor] = MappingProxyType(
    {
        one.name: one
        for one in (
            Assessor(
                "factscore",
                "assess_factscore",
                # What the passages do not bear out is undecided: FactReasoner's tables 3 to 7 count
                # it under #U and none under #C.
                MappingProxyType({"true": 1.0, "false": 0.5}),
                source="Min et al. 2023",
                words=MappingProxyType({**unsupported_as("false"), "not true": "false"}),
            ),
            Assessor(
                "factverify",
                "assess_factverify",
                _THREE,
                reasons=True,
                source="Bayat et al. 2025",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "veriscore",
                "assess_veriscore",
                _THREE,
                source="Song et al. 2024",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "own-knowledge",
                "assess_own_knowledge",
                _THREE,
                reads_evidence=False,
                reasons=True,
                source="what a model knows without any passage, to be compared with",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "evidence-and-knowledge",
                "assess_evidence_and_knowledge",
                _THREE,
                reasons=True,
                source="FactReasoner, table 34, the row of DeepSeek-v3",
                words=unsupported_as("undecided"),
            ),
            Assessor(
                "fastfact",
                "assess_fastfact",
                MappingProxyType(
                    {
                        _SUPPORTED: 1.0,
                        "refuted": 0.0,
                        "conflicting": 0.5,
                        "insufficient": 0.5,
                        "unverifiable": None,
                    }
                ),
                reasons=True,
                source="FaStfact, section 4.3",
                words=unsupported_as("insufficient"),
            ),
        )
    }
)
"""The assessors of the papers. A claim that is undecided has P(true) 1/2: it is not supported."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an assessor says of an atom.

    Attributes:
        atom: id of the atom.
        label: the label; "" where there is none.
        probability: of the label among the labels; None if log-probabilities give none.
        p_true: P(true) that the label stands for, or, with log-probabilities, that all labels
            stand for on average; None where the atom is dropped or missing.
        missing: why there is no label; "" where there is one.
        unusable: why the label has no probability; "" where it has one, or there is no label.
    """

    atom: str
    label: str = ""
    probability: float | None = None
    p_true: float | None = None
    missing: str = ""
    unusable: str = field(default="", compare=False)

    @property
    def dropped(self) -> bool:
        """Whether the label takes the atom out of the score."""
        return bool(self.label) and self.p_true is None


def assess(
    graph: FactGraph,
    assessor: str | Assessor,
    model: LanguageModel,
    *,
    all_contexts: bool = False,
    expected: bool = False,
    concurrency: int = MOST_WAITING,
) -> tuple[Verdict, ...]:
    """Assessor's verdict on every atom, in order.

    Args:
        graph: the atoms and contexts; relations play no part.
        assessor: a name of `ASSESSORS`, or an assessor of one's own.
        model: the language model that judges.
        all_contexts: whether every atom is shown every context, in place of those retrieved for it.
        expected: whether P(true) is averaged over the labels by their probabilities, where there
            are log-probabilities that can be used; otherwise it is that of the label alone, as the
            papers count.
        concurrency: most atoms that wait for the model at a time.

    Raises:
        InputError: for an unknown assessor.
    """
    known = assessor if isinstance(assessor, Assessor) else get_assessor(assessor)

    async def judge(atom: Atom) -> Verdict:
        return await _judge(graph, atom, known, model, all_contexts, expected)

    return tuple(run_until_done(each(judge, graph.atoms, concurrency)))


def assessor_facts(
    assessor: Assessor, model: LanguageModel, verdicts: Iterable[Verdict]
) -> dict[str, Any]:
    """What the metadata of a graph hold of an assessor: who said what of its atoms, by id.

    `fallbacks` counts the verdicts that have a label alone, by why log-probabilities give it no
    probability.
    """
    told = list(verdicts)
    return {
        "model": model.name,
        "prompt": identity_of(assessor.prompt, prompts_of(model)),
        "verdicts": {
            one.atom: {"label": one.label, "probability": one.probability, "p": one.p_true}
            for one in told
            if not one.missing
        },
        **verdict_fallbacks(told),
        "missing": [[one.atom, one.missing] for one in told if one.missing],
    }


def verdict_fallbacks(verdicts: Iterable[Verdict]) -> dict[str, list[list[Any]]]:
    """Metadata that count verdicts without a probability by the reason, as `counted_fallbacks`."""
    return counted_fallbacks(
        (LABEL_ALONE, verdict.unusable) for verdict in verdicts if verdict.unusable
    )


def posteriors(verdicts: tuple[Verdict, ...]) -> dict[str, float]:
    """P(true) by id of atom, of the atoms that are neither missing nor dropped."""
    return {one.atom: one.p_true for one in verdicts if one.p_true is not None}


async def _judge(
    graph: FactGraph,
    atom: Atom,
    assessor: Assessor,
    model: LanguageModel,
    all_contexts: bool,
    expected: bool,
) -> Verdict:
    prompt = prompts_of(model)[assessor.prompt]
    fields = {"claim": atom.text}
    if assessor.reads_evidence:
        fields["passages"] = shown_passages(
            one for one in graph.contexts if all_contexts or atom.id in one.retrieved_for
        )
    answer = await model.complete(
        Request(
            messages=prompt.render(**fields),
            prompt=prompt.identity,
            stage=assessor.name,
            max_tokens=assessor.max_tokens,
            top_logprobs=_TOP_LOGPROBS,
            seed=0,
            fault=lambda one: prompt.label_fault(one, assessor.labels, assessor.words),
        )
    )
    if isinstance(answer, Failure):
        return Verdict(atom.id, missing=answer.reason)
    found = prompt.read_label(answer, assessor.labels, assessor.words)
    if found is None:
        fault = prompt.label_fault(answer, assessor.labels, assessor.words)
        return Verdict(atom.id, missing=unreadable(answer, fault).reason)
    p_true = assessor.values[found.name]
    if expected and p_true is not None and found.distribution is not None:
        p_true = _expected(assessor, found.distribution)
    unusable = "" if found.unusable is None else str(found.unusable)
    return Verdict(atom.id, found.name, found.probability, p_true, unusable=unusable)


def _expected(assessor: Assessor, distribution: tuple[float, ...]) -> float:
    """P(true) averaged over the labels that keep the atom."""
    kept = [
        (value, share)
        for value, share in zip(assessor.values.values(), distribution, strict=True)
        if value is not None
    ]
    return math.fsum(value * share for value, share in kept) / math.fsum(share for _, share in kept)


def shown_passages(contexts: Iterable[Context]) -> str:
    """Passages as a prompt shows them, each with its number; what says nothing is left out."""
    return "\n".join(
        f"[{number}] {one.title}: {text}" if one.title else f"[{number}] {text}"
        for number, one in enumerate(contexts, 1)
        if (text := one.content)
    )


def get_assessor(name: str) -> Assessor:
    """Assessor of a name.

    Raises:
        InputError: if there is none.
    """
    if name not in ASSESSORS:
        raise InputError(
            f"the assessor {name!r} is unknown; use one of {', '.join(ASSESSORS)}, or safe where "
            "claims are searched for"
        )
    return ASSESSORS[name]
