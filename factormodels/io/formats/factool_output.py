"""Decisions of FacTool's pipelines on claims.

Source: Chern et al. 2023, "FacTool: Factuality Detection in Generative AI", GAIR-NLP/factool
(Apache-2.0). Based on: README.md and factool/*/pipeline.py for the results of `Factool.run`
(`detailed_information`, a list of objects with `claims`, `evidences`, `claim_level_factuality` and
`response_level_factuality`), and datasets/chinese/factool_output.jsonl, whose lines are such
objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import as_object, as_text
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factool import LEVELS, FactoolResponse, claim_atom
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import assessor_metadata, truth_word
from factormodels.io.formats.record import ToolRecord, placed, record_of, root_path, stated_id
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import CONTRADICTED, SUPPORTED, RecordedVerdict
from factormodels.nouns import counted
from factormodels.variants import merge_duplicate_contexts

_ASSESSOR = "factool"


class FactoolChecked(FactoolResponse):
    """A response that FacTool checked.

    Verdicts are an object, a word, or a list with an entry per claim.
    """

    claims: list[Any] | None = None
    claim: Any = None
    evidences: list[Any] | None = None
    sources: Any = None
    claim_level_factuality: Any = None
    response_level_factuality: Any = None


class FactoolRun(ToolRecord):
    """The result of `Factool.run`."""

    detailed_information: list[FactoolChecked]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is the result of `Factool.run`, or one response of it."""
    return isinstance(record.get("detailed_information"), list) or (
        LEVELS in record and "response" in record
    )


def read(obj: object, source: Source, line: int | None = None) -> list[FactGraph]:
    """Return the fact graphs of the responses that FacTool checked, with its evidence as contexts.

    P(true) of a claim is 1 or 0, by its `factuality`; a claim whose check failed has no verdict.
    Evidence that is listed by claim was retrieved for the claim; the version that lists the
    evidence of a response in one list does not state the claim of each piece. The metadata hold
    `factual`, the verdict on the whole response, and the `reasoning` and `correction` by atom.

    Raises:
        InputError: if the record is malformed.
    """
    name, top = record_id(source, line), root_path(source, line)
    if not isinstance(obj, dict) or "detailed_information" not in obj:
        return [_graph(record_of(FactoolChecked, obj, source, line), top, name)]
    responses = record_of(FactoolRun, obj, source, line).detailed_information
    return [
        _graph(response, where, f"{name}-{number}")
        for number, (response, where) in enumerate(
            placed(responses, f"{top}.detailed_information"), 1
        )
    ]


def _graph(record: FactoolChecked, top: str, name: str) -> FactGraph:
    levels = record.claim_level_factuality
    levels = levels if isinstance(levels, list) else [levels]
    claims = _claims(record, levels)
    if len(claims) != len(levels):
        raise InputError(
            f"{top}: there are {counted(len(claims), 'claim')} and "
            f"{counted(len(levels), 'entry', 'entries')} of {LEVELS!r}; "
            "give one for each claim"
        )
    atoms: list[Atom] = []
    names: dict[int, str] = {}
    verdicts: dict[str, RecordedVerdict | None] = {}
    texts: dict[str, dict[str, str]] = {"reasoning": {}, "correction": {}}
    for number, (claim, level) in enumerate(zip(claims, levels, strict=True)):
        if claim is None:
            continue
        atom = claim_atom(claim, len(atoms) + 1, f"{top}.claims[{number}]")
        atoms.append(atom)
        names[number] = atom.id
        verdicts[atom.id] = _verdict(level, f"{top}.{LEVELS}[{number}]")
        for key, by_atom in texts.items():
            stated = level.get(key) if isinstance(level, dict) else None
            if isinstance(stated, str) and stated.strip() not in ("", "None"):
                by_atom[atom.id] = stated
    factual, _ = truth_word(record.response_level_factuality, f"{top}.response_level_factuality")
    metadata = record.facts() | {key: by_atom for key, by_atom in texts.items() if by_atom}
    metadata |= {} if factual is None else {"factual": factual}
    graph = FactGraph(
        stated_id(record.id, f"{top}.id") or name,
        tuple(atoms),
        tuple(_contexts(record, len(claims), names, top)),
        query=record.query,
        response=record.response or "",
        metadata=metadata | assessor_metadata({_ASSESSOR: verdicts}),
    )
    return merge_duplicate_contexts(graph)


def _claims(record: FactoolChecked, levels: Sequence[object]) -> Sequence[object]:
    """Return the claims: under `claims`, one under `claim`, or beside the verdicts."""
    if record.claims is not None:
        return record.claims
    if record.claim is not None:
        return [record.claim]
    return [level if isinstance(level, dict) else None for level in levels]


def _verdict(level: object, where: str) -> RecordedVerdict | None:
    factual, _ = truth_word(level.get("factuality") if isinstance(level, dict) else level, where)
    return None if factual is None else SUPPORTED if factual else CONTRADICTED


def _contexts(
    record: FactoolChecked, n_claims: int, names: Mapping[int, str], top: str
) -> list[Context]:
    """Return the evidence of a response, retrieved for its claim if the file states it.

    Args:
        record: the response.
        n_claims: number of its claims.
        names: id of the atom of each claim, by its number in the file.
        top: the place of the response, for errors.
    """
    evidences = record.evidences or []
    grouped = [isinstance(_inner(entry), list) for entry in evidences]
    pieces: list[tuple[str, str, tuple[str, ...]]] = []
    by_claim = bool(grouped) and all(grouped) and len(evidences) == n_claims
    for number, (entry, where) in enumerate(placed(evidences, f"{top}.evidences")):
        atom = names.get(number) if by_claim else None
        # All evidence belongs to the only claim of a response.
        owners = (atom,) if atom else tuple(names.values()) if n_claims == 1 else ()
        for text, link in _pieces(entry, _at(record.sources, number), where):
            pieces.append((text, link, owners))
    return [
        Context(f"c{number}", text, link=link, retrieved_for=owners)
        for number, (text, link, owners) in enumerate(pieces, 1)
    ]


def _inner(entry: object) -> object:
    return entry.get("evidence") if isinstance(entry, dict) else entry


def _pieces(entry: object, source: object, where: str) -> list[tuple[str, str]]:
    """Return the texts of a piece or group of evidence, each with its address."""
    if entry is None:
        return []
    if isinstance(entry, str):
        texts: list[object] = [entry]
        links: object = [source]
    elif isinstance(entry, list):
        return [
            piece
            for number, (part, at) in enumerate(placed(entry, where))
            for piece in _pieces(part, _at(source, number), at)
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


FORMAT = Format(
    name="factool-output",
    title="FacTool, decisions",
    owner="GAIR-NLP/factool, Apache-2.0",
    holds="responses",
    keys=(LEVELS, "response"),
    recognize=recognize,
    read=read,
    record=FactoolChecked,
    also=(
        *("entry_point", "search_type", "queries", "detailed_information"),
        *("average_claim_level_factuality", "average_response_level_factuality"),
    ),
    verdicts=ToolVerdicts(
        tool="FacTool",
        file="what `Factool.run` returns (`detailed_information`), or a line per response",
        probability="1 or 0 by `factuality`; a claim whose check failed has none",
    ),
)
