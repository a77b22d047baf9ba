"""MiniCheck's scores of documents and claims, one row per pair.

Source: Liyan06/MiniCheck (Apache-2.0). A row has `doc`, `claim` and the result of `score` for the
pair, `raw_prob` or `max_support_prob`, with `pred_label`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.decoded_values import located, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import judged_response
from factormodels.io.formats.record import ToolRecord, filled, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import RecordedVerdict
from factormodels.validation import validated_probability

_PROBABILITIES = ("raw_prob", "max_support_prob", "prob", "pred_label")
_NAMES = ("response", "id", "dataset")


class MinicheckRow(ToolRecord):
    """A document, a claim, and the probability that the document supports the claim."""

    claim: str
    doc: str | None = None
    raw_prob: Any = None
    max_support_prob: Any = None
    prob: Any = None
    pred_label: Any = None
    response: Any = None
    id: Any = None
    dataset: Any = None


@dataclass(frozen=True)
class ScoredPair:
    """A document and a claim, and the probability of support.

    Attributes:
        id: id of the claim's response.
        document: the document.
        claim: the claim.
        probability: probability that the document supports the claim.
    """

    id: str
    document: str
    claim: str
    probability: float


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a document, a claim and a probability."""
    return {"doc", "claim"} <= record.keys() and any(key in record for key in _PROBABILITIES)


def read(obj: object, source: Source, line: int | None = None) -> ScoredPair:
    """Return a scored pair, whose response is named by `response` or `id`.

    Raises:
        InputError: if the record is malformed.
    """
    row, top = record_of(MinicheckRow, obj, source, line), root_path(source, line)
    key, value = row.first_of(_PROBABILITIES)
    if isinstance(value, str):
        # Tables of texts have numbers as text.
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{top}.{key}: {shown(value)} is not a number; give a probability"
            ) from None
    with located(f"{top}.{key}"):
        probability = validated_probability(value, "support")
    _, name = row.first_of(_NAMES)
    return ScoredPair(
        str(name) if isinstance(name, str | int) and str(name).strip() else record_id(source),
        row.doc or "",
        filled(row.claim, f"{top}.claim"),
        probability,
    )


def gather(pairs: Sequence[ScoredPair]) -> list[FactGraph]:
    """Return the fact graphs of scored pairs.

    P(true) of a claim is the score of its best supporting document, as MiniCheck uses the best
    chunk of a document.
    """
    by_response: dict[str, dict[str, float]] = {}
    for pair in pairs:
        by_claim = by_response.setdefault(pair.id, {})
        by_claim[pair.claim] = max(pair.probability, by_claim.get(pair.claim, 0.0))
    return [
        judged_response(
            name,
            [
                (claim, RecordedVerdict("supported" if p > 0.5 else "unsupported", p))
                for claim, p in by_claim.items()
            ],
            "minicheck",
        )
        for name, by_claim in by_response.items()
    ]


FORMAT = Format(
    name="minicheck-scores",
    title="MiniCheck, scores of documents and claims",
    owner="Liyan06/MiniCheck, Apache-2.0",
    holds="responses",
    keys=("doc", "claim", "raw_prob"),
    recognize=recognize,
    read=read,
    record=MinicheckRow,
    fields=("doc", "claim", "raw_prob"),
    gather=gather,
    verdicts=ToolVerdicts(
        tool="MiniCheck",
        file=(
            "JSON Lines or a table with `doc`, `claim` and `raw_prob` (or "
            "`pred_label`), and `response` if you know it"
        ),
        probability="the probability for the document that supports the claim best",
    ),
)
