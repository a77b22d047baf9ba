"""RefChecker: claims of responses as triplets, labelled by people and by its checkers.

Source: Hu et al. 2024, "RefChecker: Reference-based Fine-grained Hallucination Checker and
Benchmark for Large Language Models", amazon-science/RefChecker (Apache-2.0; annotations CC BY 4.0).
Relied on: benchmark/human_annotations_v1 (`id`, `response` and a list such as
`claude2_response_kg` of objects with `triplet` and `human_label`),
benchmark/evaluation/autocheck.py (which adds a checker's label, such as `nli_label`),
refchecker/cli.py (`response`, `question`,
`reference`, `triplets` or `claims`, and the labels `ys`) and refchecker/base.py (claims as objects
with `format` and `content`).

A person's Entailment is true and Contradiction false. Neutral, which the reference neither supports
nor contradicts, is no label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_text,
    first_key,
    list_field,
    named_id,
    objects_field,
    shown,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.judged_claims import (
    assessor_metadata,
    inference_label,
    inference_verdict,
)
from factormodels.io.records import Source
from factormodels.nouns import counted
from factormodels.recorded_verdicts import CONTRADICTED, SUPPORTED, RecordedVerdict

REFCHECKER = "refchecker"
"""Name of the assessor; that of a checker follows where the file tells it."""

_EXTRACTED = "_response_kg"
_LABEL = "_label"
_HUMAN = "human_label"
_LISTS = ("claims", "triplets")


def looks_like_refchecker(record: Mapping[str, Any]) -> bool:
    """Tell whether a record has a response with claims of one of RefChecker's extractors."""
    if "response" not in record:
        return False
    return (
        any(True for _ in _extracted(record))
        or isinstance(record.get("triplets"), list)
        or ("ys" in record and isinstance(record.get("claims"), list))
    )


def parse_refchecker(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of a response, one for the claims of each extractor.

    The reference is the contexts of the response. It is not said which claim each part was found
    for.

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    record, where = record_at(obj, source, line)
    name = named_id(record, ("id",), where) or record_id(source, line)
    by_extractor = list(_extracted(record))
    if not by_extractor:
        return [_graph(record, name, *_checked(record, where), where)]
    graphs = []
    for key in by_extractor:
        atoms, verdicts = _annotated(record, key, where)
        extractor = key.removesuffix(_EXTRACTED)
        graph_name = name if len(by_extractor) == 1 else f"{name}-{extractor}"
        graphs.append(_graph(record, graph_name, atoms, verdicts, where, extractor))
    return graphs


_Verdicts = dict[str, dict[str, RecordedVerdict | None]]


def _extracted(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys that hold the claims of an extractor."""
    for key, value in record.items():
        if key.endswith(_EXTRACTED) and isinstance(value, list):
            yield key


def _annotated(record: Mapping[str, Any], key: str, where: str) -> tuple[list[Atom], _Verdicts]:
    """Claims of an extractor with a person's labels and the labels of checkers."""
    atoms: list[Atom] = []
    verdicts: _Verdicts = {}
    for number, (claim, location) in enumerate(objects_field(record, key, where), 1):
        if "triplet" not in claim:
            raise InputError(f"{location}: the key 'triplet' is missing; add it")
        label, word = inference_label(claim.get(_HUMAN), f"{location}: key {_HUMAN!r}")
        text = _claim_text(claim["triplet"], location)
        atoms.append(Atom(f"a{number}", text, label=label, annotation=word))
        for checker, value in claim.items():
            if checker.endswith(_LABEL) and checker != _HUMAN:
                by_claim = verdicts.setdefault(f"{REFCHECKER}: {checker.removesuffix(_LABEL)}", {})
                by_claim[f"a{number}"] = inference_verdict(value, f"{location}: key {checker!r}")
    return atoms, verdicts


def _checked(record: Mapping[str, Any], where: str) -> tuple[list[Atom], _Verdicts]:
    """Claims of an output, with the labels of its checker."""
    key = first_key(record, _LISTS)
    claims = list_field(record, key, where)
    labels = list_field(record, "ys", where, [])
    if labels and len(labels) != len(claims):
        raise InputError(
            f"{where}: there are {counted(len(claims), 'claim')} and "
            f"{counted(len(labels), 'label')} under 'ys'; give "
            "one for each claim"
        )
    atoms = [
        Atom(f"a{number}", _claim_text(claim, f"{where}: {key}[{number - 1}]"))
        for number, claim in enumerate(claims, 1)
    ]
    by_claim = {
        atom.id: _verdict(label, f"{where}: ys[{number}]")
        for number, (atom, label) in enumerate(zip(atoms, labels, strict=False))
    }
    return atoms, {REFCHECKER: by_claim}


def _verdict(label: object, where: str) -> RecordedVerdict | None:
    """Verdict of a label; of labels by parts of the reference as RefChecker merges them."""
    if not isinstance(label, list):
        return inference_verdict(label, where)
    each = [inference_verdict(part, where) for part in label]
    for decisive in (SUPPORTED, CONTRADICTED):
        if decisive in each:
            return decisive
    return next((verdict for verdict in each if verdict is not None), None)


def _claim_text(claim: object, where: str) -> str:
    content = claim.get("content") if isinstance(claim, dict) else claim
    parts = content if isinstance(content, list) else [content]
    text = " ".join(as_text(part, where).strip() for part in parts).strip()
    if not text:
        raise InputError(f"{where}: {shown(claim)} has no text; give a triplet or a sentence")
    return text


def _graph(
    record: Mapping[str, Any],
    name: str,
    atoms: Sequence[Atom],
    verdicts: _Verdicts,
    where: str,
    extractor: str = "",
) -> FactGraph:
    reference = record.get("reference")
    parts = reference if isinstance(reference, list) else [] if reference is None else [reference]
    texts = [as_text(part, f"{where}: key 'reference'").strip() for part in parts]
    return FactGraph(
        name,
        tuple(atoms),
        tuple(Context(f"c{n}", text) for n, text in enumerate(filter(None, texts), 1)),
        query=text_field(record, "question", where, ""),
        response=text_field(record, "response", where, ""),
        metadata=({"extractor": extractor} if extractor else {}) | assessor_metadata(verdicts),
    )
