"""UQLM: claims of responses with scores of how sure a model is of each.

Source: Bouchard and Chauhan 2025, "Uncertainty Quantification for Language Models: A Suite of
Black-Box, White-Box, LLM Judge, and Ensemble Scorers", cvs-health/uqlm (Apache-2.0). Relied on:
uqlm/scorers/long_form/longtext.py, graph.py and claimqa.py. `UQResult.to_dict` gives `data` with
the lists `prompts`, `responses` and `claims_data`, and `to_df` a row per response. `claims_data`
has a list per response of objects with `claim` or `sentence`, `removed`, and a number under the
name of each scorer; those of graph scorers say in `original_response` whether the response makes
the claim.

A score is a confidence from 0 to 1, taken as P(true). The numbers of a scorer that leaves this
range in the file are not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import (
    as_object,
    filled_field,
    first_key,
    list_field,
    named_id,
    text_field,
)
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import record_at, record_id
from factormodels.io.published.cells import listed_cell
from factormodels.io.published.judged_claims import assessor_metadata
from factormodels.io.records import Source
from factormodels.recorded_verdicts import RecordedVerdict

UQLM = "uqlm"
"""Name of the assessor, before that of a scorer."""

CLAIMS = "claims_data"
_TEXTS = ("claim", "sentence")
_PROMPTS, _RESPONSES = ("prompts", "prompt"), ("responses", "response")


@dataclass(frozen=True)
class ScoredResponse:
    """A response with the scores of its claims.

    Attributes:
        graph: the response and its claims.
        scores: by scorer and id of atom.
    """

    graph: FactGraph
    scores: Mapping[str, Mapping[str, float]]


def looks_like_uqlm(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is a result of UQLM, or one response of it."""
    data = record.get("data")
    return CLAIMS in record or (isinstance(data, dict) and CLAIMS in data)


def parse_uqlm(obj: object, source: Source, line: int | None = None) -> list[ScoredResponse]:
    """Return the responses of a result, or of a row of one.

    Raises:
        InputError: if the record is malformed.
    """
    record, where = record_at(obj, source, line)
    name = record_id(source, line)
    if "data" in record:
        record, where = as_object(record["data"], f"{where}: key 'data'"), f"{where}: data"
    if not _has_columns(record):
        return [_response(record, name, where)]
    return [
        _response(row, f"{name}-{number}", f"{where}: {CLAIMS}[{number - 1}]")
        for number, row in enumerate(_rows(record, where), 1)
    ]


def gather_uqlm(parsed: Sequence[Sequence[ScoredResponse]]) -> list[FactGraph]:
    """Fact graphs of scored responses, with a verdict by each scorer."""
    responses = [response for several in parsed for response in several]
    beyond = {
        scorer
        for response in responses
        for scorer, scores in response.scores.items()
        if not all(0.0 <= score <= 1.0 for score in scores.values())
    }
    return [_with_verdicts(response, beyond) for response in responses]


def _with_verdicts(response: ScoredResponse, beyond: set[str]) -> FactGraph:
    graph = response.graph
    verdicts = {
        f"{UQLM}: {scorer}": {atom: RecordedVerdict("uncertain", p) for atom, p in by_atom.items()}
        for scorer, by_atom in response.scores.items()
        if scorer not in beyond
    }
    unread = sorted(beyond & response.scores.keys())
    metadata = {**graph.metadata, **assessor_metadata(verdicts)}
    metadata |= {"scores_not_read": unread} if unread else {}
    return FactGraph(
        graph.id, graph.atoms, query=graph.query, response=graph.response, metadata=metadata
    )


def _has_columns(record: Mapping[str, Any]) -> bool:
    """Tell whether values are columns, a list or an object with an entry for each response."""
    claims = record.get(CLAIMS)
    return isinstance(claims, dict) or (
        isinstance(claims, list)
        and bool(claims)
        and all(isinstance(column, list) for column in claims)
    )


def _rows(record: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    columns = {
        key: list(value.values()) if isinstance(value, dict) else value
        for key, value in record.items()
        if isinstance(value, dict | list)
    }
    for keys in (_PROMPTS, _RESPONSES):
        key = first_key(columns, keys)
        if key in columns and len(columns[key]) != len(columns[CLAIMS]):
            raise InputError(
                f"{where}: {key!r} has {len(columns[key])} entries and {CLAIMS!r} "
                f"{len(columns[CLAIMS])}; give one for each response"
            )
    for number, claims in enumerate(columns[CLAIMS]):
        row = {key: columns[key][number] for key in (*_PROMPTS, *_RESPONSES) if key in columns}
        yield {**row, CLAIMS: claims}


def _response(record: Mapping[str, Any], name: str, where: str) -> ScoredResponse:
    atoms: list[Atom] = []
    scores: dict[str, dict[str, float]] = {}
    removed: list[str] = []
    others = 0
    claims = list_field({CLAIMS: listed_cell(record.get(CLAIMS), where)}, CLAIMS, where, [])
    for number, value in enumerate(claims):
        location = f"{where}: {CLAIMS}[{number}]"
        claim = as_object(value, location)
        if claim.get("original_response") is False:
            others += 1
            continue
        atom = Atom(f"a{len(atoms) + 1}", filled_field(claim, first_key(claim, _TEXTS), location))
        atoms.append(atom)
        if claim.get("removed") is True:
            removed.append(atom.id)
        for scorer, score in claim.items():
            is_number = isinstance(score, int | float) and not isinstance(score, bool)
            if is_number and math.isfinite(score):
                scores.setdefault(scorer, {})[atom.id] = float(score)
    metadata: dict[str, Any] = {"removed": removed} if removed else {}
    metadata |= {"claims_of_samples": others} if others else {}
    graph = FactGraph(
        named_id(record, ("id",), where) or name,
        tuple(atoms),
        query=text_field(record, first_key(record, _PROMPTS), where, ""),
        response=text_field(record, first_key(record, _RESPONSES), where, ""),
        metadata=metadata,
    )
    return ScoredResponse(graph, scores)
