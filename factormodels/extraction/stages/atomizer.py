"""The first stage: a response taken apart into atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.language_model.answers import (
    json_values,
    list_items,
    plain_claim,
    says_none,
)
from factormodels.extraction.sentences import Chunk, split_chunks, split_sentences
from factormodels.extraction.stages.asking import Question, ask_all, ask_chunks

STAGE = "atomizer"
PROMPT = "atomizer"

_TOKENS_PER_SENTENCE = 400
_MOST_TOKENS = 8000


@dataclass(frozen=True, slots=True)
class Atomized:
    """What a language model made of a response.

    Attributes:
        atoms: its claims in order, each with its sentence; repeated claims are kept.
        chunks: number of chunks that were asked about, those that were cut in two as two.
        calls: number of questions, also about chunks that were then cut in two.
        failures: (first sentence of the chunk, reason) of chunks without an answer: the claims of
            these sentences are missing, which is not the same as having none.
    """

    atoms: tuple[Atom, ...]
    chunks: int
    calls: int
    failures: tuple[tuple[int, str], ...]


def sentence_atoms(response: str, language: str | None = None) -> tuple[Atom, ...]:
    """One atom per sentence of a response, as it stands there: the path without a model.

    A sentence is no atomic claim: it may hold several, and pronouns stay unresolved, so that one
    wrong detail is not told apart from what is right beside it. Judge results accordingly.

    Args:
        response: the response.
        language: as `split_sentences` takes it.

    Raises:
        InputError: if the language does not have the form of a code.
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
    stride: int | None = None,
    language: str | None = None,
) -> Atomized:
    """Atoms that a language model finds in a response.

    A chunk whose answer is longer than an answer may be is asked about in halves.

    Args:
        response: the response.
        model: the language model.
        query: what was asked.
        stride: sentences per call: None is the whole response at once, as FactReasoner's Atomizer
            reads it; 1 is sentence by sentence, as FActScore does.
        language: as `split_sentences` takes it.

    Raises:
        InputError: if the stride is not a whole number from 1, or the language does not have the
            form of a code.

    Source: FactReasoner, section 3.3 and table 28; FaStfact, section 4.1, for the stride.
    """
    chunks = split_chunks(split_sentences(response, language), stride)

    def ask(some: Sequence[Chunk]) -> list[_Claims | Failure]:
        return ask_all(model, PROMPT, STAGE, [_question(one, query, response) for one in some])

    answers, calls = ask_chunks(chunks, ask)
    atoms: list[Atom] = []
    failures: list[tuple[int, str]] = []
    for chunk, found in answers:
        if isinstance(found, Failure):
            failures.append((chunk.first, found.reason))
            continue
        for sentence, claim in found:
            atoms.append(Atom(f"a{len(atoms) + 1}", claim, sentence=sentence))
    return Atomized(tuple(atoms), len(answers), calls, tuple(failures))


def _question(chunk: Chunk, query: str, response: str) -> Question[_Claims]:
    return Question(
        {"question": query, "response": response, "sentences": chunk.numbered},
        lambda value: _claims(value, chunk),
        min(_MOST_TOKENS, _TOKENS_PER_SENTENCE * len(chunk.sentences)),
        lambda text: _listed_claims(text, chunk),
    )


_Claims = list[tuple[int | None, str]]
"""(sentence, claim); None where a chunk has several and the answer does not say which."""


def _claims(value: Any, chunk: Chunk) -> _Claims | None:
    """Claims of a JSON value: a list, or one under "claims"; None unless all can be read."""
    first, last = chunk.first, chunk.first + len(chunk.sentences) - 1
    if isinstance(value, dict):
        value = value.get("claims", value.get("facts"))
    if not isinstance(value, list):
        return None
    claims: _Claims = []
    for item in value:
        only = first if first == last else None
        found = {"sentence": only, "claim": item} if isinstance(item, str) else item
        if not isinstance(found, dict) or not {"claim"} <= found.keys() <= {"sentence", "claim"}:
            return None
        number, claim = found.get("sentence", only), found["claim"]
        if isinstance(number, str) and number.strip().isdecimal():
            number = int(number)
        if number is not None and (type(number) is not int or not first <= number <= last):
            return None
        if claim is None or (isinstance(claim, str) and says_none(claim)):
            continue
        claim = plain_claim(claim, chunk.text) if isinstance(claim, str) else ""
        if not claim:
            return None
        claims.append((number, claim))
    # Claims of a sentence stay in their order, and sentences in theirs.
    if all(number is not None for number, _ in claims):
        claims.sort(key=lambda item: item[0] or 0)
    return claims


def _listed_claims(text: str, chunk: Chunk) -> _Claims | None:
    """Claims of an answer that is one object per line, a list in words, or says there are none."""
    objects = [value for value in json_values(text) if isinstance(value, dict)]
    if objects:
        return _claims(objects, chunk)
    if says_none(text):
        return []
    items = list_items(text)
    return None if items is None else _claims(items, chunk)
