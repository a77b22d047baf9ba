"""Fact graphs as networkx graphs, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from factormodels.claims import Atom, Context, Relation
from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.interchange.records import checked_record, values

if TYPE_CHECKING:
    import networkx as nx

_GRAPH_TEXTS = ("id", "query", "response", "topic")


def to_networkx(graph: FactGraph) -> nx.DiGraph[str]:
    """Directed networkx graph: atoms and contexts are nodes, relations are edges.

    Nodes have the attribute `type` ("atom" or "context") and the fields of `Atom` or `Context`;
    edges those of `Relation` and `position`, the place among the relations, since networkx keeps
    edges by node; the graph its id, query, response, topic and metadata.

    Raises:
        MissingDependencyError: if networkx is not installed.
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependencyError(
            "a networkx graph needs networkx; run: pip install networkx"
        ) from error
    result: nx.DiGraph[str] = nx.DiGraph(
        **{name: getattr(graph, name) for name in _GRAPH_TEXTS}, metadata=dict(graph.metadata)
    )
    for kind, items in (("atom", graph.atoms), ("context", graph.contexts)):
        for item in items:
            known = values(item)
            result.add_node(known.pop("id"), type=kind, **known)
    for position, relation in enumerate(graph.relations):
        known = values(relation) | {"position": position}
        known["kind"] = relation.kind.value
        result.add_edge(known.pop("source"), known.pop("target"), **known)
    return result


def from_networkx(graph: nx.DiGraph[str]) -> FactGraph:
    """Fact graph of a directed networkx graph; `to_networkx` is the inverse.

    Raises:
        InputError: if the graph is undirected, a node is neither atom nor context, or attributes
            are missing, unknown or out of range.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("relations have a direction and join a pair once; give a networkx DiGraph")
    known = dict(graph.graph)
    unknown = set(known) - {*_GRAPH_TEXTS, "metadata"}
    if unknown or "id" not in known:
        what = f"an unknown attribute {min(unknown)!r}" if unknown else "no attribute 'id'"
        raise InputError(
            f"the networkx graph has {what}; give it id and, if there are any, query, response, "
            "topic, metadata"
        )
    nodes: dict[str, list[dict[str, Any]]] = {"atom": [], "context": []}
    for name, attributes in graph.nodes(data=True):
        given = dict(attributes)
        kind = given.pop("type", None)
        if kind not in nodes:
            raise InputError(f"node {name!r} has the type {kind!r}; use 'atom' or 'context'")
        nodes[kind].append({"id": name, **given})
    edges = [
        {"source": source, "target": target, **attributes}
        for source, target, attributes in graph.edges(data=True)
    ]
    # Edges that somebody added have no place and come last.
    edges.sort(key=lambda edge: edge.pop("position", len(edges)))
    return FactGraph(
        atoms=tuple(checked_record(row, Atom, f"node {row['id']!r}") for row in nodes["atom"]),
        contexts=tuple(
            checked_record(row, Context, f"node {row['id']!r}") for row in nodes["context"]
        ),
        relations=tuple(
            checked_record(row, Relation, f"edge {row['source']!r} -> {row['target']!r}")
            for row in edges
        ),
        **known,
    )
