"""Checks of the metadata of assessed responses.

`factormodels assess` writes them, but a file can be edited, truncated or written by another
program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from factormodels.claims import RelationKind
from factormodels.conventions import (
    DEFAULT,
    Conventions,
    Equivalence,
    SharedPassage,
    WeakRelations,
)
from factormodels.errors import InputError
from factormodels.extraction.stages.duplicates import every_atom
from factormodels.fact_graph import FactGraph
from factormodels.metadata.recorded_verdicts import ASSESSORS_KEY
from factormodels.metadata.stage_keys import PROBE_KEY, STAGE_KEYS
from factormodels.passage_sources import PassageKey

METADATA_KEY = "assessment"
"""Metadata key of a response for its assessments by variant."""

CORE_KEY = "core"
"""Key of an assessment for the claims that Core selects."""

Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
_Pair = tuple[Probability, Probability]
_Sized = dict[str, Any] | list[Any]


class _Facts(BaseModel):
    """A mapping of the metadata; unused keys are ignored."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Claim(_Facts):
    p: Probability


class _Unsolved(_Facts):
    encoding: str
    backend: str
    error: str


class _NoPosteriors(_Facts):
    error: str


class _DeclaredConventions(_Facts):
    context_prior: Probability | None = None
    equivalence: Equivalence = "smaller"
    shared_passage: SharedPassage = "copied"
    weak_relations: WeakRelations = "left-out"
    prior: str | None = None
    prior_by: PassageKey = "domain"
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Posteriors(_Facts):
    conventions: _DeclaredConventions = _DeclaredConventions()
    unanswered: list[str] = []
    atoms: dict[str, _Claim]


class _Borne(_Facts):
    context: str
    relation: RelationKind
    probability: Probability
    change: float | None
    change_error: float | None = None


class _Judged(_Claim):
    evidence: list[_Borne]


class _View(_Facts):
    encoding: str
    conventions: _DeclaredConventions = _DeclaredConventions()
    backend: str
    status: str
    log_z: float | None
    log_z_kind: str
    log_z_lower: float | None = None
    answered_by: str | None = None
    unanswered: list[str]
    open: dict[str, _Pair] = {}
    atoms: dict[str, _Judged]


class _Stage(_Facts):
    failures: list[Annotated[list[Any], Field(min_length=1)]] = []


class _Retrieval(_Stage):
    retriever: str
    queries: Count
    passages: Count
    contexts: Count
    dropped: _Sized = []
    failures: list[Annotated[list[Any], Field(min_length=1)]]


class _Summaries(_Stage):
    model: str
    passages: _Sized
    dropped: _Sized
    failures: list[Annotated[list[Any], Field(min_length=1)]]


class _Relations(_Facts):
    model: str
    asked: Count
    entailment: Count
    contradiction: Count
    neutral: Count
    made_neutral: Count
    least: Probability
    missing: list[tuple[str, str, str]]
    unasked: list[tuple[str, str, str]] = []
    limit: str = ""
    origins: dict[str, Count] = {}


class _Verdict(_Facts):
    p: Probability | None


class _Assessor(_Facts):
    model: str = ""
    verdicts: dict[str, _Verdict]
    missing: list[tuple[str, str]]


class _Duplicate(_Facts):
    same_as: str
    label: bool | None
    annotation: str | None
    sentence: Annotated[int, Field(ge=1)] | None


class _Consumption(_Facts):
    answers: Count
    prompt_tokens: Count
    completion_tokens: Count
    cost: Annotated[float, Field(ge=0)]
    unpriced: Count
    prefix_tokens: Count = 0


class _Core(_Facts):
    kept: list[str] | None = None


class _Probed(_Facts):
    cautions: list[str]


_KINDS: Mapping[str, type[_Facts]] = MappingProxyType(
    {
        **dict.fromkeys(STAGE_KEYS, _Stage),
        "retrieval": _Retrieval,
        "summaries": _Summaries,
        "relations": _Relations,
        CORE_KEY: _Core,
        PROBE_KEY: _Probed,
    }
)
_KINDS_BY_NAME: Mapping[str, type[_Facts]] = MappingProxyType(
    {ASSESSORS_KEY: _Assessor, "consumption": _Consumption, "duplicates": _Duplicate}
)


def conventions_of(view: Mapping[str, Any]) -> Conventions:
    """The conventions of the posteriors of an assessment's view."""
    return replace(DEFAULT, **view.get("conventions", {}), encoding=view["encoding"])


def check_assessment(graph: FactGraph, source: str) -> None:
    """Check that the metadata of an assessed response are complete and valid.

    Args:
        graph: the response, with the key `METADATA_KEY` in its metadata.
        source: its file, for messages.

    Raises:
        InputError: for the first missing or invalid key.
    """
    where = _metadata_of(graph, source)
    for key, kind in _KINDS.items():
        if key in graph.metadata:
            _check(graph.metadata[key], kind, key, where)
    for key, kind in _KINDS_BY_NAME.items():
        for name, facts in _mapping(graph.metadata.get(key, {}), key, where).items():
            _check(facts, kind, f"{key}.{name}", where)
    _check_views(graph, where, _View, _Unsolved)
    known = set(graph.context_ids)
    for variant, view in graph.metadata[METADATA_KEY].items():
        for atom, judged in view.get("atoms", {}).items():
            for number, item in enumerate(judged["evidence"]):
                if item["context"] not in known:
                    raise InputError(
                        f"{where} garble {METADATA_KEY}.{variant}.atoms.{atom}.evidence.{number}: "
                        f"there is no context {item['context']!r}; assess it again"
                    )


def check_posteriors(graph: FactGraph, source: str) -> None:
    """Check the posteriors of an assessed response, like `check_assessment`."""
    _check_views(graph, _metadata_of(graph, source), _Posteriors, _NoPosteriors)


def _metadata_of(graph: FactGraph, source: str) -> str:
    return f"{source}: the metadata of the response {graph.id!r}"


def _check_views(
    graph: FactGraph, where: str, solved: type[_Facts], unsolved: type[_Facts]
) -> None:
    """Check the views of an assessment, and that every solved view has all claims."""
    for variant, view in _mapping(graph.metadata[METADATA_KEY], METADATA_KEY, where).items():
        key_path = f"{METADATA_KEY}.{variant}"
        failed = "error" in _mapping(view, key_path, where)
        _check(view, unsolved if failed else solved, key_path, where)
        for _, atom in () if failed else every_atom(graph):
            if atom not in view["atoms"]:
                raise InputError(f"{where} lack {key_path}.atoms.{atom}; assess it again")


def _mapping(value: Any, key_path: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} have an invalid {key_path}, which is not an object; assess the response again"
        )
    return value


def _check(facts: Any, kind: type[_Facts], key_path: str, where: str) -> None:
    try:
        # Through JSON, since the file has lists instead of tuples.
        kind.model_validate_json(json.dumps(facts))
    except (ValidationError, TypeError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        key = ".".join([key_path, *(str(part) for part in first["loc"])]) if first else key_path
        verb = "lack" if first and first["type"] == "missing" else "garble"
        raise InputError(f"{where} {verb} {key}; assess it again") from None
