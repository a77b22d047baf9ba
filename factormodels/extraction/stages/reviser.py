"""The second stage: atoms that can be understood without the response (decontextualisation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from factormodels.claims import Atom
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.language_model.answers import plain_claim
from factormodels.extraction.stages.asking import Question, ask_all, text_at

STAGE = "reviser"
PROMPT = "reviser"

_TOKENS = 300


@dataclass(frozen=True, slots=True)
class Revised:
    """Revised atoms.

    Attributes:
        atoms: the atoms with their new texts, in order; the old text where there was no answer.
        changed: number of atoms with another text than before.
        failures: (id of the atom, reason) of those without an answer.
    """

    atoms: tuple[Atom, ...]
    changed: int
    failures: tuple[tuple[str, str], ...]


def revise(
    atoms: Sequence[Atom], response: str, model: LanguageModel, *, query: str = ""
) -> Revised:
    """Atoms that a language model rewrote to be understood alone, one call for each.

    Source: FactReasoner, section 4 (the Reviser); SAFE's revision step.
    """
    questions = [
        Question(
            {"question": query, "response": response, "claim": atom.text}, text_at("claim"), _TOKENS
        )
        for atom in atoms
    ]
    revised: list[Atom] = []
    failures: list[tuple[str, str]] = []
    for atom, found in zip(atoms, ask_all(model, PROMPT, STAGE, questions), strict=True):
        if isinstance(found, Failure):
            failures.append((atom.id, found.reason))
            revised.append(atom)
        else:
            revised.append(replace(atom, text=plain_claim(found, atom.text) or atom.text))
    changed = sum(one.text != other.text for one, other in zip(atoms, revised, strict=True))
    return Revised(tuple(revised), changed, tuple(failures))
