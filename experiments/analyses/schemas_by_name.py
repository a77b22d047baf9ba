"""JSON Schemas of this project's own formats by name, and the schema of studies with analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pydantic.json_schema import models_json_schema

from experiments.columns.cell_names import UNANSWERED
from experiments.settings.inputs import evidence_schema
from experiments.settings.keyed import Keyed, keyed_in
from experiments.study.config import Study
from experiments.study.files import OF_ANALYSES, OF_UNITS, Manifest
from experiments.study.rows import SCHEMA
from factormodels.errors import InputError, unknown_name
from factormodels.io.fact_graph_json import DIALECT, fact_graph_schema
from inference.posterior import LogZKind, Status

Schema = dict[str, Any]


def schema(name: str) -> Schema:
    """JSON Schema (draft 2020-12) of a format, one of `SCHEMAS`.

    Raises:
        InputError: for an unknown name.
    """
    if name not in SCHEMAS:
        raise InputError(unknown_name(f"the schema {name!r}", name, SCHEMAS))
    return SCHEMAS[name]()


def study_schema() -> Schema:
    """JSON Schema of a study's YAML, with its short forms, its base and every analysis."""
    from experiments.analyses.registry import analysis, names
    from experiments.analyses.study import AnalysisStudy
    from experiments.networks.config import NetworkStudy

    kinds: dict[str, type[Keyed]] = {
        "study": Study,
        "networks": NetworkStudy,
        "analysis": AnalysisStudy,
        **{name: analysis(name).settings for name in names()},
    }
    by_kind, combined = models_json_schema([(kind, "validation") for kind in kinds.values()])
    definitions: Schema = combined["$defs"]
    of = {key: by_kind[kind, "validation"] for key, kind in kinds.items()}
    roots = {key: _definition(ref, definitions) for key, ref in of.items()}
    _with_texts(definitions, kinds.values())
    for key in ("study", "networks", "analysis"):
        root = roots[key]
        root["properties"]["base"] = {
            "type": "string",
            "description": "an embedded study or a file that this one is laid over",
        }
        root["properties"]["study"]["pattern"] = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
        required = root.pop("required")
        root["anyOf"] = [{"required": ["base"]}, {"required": required}]
    roots["analysis"]["allOf"] = [
        {
            "if": {"properties": {"analysis": {"const": name}}, "not": {"required": ["base"]}},
            "then": {"properties": {"settings": of[name]}},
        }
        for name in names()
    ]
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:study:1",
        "title": "Study",
        "description": "A comparison of posteriors, of backends on networks or, with the key "
        "analysis, an analysis.",
        "type": "object",
        "if": {"required": ["analysis"]},
        "then": of["analysis"],
        "else": {"anyOf": [of["study"], of["networks"], {"required": ["base"], **of["analysis"]}]},
        "$defs": definitions,
    }


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
        "description": "Atom judged by a cell of a study.",
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def manifest_schema() -> Schema:
    """JSON Schema of manifest.json, of a study of posteriors or of an analysis."""
    json_schema = Manifest.model_json_schema()
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:manifest:2",
        **json_schema,
        "title": "Manifest of a run",
        # A run always writes these keys, although a reader accepts their absence.
        "required": [
            key for key in json_schema["properties"] if key not in (*OF_UNITS, *OF_ANALYSES)
        ],
        "anyOf": [{"required": [*OF_UNITS]}, {"required": [*OF_ANALYSES]}],
    }


SCHEMAS: Mapping[str, Callable[[], Schema]] = MappingProxyType(
    {
        "fact-graph": fact_graph_schema,
        "evidence": evidence_schema,
        "study": study_schema,
        "row": row_schema,
        "manifest": manifest_schema,
    }
)
"""Names of the formats, and the function that makes the schema of each."""


def _definition(schema_or_reference: Schema, definitions: Schema) -> Schema:
    definition: Schema = definitions[schema_or_reference["$ref"].rpartition("/")[2]]
    return definition


def _with_texts(definitions: Schema, kinds: Iterable[type[Keyed]]) -> None:
    """Allow a string instead of the mapping for every settings class with a short form."""
    waiting, seen = [*kinds], set[type[Keyed]]()
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        waiting += filter(None, (keyed_in(each.annotation) for each in kind.model_fields.values()))
        if kind.text_key:
            text = {"type": "string", "description": f"short for {kind.text_key}"}
            definitions[kind.__name__] = {"anyOf": [text, definitions[kind.__name__]]}
