"""ConflictBank: claims about a fact, true and made up, each with evidence made up for it.

Source: Su et al. 2024, "ConflictBank: A Benchmark for Evaluating the Influence of Knowledge
Conflicts in LLMs" (data CC BY-SA 4.0). Relied on: README.md, generate_conflicts.py and
quality_control.py of zhaochen0110/conflictbank (`subject`, `relation`, `object`,
`replaced_object`, `correct_pair`, `fact_conflict_pair`, `correct_evidence`,
`fact_conflict_evidence`, `temporal_conflict_evidence`, `semantic_conflict_evidence`, `question`,
`options`, `correct_option`); and what programs that load the two published sets read of them:
CB_qa (`default_claim`, `default_evidence`, `misinformation_conflict_claim`,
`misinformation_conflict_evidence_evidence`, spelled so, and the same of `temporal_conflict` and
`semantic_conflict`) and CB_claim_evidence (`id`, `subject`, `category`, `claim`, `evidence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    as_object,
    filled_field,
    first_key,
    location,
    record_id,
    shown,
    text_field,
)
from factormodels.io.published.stances import DEFAULT_STRENGTHS, Strengths
from factormodels.io.records import Source

DEFAULT = "default"
CATEGORIES = (DEFAULT, "misinformation_conflict", "temporal_conflict", "semantic_conflict")
"""Of the true claim, and of those made up as misinformation, for another time, for a namesake."""

_CLAIMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DEFAULT: ("default_claim", "correct_pair"),
        "misinformation_conflict": ("misinformation_conflict_claim", "fact_conflict_pair"),
        "temporal_conflict": ("temporal_conflict_claim", "temporal_conflict_pair"),
        "semantic_conflict": ("semantic_conflict_claim", "semantic_conflict_pair"),
    }
)
_EVIDENCE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DEFAULT: ("default_evidence", "correct_evidence"),
        "misinformation_conflict": (
            "misinformation_conflict_evidence_evidence",
            "misinformation_conflict_evidence",
            "fact_conflict_evidence",
        ),
        "temporal_conflict": ("temporal_conflict_evidence",),
        "semantic_conflict": ("semantic_conflict_evidence",),
    }
)


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """A claim about a fact with the evidence made up for it.

    Attributes:
        fact: the fact's name, which conflicting claims share.
        category: one of `CATEGORIES`.
        claim: the claim.
        evidence: the passage; empty where there is none.
        subject: what the fact is about.
    """

    fact: str
    category: str
    claim: str
    evidence: str
    subject: str = ""


def looks_like_conflictbank(obj: object) -> bool:
    """Whether a JSON value has the keys of a record with all claims of a fact."""
    if not isinstance(obj, dict):
        return False
    return any(key in obj for key in _CLAIMS[DEFAULT]) and any(
        key in obj for keys in _EVIDENCE.values() for key in keys
    )


def looks_like_conflictbank_pair(obj: object) -> bool:
    """Whether a JSON value has the keys of one claim with its evidence."""
    return isinstance(obj, dict) and {"claim", "evidence", "category"} <= obj.keys()


def parse_conflictbank(
    obj: object, source: Source, line: int | None = None, strengths: Strengths = DEFAULT_STRENGTHS
) -> FactGraph:
    """Fact graph of a record with all claims of a fact; see `conflict_graph`.

    The metadata hold `relation`, `object` and `replaced_object` where the record has them.

    Raises:
        InputError: if the record is malformed.
    """
    where = location(source, line)
    record = as_object(obj, where)
    subject = text_field(record, "subject", where, "")
    name = record_id(source, line)
    entries = []
    for category in CATEGORIES:
        key = first_key(record, _CLAIMS[category])
        claim = (
            filled_field(record, key, where)
            if category == DEFAULT
            else text_field(record, key, where, "")
        )
        evidence_key = first_key(record, _EVIDENCE[category])
        evidence = text_field(record, evidence_key, where, "")
        if claim.strip() or evidence.strip():
            entries.append(ClaimEvidence(name, category, claim, evidence, subject))
    metadata = {
        key: text_field(record, key, where, "")
        for key in ("relation", "object", "replaced_object")
        if record.get(key) is not None
    }
    query = text_field(record, "question", where, "")
    return conflict_graph(name, entries, strengths, query=query, metadata=metadata)


def parse_conflictbank_pair(obj: object, source: Source, line: int | None = None) -> ClaimEvidence:
    """One claim with its evidence; claims of the same `id` and `subject` are of one fact.

    Raises:
        InputError: if the record is malformed or its category unknown.
    """
    where = location(source, line)
    record = as_object(obj, where)
    category = text_field(record, "category", where)
    if category not in CATEGORIES:
        raise InputError(
            f"{where}: key 'category': {shown(category)} is unknown; "
            f"use one of {', '.join(CATEGORIES)}"
        )
    subject = text_field(record, "subject", where, "")
    number = record.get("id")
    if number is not None and (isinstance(number, bool) or not isinstance(number, str | int)):
        raise InputError(f"{where}: key 'id': {shown(number)} names nothing; give text")
    parts = [str(part) for part in (number, subject) if part not in (None, "")]
    return ClaimEvidence(
        fact=" ".join(parts) or record_id(source, line),
        category=category,
        claim=filled_field(record, "claim", where),
        evidence=text_field(record, "evidence", where, ""),
        subject=subject,
    )


def gather_conflictbank(
    entries: Iterable[ClaimEvidence], strengths: Strengths = DEFAULT_STRENGTHS
) -> list[FactGraph]:
    """One fact graph per fact, in the order of their first claims."""
    facts: dict[str, list[ClaimEvidence]] = {}
    for entry in entries:
        facts.setdefault(entry.fact, []).append(entry)
    return [conflict_graph(name, claims, strengths) for name, claims in facts.items()]


def conflict_graph(
    name: str,
    entries: Iterable[ClaimEvidence],
    strengths: Strengths = DEFAULT_STRENGTHS,
    *,
    query: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> FactGraph:
    """Fact graph of a fact: claims are atoms, evidence contexts.

    The true claim is labelled true and the made-up ones false. Evidence entails the claim that it
    was made for; evidence of the true claim contradicts every made-up claim, and theirs the true
    one. It counts as retrieved for all the claims that it is related to. A context's note and an
    atom's annotation are the category.
    """
    rows = list(entries)
    atoms: dict[str, Atom] = {}
    for row in rows:
        if row.claim.strip() and row.claim not in atoms:
            label = row.category == DEFAULT
            atoms[row.claim] = Atom(
                f"a{len(atoms) + 1}", row.claim, label=label, annotation=row.category
            )
    contexts: list[Context] = []
    relations: list[Relation] = []
    for row in rows:
        if not row.evidence.strip():
            continue
        passage = f"c{len(contexts) + 1}"
        truth = row.category == DEFAULT
        related: list[str] = []
        for claim, atom in atoms.items():
            if claim == row.claim:
                kind, probability = RelationKind.ENTAILMENT, strengths.support
            elif truth != bool(atom.label):
                kind, probability = RelationKind.CONTRADICTION, strengths.conflict
            else:
                continue
            related.append(atom.id)
            relations.append(Relation(passage, atom.id, kind, probability))
        contexts.append(
            Context(passage, row.evidence, retrieved_for=tuple(related), note=row.category)
        )
    return FactGraph(
        name,
        tuple(atoms.values()),
        tuple(contexts),
        tuple(relations),
        query=query,
        topic=rows[0].subject if rows else "",
        metadata=metadata or {},
    )
