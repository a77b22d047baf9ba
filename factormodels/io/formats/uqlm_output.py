"""UQLM: responses with sampled answers, and claims with scores of a model's confidence in each.

Source: Bouchard and Chauhan 2025, "Uncertainty Quantification for Language Models: A Suite of
Black-Box, White-Box, LLM Judge, and Ensemble Scorers", cvs-health/uqlm (Apache-2.0). Based on:
uqlm/scorers/long_form/longtext.py, graph.py and claimqa.py. `UQResult.to_dict` returns `data` with
the lists `prompts`, `responses` and `claims_data`, and `to_df` a row per response. `claims_data`
has a list per response of objects with `claim` or `sentence`, `removed`, and a number under the
name of each scorer; those of graph scorers state in `original_response` whether the response makes
the claim. `sampled_responses` has a list per response of further answers to its prompt, which
become contexts of the kind "sample". Scorers of whole responses write it without `claims_data`,
with a score per response that is not read; a row of such a result has the format `responses`.

A score is a confidence from 0 to 1, read as P(true). If any number of a scorer in the file is
outside this range, all numbers of the scorer are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import as_object, as_text
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.cells import listed_cell, listed_texts
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import assessor_metadata
from factormodels.io.formats.record import (
    ToolRecord,
    filled,
    placed,
    record_of,
    root_path,
    stated_id,
)
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import RecordedVerdict
from factormodels.samples import with_samples

UQLM = "uqlm"
"""Name of the assessor, followed by the name of a scorer."""

CLAIMS = "claims_data"
SAMPLES = "sampled_responses"
_TEXTS = ("claim", "sentence")


class UqlmColumns(ToolRecord):
    """A result, or a row of one; in a result each value is a list or an object of entries."""

    claims_data: Any = None
    sampled_responses: Any = None
    prompts: Any = None
    prompt: Any = None
    responses: Any = None
    response: Any = None
    id: Any = None


class UqlmResult(ToolRecord):
    """The result of `UQResult.to_dict`."""

    data: UqlmColumns


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


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a result of UQLM, or one response of it."""
    data = record.get("data")
    columns = data if isinstance(data, dict) else record
    return CLAIMS in columns or {SAMPLES, "responses"} <= columns.keys()


def read(obj: object, source: Source, line: int | None = None) -> list[ScoredResponse]:
    """Return the responses of a result, or of a row of one.

    Raises:
        InputError: if the record is malformed.
    """
    name, top = record_id(source, line), root_path(source, line)
    if isinstance(obj, dict) and "data" in obj:
        record, top = record_of(UqlmResult, obj, source, line).data, f"{top}.data"
    else:
        record = record_of(UqlmColumns, obj, source, line)
    if not _has_columns(record):
        return [_response(record, name, top)]
    return [
        _response(row, f"{name}-{number}", f"{top}.{CLAIMS}[{number - 1}]")
        for number, row in enumerate(_rows(record, location(source, line)), 1)
    ]


def gather(parsed: Sequence[Sequence[ScoredResponse]]) -> list[FactGraph]:
    """Return the fact graphs of scored responses, with a verdict by each scorer."""
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
        graph.id,
        graph.atoms,
        graph.contexts,
        query=graph.query,
        response=graph.response,
        metadata=metadata,
    )


def _has_columns(record: UqlmColumns) -> bool:
    """Return whether values are columns, a list or an object with an entry per response."""
    entries = record.sampled_responses if record.claims_data is None else record.claims_data
    return isinstance(entries, dict) or (
        isinstance(entries, list)
        and bool(entries)
        and all(isinstance(column, list) for column in entries)
    )


def _rows(record: UqlmColumns, where: str) -> Iterator[UqlmColumns]:
    columns: dict[str, Any] = {
        key: list(value.values()) if isinstance(value, dict) else value
        for key in (CLAIMS, SAMPLES, *_PROMPTS, *_RESPONSES)
        if isinstance(value := getattr(record, key), dict | list)
    }
    first = next(iter(columns))
    for key, entries in columns.items():
        if len(entries) != len(columns[first]):
            raise InputError(
                f"{where}: {key!r} has {len(entries)} entries and {first!r} "
                f"{len(columns[first])}; give one for each response"
            )
    for number in range(len(columns[first])):
        yield UqlmColumns(**{key: entries[number] for key, entries in columns.items()})


def _response(record: UqlmColumns, name: str, top: str) -> ScoredResponse:
    atoms: list[Atom] = []
    scores: dict[str, dict[str, float]] = {}
    removed: list[str] = []
    others = 0
    claims = listed_cell(record.claims_data, f"{top}.{CLAIMS}")
    for value, where in placed(claims, f"{top}.{CLAIMS}"):
        # A claim has a key per scorer.
        claim = as_object(value, where)
        if claim.get("original_response") is False:
            others += 1
            continue
        key = next((key for key in _TEXTS if key in claim), None)
        if key is None:
            raise InputError(f"{where}: the key {_TEXTS[0]!r} is missing; add it")
        text = filled(as_text(claim[key], f"{where}.{key}"), f"{where}.{key}")
        atom = Atom(f"a{len(atoms) + 1}", text)
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
        stated_id(record.id, f"{top}.id") or name,
        tuple(atoms),
        query=record.first_text(_PROMPTS, top),
        response=record.first_text(_RESPONSES, top),
        metadata=metadata,
    )
    samples = listed_texts(record.sampled_responses, f"{top}.{SAMPLES}")
    return ScoredResponse(with_samples(graph, samples), scores)


FORMAT = Format(
    name="uqlm-output",
    title="UQLM, scores of claims and sampled answers",
    owner="cvs-health/uqlm, Apache-2.0",
    holds="responses",
    keys=(CLAIMS, SAMPLES),
    recognize=recognize,
    read=read,
    record=UqlmColumns,
    fields=("prompt|prompts|data.prompts", "response|responses|data.responses"),
    also=("data.claims_data", "data.sampled_responses"),
    gather=gather,
    verdicts=ToolVerdicts(
        tool="UQLM",
        file="`claims_data` of `to_dict` or `to_df`",
        probability="each scorer's number; a scorer with a number beyond 0 to 1 is left out",
    ),
)
