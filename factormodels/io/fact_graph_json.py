"""Fact-graph JSON, the project's format: one object per response, a superset of FactReasoner's.

An object has `nodes` (atoms and contexts) and `edges` (relations). The ends of an edge are `source`
and `target`, or `from` and `to` as in FactReasoner's example files. `format`, `version` and `id`
may be absent, as in those files; a missing id is the stem of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from factormodels.claims import (
    ATOM_PRIOR,
    CONTEXT_PRIOR,
    Atom,
    Context,
    ContextKind,
    Relation,
    RelationKind,
    check_stated_kind,
    is_evidence,
    validated_distribution,
)
from factormodels.decoded_values import as_object, as_text, list_field, located, shown, text_field
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.json import check_keys, encode
from factormodels.io.source.files import write_text
from factormodels.io.source.places import location, record_id

FORMAT = "factormodels/fact-graph"
VERSION = 1

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Dialect of all JSON Schemas of this project."""

Schema = dict[str, Any]


def _text(description: str, **limits: Any) -> Schema:
    return {"type": ["string", "null"], "description": description, **limits}


_GRAPH_TEXTS: Mapping[str, Schema] = {
    "query": _text("the question that was asked"),
    "response": _text("the full text of the response"),
    "topic": _text("topic of the response"),
}
_GRAPH: Mapping[str, Schema] = {
    "format": {"const": FORMAT},
    "version": {"const": VERSION},
    "id": _text("name of the response; by default, the stem of the file", minLength=1),
    **_GRAPH_TEXTS,
    "metadata": {"type": "object", "description": "further facts, JSON values by name"},
    "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    "edges": {"type": "array", "items": {"$ref": "#/$defs/edge"}},
}
_NAME: Schema = {"$ref": "#/$defs/id"}
_PROBABILITY: Schema = {"$ref": "#/$defs/probability"}
_NODE: Mapping[str, Schema] = {
    "id": _NAME,
    "type": {"enum": ["atom", "context"]},
    "probability": _PROBABILITY,
    "text": _text("the claim or passage"),
}
_ATOM: Mapping[str, Schema] = {
    **_NODE,
    "label": {
        "type": ["boolean", "null"],
        "description": "the human judgment; null or absent if there is none",
    },
    "annotation": _text("the annotator's original label"),
    "sentence": {
        "type": ["integer", "null"],
        "minimum": 1,
        "description": "sentence of the response it comes from, counted from 1",
    },
}
_CONTEXT_KINDS = {kind.value: kind for kind in ContextKind}
_CONTEXT: Mapping[str, Schema] = {
    **_NODE,
    "title": _text("title of the page"),
    "link": _text("address of the page"),
    "snippet": _text("extract shown by the search engine"),
    "retrieved_for": {
        "type": ["array", "null"],
        "items": {"type": "string"},
        "description": "ids of the atoms that it was retrieved for",
    },
    "key": _text("identity: contexts with equal keys are duplicates"),
    "note": _text("a remark"),
    "kind": {
        "enum": [*_CONTEXT_KINDS, None],
        "description": "a retrieved passage, as if absent, or a sampled answer to the question",
    },
}
_CONTEXT_TEXTS = ("text", "title", "link", "snippet", "note")
_KINDS = {kind.value: kind for kind in RelationKind}
_NAMES = {kind: kind.value for kind in RelationKind}
_EDGE: Mapping[str, Schema] = {
    **dict.fromkeys(("source", "from", "target", "to"), _NAME),
    "relation": {"enum": [*_KINDS]},
    "probability": _PROBABILITY,
    "distribution": {
        "type": "object",
        "required": [],
        "properties": dict.fromkeys(_KINDS, _PROBABILITY),
        "additionalProperties": False,
        "description": "probabilities of the kinds by the relation model; they sum to 1",
    },
    "uncorrected": {
        "type": "object",
        "required": [],
        "properties": dict.fromkeys(_KINDS, _PROBABILITY),
        "additionalProperties": False,
        "description": "the same before the model's label bias was corrected",
    },
    "link": {"description": "accepted because FactReasoner writes it, and ignored"},
}


