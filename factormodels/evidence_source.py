"""What made the evidence of a response: relation model, retriever and number of passages.

Stages write it into the metadata of a graph, which its file keeps; here it is read back, so that
what was learned from some evidence is not used on other evidence without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from factormodels.fact_graph import FactGraph

RELATIONS_KEY, RETRIEVAL_KEY = "relations", "retrieval"
"""Where in a graph's metadata the stages of relations and of retrieval say what they did."""

EVIDENCE_KEY = "evidence"
"""Where a graph says it whose evidence no stage made, by the names of `EvidenceSource`."""


WORDS = {
    "relation_model": "relation model",
    "least": "least probability",
    "retriever": "retriever",
    "top_k": "passages per query",
}
"""What the facts of a source are called."""


@dataclass(frozen=True)
class EvidenceSource:
    """What made the evidence of a response; None where nobody recorded it.

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
        """Say it in words."""
        parts = [
            f"{WORDS[name]} {value}" for name, value in asdict(self).items() if value is not None
        ]
        return ", ".join(parts) or "not recorded"


def evidence_sources(graphs: Iterable[FactGraph]) -> tuple[EvidenceSource, ...]:
    """What made the evidence of responses, each once, in order."""
    return tuple(dict.fromkeys(map(_source, graphs)))


def _source(graph: FactGraph) -> EvidenceSource:
    assessment, relations, retrieval = (
        _facts(graph, key) for key in (EVIDENCE_KEY, RELATIONS_KEY, RETRIEVAL_KEY)
    )
    # A stage that made its part anew goes before what was recorded of it.
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
    """A value of metadata, which may be anybody's, if it is what it should be."""
    return value if isinstance(value, kinds) and not isinstance(value, bool) else None
