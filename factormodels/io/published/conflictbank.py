"""ConflictBank: claims about a fact, true and made up, each with evidence made up for it.

Source: Su et al. 2024, "ConflictBank: A Benchmark for Evaluating the Influence of Knowledge
Conflicts in LLMs" (data CC BY-SA 4.0). Relied on: README.md, generate_conflicts.py and
quality_control.py of zhaochen0110/conflictbank (`subject`, `relation`, `object`,
`replaced_object`, `correct_pair`, `fact_conflict_pair`, `correct_evidence`,
`fact_conflict_evidence`, `temporal_conflict_evidence`, `semantic_conflict_evidence`, `question`,
`options`, `correct_option`); and what programs that load the published set CB_qa read of it
(`default_claim`, `default_evidence`, `misinformation_conflict_claim`,
`misinformation_conflict_evidence_evidence`, spelled so, and the same of `temporal_conflict` and
`semantic_conflict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    filled_field,
    first_key,
    record_at,
    record_id,
    text_field,
)
from factormodels.io.published.stances import CONFLICT, SUPPORT
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
EVIDENCE_KEYS = tuple(key for keys in _EVIDENCE.values() for key in keys)


def parse_conflictbank(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a record with all claims of a fact: claims are atoms, evidence contexts.

    The true claim is labelled true and the made-up ones false. Evidence entails the claim that it
    was made for; evidence of the true claim contradicts every made-up claim, and theirs the true
    one. It counts as retrieved for all the claims that it is related to. A context's note and an
    atom's annotation are the category. The metadata hold `relation`, `object` and
    `replaced_object` where the record has them.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    filled_field(record, first_key(record, _CLAIMS[DEFAULT]), where)

    def told(keys: tuple[str, ...]) -> str:
        return text_field(record, first_key(record, keys), where, "")

    claims = {category: told(_CLAIMS[category]) for category in CATEGORIES}
    atoms: dict[str, Atom] = {}
    for category, claim in claims.items():
        if claim.strip() and claim not in atoms:
            label = category == DEFAULT
            atoms[claim] = Atom(f"a{len(atoms) + 1}", claim, label=label, annotation=category)
    contexts: list[Context] = []
    relations: list[Relation] = []
    for category in CATEGORIES:
        evidence = told(_EVIDENCE[category])
        if not evidence.strip():
            continue
        passage = f"c{len(contexts) + 1}"
        related: list[str] = []
        for claim, atom in atoms.items():
            if claim == claims[category]:
                kind, probability = RelationKind.ENTAILMENT, SUPPORT
            elif (category == DEFAULT) != bool(atom.label):
                kind, probability = RelationKind.CONTRADICTION, CONFLICT
            else:
                continue
            related.append(atom.id)
            relations.append(Relation(passage, atom.id, kind, probability))
        contexts.append(Context(passage, evidence, retrieved_for=tuple(related), note=category))
    return FactGraph(
        record_id(source, line),
        tuple(atoms.values()),
        tuple(contexts),
        tuple(relations),
        query=text_field(record, "question", where, ""),
        topic=text_field(record, "subject", where, ""),
        metadata={
            key: text_field(record, key, where, "")
            for key in ("relation", "object", "replaced_object")
            if record.get(key) is not None
        },
    )