def write_fact_graph(graph: FactGraph, path: str | os.PathLike[str]) -> None:
    """Write a fact graph as JSON; `factormodels.read` returns an equal one.

    Raises:
        InputError: if the file cannot be written, or the metadata are not valid JSON.
    """
    write_text(path, fact_graph_text(graph, indent=2) + "\n")


def write_fact_graphs(graphs: Iterable[FactGraph], path: str | os.PathLike[str]) -> None:
    """Write fact graphs as JSON Lines, one graph per line.

    Raises:
        InputError: if two graphs share an id, the file cannot be written, or metadata are not valid
            JSON.
    """
    lines: dict[str, str] = {}
    for graph in graphs:
        if graph.id in lines:
            raise InputError(
                f"{path}: two graphs have the id {graph.id!r}; give each response its own"
            )
        lines[graph.id] = fact_graph_text(graph)
    write_text(path, "".join(f"{line}\n" for line in lines.values()))


def looks_like_fact_graph(obj: object) -> bool:
    """Return whether a JSON value has the keys of a fact graph."""
    return isinstance(obj, dict) and not {"nodes", "edges", "format"}.isdisjoint(obj)


def parse_fact_graph(
    obj: object, source: str | os.PathLike[str], line: int | None = None
) -> FactGraph:
    """Return the fact graph of a decoded JSON object.

    Args:
        obj: the JSON value.
        source: its file, whose stem is the id of a graph without one.
        line: its line in a JSON Lines file, counted from 1.

    Raises:
        InputError: if a key is missing, unknown or of a wrong type, or the parts are not a valid
            graph.
    """
    where = location(source, line)
    fields = _fields(obj, where, record_id(source, line))
    with located(where):
        return FactGraph(**fields)


def fact_graph_text(graph: FactGraph, *, indent: int | None = None) -> str:
    """Return the JSON text of a fact graph, without a final line end.

    Keys are in the order of the format; empty values and None are left out.

    Raises:
        InputError: if the text would not be read back as an equal graph.
    """
    what = f"fact graph {graph.id!r}"
    obj = fact_graph_object(graph)
    text = encode(obj, what, indent=indent)
    # Attributes may have wrong types, such as a number in place of a text, which the reader
    # refuses.
    _fields(obj, what, graph.id)
    return text


def fact_graph_object(graph: FactGraph) -> dict[str, Any]:
    """Return the JSON object of a fact graph."""
    obj: dict[str, Any] = {"format": FORMAT, "version": VERSION, "id": graph.id}
    _fill(obj, graph, _GRAPH_TEXTS)
    if graph.metadata:
        obj["metadata"] = dict(graph.metadata)
    obj["nodes"] = [*_atom_objects(graph), *_context_objects(graph)]
    obj["edges"] = _edge_objects(graph)
    return obj


def _atom_objects(graph: FactGraph) -> list[dict[str, Any]]:
    priors = zip(graph.atom_ids, graph.column("atoms", "prior"), strict=True)
    objects = [{"id": id, "type": "atom", "probability": prior} for id, prior in priors]
    _add(objects, graph, "atoms", ("text",), "")
    _add(objects, graph, "atoms", ("label", "annotation", "sentence"), None)
    return objects


def _context_objects(graph: FactGraph) -> list[dict[str, Any]]:
    priors = zip(graph.context_ids, graph.column("contexts", "prior"), strict=True)
    objects = [{"id": id, "type": "context", "probability": prior} for id, prior in priors]
    _add(objects, graph, "contexts", ("text", "title", "link", "snippet"), "")
    _add(objects, graph, "contexts", ("retrieved_for",), (), list)
    _add(objects, graph, "contexts", ("key",), None)
    _add(objects, graph, "contexts", ("note",), "")
    _add(objects, graph, "contexts", ("kind",), ContextKind.PASSAGE, str)
    return objects


def _edge_objects(graph: FactGraph) -> list[dict[str, Any]]:
    columns = (
        graph.column("relations", name) for name in ("source", "target", "kind", "probability")
    )
    objects = [
        {"source": source, "target": target, "relation": _NAMES[kind], "probability": probability}
        for source, target, kind, probability in zip(*columns, strict=True)
    ]
    _add(objects, graph, "relations", ("distribution", "uncorrected"), None, _shares)
    return objects


