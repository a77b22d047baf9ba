"""FaStfact-Bench: long answers of four language models, their claims labelled by people.

Source: Wan et al. 2025, "FaStfact: Faster, Stronger Long-Form Factuality Evaluations in LLMs".
Relied on, in Yingjia-Wan/FaStfact: README.md (the input: `question`, `response`, `model`,
`prompt_source`), FaStfact-Bench/fastfact-bench_for_eval.jsonl (besides these `question_id`,
`topic`, `cat`), and in FaStfact-Bench/FastFact_annotation the annotation tool that writes the
labelled file (`claims_lst` with `claim`, `revised_claim`, `annotator_label`,
`annotation_status_details`, `verification_result`), its example and annotation_stats.json (the
labels that occur). The labelled file, fastfact-bench_annotated.jsonl, was not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom, Context
from factormodels.decoded_values import (
    as_object,
    first_key,
    named_id,
    objects_field,
    shown,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
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
are unsupported; the last four judge no truth."""

REMOVED = ("redundant", "not a claim")
"""Labels of claims that the annotators took out."""

_EVIDENCE = re.compile(
    r"^Evidence \d+\s*\nSource Title:(?P<title>[^\n]*)\n"
    r"Content:(?P<text>.*?)(?=^Evidence \d+\s*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
QUESTIONS = ("question", "prompt", "query", "user_input", "instruction")
"""Keys of the question; the first is the owners'."""

_METADATA = ("question_id", "prompt_source", "model", "cat")


def parse_response(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return a question with its response, without atoms, under the id that the record gives it.

    The text of a response that is null is empty.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    metadata = {key: record[key] for key in _METADATA if record.get(key) not in (None, "")}
    # Null is a response that there is not; no key at all may be a misspelled one.
    empty = "response" in record and record["response"] is None
    return FactGraph(
        named_id(record, ("id",), where) or record_id(source, line),
        (),
        query=text_field(record, first_key(record, QUESTIONS), where),
        response="" if empty else text_field(record, "response", where),
        topic=text_field(record, "topic", where, ""),
        metadata=metadata,
    )


def parse_fastfact(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Fact graph of a response with its claims.

    Claims are atoms, as revised; those that the annotators removed are left out, so that the
    number of atoms is the K' of F1@K'. The passages that a claim was verified with are its
    contexts; what each says of the claim was not recorded. The metadata hold the record's own
    facts, the number of claims `removed`, and by atom the `verifier` label of the pipeline and its
    `prelabel`.

    Raises:
        InputError: if the record is malformed or a label unknown.
    """
    response = parse_response(obj, source, line)
    record, where = record_at(obj, source, line)
    atoms: list[Atom] = []
    contexts: list[Context] = []
    verdicts: dict[str, dict[str, str]] = {"verifier": {}, "prelabel": {}}
    removed = 0
    for claim, location in objects_field(record, "claims_lst", where):
        details = as_object(
            claim.get("annotation_status_details") or {},
            f"{location}: key 'annotation_status_details'",
        )
        if "status" in details:
            # The tool writes such an entry where no claim remained.
            continue
        label = claim.get("annotator_label")
        if details.get("action") == "removed" or label in REMOVED:
            removed += 1
            continue
        atom = _atom(claim, f"a{len(atoms) + 1}", location)
        atoms.append(atom)
        checked = as_object(
            claim.get("verification_result") or {}, f"{location}: key 'verification_result'"
        )
        passages = text_field(checked, "verification_context", location, "")
        contexts += _contexts(passages, len(contexts), atom.id)
        for name, stated in (
            ("verifier", text_field(checked, "verification_label", location, "")),
            ("prelabel", text_field(claim, "pre-label", location, "")),
        ):
            if stated:
                verdicts[name][atom.id] = stated
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


def _atom(claim: Mapping[str, Any], name: str, where: str) -> Atom:
    label = claim.get("annotator_label")
    if label is not None and (not isinstance(label, str) or label not in LABELS):
        raise InputError(
            f"{where}: key 'annotator_label': {shown(label)} is not a label; "
            f"use null or one of {', '.join((*LABELS, *REMOVED))}"
        )
    text = text_field(claim, "revised_claim", where, "") or text_field(claim, "claim", where)
    if not text.strip():
        raise InputError(f"{where}: key 'claim' is empty; give its text or drop the claim")
    return Atom(name, text, label=None if label is None else LABELS[label], annotation=label)


def _contexts(passages: str, before: int, atom: str) -> list[Context]:
    parts = [(part["title"].strip(), part["text"].strip()) for part in _EVIDENCE.finditer(passages)]
    if not parts and passages.strip():
        parts = [("", passages.strip())]
    return [
        Context(f"c{number}", text, title=title, retrieved_for=(atom,))
        for number, (title, text) in enumerate(parts, start=before + 1)
    ]
