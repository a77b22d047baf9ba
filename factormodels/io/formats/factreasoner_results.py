"""Conclusions of FactReasoner's assessors and baselines, one line per response.

Source: the FactReasoner release (IBM/FactReasoner, Apache-2.0; the package fact-reasoner 0.5 to
0.8). Its outputs give the verdict on each atom by id (`predictions`: S, NS, or for baselines with
three verdicts C and U), and FactReasoner's also its posterior (`marginals`, and again in
`factuality_score_per_atom`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import as_object, as_text, located, shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format
from factormodels.io.formats.record import ToolRecord, placed, record_of, root_path
from factormodels.io.source.places import location, record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import (
    ASSESSORS_KEY,
    SECONDS_KEY,
    RecordedVerdict,
    verdict_facts,
)
from factormodels.nouns import counted
from factormodels.validation import validated_probability

LABELS: Mapping[str, bool] = MappingProxyType({"S": True, "NS": False})
"""Annotations that are labels: supported and not supported. Others leave an atom unlabeled."""

VERDICTS: Mapping[str, RecordedVerdict] = MappingProxyType(
    {
        "S": RecordedVerdict("supported", 1.0),
        "NS": RecordedVerdict("unsupported", 0.0),
        "C": RecordedVerdict("contradicted", 0.0),
        "U": RecordedVerdict("undecided", 0.5),
    }
)
"""P(true) of predictions without a posterior."""

UNNAMED = "recorded"
"""Name of an assessor if none is stated."""

_SUM_TOLERANCE = 5e-3
"""Tolerance of the sum of two probabilities, since files round them to two digits."""

_WRITERS = ("factscore", "factverify", "veriscore", "factreasoner")
"""Assessors of the release. Only the name of a file distinguishes the first three."""

_PAIR = re.compile(r"(\S+): (\S+)")
_IN_WORDS = re.compile(rf"\s*(?:{_PAIR.pattern}\s*)*")


class FactreasonerScore(ToolRecord):
    """The posterior of an atom, and the resulting verdict."""

    score: Any = None
    support: str | None = None


class FactreasonerMarginal(ToolRecord):
    """The probabilities of false and of true of a variable."""

    variable: str
    probabilities: list[Any]


class FactreasonerConclusions(ToolRecord):
    """The conclusions of an assessor on the atoms of a response."""

    factuality_score_per_atom: list[dict[str, FactreasonerScore]] | None = None
    marginals: list[FactreasonerMarginal] | None = None
    # Verdicts by atom: an object, or in an older version a text, " a0: S a1: NS".
    predictions: Any = None
    references: Any = None
    elapsed_time: Any = None


class FactreasonerResults(FactreasonerConclusions):
    """Conclusions with their response."""

    query: str | None = None
    input: str | None = None
    response: str | None = None
    topic: str | None = None
    model_name: str | None = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the keys of results only, without atoms and contexts.

    An older version writes predictions only if there are labels to compare them with.
    """
    keys = ("predictions", "factuality_score_per_atom", "marginals")
    return "factuality_score" in record and not record.keys().isdisjoint(keys)


def read(obj: object, source: Source, line: int | None = None) -> FactGraph:
    """Return the fact graph of results only: the judged atoms, without texts.

    Labels are those of `references`, if any.

    Args:
        obj: the JSON value.
        source: its file, whose stem is the graph's id.
        line: its line in a JSON Lines file, which is then part of the id.

    Raises:
        InputError: if the record is malformed.
    """
    results, top = record_of(FactreasonerResults, obj, source, line), root_path(source, line)
    name, by_variable = verdicts_of(results, source, top)
    # Only atoms have predictions; some lists include other variables.
    verdicts = {
        atom: verdict for atom, verdict in by_variable.items() if verdict.label
    } or by_variable
    labels = by_atom(results.references, f"{top}.references")
    seconds = seconds_of(results, top)
    atoms = [atom_of(atom, "", labels.get(atom), f"{top}.references: {atom}") for atom in verdicts]
    with located(location(source, line)):
        return FactGraph(
            id=record_id(source, line),
            atoms=tuple(atoms),
            query=results.query or results.input or "",
            response=results.response or "",
            topic=results.topic or "",
            metadata={
                **({"model": results.model_name} if results.model_name else {}),
                ASSESSORS_KEY: {name: verdict_facts(verdicts)},
                **({SECONDS_KEY: seconds} if seconds else {}),
            },
        )