def _shares(distribution: tuple[float, ...]) -> dict[str, float]:
    """Return the probabilities of the kinds by name, without kinds of probability 0."""
    named = zip(RelationKind, distribution, strict=False)
    return {kind.value: share for kind, share in named if share > 0.0}


def _add(
    objects: list[dict[str, Any]],
    graph: FactGraph,
    part: str,
    names: tuple[str, ...],
    absent: object,
    written: Callable[[Any], Any] | None = None,
) -> None:
    """Add fields of claims or relations to their objects, unless absent."""
    for name in names:
        # A field that is not stated has its default, which is what `absent` is.
        values = graph.stated(part, name)
        if values.count(absent) < len(values):
            for obj, value in zip(objects, values, strict=True):
                if value != absent:
                    obj[name] = value if written is None else written(value)


def _fill(obj: dict[str, Any], item: object, names: Iterable[str]) -> None:
    """Add the fields of an item that are not empty."""
    for name in names:
        value = getattr(item, name)
        if value != "":
            obj[name] = value


def _fields(obj: object, where: str, default_id: str) -> dict[str, Any]:
    graph = as_object(obj, where)
    check_keys(graph, _GRAPH, where)
    if graph.get("format", FORMAT) != FORMAT:
        raise InputError(
            f"{where}: the format is {shown(graph['format'])}; this reader knows {FORMAT!r}"
        )
    version = graph.get("version", VERSION)
    if isinstance(version, bool) or version != VERSION:
        raise InputError(
            f"{where}: the version is {shown(version)}; this release reads version {VERSION}"
        )
    nodes = [_node(node, f"{where}: nodes[{i}]") for i, node in _numbered(graph, "nodes", where)]
    return {
        "id": text_field(graph, "id", where, default_id),
        "atoms": tuple(node for node in nodes if isinstance(node, Atom)),
        "contexts": tuple(node for node in nodes if isinstance(node, Context)),
        "relations": tuple(
            _edge(edge, f"{where}: edges[{i}]") for i, edge in _numbered(graph, "edges", where)
        ),
        **{key: text_field(graph, key, where, "") for key in _GRAPH_TEXTS},
        "metadata": as_object(graph.get("metadata", {}), f"{where}: key 'metadata'"),
    }


def _numbered(graph: Mapping[str, Any], key: str, where: str) -> enumerate[Any]:
    return enumerate(list_field(graph, key, where))


def _node(value: object, where: str) -> Atom | Context:
    node = as_object(value, where)
    kind = _required(node, "type", where)
    if kind == "atom":
        return _atom(node, where)
    if kind == "context":
        return _context(node, where)
    raise InputError(f"{where}: the type {shown(kind)} is unknown; use 'atom' or 'context'")


