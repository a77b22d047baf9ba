"""JSON Schemas of what a run writes: its rows and its manifest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from experiments.study.rows import SCHEMA, UNANSWERED
from factormodels.io.fact_graph_json import DIALECT
from inference.posterior import LogZKind, Status

Schema = dict[str, Any]

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256"}
_COUNT = {"type": "integer", "minimum": 0}


def row_schema() -> Schema:
    """JSON Schema of one row of rows.parquet and rows.csv, as an object."""
    kinds = {pa.string(): "string", pa.float64(): "number", pa.int64(): "integer"}
    words = {"status": [*Status, *UNANSWERED], "log_z_kind": [*LogZKind]}
    properties: Schema = {}
    for field in SCHEMA:
        kind = kinds.get(field.type, "boolean")
        value: Schema = {"type": [kind, "null"] if field.nullable else kind}
        if field.name in words:
            value["enum"] = [*map(str, words[field.name]), *([None] if field.nullable else [])]
        properties[field.name] = value | {
            "description": (field.metadata or {})[b"description"].decode()
        }
    # pyarrow's schema has types but no ranges.
    properties["p"] |= {"minimum": 0, "maximum": 1}
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:row:1",
        "title": "Row of a run",
        "description": "One atom, judged by one cell of a study.",
        **_closed(properties, list(properties)),
    }


def manifest_schema() -> Schema:
    """JSON Schema of manifest.json, of a study of posteriors or of an analysis."""
    texts = {"type": "array", "items": {"type": "string"}}
    sizes = {"sha256": _HASH, "responses": _COUNT, "atoms": _COUNT, "labelled": _COUNT}
    properties: Schema = {
        "format": {"const": "factormodels/manifest"},
        "version": {"const": 2},
        "complete": {"type": "boolean", "description": "whether every unit has been run"},
        "study": {"type": "string"},
        "config": {"type": "object", "description": "the study, every default written out"},
        "config_sha256": _HASH,
        "data": {
            "type": "object",
            "additionalProperties": _closed(
                {**sizes, "relations": {"type": "object", "description": "hashes of those found"}},
                list(sizes),
            ),
        },
        "models": {
            "type": "object",
            "description": "the models that were asked, by key of the study (language_models: "
            "those of an analysis): name, prompts with their digests, counts, tokens, US dollars",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "object"}},
        },
        "seeds": {"type": "array", "items": _COUNT},
        "units": {"type": "object", "additionalProperties": _COUNT},
        "units_missing": _COUNT,
        "code_of_units": texts,
        "remarks": texts,
        "files": {"type": "object", "additionalProperties": _HASH},
        "code": {
            "type": "object",
            "required": ["version"],
            "properties": {
                "version": {"type": "string"},
                "commit": {"type": "string"},
                "modified": {"type": "boolean"},
            },
        },
        "python": {"type": "string"},
        "platform": {"type": "string"},
        "processor": {"type": "string"},
        "cpu_count": {"type": ["integer", "null"]},
        "packages": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    optional = {"units", "units_missing", "code_of_units", "remarks"}
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:manifest:2",
        "title": "Manifest of a run",
        "description": "What was computed, and with what. Units are those of a study of "
        "posteriors, remarks those of an analysis.",
        **_closed(properties, [key for key in properties if key not in optional]),
        "anyOf": [
            {"required": ["units", "units_missing", "code_of_units"]},
            {"required": ["remarks"]},
        ],
    }


def _closed(properties: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }
