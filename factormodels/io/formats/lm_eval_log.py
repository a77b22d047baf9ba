"""Samples of lm-evaluation-harness (EleutherAI), the lines written by `--log_samples`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from factormodels.io.formats.log_rows import Row, known, shares, shown_text
from factormodels.io.formats.record import ToolRecord, record_of
from factormodels.io.tables.records import Source

CHOICE = "chosen answer"
"""Column of the probability of the answer that a model chooses."""


class LmEvalSample(ToolRecord):
    """A sample with its answers: texts, or pairs of a log likelihood and a text."""

    doc_id: Any
    filtered_resps: list[Any]
    filter: Any = "none"
    metrics: Any = None


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of samples."""
    return {"doc_id", "filtered_resps"} <= record.keys()


def read(obj: Any, source: Source, line: int | None = None) -> list[Row]:
    """Return the row of a sample.

    Raises:
        InputError: if the sample is malformed.
    """
    sample = record_of(LmEvalSample, obj, source, line)
    answers = sample.filtered_resps
    row = known(sample.doc_id, sample.filter, None)
    names = sample.metrics if isinstance(sample.metrics, list) else ["acc", "exact_match"]
    # Metrics are keys of the sample.
    scores = shares({str(name): obj.get(str(name)) for name in names})
    chosen = _chosen(answers)
    if chosen is None:
        return [{**row, "text": shown_text(answers[0]) if answers else "", **scores}]
    # Correctness of the choice by the reference is a label rather than a score.
    right = scores.get("acc")
    return [{**row, CHOICE: chosen, "label": None if right is None else right == 1.0}]


def _chosen(answers: Sequence[Any]) -> float | None:
    """Return the probability of the most probable of several answers that have a log likelihood."""
    if len(answers) < 2 or not all(
        isinstance(answer, list) and len(answer) == 2 for answer in answers
    ):
        return None
    try:
        logs = [float(answer[0]) for answer in answers]
    except (TypeError, ValueError):
        return None
    return 1 / math.fsum(math.exp(each - max(logs)) for each in logs)