def _atom(node: Mapping[str, Any], where: str) -> Atom:
    check_keys(node, _ATOM, where)
    label, sentence = node.get("label"), node.get("sentence")
    if not (label is None or isinstance(label, bool)):
        raise InputError(
            f"{where}: key 'label': {shown(label)} is neither true nor false; "
            "give one of them, or leave the key out if there is no judgment"
        )
    if sentence is not None and (type(sentence) is not int or sentence < 1):
        raise InputError(
            f"{where}: key 'sentence': {shown(sentence)} is not a whole number from 1; "
            "count the response's sentences from 1, or leave the key out"
        )
    text = text_field(node, "text", where, "")
    annotation = _optional_text(node, "annotation", where)
    name, prior = _required(node, "id", where), _required(node, "probability", where)
    try:
        return Atom(name, text, prior, label, annotation, sentence)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _context(node: Mapping[str, Any], where: str) -> Context:
    check_keys(node, _CONTEXT, where)
    served = list_field(node, "retrieved_for", where, [])
    at = f"{where}: key 'retrieved_for'"
    retrieved_for = tuple([as_text(atom, at) for atom in served])
    texts = {key: text_field(node, key, where, "") for key in _CONTEXT_TEXTS if key in node}
    key = _optional_text(node, "key", where)
    kind_name = text_field(node, "kind", where, ContextKind.PASSAGE)
    if kind_name not in _CONTEXT_KINDS:
        subject = f"{where}: key 'kind': {shown(kind_name)}"
        raise InputError(unknown_name(subject, kind_name, tuple(_CONTEXT_KINDS)))
    kind = _CONTEXT_KINDS[kind_name]
    name, prior = _required(node, "id", where), _required(node, "probability", where)
    try:
        return Context(
            name,
            prior=prior,
            retrieved_for=retrieved_for,
            key=key,
            kind=kind,
            **texts,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _edge(value: object, where: str) -> Relation:
    edge = as_object(value, where)
    check_keys(edge, _EDGE, where)
    source = _end(edge, "source", "from", where)
    target = _end(edge, "target", "to", where)
    kind, probability = _required(edge, "relation", where), _required(edge, "probability", where)
    shares = before = None
    if "distribution" in edge:
        shares = as_object(edge["distribution"], f"{where}: key 'distribution'")
    if "uncorrected" in edge:
        before = as_object(edge["uncorrected"], f"{where}: key 'uncorrected'")
    if type(kind) is str:
        # `Relation` reports an unknown kind.
        kind = _KINDS.get(kind, kind)
    try:
        distribution = None
        if shares is not None:
            distribution = validated_distribution(shares, f"relation {source!r} -> {target!r}")
        relation = Relation(source, target, kind, probability, distribution)
        if before is not None:
            name = f"relation {source!r} -> {target!r}, uncorrected"
            relation = replace(relation, uncorrected=validated_distribution(before, name))
        if distribution is not None and is_evidence(relation.kind, relation.probability):
            check_stated_kind(relation.kind, distribution, f"relation {source!r} -> {target!r}")
        return relation
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _end(edge: Mapping[str, Any], key: str, other: str, where: str) -> Any:
    if key in edge and other in edge:
        raise InputError(f"{where}: the keys {key!r} and {other!r} mean the same; keep one")
    return _required(edge, other if other in edge else key, where)


def _required(obj: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in obj:
        raise InputError(f"{where}: the key {key!r} is missing; add it")
    return obj[key]


def _optional_text(obj: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if obj.get(key) is None else as_text(obj[key], f"{where}: key {key!r}")


def fact_graph_schema() -> dict[str, Any]:
    """Return the JSON Schema of one fact graph, for other tools: a file, or a line of JSON Lines.

    Five rules concern several values at once, and a schema cannot express them: ids are unique,
    relations join existing ids, no relation joins a text to itself, no ordered pair has two
    relations, and contexts are retrieved for existing atoms. The reader checks all of them. A
    schema does not distinguish 1.0 from 1; for `sentence`, the reader does.
    """
    schema: Schema = {
        "$schema": DIALECT,
        "$id": f"urn:factormodels:fact-graph:{VERSION}",
        "title": "Fact graph",
        "description": "The atoms, contexts and relations of one response.",
        **_object_schema(_GRAPH, "nodes", "edges"),
        "$defs": {
            "id": {"type": "string", "description": "a name", "minLength": 1},
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
            "node": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": _NODE["type"]},
                "if": {"properties": {"type": {"const": "atom"}}},
                "then": {"$ref": "#/$defs/atom"},
                "else": {"$ref": "#/$defs/context"},
            },
            "atom": {
                **_object_schema(_ATOM, "id", "type", "probability"),
                "description": f"A claim. The prior is {ATOM_PRIOR} if nothing is known.",
            },
            "context": {
                **_object_schema(_CONTEXT, "id", "type", "probability"),
                "description": "A passage of evidence. The prior is "
                f"{CONTEXT_PRIOR} for a reliable source.",
            },
            "edge": {
                **_object_schema(_EDGE, "relation", "probability"),
                "description": "A relation of an ordered pair; each end has two spellings.",
                "allOf": [
                    {"oneOf": [{"required": ["source"]}, {"required": ["from"]}]},
                    {"oneOf": [{"required": ["target"]}, {"required": ["to"]}]},
                ],
            },
        },
    }
    # Copied, since the reader uses these dictionaries.
    return deepcopy(schema)


def _object_schema(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": dict(properties),
        "additionalProperties": False,
    }
