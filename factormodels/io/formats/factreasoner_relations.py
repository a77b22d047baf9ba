"""Relations between claims mined by FactReasoner (`MiningResult.save`).

Source: IBM/FactReasoner (Apache-2.0; the package fact-reasoner 0.5 to 0.8). Such a file has the
texts of `atoms` by id, a `fact_graph`, and the discourse sense from which each of the `relations`
was derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from factormodels.fact_graph import FactGraph
from factormodels.io.fact_graph_json import parse_fact_graph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, record_of
from factormodels.io.tables.records import Source


class MinedRelation(ToolRecord):
    """The ends of a relation, and its discourse sense."""

    source_id: str | None = None
    target_id: str | None = None
    level2_sense: str | None = None


class MinedNode(ToolRecord):
    """A node of a fact graph, which has further keys."""

    id: str | None = None


class MinedGraph(ToolRecord):
    """The nodes of a fact graph."""

    nodes: list[MinedNode]


class MinedRelations(ToolRecord):
    """The output of the miner."""

    atoms: dict[str, Any]
    fact_graph: MinedGraph
    relations: list[MinedRelation]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has atoms, relations and a fact graph."""
    return {"atoms", "relations", "fact_graph"} <= record.keys()


def read(obj: Any, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of mined relations between claims, with the texts of the claims.

    The metadata hold the sense of each relation (`senses`, by the ids of its claims), if stated.
    Such a file does not contain the response itself.

    Args:
        obj: the JSON value.
        source: its file, whose stem is the graph's id.
        line: its line in a JSON Lines file, which is then part of the id.

    Raises:
        InputError: if the record is malformed.
    """
    mined = record_of(MinedRelations, obj, source, line)
    nodes = [
        {**stated, "text": mined.atoms.get(node.id or "")}
        for stated, node in zip(obj["fact_graph"]["nodes"], mined.fact_graph.nodes, strict=True)
    ]
    senses = {
        f"{relation.source_id or ''} {relation.target_id or ''}": relation.level2_sense
        for relation in mined.relations
        if relation.level2_sense
    }
    graph = parse_fact_graph({**obj["fact_graph"], "nodes": nodes}, source, line)
    return replace(graph, metadata={"senses": senses} if senses else {})


FORMAT = Format(
    name="factreasoner-relations",
    title="FactReasoner, mined relations between claims",
    owner="IBM/FactReasoner, Apache-2.0",
    holds="responses",
    keys=("atoms", "relations", "fact_graph"),
    recognize=recognize,
    read=read,
    fields=("atoms", "relations[].level2_sense", "fact_graph"),
    also=("relations[].*",),
)
