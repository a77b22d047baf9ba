"""The JSON Schema of fact-graph JSON: what the reader holds every file to, for other tools.

Five rules are about several values at once and beyond a schema: ids are unique, relations join
what exists, no relation joins a text to itself, no ordered pair has two relations, and contexts
are retrieved for atoms that exist. The reader checks them all. A schema does not tell 1.0 from 1,
which the reader does for `sentence`.
"""

from __future__ import annotations

from typing import Any

from factormodels.claims import ATOM_PRIOR, CONTEXT_PRIOR, RelationKind
from factormodels.io.fact_graph_json import FORMAT, VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of every schema of this project."""


def fact_graph_schema() -> dict[str, Any]:
    """JSON Schema of one fact graph: a file, or a line of JSON Lines."""
    return {
        "$schema": DIALECT,
        "$id": f"urn:factormodels:fact-graph:{VERSION}",
        "title": "Fact graph",
        "description": "The atoms, contexts and relations of one response.",
        **_object(
            {
                "format": {"const": FORMAT},
                "version": {"const": VERSION},
                "id": {
                    **_texts("name of the response; else the file's", null=True),
                    "minLength": 1,
                },
                "query": _texts("the question that was asked", null=True),
                "response": _texts("the whole response", null=True),
                "topic": _texts("what it is about", null=True),
                "metadata": {"type": "object", "description": "further facts, JSON values by name"},
                "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "edges": {"type": "array", "items": {"$ref": "#/$defs/edge"}},
            },
            required=("nodes", "edges"),
        ),
        "$defs": {
            "id": _texts("a name", minLength=1),
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
            "node": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": ["atom", "context"]}},
                "if": {"properties": {"type": {"const": "atom"}}},
                "then": {"$ref": "#/$defs/atom"},
                "else": {"$ref": "#/$defs/context"},
            },
            "atom": _node(
                f"A claim. The prior is {ATOM_PRIOR} where nothing is known.",
                {
                    "label": {
                        "type": ["boolean", "null"],
                        "description": "the human judgement; null or absent where there is none",
                    },
                    "annotation": _texts("the annotator's own word for it", null=True),
                    "sentence": {
                        "type": ["integer", "null"],
                        "minimum": 1,
                        "description": "sentence of the response it comes from, counted from 1",
                    },
                },
            ),
            "context": _node(
                f"A passage of evidence. The prior is {CONTEXT_PRIOR} for a reliable source.",
                {
                    "title": _texts("title of the page", null=True),
                    "link": _texts("address of the page", null=True),
                    "snippet": _texts("the search engine's extract", null=True),
                    "retrieved_for": {
                        "type": ["array", "null"],
                        "items": {"type": "string"},
                        "description": "ids of the atoms that it was retrieved for",
                    },
                    "key": _texts("identity: contexts with equal keys are duplicates", null=True),
                    "note": _texts("a remark", null=True),
                },
            ),
            "edge": _edge(),
        },
    }


def _edge() -> dict[str, Any]:
    end = {"$ref": "#/$defs/id"}
    return {
        **_object(
            {
                "source": end,
                "from": end,
                "target": end,
                "to": end,
                "relation": {"enum": [kind.value for kind in RelationKind]},
                "probability": {"$ref": "#/$defs/probability"},
                "distribution": {
                    **_object(
                        {kind.value: {"$ref": "#/$defs/probability"} for kind in RelationKind},
                        required=(),
                    ),
                    "description": "what the relation model gives each kind; they sum to 1",
                },
                "link": {"description": "accepted as FactReasoner writes it, and not read"},
            },
            required=("relation", "probability"),
        ),
        "description": "A relation of an ordered pair; its ends have either of two spellings.",
        "allOf": [
            {"oneOf": [{"required": ["source"]}, {"required": ["from"]}]},
            {"oneOf": [{"required": ["target"]}, {"required": ["to"]}]},
        ],
    }


def _node(description: str, own: dict[str, Any]) -> dict[str, Any]:
    return {
        **_object(
            {
                "id": {"$ref": "#/$defs/id"},
                "type": {"enum": ["atom", "context"]},
                "probability": {"$ref": "#/$defs/probability"},
                "text": _texts("the claim or passage", null=True),
                **own,
            },
            required=("id", "type", "probability"),
        ),
        "description": description,
    }


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _texts(description: str, *, null: bool = False, **limits: Any) -> dict[str, Any]:
    kind: Any = ["string", "null"] if null else "string"
    return {"type": kind, "description": description, **limits}
