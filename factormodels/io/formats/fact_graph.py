"""Fact graphs: this project's own JSON, and FactReasoner's with the same keys."""

from __future__ import annotations

from factormodels.io.fact_graph_json import looks_like_fact_graph, parse_fact_graph
from factormodels.io.formats.format import Format

FORMAT = Format(
    name="fact-graph",
    title="fact graphs",
    owner="this project; IBM/FactReasoner",
    holds="responses",
    keys=("nodes", "edges"),
    recognize=looks_like_fact_graph,
    read=parse_fact_graph,
    fields=("nodes[].type", "nodes[].text", "edges[].relation", "edges[].probability"),
    closed=True,
)
