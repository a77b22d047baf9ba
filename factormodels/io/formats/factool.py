"""FacTool's datasets: responses with labeled claims.

Source: Chern et al. 2023, "FacTool: Factuality Detection in Generative AI", GAIR-NLP/factool
(Apache-2.0). Based on: datasets/knowledge_qa, math and scientific (`prompt`, `response`, `claims`
with `label`, `label`).

A claim is a text; in mathematics an object with `math_calculation` and `calculated_answer`; for
literature the title, the authors and the year of a paper; for code the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import as_object, as_text
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.judged import truth_word
from factormodels.io.formats.record import (
    ToolRecord,
    filled,
    placed,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source

LEVELS = "claim_level_factuality"
"""Key of the verdicts of an output, which datasets lack."""

_JUDGMENTS = ("label", "factuality", "reasoning", "error", "correction")
"""Keys of a claim that are not part of its content."""

_SUBJECTS = frozenset(("claim", "paper_title"))
"""Keys of the content of a claim; every claim has one of them."""

_METADATA = ("category", "model")


class FactoolResponse(ToolRecord):
    """Common keys of responses in datasets and outputs."""

    prompt: str | None = None
    question: str | None = None
    response: str | None = None
    id: Any = None
    category: Any = None
    model: Any = None

    @property
    def query(self) -> str:
        """The prompt of the model; empty if null."""
        return self.first_of(("prompt", "question"))[1] or ""

    def facts(self) -> dict[str, Any]:
        """Return the facts for the metadata of a graph."""
        values = {key: getattr(self, key) for key in _METADATA}
        return {key: value for key, value in values.items() if isinstance(value, str) and value}


class FactoolLabeled(FactoolResponse):
    """A response with labeled claims."""

    # The keys of a claim depend on its subject.
    claims: list[dict[str, Any]]
    label: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a response and a list of claims, each with a label."""
    claims = record.get("claims")
    if "response" not in record or not isinstance(claims, list) or LEVELS in record:
        return False
    labeled = [
        isinstance(claim, dict) and "label" in claim and not _SUBJECTS.isdisjoint(claim)
        for claim in claims
    ]
    # A record without claims is recognized by the label of the whole response.
    return all(labeled) if claims else "label" in record


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a response with labeled claims.

    The metadata hold `factual`, the label of the whole response.

    Raises:
        InputError: if the record is malformed, or a label is not true, false or null.
    """
    record, top = record_of(FactoolLabeled, obj, source, line), root_path(source, line)
    atoms = [
        claim_atom(claim, number, where)
        for number, (claim, where) in enumerate(placed(record.claims, f"{top}.claims"), 1)
    ]
    factual, _ = truth_word(record.label, f"{top}.label")
    return FactGraph(
        stated_id(record.id, f"{top}.id") or record_id(source, line),
        tuple(atoms),
        query=record.query,
        response=record.response or "",
        metadata=record.facts() | ({} if factual is None else {"factual": factual}),
    )


def claim_atom(claim: object, number: int, where: str) -> Atom:
    """Return the atom of a claim, which is a text or an object of parts.

    Raises:
        InputError: if it has no text, or its label is invalid.
    """
    fields = as_object(claim, where) if isinstance(claim, dict) else {"claim": claim}
    label, word = truth_word(fields.get("label"), f"{where}.label")
    return Atom(f"a{number}", _claim_text(fields, where), label=label, annotation=word)


def _claim_text(fields: Mapping[str, Any], where: str) -> str:
    inner = fields.get("claim", fields)
    if not isinstance(inner, dict):
        return filled(as_text(inner, f"{where}.claim"), f"{where}.claim")
    if {"math_calculation", "calculated_answer"} <= inner.keys():
        return f"{inner['math_calculation']} = {inner['calculated_answer']}"
    parts = [
        as_text(value, f"{where}.{key}")
        for key, value in inner.items()
        # The search results for a paper are evidence and not part of the claim.
        if key not in _JUDGMENTS and not key.startswith("actual") and value is not None
    ]
    if not any(part.strip() for part in parts):
        raise InputError(f"{where}: the claim has no text; give it under 'claim'")
    return ", ".join(parts)


FORMAT = Format(
    name="factool",
    title="FacTool, responses with labeled claims",
    owner="GAIR-NLP/factool, Apache-2.0",
    holds="responses",
    keys=("response", "claims"),
    recognize=recognize,
    read=read,
    record=FactoolLabeled,
    fields=("prompt", "response", "claims[].label", "label"),
    also=("entry_point", "answer", "claims[].claim", "claims[].paper_*"),
)
