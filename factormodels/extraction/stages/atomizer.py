"""The first stage: splitting a response into atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.claims import Atom
from factormodels.extraction.asking import table
from factormodels.extraction.asking.claim_lists import SentenceClaims
from factormodels.extraction.asking.loop import ask_all, ask_chunks
from factormodels.extraction.asking.stage import Question
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.sentences import Chunk, split_chunks, split_sentences


@dataclass(frozen=True, slots=True)
class Atomized:
    """Atoms that a language model extracted from a response.

    Attributes:
        atoms: its claims in order, each with its sentence; repeated claims are kept.
        chunks: number of chunks asked about; a chunk that was split counts as two.
        calls: number of questions, including those about chunks that were then split.
        failures: (first sentence of the chunk, reason) of chunks without an answer: the claims of
            these sentences are missing, which differs from having none.
    """

    atoms: tuple[Atom, ...]
    chunks: int
    calls: int
    failures: tuple[tuple[int, str], ...]


def sentence_atoms(response: str, language: str | None = None) -> tuple[Atom, ...]:
    """Make an atom of each sentence of a response, verbatim; no model is needed.

    A sentence is not an atomic claim: it may contain several claims, only some of them wrong, and
    its pronouns are not resolved. Interpret results accordingly.

    Args:
        response: the response.
        language: as in `split_sentences`.

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
    """Return the atoms that a language model extracts from a response.

    A chunk whose answer exceeds the maximum length is split into halves.

    Args:
        response: the response.
        model: the language model.
        query: the question that was asked.
        stride: sentences per call: None is the whole response at once, as in FactReasoner's
            Atomizer; 1 is sentence by sentence, as in FActScore.
        language: as in `split_sentences`.

    Raises:
        InputError: if the stride is not a whole number from 1, or the language does not have the
            form of a code.

    Source: FactReasoner, section 3.3 and table 28; FaStfact, section 4.1, for the stride.
    """
    chunks = split_chunks(split_sentences(response, language), stride)

    def ask(some: Sequence[Chunk]) -> list[SentenceClaims | Failure]:
        asked = {"question": query, "response": response}
        return ask_all(
            model,
            [
                Question(
                    table.ATOMIZER,
                    {**asked, "sentences": chunk.numbered},
                    about=chunk,
                    parts=len(chunk.sentences),
                )
                for chunk in some
            ],
        )

    answers, calls = ask_chunks(chunks, ask)
    atoms: list[Atom] = []
    failures: list[tuple[int, str]] = []
    for chunk, answer in answers:
        if isinstance(answer, Failure):
            failures.append((chunk.first, answer.reason))
            continue
        for sentence, claim in answer:
            atoms.append(Atom(f"a{len(atoms) + 1}", claim, sentence=sentence))
    return Atomized(tuple(atoms), len(answers), calls, tuple(failures))
