"""What language models say of claims that people judged: SelfCheckGPT's votes, GPT-4's confidence.

Sources: Manakul et al. 2023, "SelfCheckGPT: Zero-Resource Black-Box Hallucination Detection for
Generative Large Language Models", as KAIST-CS584-HCI/selfcheckgpt-replication publishes it with the
answers (`main_sentences`, `annotation`, `responses.prompt`); Mohri and Hashimoto 2024, "Language
Models with Conformal Factuality Guarantees", tatsu-lab/conformal-factual-lm (`data`, a list of
answers whose `claims` have `subclaim`, `gpt-score` and `annotation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import (
    as_object,
    as_text,
    filled_field,
    list_field,
    objects_field,
    shown,
    text_field,
    texts_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
from factormodels.nouns import counted
from factormodels.validation import validated_probability

VOTES = "votes"
"""Key of the metadata under which each atom has the answers that it was given, a letter each."""

CONFIDENCE = "confidence"
"""Key of the metadata under which each atom has the model's confidence in it."""

ACCURATE, RIGHT = "accurate", "Y"
"""The annotations of either file that mean true; every other one means false."""

_SENTENCES = (ACCURATE, "minor_inaccurate", "major_inaccurate")
_CLAIMS = (RIGHT, "N", "S", "U")
_LETTERS = {"Yes": "Y", "No": "N"}


def looks_like_self_judged(record: Mapping[str, Any]) -> bool:
    """Whether a record has the keys of answers whose claims have a confidence."""
    answers = record.get("data")
    answer = answers[0] if isinstance(answers, list) and answers else record
    return isinstance(answer, dict) and {"original-output", "claims"} <= answer.keys()


def parse_selfcheck(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a passage: an atom per sentence, with its votes in the metadata.

    Raises:
        InputError: if the record is malformed, or an annotation or answer unknown.
    """
    record, where = record_at(obj, source, line)
    sentences = texts_field(record, "main_sentences", where)
    labels = texts_field(record, "annotation", where)
    asked = as_object(record.get("responses"), f"{where}: key 'responses'")
    answers = list_field(asked, "prompt", f"{where}: key 'responses'")
    if not len(sentences) == len(labels) == len(answers):
        raise InputError(
            f"{where}: there are {counted(len(sentences), 'sentence')}, "
            f"{counted(len(labels), 'annotation')} and answers "
            f"on {len(answers)}; give each of every sentence"
        )
    atoms, votes = [], {}
    for number, (text, label, own_answers) in enumerate(
        zip(sentences, labels, answers, strict=True), 1
    ):
        atom = _atom(number, text, label, _SENTENCES, f"{where}: annotation[{number - 1}]")
        atoms.append(replace(atom, sentence=number))
        location = f"{where}: responses.prompt[{number - 1}]"
        if not isinstance(own_answers, list) or not all(
            isinstance(answer, str) and answer in _LETTERS for answer in own_answers
        ):
            raise InputError(
                f"{location}: {shown(own_answers)} is not a list of answers; give Yes or No each"
            )
        votes[f"a{number}"] = "".join(_LETTERS[answer] for answer in own_answers)
    index = record.get("wiki_bio_test_idx")
    return FactGraph(
        record_id(source, line) if index is None else f"wikibio-{index}",
        tuple(atoms),
        response=text_field(record, "main_passage", where, ""),
        metadata={"sentences": len(atoms), VOTES: votes},
    )


def parse_self_judged(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of answers: an atom per claim, with its confidence in the metadata.

    Raises:
        InputError: if the record is malformed, an annotation unknown, or a confidence no share.
    """
    record, where = record_at(obj, source, line)
    if "data" not in record:
        return [_answer(record, where, record_id(source, line))]
    return [
        _answer(answer, location, f"{record_id(source, line)}-{number}")
        for number, (answer, location) in enumerate(objects_field(record, "data", where), 1)
    ]


def _answer(record: dict[str, Any], where: str, name: str) -> FactGraph:
    atoms, sure = [], {}
    for number, (claim, location) in enumerate(objects_field(record, "claims", where), 1):
        label = as_text(claim.get("annotation"), f"{location}: key 'annotation'").strip()
        text = filled_field(claim, "subclaim", location)
        atoms.append(_atom(number, text, label, _CLAIMS, f"{location}: key 'annotation'"))
        location = f"{location}: key 'gpt-score'"
        sure[f"a{number}"] = validated_probability(claim.get("gpt-score"), location)
    return FactGraph(
        name,
        tuple(atoms),
        query=text_field(record, "prompt", where, "").strip(),
        response=text_field(record, "original-output", where),
        metadata={CONFIDENCE: sure},
    )


def _atom(number: int, text: str, label: str, known: tuple[str, ...], where: str) -> Atom:
    if label not in known:
        raise InputError(
            f"{where}: {shown(label)} is not an annotation; use one of {', '.join(known)}"
        )
    true = label in (ACCURATE, RIGHT)
    return Atom(f"a{number}", text, label=true, annotation=label)
