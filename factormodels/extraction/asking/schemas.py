"""JSON schemas of answers, which servers with structured output hold a model to.

A schema is a constant of its stage: providers compile each new one before they answer, for some
seconds. Each is an object with every key required and no other, as OpenAI's strict mode demands, so
that a list is under a key; limits of lengths and numbers, which that mode refuses, are left to the
reading of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object with these keys, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def listed(value: Any, key: str) -> Any:
    """Return what an object of a schema has under a key; any other value is returned as it is."""
    return value[key] if isinstance(value, dict) and value.keys() == {key} else value


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of some words."""
    return {"type": "string", "enum": list(words)}
