"""FacTool: responses with labelled claims, and what its pipelines decide of claims.

Source: Chern et al. 2023, "FacTool: Factuality Detection in Generative AI", GAIR-NLP/factool
(Apache-2.0). Relied on: datasets/knowledge_qa, math and scientific (`prompt`, `response`, `claims`
with `label`, `label`), README.md and factool/*/pipeline.py for the results of `Factool.run`
(`detailed_information`, a list of objects with `claims`, `evidences`, `claim_level_factuality` and
`response_level_factuality`), and datasets/chinese/factool_output.jsonl, whose lines are such
objects.

A claim is a text; in mathematics an object with `math_calculation` and `calculated_answer`; of
literature the title, the authors and the year of a paper; of code the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_object,
    as_text,
    filled_field,
    first_key,
    list_field,
    named_id,
    objects_field,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.judged_claims import assessor_metadata, truth_word
from factormodels.io.records import Source
from factormodels.nouns import counted
from factormodels.recorded_verdicts import CONTRADICTED, SUPPORTED, RecordedVerdict
from factormodels.variants import merge_duplicate_contexts

FACTOOL = "factool"
"""Name of the assessor."""

LEVELS = "claim_level_factuality"

_JUDGEMENTS = ("label", "factuality", "reasoning", "error", "correction")
"""Keys of a claim that are no part of what it says."""

_SUBJECTS = frozenset(("claim", "paper_title"))
"""Keys of which a claim has one."""

_METADATA = ("category", "model")


def looks_like_factool(record: Mapping[str, Any]) -> bool:
    """Tell whether a record has a response and a list of claims, each with a label."""
    claims = record.get("claims")
    if "response" not in record or not isinstance(claims, list) or LEVELS in record:
        return False
    labelled = [
        isinstance(claim, dict) and "label" in claim and not _SUBJECTS.isdisjoint(claim)
        for claim in claims
    ]
    # A record without claims is known by the label of the whole response.
    return all(labelled) if claims else "label" in record


def looks_like_factool_output(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is what `Factool.run` returns, or one response of it."""
    return isinstance(record.get("detailed_information"), list) or (
        LEVELS in record and "response" in record
    )


