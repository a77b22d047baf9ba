"""Registry of logs of evaluation tools, whose records become rows with a column per scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from factormodels.errors import InputError
from factormodels.io.formats import inspect_log, lm_eval_log, promptfoo_log
from factormodels.io.formats.log_rows import KEYS, Row
from factormodels.io.source.places import location
from factormodels.io.tables.records import Source

Recognize = Callable[[Mapping[str, Any]], bool]
Read = Callable[[object, Source, int | None], list[Row]]

LOGS: tuple[tuple[Recognize, Read], ...] = (
    (inspect_log.recognize, inspect_log.read),
    (promptfoo_log.recognize, promptfoo_log.read),
    (lm_eval_log.recognize, lm_eval_log.read),
)
"""For each tool: whether a record is from its log, and the rows of the record."""


def scored_rows(record: object, source: Source, line: int | None) -> list[Row] | None:
    """Return the rows of a log, or of a line of one; None if the record is not from a known log.

    `response` is the sample and `claim` its repetition; `label` states whether a chosen answer is
    right, if the log has both that and the model's probability. Other columns are scores.

    Raises:
        InputError: if a log's samples are malformed, or a whole log has no score from 0 to 1.
    """
    if not isinstance(record, dict):
        return None
    for recognize, read in LOGS:
        if recognize(record):
            rows = read(record, source, line)
            if read is not lm_eval_log.read and not any(row.keys() - set(KEYS) for row in rows):
                raise InputError(
                    f"{location(source, line)}: no sample of this log has a score from 0 to 1; "
                    "score it first"
                )
            return rows
    return None
