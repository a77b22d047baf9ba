"""The query builder: what is searched for to check an atom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.claims import Atom
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.stages.asking import Question, ask_all, text_at

STAGE = "queries"
PROMPT = "search_query"

_TOKENS = 100


@dataclass(frozen=True, slots=True)
class Queries:
    """One query per atom.

    Attributes:
        texts: the queries, in order of the atoms; that of `build_query` where there was no answer.
        failures: (id of the atom, reason) of those without an answer.
    """

    texts: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]


def build_query(atom: Atom, topic: str = "") -> str:
    """Search for an atom: its text, after the topic where the text does not name it."""
    text = " ".join(atom.text.split())
    subject = " ".join(topic.split())
    if not subject or subject.casefold() in text.casefold():
        return text
    return f"{subject} {text}".strip()


def ask_queries(atoms: Sequence[Atom], model: LanguageModel, *, topic: str = "") -> Queries:
    """Searches that a language model would make, one call for each atom."""
    questions = [
        Question({"topic": topic, "claim": atom.text}, text_at("query"), _TOKENS) for atom in atoms
    ]
    texts: list[str] = []
    failures: list[tuple[str, str]] = []
    for atom, found in zip(atoms, ask_all(model, PROMPT, STAGE, questions), strict=True):
        if isinstance(found, Failure):
            failures.append((atom.id, found.reason))
            texts.append(build_query(atom, topic))
        else:
            texts.append(found)
    return Queries(tuple(texts), tuple(failures))
