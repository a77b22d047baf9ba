"""Claims with labels of people or verdicts of tools, for several readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factormodels.claims import Atom, ModelJudgment, RelationKind
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import (
    ASSESSORS_KEY,
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    RecordedVerdict,
    verdict_facts,
)
from factormodels.words import NO_LABEL, STANCES, folded, truth_of

UNSUPPORTED = RecordedVerdict("unsupported", 0.0)
"""Verdict of a tool that only states that a claim is not supported."""

Judged = tuple[str, RecordedVerdict | None]
"""Text of a claim and its verdict; None if the tool gave no valid one."""

_ABSTAIN = "abstain"
_VERDICTS: Mapping[RelationKind, RecordedVerdict] = {
    RelationKind.ENTAILMENT: SUPPORTED,
    RelationKind.CONTRADICTION: CONTRADICTED,
    RelationKind.NEUTRAL: UNDECIDED,
}

_TRUTHS: Mapping[float | None, bool] = {1.0: True, 0.0: False}


def judged_response(
    name: str,
    judged: Sequence[Judged],
    assessor: str,
    *,
    query: str | None = None,
    response: str | None = None,
) -> FactGraph:
    """Return a response of judged claims, numbered in order."""
    atoms = tuple(Atom(f"a{number}", text) for number, (text, _) in enumerate(judged, 1))
    verdicts = {atom.id: verdict for atom, (_, verdict) in zip(atoms, judged, strict=True)}
    return FactGraph(
        name,
        atoms,
        query=query or "",
        response=response or "",
        metadata=assessor_metadata({assessor: verdicts}),
    )


def truth_word(value: object, where: str) -> tuple[bool | None, str | None]:
    """Return the label of a claim, and the annotator's word for it.

    Args:
        value: true, false, null, or a word for one of them; null and words for neither mean no
            label.
        where: the place, for errors.

    Raises:
        InputError: if it is another word.
    """
    word = folded(value)
    if word in NO_LABEL:
        return None, None
    judgment = truth_of(value) if isinstance(value, bool | int | str) else None
    if judgment is None:
        raise InputError(f"{where}: {shown(value)} is not a label; give true, false or null")
    label = None if judgment is ModelJudgment.NEITHER else judgment is ModelJudgment.TRUE
    return label, word


def inference_verdict(value: object, where: str) -> RecordedVerdict | None:
    """Return the verdict for Entailment, Neutral or Contradiction; None for Abstain or null.

    Raises:
        InputError: if it is another word.
    """
    word = folded(value)
    if word in (*NO_LABEL, _ABSTAIN):
        return None
    verdict = _VERDICTS.get(STANCES[word]) if word in STANCES else None
    if verdict is None:
        raise InputError(
            f"{where}: {shown(value)} is not a label; use Entailment, Neutral, Contradiction or "
            "Abstain"
        )
    return verdict


def inference_label(value: object, where: str) -> tuple[bool | None, str | None]:
    """Return the label for a person's Entailment or Contradiction, and the word.

    Neutral and Abstain are not labels, since they state neither that the claim is true nor that it
    is false.

    Raises:
        InputError: if it is another word.
    """
    verdict = inference_verdict(value, where)
    label = None if verdict is None else _TRUTHS.get(verdict.p_true)
    return label, str(value).strip() if folded(value) not in NO_LABEL else None


def assessor_metadata(
    verdicts: Mapping[str, Mapping[str, RecordedVerdict | None]],
) -> dict[str, Any]:
    """Return the metadata of verdicts by assessor and id of atom, without None."""
    known = {
        name: {atom: verdict for atom, verdict in by_atom.items() if verdict is not None}
        for name, by_atom in verdicts.items()
    }
    facts = {name: verdict_facts(by_atom) for name, by_atom in known.items() if by_atom}
    return {ASSESSORS_KEY: facts} if facts else {}
