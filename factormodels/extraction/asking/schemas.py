"""JSON schemas of answers, which servers with structured output enforce.

Each schema is a constant of its stage, since providers spend seconds compiling a new one. As
OpenAI's strict mode demands, a schema is an object that requires every key and allows no others;
lists are therefore under a key. The strict mode refuses limits of lengths and numbers, so the
parser checks them.
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
    """Return the entry of an object under a key; return any other value unchanged."""
    return value[key] if isinstance(value, dict) and value.keys() == {key} else value


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of the given words."""
    return {"type": "string", "enum": list(words)}