def parse_factool(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a response with labelled claims.

    The metadata hold `factual`, the label of the whole response.

    Raises:
        InputError: if the record is malformed, or a label is not true, false or null.
    """
    record, where = record_at(obj, source, line)
    atoms = [
        _atom(claim, number, location)
        for number, (claim, location) in enumerate(objects_field(record, "claims", where), 1)
    ]
    factual, _ = truth_word(record.get("label"), f"{where}: key 'label'")
    return FactGraph(
        named_id(record, ("id",), where) or record_id(source, line),
        tuple(atoms),
        query=_query(record, where),
        response=text_field(record, "response", where, ""),
        metadata=_metadata(record) | ({} if factual is None else {"factual": factual}),
    )


def parse_factool_output(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Fact graphs of the responses that FacTool checked, its evidence as contexts.

    P(true) of a claim is 1 or 0, by its `factuality`; a claim whose check failed has no verdict.
    Evidence that is listed by claim is retrieved for the claim; the version that lists the evidence
    of a response in a row does not say for which claim each piece was found. The metadata hold
    `factual`, the verdict on the whole response, and the `reasoning` and `correction` by atom.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    if "detailed_information" not in record:
        return [_checked(record, where, record_id(source, line))]
    return [
        _checked(response, location, f"{record_id(source, line)}-{number}")
        for number, (response, location) in enumerate(
            objects_field(record, "detailed_information", where), 1
        )
    ]


def _checked(record: Mapping[str, Any], where: str, name: str) -> FactGraph:
    levels = record.get(LEVELS)
    levels = levels if isinstance(levels, list) else [levels]
    claims = _claims(record, levels, where)
    if len(claims) != len(levels):
        raise InputError(
            f"{where}: there are {counted(len(claims), 'claim')} and "
            f"{counted(len(levels), 'entry', 'entries')} of {LEVELS!r}; "
            "give one for each claim"
        )
    atoms: list[Atom] = []
    places: dict[int, str] = {}
    verdicts: dict[str, RecordedVerdict | None] = {}
    texts: dict[str, dict[str, str]] = {"reasoning": {}, "correction": {}}
    for number, (claim, level) in enumerate(zip(claims, levels, strict=True)):
        if claim is None:
            continue
        location = f"{where}: claims[{number}]"
        atom = _atom(claim, len(atoms) + 1, location)
        atoms.append(atom)
        places[number] = atom.id
        verdicts[atom.id] = _verdict(level, f"{where}: {LEVELS}[{number}]")
        for key, by_atom in texts.items():
            stated = level.get(key) if isinstance(level, dict) else None
            if isinstance(stated, str) and stated.strip() not in ("", "None"):
                by_atom[atom.id] = stated
    factual, _ = truth_word(
        record.get("response_level_factuality"), f"{where}: key 'response_level_factuality'"
    )
    metadata = _metadata(record) | {key: by_atom for key, by_atom in texts.items() if by_atom}
    metadata |= {} if factual is None else {"factual": factual}
    graph = FactGraph(
        named_id(record, ("id",), where) or name,
        tuple(atoms),
        tuple(_contexts(record, len(claims), places, where)),
        query=_query(record, where),
        response=text_field(record, "response", where, ""),
        metadata=metadata | assessor_metadata({FACTOOL: verdicts}),
    )
    return merge_duplicate_contexts(graph)


def _claims(record: Mapping[str, Any], levels: Sequence[object], where: str) -> list[Any]:
    """Claims of a checked response: under `claims`, one under `claim`, or beside the verdicts."""
    if record.get("claims") is not None:
        return list_field(record, "claims", where)
    if record.get("claim") is not None:
        return [record["claim"]]
    return [level if isinstance(level, dict) else None for level in levels]


def _atom(claim: object, number: int, where: str) -> Atom:
    fields = claim if isinstance(claim, dict) else {"claim": claim}
    label, word = truth_word(fields.get("label"), f"{where}: key 'label'")
    return Atom(f"a{number}", _claim_text(fields, where), label=label, annotation=word)


def _claim_text(fields: Mapping[str, Any], where: str) -> str:
    """Text of a claim, which FacTool has as text or in parts."""
    inner = fields.get("claim", fields)
    if not isinstance(inner, dict):
        return filled_field(fields, "claim", where)
    if {"math_calculation", "calculated_answer"} <= inner.keys():
        return f"{inner['math_calculation']} = {inner['calculated_answer']}"
    parts = [
        as_text(value, f"{where}: key {key!r}")
        for key, value in inner.items()
        # What search found of a paper is evidence and no part of the claim.
        if key not in _JUDGEMENTS and not key.startswith("actual") and value is not None
    ]
    if not any(part.strip() for part in parts):
        raise InputError(f"{where}: the claim has no text; give it under 'claim'")
    return ", ".join(parts)


def _verdict(level: object, where: str) -> RecordedVerdict | None:
    factual, _ = truth_word(level.get("factuality") if isinstance(level, dict) else level, where)
    return None if factual is None else SUPPORTED if factual else CONTRADICTED


def _contexts(
    record: Mapping[str, Any], n_claims: int, places: Mapping[int, str], where: str
) -> list[Context]:
    """Evidence of a response, retrieved for its claim where the file says for which.

    Args:
        record: the response.
        n_claims: number of its claims.
        places: id of the atom of each claim, by its place in the file.
        where: the response, which errors name.
    """
    evidences = list_field(record, "evidences", where, [])
    grouped = [isinstance(_inner(entry), list) for entry in evidences]
    pieces: list[tuple[str, str, tuple[str, ...]]] = []
    by_claim = bool(grouped) and all(grouped) and len(evidences) == n_claims
    sources = record.get("sources")
    for number, entry in enumerate(evidences):
        atom = places.get(number) if by_claim else None
        # The only claim of a response has all of its evidence.
        owners = (atom,) if atom else tuple(places.values()) if n_claims == 1 else ()
        location = f"{where}: evidences[{number}]"
        for text, link in _pieces(entry, _at(sources, number), location):
            pieces.append((text, link, owners))
    return [
        Context(f"c{number}", text, link=link, retrieved_for=owners)
        for number, (text, link, owners) in enumerate(pieces, 1)
    ]


def _inner(entry: object) -> object:
    return entry.get("evidence") if isinstance(entry, dict) else entry


def _pieces(entry: object, source: object, where: str) -> list[tuple[str, str]]:
    """Texts of a piece or group of evidence, each with its address."""
    if entry is None:
        return []
    if isinstance(entry, str):
        texts: list[object] = [entry]
        links: object = [source]
    elif isinstance(entry, list):
        return [
            piece
            for number, part in enumerate(entry)
            for piece in _pieces(part, _at(source, number), f"{where}[{number}]")
        ]
    else:
        fields = as_object(entry, where)
        value, links = fields.get("evidence"), fields.get("source")
        texts = value if isinstance(value, list) else [value]
        links = links if isinstance(links, list) else [links]
    pieces = []
    for number, text in enumerate(texts):
        if text is None:
            continue
        link = _at(links, number)
        address = link if isinstance(link, str) and link != "None" else ""
        if as_text(text, where).strip():
            pieces.append((str(text).strip(), address))
    return pieces


def _at(values: object, index: int) -> object:
    return values[index] if isinstance(values, list) and index < len(values) else None


def _query(record: Mapping[str, Any], where: str) -> str:
    return text_field(record, first_key(record, ("prompt", "question")), where, "")


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key in _METADATA if isinstance(value := record.get(key), str) and value}
