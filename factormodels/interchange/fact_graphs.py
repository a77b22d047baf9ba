"""Conversion of fact graphs to and from data frames and networkx graphs, with validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from factormodels.claims import Atom, Context, Relation
from factormodels.decoded_values import located
from factormodels.errors import InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Record = TypeVar("Record", Atom, Context, Relation)

_GRAPH_TEXTS = ("id", "query", "response", "topic")


class FactGraphFrames(NamedTuple):
    """A fact graph as three data frames, one row per atom, context and relation, in order.

    Attributes:
        atoms: columns named as the fields of `Atom`.
        contexts: columns named as the fields of `Context`.
        relations: columns named as the fields of `Relation`.
    """

    atoms: pd.DataFrame
    contexts: pd.DataFrame
    relations: pd.DataFrame


def to_frames(graph: FactGraph) -> FactGraphFrames:
    """Return atoms, contexts and relations of a fact graph as data frames."""
    return FactGraphFrames(
        _frame(graph.atoms, Atom),
        _frame(graph.contexts, Context),
        _frame(graph.relations, Relation),
    )


def from_frames(
    id: str,
    atoms: pd.DataFrame,
    contexts: pd.DataFrame | None = None,
    relations: pd.DataFrame | None = None,
    *,
    query: str = "",
    response: str = "",
    topic: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> FactGraph:
    """Return the fact graph of data frames; the inverse of `to_frames`.

    Only fields without a default are required: `id` of atoms and contexts; `source`, `target`,
    `kind` and `probability` of relations. A missing cell (None or NaN) means the default.

    Args:
        id: name of the response.
        atoms, contexts, relations: one row each, columns named as the fields of `Atom`, `Context`
            and `Relation`.
        query, response, topic, metadata: as in `FactGraph`.

    Raises:
        InputError: for an unknown or missing column, or rows that make no valid fact graph.
    """
    return FactGraph(
        id,
        atoms=_records(atoms, Atom, "atoms"),
        contexts=_records(contexts, Context, "contexts"),
        relations=_records(relations, Relation, "relations"),
        query=query,
        response=response,
        topic=topic,
        metadata=metadata or {},
    )


def _frame(records: Sequence[Record], kind: type[Record]) -> pd.DataFrame:
    import pandas as pd

    columns = {
        field.name: pd.Series([getattr(record, field.name) for record in records], dtype=object)
        for field in fields(kind)
    }
    frame = pd.DataFrame(columns)
    for name in ("prior", "probability"):
        if name in frame:
            frame[name] = frame[name].astype(float)
    if "kind" in frame:
        frame["kind"] = frame["kind"].map(str)
    if "sentence" in frame:
        frame["sentence"] = frame["sentence"].astype("Int64")
    return frame


def _records(frame: pd.DataFrame | None, kind: type[Record], what: str) -> tuple[Record, ...]:
    if frame is None:
        return ()
    rows = frame.to_dict("records")
    return tuple(
        _checked({str(name): value for name, value in row.items()}, kind, f"{what}, row {number}")
        for number, row in enumerate(rows)
    )


def to_networkx(graph: FactGraph) -> nx.DiGraph[str]:
    """Return a directed networkx graph with atoms and contexts as nodes, and relations as edges.

    Nodes have the attribute `type` ("atom" or "context") and the fields of `Atom` or `Context`.
    Edges have the fields of `Relation` and `position`, the index among the relations, since
    networkx orders edges by node. The graph has its id, query, response, topic and metadata.

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
            known = _values(item)
            result.add_node(known.pop("id"), type=kind, **known)
    for position, relation in enumerate(graph.relations):
        known = _values(relation) | {"position": position}
        result.add_edge(known.pop("source"), known.pop("target"), **known)
    return result


def from_networkx(graph: nx.DiGraph[str]) -> FactGraph:
    """Return the fact graph of a directed networkx graph; the inverse of `to_networkx`.

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
        properties = dict(attributes)
        kind = properties.pop("type", None)
        if kind not in nodes:
            raise InputError(f"node {name!r} has the type {kind!r}; use 'atom' or 'context'")
        nodes[kind].append({"id": name, **properties})
    edges = [
        {"source": source, "target": target, **attributes}
        for source, target, attributes in graph.edges(data=True)
    ]
    # Edges added by users have no position and come last.
    edges.sort(key=lambda edge: edge.pop("position", len(edges)))
    return FactGraph(
        atoms=tuple(_checked(row, Atom, f"node {row['id']!r}") for row in nodes["atom"]),
        contexts=tuple(_checked(row, Context, f"node {row['id']!r}") for row in nodes["context"]),
        relations=tuple(
            _checked(row, Relation, f"edge {row['source']!r} -> {row['target']!r}") for row in edges
        ),
        **known,
    )


def _values(record: Atom | Context | Relation) -> dict[str, Any]:
    """Return the fields of a record by name; kinds as plain text, which every writer takes."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {
        name: value.value if isinstance(value, StrEnum) else value for name, value in values.items()
    }


def _checked(row: Mapping[str, Any], kind: type[Record], where: str) -> Record:
    """Return the record of fields by name; a missing value (None or NaN) means the default.

    Raises:
        InputError: for an unknown or missing field, or a value out of range; `where` names the
            record.
    """
    known = {field.name for field in fields(kind)}
    unknown = set(row) - known
    if unknown:
        raise InputError(
            f"{where}: there is no field {min(unknown)!r}; use {', '.join(sorted(known))}"
        )
    values: dict[str, Any] = {
        name: _native(value) for name, value in row.items() if not _is_missing(value)
    }
    for field in fields(kind):
        needed = field.default is MISSING and field.default_factory is MISSING
        if needed and field.name not in values:
            raise InputError(f"{where}: {field.name!r} is missing; add it")
    with located(where):
        return kind(**values)


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _native(value: object) -> object:
    """Return values of NumPy and pandas as Python's own types."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", 0) == 0 else value
