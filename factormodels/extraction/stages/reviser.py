"""The second stage: atoms that can be understood without the response (decontextualization)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from factormodels.claims import Atom
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_each
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.language_model.answers import plain_claim


@dataclass(frozen=True, slots=True)
class Revised:
    """Atoms rewritten to be understood without the response.

    Attributes:
        atoms: the atoms with their new texts, in order; the old text if there was no answer.
        changed: number of atoms whose text changed.
        failures: (id of the atom, reason) of atoms without an answer.
    """

    atoms: tuple[Atom, ...]
    changed: int
    failures: tuple[tuple[str, str], ...]


def revise(
    atoms: Sequence[Atom], response: str, model: LanguageModel, *, query: str = ""
) -> Revised:
    """Return atoms rewritten by a language model to be self-contained, with one call per atom.

    Source: FactReasoner, section 4 (the Reviser); SAFE's revision step.
    """
    questions = {
        atom.id: Question(
            table.REVISER, {"question": query, "response": response, "claim": atom.text}
        )
        for atom in atoms
    }
    texts, failures = ask_each(model, questions)
    revised = tuple(
        replace(atom, text=plain_claim(texts.get(atom.id, ""), atom.text) or atom.text)
        for atom in atoms
    )
    changed = sum(atom.text != other.text for atom, other in zip(atoms, revised, strict=True))
    return Revised(revised, changed, failures)
