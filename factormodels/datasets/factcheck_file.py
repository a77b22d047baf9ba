"""The embedded form of Factcheck-Bench: one JSON object per response, without any text.

    {"id": "fcb-001", "factual": false, "sentences": 3, "passages": {"c1": HASH, ...},
     "claims": [{"id": "a1", "sentence": 1, "label": true,
                 "evidence": [["e1", "c1", "refute"], ...]}]}

A label or stance that nobody gave is null; `checkworthiness` stands only where a claim is not
"factual".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from factormodels.io.published.factcheck_bench import FACTUAL, Claim, FactcheckRecord, JudgedPassage


def record_line(record: FactcheckRecord) -> str:
    """Line of a record, without its end: the same bytes for the same record."""
    obj = {
        "id": record.id,
        "factual": record.factual,
        "sentences": record.sentences,
        "passages": dict(record.passages),
        "claims": [_claim_object(claim) for claim in record.claims],
    }
    return json.dumps(obj, ensure_ascii=True, separators=(",", ":"))


def record_from_object(obj: Mapping[str, Any]) -> FactcheckRecord:
    """Record that a decoded line holds."""
    return FactcheckRecord(
        id=obj["id"],
        factual=obj["factual"],
        sentences=obj["sentences"],
        passages=MappingProxyType(dict(obj["passages"])),
        claims=tuple(
            Claim(
                id=claim["id"],
                sentence=claim["sentence"],
                label=claim["label"],
                checkworthiness=claim.get("checkworthiness", FACTUAL),
                evidence=tuple(JudgedPassage(*item) for item in claim["evidence"]),
            )
            for claim in obj["claims"]
        ),
    )


def _claim_object(claim: Claim) -> dict[str, Any]:
    worth = {} if claim.checkworthiness == FACTUAL else {"checkworthiness": claim.checkworthiness}
    return {
        "id": claim.id,
        "sentence": claim.sentence,
        "label": claim.label,
        **worth,
        "evidence": [[item.id, item.passage, item.stance] for item in claim.evidence],
    }
