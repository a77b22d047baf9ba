"""Answers with a language model's confidence in each claim, and people's labels.

Source: Mohri and Hashimoto 2024, "Language Models with Conformal Factuality Guarantees",
tatsu-lab/conformal-factual-lm (`data`, a list of answers whose `claims` have `subclaim`,
`gpt-score` and `annotation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, filled, named, placed, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.validation import validated_probability

CONFIDENCE = "confidence"
"""Metadata key of the model's confidence in each atom."""

RIGHT = "Y"
"""Annotation that means true; all others mean false."""

_ANNOTATIONS = (RIGHT, "N", "S", "U")


class ConfidentClaim(ToolRecord):
    """A claim with the model's confidence and a person's letter."""

    subclaim: str
    annotation: str
    gpt_score: Any = named("gpt-score", None)


class ConfidentAnswer(ToolRecord):
    """An answer with its claims."""

    claims: list[ConfidentClaim]
    original_output: str = named("original-output")
    prompt: str | None = None


class ConfidentAnswers(ToolRecord):
    """A file of several answers."""

    data: list[ConfidentAnswer]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an answer whose claims have a confidence, or a list of such
    answers.
    """
    answers = record.get("data")
    answer = answers[0] if isinstance(answers, list) and answers else record
    return isinstance(answer, dict) and {"original-output", "claims"} <= answer.keys()


def read(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return the fact graphs of answers: an atom per claim, with its confidence in the metadata.

    Raises:
        InputError: if the record is malformed, an annotation unknown, or a confidence not a share.
    """
    name, top = record_id(source, line), root_path(source, line)
    if not isinstance(obj, dict) or "data" not in obj:
        return [_graph(record_of(ConfidentAnswer, obj, source, line), name, top)]
    answers = record_of(ConfidentAnswers, obj, source, line).data
    return [
        _graph(answer, f"{name}-{number}", where)
        for number, (answer, where) in enumerate(placed(answers, f"{top}.data"), 1)
    ]


def _graph(answer: ConfidentAnswer, name: str, top: str) -> FactGraph:
    atoms, sure = [], {}
    for number, (claim, where) in enumerate(placed(answer.claims, f"{top}.claims"), 1):
        text = filled(claim.subclaim, f"{where}.subclaim")
        label = claim.annotation.strip()
        if label not in _ANNOTATIONS:
            raise InputError(
                f"{where}.annotation: {shown(label)} is not an annotation; use one of "
                f"{', '.join(_ANNOTATIONS)}"
            )
        atoms.append(Atom(f"a{number}", text, label=label == RIGHT, annotation=label))
        sure[f"a{number}"] = validated_probability(claim.gpt_score, f"{where}.gpt-score")
    return FactGraph(
        name,
        tuple(atoms),
        query=(answer.prompt or "").strip(),
        response=answer.original_output,
        metadata={CONFIDENCE: sure},
    )


FORMAT = Format(
    name="self-judged",
    title="answers whose claims have a model's own confidence",
    owner="tatsu-lab/conformal-factual-lm",
    holds="responses",
    keys=("original-output", "claims"),
    recognize=recognize,
    read=read,
    record=ConfidentAnswer,
    also=("data",),
)
