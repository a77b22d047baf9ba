"""Judgments of a model on its own claims: directly, or by question and answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.errors import InputError
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_all, ask_one
from factormodels.extraction.asking.self_answers import SelfJudgment, SelfSetting
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.asking.table import SELF_SETTINGS
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.fact_graph import FactGraph


@dataclass(frozen=True, slots=True)
class SelfJudgedClaim:
    """Judgments of a model on a claim.

    Attributes:
        claim: id of the atom.
        judgments: judgments by name of setting; missing ones are absent.
        missing: reasons for missing judgments, by name of setting.
        pair: the question and the answer made from the claim; None if not needed or not made.
    """

    claim: str
    judgments: Mapping[str, SelfJudgment]
    missing: Mapping[str, str]
    pair: tuple[str, str] | None = None


def judge_own_claims(
    graph: FactGraph,
    model: LanguageModel,
    *,
    settings: Sequence[str] = tuple(SELF_SETTINGS),
) -> tuple[SelfJudgedClaim, ...]:
    """Return the judgments on a response's claims by the model that wrote it, in order.

    An answer that a claim is neither true nor false, or cannot be determined, is "neither", as in
    the paper; an answer that is not understood is missing.

    Args:
        graph: the claims; its topic, or else its query, gives their subject.
        model: the model that wrote the response; it also makes the questions.
        settings: names of `SELF_SETTINGS`.

    Raises:
        InputError: if a setting is unknown.

    Source: Self-Known paper, section 3 and appendix B.
    """
    wanted = [_named(name) for name in settings]
    topic = graph.topic or graph.query
    pairs: list[tuple[str, str] | Failure | None] = [None] * len(graph.atoms)
    if any(setting.needs_pair for setting in wanted):
        pairs = [
            *ask_all(
                model,
                [
                    Question(table.CLAIM_AS_QUESTION, {"topic": topic, "claim": atom.text})
                    for atom in graph.atoms
                ],
            )
        ]
    cases = [
        (setting, atom, pair)
        for atom, pair in zip(graph.atoms, pairs, strict=True)
        for setting in wanted
    ]

    async def ask(
        case: tuple[SelfSetting, Atom, tuple[str, str] | Failure | None],
    ) -> SelfJudgment | Failure:
        setting, atom, pair = case
        fields = {"topic": topic, "claim": atom.text}
        if setting.needs_pair:
            if not isinstance(pair, tuple):
                return pair or Failure("no question was made from the claim")
            fields = {"question": pair[0], "answer": pair[1]}
        return await ask_one(model, Question(setting.stage, fields))

    answers = run_until_done(each(ask, cases))
    by_claim: list[list[tuple[str, SelfJudgment | Failure]]] = [[] for _ in graph.atoms]
    for number, ((setting, _, _), answer) in enumerate(zip(cases, answers, strict=True)):
        by_claim[number // len(wanted)].append((setting.name, answer))
    return tuple(
        SelfJudgedClaim(
            atom.id,
            {name: answer for name, answer in claim_answers if isinstance(answer, SelfJudgment)},
            {name: answer.reason for name, answer in claim_answers if isinstance(answer, Failure)},
            pair if isinstance(pair, tuple) else None,
        )
        for atom, pair, claim_answers in zip(graph.atoms, pairs, by_claim, strict=True)
    )


def claim_records(graph: FactGraph, judged: Iterable[SelfJudgedClaim]) -> list[dict[str, Any]]:
    """Return records of claims for `calibration.self_knowledge`, as JSON objects.

    A claim without a human label has no record; missing settings are left out.

    Args:
        graph: the claims with their labels; metadata `sentences`: number of the response's
            sentences.
        judged: the model's judgments.

    Raises:
        InputError: if a labeled claim has no sentence index, the response has no number of
            sentences, or a judged claim is not in the graph.
    """
    atoms = {atom.id: atom for atom in graph.atoms}
    records = []
    for claim in judged:
        if claim.claim not in atoms:
            raise InputError(f"response {graph.id!r} has no claim {claim.claim!r}; give its graph")
        atom = atoms[claim.claim]
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
                "judgments": {
                    name: judgment.judgment for name, judgment in claim.judgments.items()
                },
                "log_probabilities": {
                    name: dict(judgment.log_probabilities)
                    for name, judgment in claim.judgments.items()
                    if judgment.log_probabilities
                },
            }
        )
    return records


def human_label(atom: Atom) -> str | None:
    """Return the human label of a claim, S, NS or IR; None if there is none."""
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
    if name not in SELF_SETTINGS:
        raise InputError(f"the setting {name!r} is unknown; use one of {', '.join(SELF_SETTINGS)}")
    return SELF_SETTINGS[name]
