"""LM-Polygraph's uncertainty of texts: fields of `UncertaintyOutput`, one object per claim.

Source: IINemo/lm-polygraph (MIT). The name of the `estimator` is stored beside the fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factormodels.claims import Atom
from factormodels.decoded_values import shown
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.format import Format, ToolVerdicts
from factormodels.io.formats.judged import assessor_metadata
from factormodels.io.formats.record import ToolRecord, filled, record_of, root_path
from factormodels.io.source.places import record_id
from factormodels.io.tables.records import Source
from factormodels.metadata.recorded_verdicts import RecordedVerdict

_ASSESSOR = "lm-polygraph"


class PolygraphOutput(ToolRecord):
    """A text with its uncertainty."""

    uncertainty: Any
    generation_text: str
    input_text: str | None = None
    response: str | None = None
    estimator: str | None = None


@dataclass(frozen=True)
class UncertainText:
    """A text with LM-Polygraph's uncertainty.

    Attributes:
        id: id of its response.
        query: the prompt of the model.
        text: the text.
        uncertainty: the uncertainty; larger is less certain.
        estimator: name of the estimator; empty if not stated.
    """

    id: str
    query: str
    text: str
    uncertainty: float
    estimator: str = ""


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a text with its uncertainty."""
    return "uncertainty" in record and "generation_text" in record


def read(obj: object, source: Source, line: int | None = None) -> UncertainText:
    """Return a text with its uncertainty.

    Texts with the same `response`, or else the same input, belong together.

    Raises:
        InputError: if the record is malformed.
    """
    output, top = record_of(PolygraphOutput, obj, source, line), root_path(source, line)
    value = output.uncertainty
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise InputError(
            f"{top}.uncertainty: {shown(value)} is not a finite number; give one number"
        )
    query = output.input_text or ""
    return UncertainText(
        output.response or query or record_id(source),
        query,
        filled(output.generation_text, f"{top}.generation_text"),
        float(value),
        output.estimator or "",
    )


def gather(texts: Sequence[UncertainText]) -> list[FactGraph]:
    """Return the fact graphs of uncertain texts, one claim each, with a verdict per estimator.

    An uncertainty u is not a probability. The conversion depends on all numbers of an estimator: in
    [-1, 0], they are negated shares (as for claim-conditioned probability and lexical similarity),
    so that P(true) is -u; if nonnegative, negative logarithms of probabilities, e^-u; otherwise 1 /
    (1 + e^u). All three decrease in u: the ranking is the tool's own, and calibration results refer
    to these conversions.
    """
    by_estimator: dict[str, list[float]] = {}
    by_response: dict[str, dict[str, list[UncertainText]]] = {}
    for text in texts:
        by_estimator.setdefault(text.estimator, []).append(text.uncertainty)
        claims = by_response.setdefault(text.id, {})
        claims.setdefault(text.text, []).append(text)
    p_true = {name: _map_of(values) for name, values in by_estimator.items()}
    graphs = []
    for response, claims in by_response.items():
        atoms = tuple(Atom(f"a{number}", text) for number, text in enumerate(claims, 1))
        verdicts: dict[str, dict[str, RecordedVerdict | None]] = {}
        for atom, estimates in zip(atoms, claims.values(), strict=True):
            for estimate in estimates:
                name = f"{_ASSESSOR}: {estimate.estimator}" if estimate.estimator else _ASSESSOR
                p = p_true[estimate.estimator](estimate.uncertainty)
                verdicts.setdefault(name, {})[atom.id] = RecordedVerdict("uncertain", p)
        (query, *_) = (estimate.query for estimates in claims.values() for estimate in estimates)
        metadata = assessor_metadata(verdicts)
        graphs.append(FactGraph(response, atoms, query=query, metadata=metadata))
    return graphs


def _map_of(values: Sequence[float]) -> Callable[[float], float]:
    """Return P(true) as a function of an uncertainty, given all numbers of its estimator."""
    if all(-1.0 <= value <= 0.0 for value in values):
        return lambda u: -u if u else 0.0
    if all(value >= 0.0 for value in values):
        return lambda u: math.exp(-u)
    # Limited to avoid overflow of the exponential.
    return lambda u: 1.0 / (1.0 + math.exp(min(u, 700.0)))


def _finite(value: float) -> bool:
    # Integers may exceed the range of floats.
    return abs(value) <= 1e300


FORMAT = Format(
    name="lm-polygraph-output",
    title="LM-Polygraph, uncertainty of texts",
    owner="IINemo/lm-polygraph, MIT",
    holds="responses",
    keys=("uncertainty", "generation_text"),
    recognize=recognize,
    read=read,
    record=PolygraphOutput,
    fields=("uncertainty", "generation_text", "input_text"),
    also=("model_path",),
    gather=gather,
    verdicts=ToolVerdicts(
        tool="LM-Polygraph",
        file=(
            "JSON Lines with the fields of `UncertaintyOutput`, a claim each, and "
            "`response` and `estimator` if you know them"
        ),
        probability=(
            "from the uncertainty: -u of shares in [-1, 0], $e^{-u}$ of 0 and more, "
            "else $1/(1+e^u)$"
        ),
    ),
)
