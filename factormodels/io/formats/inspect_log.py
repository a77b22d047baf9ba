"""Logs of Inspect, as JSON: a row for each sample.

Source: UKGovernmentBEIS/inspect_ai (`eval.model` and `samples[].scores`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from factormodels.io.formats.log_rows import Row, known, shares
from factormodels.io.formats.record import EMPTY_IS_NONE, ToolRecord, named, record_of
from factormodels.io.tables.records import Source


class InspectSample(ToolRecord):
    """A sample with its scores by scorer: an object with a value, or the value."""

    id: Any = None
    epoch: Any = 1
    output: Any = None
    scores: Annotated[dict[str, Any] | None, EMPTY_IS_NONE] = None


class InspectEvaluation(ToolRecord):
    """The evaluated model."""

    model: Any = None


class InspectLog(ToolRecord):
    """A log."""

    evaluation: InspectEvaluation = named("eval")
    samples: list[InspectSample]


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a log with samples."""
    return {"eval", "samples"} <= record.keys()


def read(obj: object, source: Source, line: int | None = None) -> list[Row]:
    """Return the rows of a log.

    Raises:
        InputError: if a sample is malformed.
    """
    log = record_of(InspectLog, obj, source, line)
    rows = []
    for number, sample in enumerate(log.samples):
        name = sample.id if sample.has("id") else number
        scores = {
            scorer: score.get("value") if isinstance(score, dict) else score
            for scorer, score in (sample.scores or {}).items()
        }
        output = sample.output
        text = output.get("completion", "") if isinstance(output, dict) else ""
        rows.append(
            {
                **known(name, sample.epoch, log.evaluation.model),
                "text": text,
                **shares(scores),
            }
        )
    return rows
