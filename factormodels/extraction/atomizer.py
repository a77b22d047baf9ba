"""The first stage: a response taken apart into atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.extraction.asking import Question, ask_all
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.sentences import Chunk, split_chunks, split_sentences

STAGE = "atomizer"
PROMPT = "atomizer"

_TOKENS_PER_SENTENCE = 400
_MOST_TOKENS = 8000


@dataclass(frozen=True, slots=True)
class Atomized:
    """What a language model made of a response.

    Attributes:
        atoms: its claims in order, each with its sentence; repeated claims are kept.
        chunks: number of chunks that were asked about.
        failures: (first sentence of the chunk, reason) of chunks without an answer: the claims of
            these sentences are missing, which is not the same as having none.
    """

    atoms: tuple[Atom, ...]
    chunks: int
    failures: tuple[tuple[int, str], ...]


def sentence_atoms(response: str, language: str = "en") -> tuple[Atom, ...]:
    """One atom per sentence of a response, as it stands there: the path without a model.

    A sentence is no atomic claim: it may hold several, and pronouns stay unresolved, so that one
    wrong detail is not told apart from what is right beside it. Judge results accordingly.

    Args:
        response: the response.
        language: two letters, as pysbd names languages.

    Raises:
        InputError: if pysbd does not know the language.
        MissingDependencyError: if pysbd is not installed.
    """
    return tuple(
        Atom(f"a{number}", sentence, sentence=number)
        for number, sentence in enumerate(split_sentences(response, language), start=1)
    )


def atomize(
    response: str,
    model: LanguageModel,
    *,
    query: str = "",
    stride: int | None = 1,
    language: str = "en",
) -> Atomized:
    """Atoms that a language model finds in a response.

    Args:
        response: the response.
        model: the language model.
        query: what was asked.
        stride: sentences per call: 1 is sentence by sentence, None the whole response at once.
        language: two letters, as pysbd names languages.

    Raises:
        InputError: if the stride is no whole number from 1, or pysbd does not know the language.
        MissingDependencyError: if pysbd is not installed.

    Source: FaStfact, section 4.1, for the stride.
    """
    chunks = split_chunks(split_sentences(response, language), stride)
    questions = [_question(chunk, query, response) for chunk in chunks]
    atoms: list[Atom] = []
    failures: list[tuple[int, str]] = []
    for chunk, found in zip(chunks, ask_all(model, PROMPT, STAGE, questions), strict=True):
        if isinstance(found, Failure):
            failures.append((chunk.first, found.reason))
            continue
        for sentence, claim in found:
            atoms.append(Atom(f"a{len(atoms) + 1}", claim, sentence=sentence))
    return Atomized(tuple(atoms), len(chunks), tuple(failures))


def _question(chunk: Chunk, query: str, response: str) -> Question[list[tuple[int, str]]]:
    last = chunk.first + len(chunk.sentences) - 1
    listed = "\n".join(
        f"{number}: {sentence}" for number, sentence in enumerate(chunk.sentences, chunk.first)
    )
    return Question(
        {"question": query, "response": response, "sentences": listed},
        lambda value: _claims(value, chunk.first, last),
        min(_MOST_TOKENS, _TOKENS_PER_SENTENCE * len(chunk.sentences)),
    )


def _claims(value: Any, first: int, last: int) -> list[tuple[int, str]] | None:
    """(sentence, claim) of every object in a list; None unless all are as asked for."""
    if not isinstance(value, list):
        return None
    claims = []
    for item in value:
        if not isinstance(item, dict) or item.keys() != {"sentence", "claim"}:
            return None
        number, claim = item["sentence"], item["claim"]
        if type(number) is not int or not first <= number <= last or not isinstance(claim, str):
            return None
        if not claim.strip():
            return None
        claims.append((number, " ".join(claim.split())))
    # Claims of a sentence stay in their order, and sentences in theirs.
    return sorted(claims, key=lambda item: item[0])
