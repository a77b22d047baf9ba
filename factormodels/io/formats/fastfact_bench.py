"""FaStfact-Bench: long answers of four language models, with claims labeled by people.

Source: Wan et al. 2025, "FaStfact: Faster, Stronger Long-Form Factuality Evaluations in LLMs".
Based on, in Yingjia-Wan/FaStfact/FaStfact-Bench/FastFact_annotation: the annotation tool that
writes the labeled file (`claims_lst` with `claim`, `revised_claim`, `annotator_label`,
`annotation_status_details`, `verification_result`), its example and annotation_stats.json (the
labels that occur). The labeled file, fastfact-bench_annotated.jsonl, was not available.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import (
    EMPTY_IS_NONE,
    ToolRecord,
    named,
    placed,
    record_of,
    root_path,
)
from factormodels.io.formats.responses import AnsweredQuestion, answered_graph
from factormodels.io.tables.records import Source
from factormodels.variants import merge_duplicate_contexts

LABELS: Mapping[str, bool | None] = MappingProxyType(
    {
        "supported": True,
        "unsupported": False,
        "refuted": False,
        "conflicting evidence": False,
        "not enough evidence": False,
        "irrelevant": None,
        "unverifiable": None,
        "n/a": None,
        "invalid_label": None,
    }
)
"""Annotators' labels. As in the annotation protocol, refuted, conflicting and not enough evidence
are unsupported; the last four are not judgments of truth."""

REMOVED = ("redundant", "not a claim")
"""Labels of claims that the annotators removed."""

_EVIDENCE = re.compile(
    r"^Evidence \d+\s*\nSource Title:(?P<title>[^\n]*)\n"
    r"Content:(?P<text>.*?)(?=^Evidence \d+\s*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)


class FastfactVerdict(ToolRecord):
    """The verdict of the pipeline on a claim."""

    verification_label: str | None = None


class FastfactVerification(FastfactVerdict):
    """The result of the pipeline for a claim."""

    verification_context: str | None = None


class FastfactClaim(ToolRecord):
    """A claim as revised by the pipeline and by people."""

    claim: Any = None
    revised_claim: str | None = None
    pre_label: str | None = named("pre-label", None)
    annotator_label: Any = None
    annotation_status_details: Annotated[dict[str, Any] | None, EMPTY_IS_NONE] = None
    verification_result: Annotated[FastfactVerification | None, EMPTY_IS_NONE] = None


class FastfactResponse(AnsweredQuestion):
    """A question with its response and its claims."""

    claims_lst: list[FastfactClaim]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a response and a list of claims."""
    return "response" in record and "claims_lst" in record


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of a response with its claims.

    Claims are atoms, as revised; claims removed by the annotators are left out, so that the number
    of atoms is the K' of F1@K'. The passages that a claim was verified with are its contexts,
    without relations, which were not recorded. The metadata hold the record's own facts, the number
    of claims `removed`, and by atom the `verifier` label of the pipeline and its `prelabel`.

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    record = record_of(FastfactResponse, obj, source, line)
    response = answered_graph(record, source, line)
    atoms: list[Atom] = []
    contexts: list[Context] = []
    verdicts: dict[str, dict[str, str]] = {"verifier": {}, "prelabel": {}}
    removed = 0
    for claim, where in placed(record.claims_lst, f"{root_path(source, line)}.claims_lst"):
        details = claim.annotation_status_details or {}
        if "status" in details:
            # The tool writes such an entry if no claim remained.
            continue
        if details.get("action") == "removed" or claim.annotator_label in REMOVED:
            removed += 1
            continue
        atom = _atom(claim, f"a{len(atoms) + 1}", where)
        atoms.append(atom)
        checked = claim.verification_result or FastfactVerification()
        contexts += _contexts(checked.verification_context or "", len(contexts), atom.id)
        if checked.verification_label:
            verdicts["verifier"][atom.id] = checked.verification_label
        if claim.pre_label:
            verdicts["prelabel"][atom.id] = claim.pre_label
    metadata: dict[str, Any] = {**response.metadata}
    metadata |= {name: by_atom for name, by_atom in verdicts.items() if by_atom}
    if removed:
        metadata["removed"] = removed
    return merge_duplicate_contexts(
        FactGraph(
            response.id,
            tuple(atoms),
            tuple(contexts),
            query=response.query,
            response=response.response,
            topic=response.topic,
            metadata=metadata,
        )
    )


def _atom(claim: FastfactClaim, name: str, where: str) -> Atom:
    label = claim.annotator_label
    if label is not None and (not isinstance(label, str) or label not in LABELS):
        raise InputError(
            f"{where}.annotator_label: {shown(label)} is not a label; "
            f"use null or one of {', '.join((*LABELS, *REMOVED))}"
        )
    text = claim.revised_claim or claim.claim
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"{where}.claim: {shown(text)} is not text; give the claim's text or drop the claim"
        )
    return Atom(name, text, label=None if label is None else LABELS[label], annotation=label)


def _contexts(passages: str, before: int, atom: str) -> list[Context]:
    parts = [(part["title"].strip(), part["text"].strip()) for part in _EVIDENCE.finditer(passages)]
    if not parts and passages.strip():
        parts = [("", passages.strip())]
    return [
        Context(f"c{number}", text, title=title, retrieved_for=(atom,))
        for number, (title, text) in enumerate(parts, start=before + 1)
    ]


FORMAT = Format(
    name="fastfact-bench",
    title="FaStfact-Bench, claims",
    owner="Yingjia-Wan/FaStfact, FaStfact-Bench",
    holds="responses",
    keys=("response", "claims_lst"),
    recognize=recognize,
    read=read,
    record=FastfactResponse,
    fields=(
        *("question", "response", "model", "prompt_source", "claims_lst[].claim"),
        *("claims_lst[].annotator_label", "claims_lst[].annotation_status_details"),
        "claims_lst[].verification_result",
    ),
    also=("claims_lst[].claim_id", "claims_lst[].verification_result.*", "abstained"),
)
