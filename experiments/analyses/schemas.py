"""JSON Schemas of this project's own formats, made from what reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from experiments.study import config_file
from factormodels.errors import InputError, unknown_name
from factormodels.io.fact_graph_schema import DIALECT, fact_graph_schema

Schema = dict[str, Any]

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256"}
_COUNT = {"type": "integer", "minimum": 0}


def schema(name: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a format, one of `SCHEMAS`.

    Raises:
        InputError: for an unknown name.
    """
    if name not in SCHEMAS:
        raise InputError(unknown_name(f"the schema {name!r}", name, SCHEMAS))
    return SCHEMAS[name]()


def evidence_schema() -> Schema:
    """Return the schema of evidence in JSON: names of variables and what was observed."""
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:evidence:1",
        "title": "Evidence",
        "description": "Names of variables and their observed states; whether these exist depends "
        "on the graph.",
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "integer", "minimum": 0, "description": "the state, counted from 0"},
                {"type": "boolean", "description": "states 1 and 0 of a claim"},
                {
                    "type": "array",
                    "items": {"type": "number", "minimum": 0},
                    "minItems": 1,
                    "description": "soft evidence: a likelihood for each state",
                },
            ]
        },
    }


def row_schema() -> Schema:
    """Return the schema of one row of rows.parquet and rows.csv, as an object."""
    import pyarrow as pa

    from experiments.results.rows import FAILED, SCHEMA
    from inference.posterior import LogZKind, Status

    kinds = {pa.string(): "string", pa.float64(): "number", pa.int64(): "integer"}
    words = {"status": [*Status, FAILED], "log_z_kind": [*LogZKind]}
    properties: Schema = {}
    for field in SCHEMA:
        kind = kinds.get(field.type, "boolean")
        value: Schema = {"type": [kind, "null"] if field.nullable else kind}
        if field.name in words:
            value["enum"] = [*map(str, words[field.name]), *([None] if field.nullable else [])]
        properties[field.name] = value | {
            "description": (field.metadata or {})[b"description"].decode()
        }
    properties["p"] |= {"minimum": 0, "maximum": 1}
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:row:1",
        "title": "Row of a run",
        "description": "One atom, judged by one cell of a study.",
        **_closed(properties, list(properties)),
    }


def manifest_schema() -> Schema:
    """Return the schema of manifest.json, of a study of posteriors or of an analysis."""
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


def study_schema() -> Schema:
    """Return the schema of a study's YAML, with its shorthands, its base and every analysis."""
    from pydantic import TypeAdapter

    from experiments.analyses.registry import analysis, names
    from experiments.analyses.study import AnalysisStudy
    from experiments.study.config import Study

    inputs: list[Any] = [
        ("study", "validation", TypeAdapter(Study)),
        ("analysis", "validation", TypeAdapter(AnalysisStudy)),
        *((name, "validation", TypeAdapter(analysis(name).settings)) for name in names()),
    ]
    by_key, combined = TypeAdapter.json_schemas(inputs)
    definitions: Schema = combined["$defs"]
    of = {key: by_key[key, "validation"] for key, _, _ in inputs}
    roots = {key: _definition(ref, definitions) for key, ref in of.items()}
    _with_short_parts(definitions)
    for root in roots.values():
        _with_shorthands(root)
    for key in ("study", "analysis"):
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
        "description": "A comparison of posteriors or, with the key analysis, an analysis.",
        "type": "object",
        "if": {"required": ["analysis"]},
        "then": of["analysis"],
        "else": {"anyOf": [of["study"], {"required": ["base"], **of["analysis"]}]},
        "$defs": definitions,
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


def _closed(properties: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def _definition(schema_or_reference: Schema, definitions: Schema) -> Schema:
    definition: Schema = definitions[schema_or_reference["$ref"].rpartition("/")[2]]
    return definition


def _with_shorthands(root: Schema) -> None:
    """Let a study's own keys be written in short, as the reader of files writes them out."""
    properties = root["properties"]
    for key, meaning in config_file._SHORTHANDS.items():
        if key in properties:
            items = properties[key]["items"]
            properties[key]["items"] = {
                "anyOf": [{"type": "string", "description": f"short for {meaning}"}, items]
            }
    for key in (*config_file._LISTS, *config_file._SINGLES):
        if key in properties:
            several = properties[key]
            single = {"type": "string"} if key in config_file._SHORTHANDS else several["items"]
            properties[key] = {"anyOf": [several, single]}
    if "language_model" in properties:
        model = properties["language_model"]
        properties["language_model"] = {"anyOf": [{"type": "string"}, model]}
    if "unlabelled" in properties:
        properties["unlabelled"]["enum"] += [True, False]
        del properties["unlabelled"]["type"]


def _with_short_parts(definitions: Schema) -> None:
    """Let a single prior stand for a list of one, and a text for a side of a pair."""
    priors = definitions["Priors"]["properties"]
    for key in ("atom", "context"):
        priors[key] = {"anyOf": [priors[key], priors[key]["items"]]}
    if "learned" in priors:
        mapping = definitions["Priors"]
        definitions["Priors"] = {"anyOf": [{"const": "learned"}, mapping]}
    sides = definitions["Significance"]["properties"]["pairs"]["items"]
    sides["items"] = {"anyOf": [{"type": "string", "description": "a backend"}, sides["items"]]}
