"""JSON Schemas of this project's own formats by name, and the schema of studies with analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from experiments.settings.inputs import evidence_schema
from experiments.study.config import LEARNED, Priors, Study, short_keys
from experiments.study.files import OF_ANALYSES, OF_UNITS, Manifest
from experiments.study.rows import SCHEMA, UNANSWERED
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
    """JSON Schema of a study's YAML, with its shorthands, its base and every analysis."""
    from experiments.analyses.registry import analysis, names
    from experiments.analyses.study import AnalysisStudy
    from experiments.networks.config import NetworkStudy

    inputs: list[Any] = [
        ("study", "validation", TypeAdapter(Study)),
        ("networks", "validation", TypeAdapter(NetworkStudy)),
        ("analysis", "validation", TypeAdapter(AnalysisStudy)),
        *((name, "validation", TypeAdapter(analysis(name).settings)) for name in names()),
    ]
    by_key, combined = TypeAdapter.json_schemas(inputs)
    definitions: Schema = combined["$defs"]
    of = {key: by_key[key, "validation"] for key, _, _ in inputs}
    roots = {key: _definition(ref, definitions) for key, ref in of.items()}
    _with_short_parts(definitions)
    for key, root in roots.items():
        _with_shorthands(root, NetworkStudy if key == "networks" else Study)
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
        # A run writes these keys, although a reader accepts their absence.
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
"""Names of the formats, and what makes the schema of each."""


def _definition(schema_or_reference: Schema, definitions: Schema) -> Schema:
    definition: Schema = definitions[schema_or_reference["$ref"].rpartition("/")[2]]
    return definition


def _with_shorthands(root: Schema, model: type) -> None:
    """Let a study's own keys be written in short, as the reader of files writes them out."""
    properties = root["properties"]
    for key, short in short_keys(model).items():
        if key not in properties:
            continue
        if short.lone is None:
            properties[key] = {"anyOf": [{"type": "string"}, properties[key]]}
            continue
        several = properties[key]
        single = several["items"]
        if short.text is not None:
            text = {"type": "string", "description": f"short for {short.text}"}
            several["items"] = {"anyOf": [text, single]}
            single = {"type": "string"}
        properties[key] = {"anyOf": [several, single]}
    if "unlabeled" in properties:
        properties["unlabeled"]["enum"] += [True, False]
        del properties["unlabeled"]["type"]


def _with_short_parts(definitions: Schema) -> None:
    """Allow a single prior for a list of one, and a text for a side of a pair."""
    priors = definitions["Priors"]
    for key in short_keys(Priors):
        several = priors["properties"][key]
        priors["properties"][key] = {"anyOf": [several, several["items"]]}
    definitions["Priors"] = {"anyOf": [{"const": LEARNED}, priors]}
    sides = definitions["Significance"]["properties"]["pairs"]["items"]
    sides["items"] = {"anyOf": [{"type": "string", "description": "a backend"}, sides["items"]]}
