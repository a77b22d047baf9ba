"""SelfCheckGPT's passages: sentences with people's labels, sampled passages and a model's votes.

Source: Manakul et al. 2023, "SelfCheckGPT: Zero-Resource Black-Box Hallucination Detection for
Generative Large Language Models", as published by KAIST-CS584-HCI/selfcheckgpt-replication with the
answers (`main_sentences`, `annotation`, `sample_passages`, `responses.prompt`); and its owner's
data, potsawee/wiki_bio_gpt3_hallucination (`gpt3_text`, `gpt3_sentences`, `annotation`,
`gpt3_text_samples`), without votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.cells import listed_texts
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, record_of, root_path
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.nouns import counted
from factormodels.samples import with_samples

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

    responses: SelfcheckAnswers | None = None
    main_sentences: Any = None
    gpt3_sentences: Any = None
    annotation: Any = None
    main_passage: str | None = None
    gpt3_text: str | None = None
    sample_passages: Any = None
    gpt3_text_samples: Any = None
    wiki_bio_test_idx: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has sentences with annotations, and answers or the owner's keys."""
    published = {"main_sentences", "annotation", "responses"} <= record.keys()
    return published or {"gpt3_sentences", "annotation"} <= record.keys()


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a passage: an atom per sentence, the samples as contexts.

    The votes, if there are any, are in the metadata.

    Raises:
        InputError: if the record is malformed, or an annotation or answer unknown.
    """
    passage, top = record_of(SelfcheckPassage, obj, source, line), root_path(source, line)
    named = "gpt3_sentences" if passage.main_sentences is None else "main_sentences"
    sentences = listed_texts(getattr(passage, named), f"{top}.{named}")
    labels = listed_texts(passage.annotation, f"{top}.annotation")
    answers = None if passage.responses is None else passage.responses.prompt
    if len(sentences) != len(labels) or (answers is not None and len(answers) != len(labels)):
        votes = "" if answers is None else f" and answers on {len(answers)}"
        join = " and" if answers is None else ","
        raise InputError(
            f"{location(source, line)}: there are {counted(len(sentences), 'sentence')}{join} "
            f"{counted(len(labels), 'annotation')}{votes}; give each of every sentence"
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
    metadata: dict[str, Any] = {"sentences": len(atoms)}
    if answers is not None:
        metadata[VOTES] = {
            f"a{number}": _letters(asked, f"{top}.responses.prompt[{number - 1}]")
            for number, asked in enumerate(answers, 1)
        }
    sampled = "gpt3_text_samples" if passage.sample_passages is None else "sample_passages"
    index = passage.wiki_bio_test_idx
    graph = FactGraph(
        record_id(source, line) if index is None else f"wikibio-{index}",
        tuple(atoms),
        response=passage.main_passage or passage.gpt3_text or "",
        metadata=metadata,
    )
    return with_samples(graph, listed_texts(getattr(passage, sampled), f"{top}.{sampled}"))


def _letters(answers: object, where: str) -> str:
    """Return the answers for a sentence, one letter each."""
    if not isinstance(answers, list) or not all(
        isinstance(answer, str) and answer in _LETTERS for answer in answers
    ):
        raise InputError(f"{where}: {shown(answers)} is not a list of answers; give Yes or No each")
    return "".join(_LETTERS[answer] for answer in answers)


FORMAT = Format(
    name="selfcheck",
    title="SelfCheckGPT, passages with labels and samples",
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
        "sample_passages",
    ),
    also=("wiki_bio_text", "responses.prompt"),
)
