"""RefChecker: claims of responses as triplets, labeled by people and by its checkers.

Source: Hu et al. 2024, "RefChecker: Reference-based Fine-grained Hallucination Checker and
Benchmark for Large Language Models", amazon-science/RefChecker (Apache-2.0; annotations CC BY 4.0).
Based on: benchmark/human_annotations_v1 (`id`, `response` and a list such as `claude2_response_kg`
of objects with `triplet` and `human_label`), benchmark/evaluation/autocheck.py (which adds a
checker's label, such as `nli_label`), refchecker/cli.py (`response`, `question`, `reference`,
`triplets` or `claims`, and the labels `ys`) and refchecker/base.py (claims as objects with `format`
and `content`).

A person's Entailment is true and Contradiction false. Neutral, which means that the reference
neither supports nor contradicts the claim, is not a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import as_object, as_text, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import (
    assessor_metadata,
    inference_label,
    inference_verdict,
)
from factormodels.io.formats.record import (
    ToolRecord,
    path_of,
    placed,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import CONTRADICTED, SUPPORTED, RecordedVerdict
from factormodels.nouns import counted

REFCHECKER = "refchecker"
"""Name of the assessor, followed by the checker's name if stated in the file."""

_EXTRACTED = "_response_kg"
_LABEL = "_label"
_HUMAN = "human_label"


class RefcheckerResponse(ToolRecord):
    """A response with the claims and labels of RefChecker's command line."""

    response: str | None = None
    question: str | None = None
    reference: Any = None
    id: Any = None
    claims: list[Any] | None = None
    triplets: list[Any] | None = None
    ys: list[Any] | None = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a response with claims of one of RefChecker's extractors."""
    if "response" not in record:
        return False
    return (
        any(True for _ in _extracted(record))
        or isinstance(record.get("triplets"), list)
        or ("ys" in record and isinstance(record.get("claims"), list))
    )


def read(obj: Any, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return the fact graphs of a response, one for the claims of each extractor.

    The reference provides the contexts of the response, without the claim of each part.

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    response, where = record_of(RefcheckerResponse, obj, source, line), location(source, line)
    top = root_path(source, line)
    name = stated_id(response.id, f"{top}.id") or record_id(source, line)
    keys = list(_extracted(obj))
    if not keys:
        return [_graph(response, name, *_checked(response, where), top)]
    graphs = []
    for key in keys:
        atoms, verdicts = _annotated(obj[key], f"{where}: {path_of([key])}")
        extractor = key.removesuffix(_EXTRACTED)
        graph_name = name if len(keys) == 1 else f"{name}-{extractor}"
        graphs.append(_graph(response, graph_name, atoms, verdicts, top, extractor))
    return graphs


_Verdicts = dict[str, dict[str, RecordedVerdict | None]]


def _extracted(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys with the claims of an extractor."""
    for key, value in record.items():
        if key.endswith(_EXTRACTED) and isinstance(value, list):
            yield key


def _annotated(claims: Sequence[object], where: str) -> tuple[list[Atom], _Verdicts]:
    """Return the claims of an extractor with a person's labels and the checkers' labels."""
    atoms: list[Atom] = []
    verdicts: _Verdicts = {}
    for number, (value, at) in enumerate(placed(claims, where), 1):
        claim = as_object(value, at)
        if "triplet" not in claim:
            raise InputError(f"{at}: the key 'triplet' is missing; add it")
        label, word = inference_label(claim.get(_HUMAN), f"{at}.{_HUMAN}")
        text = _claim_text(claim["triplet"], f"{at}.triplet")
        atoms.append(Atom(f"a{number}", text, label=label, annotation=word))
        # There is a key per checker, with a user-defined name.
        for checker, stated in claim.items():
            if checker.endswith(_LABEL) and checker != _HUMAN:
                by_claim = verdicts.setdefault(f"{REFCHECKER}: {checker.removesuffix(_LABEL)}", {})
                by_claim[f"a{number}"] = inference_verdict(stated, f"{at}.{checker}")
    return atoms, verdicts


def _checked(response: RefcheckerResponse, where: str) -> tuple[list[Atom], _Verdicts]:
    """Return the claims of an output, with the labels of its checker."""
    key = "claims" if response.has("claims") else "triplets"
    claims = getattr(response, key)
    if claims is None:
        raise InputError(f"{where}: the key {key!r} is missing; add it")
    labels = response.ys or []
    if labels and len(labels) != len(claims):
        raise InputError(
            f"{where}: there are {counted(len(claims), 'claim')} and "
            f"{counted(len(labels), 'label')} under 'ys'; give "
            "one for each claim"
        )
    atoms = [
        Atom(f"a{number}", _claim_text(claim, at))
        for number, (claim, at) in enumerate(placed(claims, f"{where}: $.{key}"), 1)
    ]
    by_claim = {
        atom.id: _verdict(label, at)
        for atom, (label, at) in zip(atoms, placed(labels, f"{where}: $.ys"), strict=False)
    }
    return atoms, {REFCHECKER: by_claim}


def _verdict(label: object, where: str) -> RecordedVerdict | None:
    """Return the verdict of a label; labels by parts of the reference are merged."""
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
    response: RefcheckerResponse,
    name: str,
    atoms: Sequence[Atom],
    verdicts: _Verdicts,
    top: str,
    extractor: str = "",
) -> FactGraph:
    reference = response.reference
    parts = reference if isinstance(reference, list) else [] if reference is None else [reference]
    texts = [as_text(part, f"{top}.reference").strip() for part in parts]
    return FactGraph(
        name,
        tuple(atoms),
        tuple(Context(f"c{n}", text) for n, text in enumerate(filter(None, texts), 1)),
        query=response.question or "",
        response=response.response or "",
        metadata=({"extractor": extractor} if extractor else {}) | assessor_metadata(verdicts),
    )


FORMAT = Format(
    name="refchecker",
    title="RefChecker, triplets with labels",
    owner="amazon-science/RefChecker, Apache-2.0",
    holds="responses",
    keys=("response", "triplets"),
    recognize=recognize,
    read=read,
    record=RefcheckerResponse,
    also=("Y", "*_response_kg[].triplet", "*_response_kg[].*_label"),
    verdicts=ToolVerdicts(
        tool="RefChecker",
        file=(
            "`claims` or `triplets` with labels `ys`, or labels such as `nli_label` "
            "beside `triplet`"
        ),
        probability="Entailment 1, Contradiction 0, Neutral ½",
    ),
)
