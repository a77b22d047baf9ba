"""JSON Schemas of what a run writes: its rows and its manifest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from experiments.study.files import OF_ANALYSES, OF_UNITS, Manifest
from experiments.study.rows import SCHEMA, UNANSWERED
from factormodels.io.fact_graph_json import DIALECT
from inference.posterior import LogZKind, Status

Schema = dict[str, Any]


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
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def manifest_schema() -> Schema:
    """JSON Schema of manifest.json, of a study of posteriors or of an analysis."""
    told = Manifest.model_json_schema()
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:manifest:2",
        **told,
        "title": "Manifest of a run",
        # What may be lost when it is read, a run still writes.
        "required": [key for key in told["properties"] if key not in (*OF_UNITS, *OF_ANALYSES)],
        "anyOf": [{"required": [*OF_UNITS]}, {"required": [*OF_ANALYSES]}],
    }
