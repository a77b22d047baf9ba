"""Search queries for checking atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.claims import Atom
from factormodels.extraction.asking import table
from factormodels.extraction.asking.loop import ask_each
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries, one per atom.

    Attributes:
        texts: the queries, in order of the atoms; from `build_query` if there was no answer.
        failures: (id of the atom, reason) of atoms without an answer.
    """

    texts: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]


def build_query(atom: Atom, topic: str = "") -> str:
    """Return a query for an atom: its text, after the topic unless the text names it."""
    text = " ".join(atom.text.split())
    subject = " ".join(topic.split())
    if not subject or subject.casefold() in text.casefold():
        return text
    return f"{subject} {text}".strip()


def ask_queries(atoms: Sequence[Atom], model: LanguageModel, *, topic: str = "") -> Queries:
    """Return a language model's query for each atom, with one call per atom."""
    questions = {
        atom.id: Question(table.QUERIES, {"topic": topic, "claim": atom.text}) for atom in atoms
    }
    texts, failures = ask_each(model, questions)
    return Queries(
        tuple(texts.get(atom.id) or build_query(atom, topic) for atom in atoms), failures
    )