def atom_of(name: Any, text: str, annotation: object, where: str) -> Atom:
    """Return an atom; annotations other than S and NS leave its label None.

    Raises:
        InputError: if the annotation is not text, or the id is invalid.
    """
    if annotation is not None and not isinstance(annotation, str):
        raise InputError(
            f"{where}.label: {shown(annotation)} is not an annotation; "
            "give 'S', 'NS', another text, or leave it out"
        )
    label = None if annotation is None else LABELS.get(annotation)
    with located(where):
        return Atom(id=name, text=text, label=label, annotation=annotation)


def seconds_of(results: FactreasonerConclusions, top: str) -> float:
    """Return the duration of an assessment; 0 if not stated.

    Raises:
        InputError: if it is not a number of seconds.
    """
    value = results.elapsed_time
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise InputError(
            f"{top}.elapsed_time: {shown(value)} is not a number of seconds; give one from 0, or "
            "leave it out"
        )
    return float(value)


def verdicts_of(
    results: FactreasonerConclusions, source: Source, top: str
) -> tuple[str, dict[str, RecordedVerdict]]:
    """Return the name of the assessor, and its verdict on each judged variable, in order.

    Raises:
        InputError: if a probability is invalid, or a verdict unknown.
    """
    posteriors: dict[str, float] = {}
    labels: dict[str, str] = {}
    for scores, where in placed(
        results.factuality_score_per_atom or (), f"{top}.factuality_score_per_atom"
    ):
        for atom, scored in scores.items():
            posteriors[atom] = validated_probability(scored.score, f"{where}.{atom}.score")
            labels[atom] = scored.support or ""
    for marginal, where in placed(results.marginals or (), f"{top}.marginals"):
        posteriors[marginal.variable] = _p_true(marginal.probabilities, f"{where}.probabilities")
    for atom, label in by_atom(results.predictions, f"{top}.predictions").items():
        labels[atom] = as_text(label, f"{top}.predictions.{atom}")
    by_variable: dict[str, RecordedVerdict] = {}
    for atom in {**labels, **posteriors}:
        label = labels.get(atom, "")
        if label and label not in VERDICTS:
            raise InputError(
                f"{top}: the verdict on {atom!r} is {shown(label)}; use one of "
                f"{', '.join(VERDICTS)}"
            )
        verdict = VERDICTS[label] if label else RecordedVerdict("", None)
        by_variable[atom] = replace(verdict, p_true=posteriors.get(atom, verdict.p_true))
    stem = record_id(source).casefold()
    unnamed = _WRITERS[-1] if posteriors else UNNAMED
    return next((writer for writer in _WRITERS if writer in stem), unnamed), by_variable


def _p_true(pair: list[Any], where: str) -> float:
    """Return the second of two probabilities, those of false and of true."""
    if len(pair) != 2:
        raise InputError(
            f"{where} has {counted(len(pair), 'number')}; give those of false and of true"
        )
    with located(where):
        false = validated_probability(pair[0], "false")
        true = validated_probability(pair[1], "true")
    if abs(false + true - 1.0) > _SUM_TOLERANCE:
        raise InputError(
            f"{where}: {shown(pair)} does not sum to 1; give the probabilities of false and of true"
        )
    return true


def by_atom(value: object, where: str) -> dict[str, Any]:
    """Return labels by atom, from an object or from the text of an older version.

    Raises:
        InputError: if the value is neither.
    """
    if isinstance(value, str) and _IN_WORDS.fullmatch(value):
        return dict(_PAIR.findall(value))
    return as_object(value or {}, where)


FORMAT = Format(
    name="factreasoner-results",
    title="FactReasoner, conclusions of its assessors and baselines",
    owner="IBM/FactReasoner",
    holds="responses",
    keys=("predictions", "factuality_score"),
    recognize=recognize,
    read=read,
    record=FactreasonerResults,
    fields=("query", "response", "topic", "predictions"),
    also=("num_*",),
)
