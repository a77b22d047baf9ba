"""Source of the evidence of a response: relation model, retriever and number of passages.

Stages write the source into the metadata of a graph, which its file keeps. Reading it back prevents
results learned from one source of evidence from being applied to another unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from factormodels.fact_graph import FactGraph

RELATIONS_KEY, RETRIEVAL_KEY = "relations", "retrieval"
"""Keys of a graph's metadata under which the relation and retrieval stages record themselves."""

EVIDENCE_KEY = "evidence"
"""Metadata key of evidence that no stage made, with the fields of `EvidenceSource`."""


WORDS = {
    "relation_model": "relation model",
    "least": "least probability",
    "retriever": "retriever",
    "top_k": "passages per query",
}
"""Display names of the fields of a source."""


@dataclass(frozen=True)
class EvidenceSource:
    """Source of the evidence of a response; fields are None if not recorded.

    Attributes:
        relation_model: name of the relation model.
        least: probability below which its relations were made neutral.
        retriever: name of the retriever.
        top_k: passages per query.
    """

    relation_model: str | None = None
    least: float | None = None
    retriever: str | None = None
    top_k: int | None = None

    def __str__(self) -> str:
        """Describe the source in words."""
        parts = [
            f"{WORDS[name]} {value}" for name, value in asdict(self).items() if value is not None
        ]
        return ", ".join(parts) or "not recorded"


def evidence_sources(graphs: Iterable[FactGraph]) -> tuple[EvidenceSource, ...]:
    """Return the distinct sources of the evidence of responses, in order of appearance."""
    return tuple(dict.fromkeys(map(_source, graphs)))


def _source(graph: FactGraph) -> EvidenceSource:
    assessment, relations, retrieval = (
        _facts(graph, key) for key in (EVIDENCE_KEY, RELATIONS_KEY, RETRIEVAL_KEY)
    )
    # The record of a stage takes precedence over the stated source.
    made = (
        relations
        if "model" in relations
        else {**assessment, "model": assessment.get("relation_model")}
    )
    searched = retrieval if "retriever" in retrieval else assessment
    return EvidenceSource(
        _typed(made.get("model"), str),
        _typed(made.get("least"), int, float),
        _typed(searched.get("retriever"), str),
        _typed(searched.get("top_k"), int),
    )


def _facts(graph: FactGraph, key: str) -> dict[str, Any]:
    facts = graph.metadata.get(key)
    return dict(facts) if isinstance(facts, Mapping) else {}


def _typed(value: Any, *kinds: type) -> Any:
    """Return a value of metadata, which is unchecked, if it has the expected type; else None."""
    return value if isinstance(value, kinds) and not isinstance(value, bool) else None
