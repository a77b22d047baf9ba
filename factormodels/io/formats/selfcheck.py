"""SelfCheckGPT's passages: sentences with people's labels and a language model's votes.

Source: Manakul et al. 2023, "SelfCheckGPT: Zero-Resource Black-Box Hallucination Detection for
Generative Large Language Models", as published by KAIST-CS584-HCI/selfcheckgpt-replication with the
answers (`main_sentences`, `annotation`, `responses.prompt`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, record_of, root_path
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.nouns import counted

VOTES = "votes"
"""Metadata key of the answers for each atom, one letter each."""

ACCURATE = "accurate"
"""Annotation that means true; all others mean false."""

_ANNOTATIONS = (ACCURATE, "minor_inaccurate", "major_inaccurate")
_LETTERS = {"Yes": "Y", "No": "N"}


class SelfcheckAnswers(ToolRecord):
    """The answers of a model, a list for each sentence."""

    prompt: list[Any]


class SelfcheckPassage(ToolRecord):
    """A passage by sentences."""

    responses: SelfcheckAnswers
    main_sentences: list[str] | None = None
    annotation: list[str] | None = None
    main_passage: str | None = None
    wiki_bio_test_idx: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has sentences with annotations and answers."""
    return {"main_sentences", "annotation", "responses"} <= record.keys()


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a passage: an atom per sentence, with its votes in the metadata.

    Raises:
        InputError: if the record is malformed, or an annotation or answer unknown.
    """
    passage, top = record_of(SelfcheckPassage, obj, source, line), root_path(source, line)
    sentences, labels = passage.main_sentences or [], passage.annotation or []
    answers = passage.responses.prompt
    if not len(sentences) == len(labels) == len(answers):
        raise InputError(
            f"{location(source, line)}: there are {counted(len(sentences), 'sentence')}, "
            f"{counted(len(labels), 'annotation')} and answers "
            f"on {len(answers)}; give each of every sentence"
        )
    atoms = []
    for number, (text, label) in enumerate(zip(sentences, labels, strict=True), 1):
        if label not in _ANNOTATIONS:
            raise InputError(
                f"{top}.annotation[{number - 1}]: {shown(label)} is not an annotation; use one of "
                f"{', '.join(_ANNOTATIONS)}"
            )
        atoms.append(
            Atom(f"a{number}", text, label=label == ACCURATE, annotation=label, sentence=number)
        )
    votes = {
        f"a{number}": _letters(asked, f"{top}.responses.prompt[{number - 1}]")
        for number, asked in enumerate(answers, 1)
    }
    index = passage.wiki_bio_test_idx
    return FactGraph(
        record_id(source, line) if index is None else f"wikibio-{index}",
        tuple(atoms),
        response=passage.main_passage or "",
        metadata={"sentences": len(atoms), VOTES: votes},
    )


def _letters(answers: object, where: str) -> str:
    """Return the answers for a sentence, one letter each."""
    if not isinstance(answers, list) or not all(
        isinstance(answer, str) and answer in _LETTERS for answer in answers
    ):
        raise InputError(f"{where}: {shown(answers)} is not a list of answers; give Yes or No each")
    return "".join(_LETTERS[answer] for answer in answers)


FORMAT = Format(
    name="selfcheck",
    title="SelfCheckGPT, passages with labels and votes",
    owner="potsawee/wiki_bio_gpt3_hallucination; KAIST-CS584-HCI/selfcheckgpt-replication",
    holds="responses",
    keys=("main_sentences", "annotation", "responses"),
    recognize=recognize,
    read=read,
    record=SelfcheckPassage,
    fields=(
        "wiki_bio_test_idx",
        "main_passage",
        "main_sentences",
        "annotation",
        "responses.prompt",
    ),
    also=("wiki_bio_text",),
)
