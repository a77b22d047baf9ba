"""Results of promptfoo (JSON of `promptfoo eval --output`): a row for each test and prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factormodels.io.formats.log_rows import Row, known, shares, shown_text
from factormodels.io.formats.record import ToolRecord, named, record_of
from factormodels.io.tables.records import Source


class PromptfooResult(ToolRecord):
    """The result of a test with a prompt."""

    test: Any = named("testIdx", None)
    prompt: Any = named("promptIdx", 0)
    provider: Any = None
    response: Any = None
    score: Any = None
    scores: Any = named("namedScores", None)


class PromptfooResults(ToolRecord):
    """The results of an evaluation."""

    results: list[PromptfooResult]


class PromptfooLog(ToolRecord):
    """The output of promptfoo."""

    results: PromptfooResults


def recognize(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an output of promptfoo."""
    results = record.get("results")
    return isinstance(results, dict) and isinstance(results.get("results"), list)


def read(obj: object, source: Source, line: int | None = None) -> list[Row]:
    """Return the rows of an evaluation.

    Raises:
        InputError: if a result is malformed.
    """
    rows = []
    for number, result in enumerate(record_of(PromptfooLog, obj, source, line).results.results):
        test = result.test if result.has("test") else number
        provider, answer = result.provider, result.response
        model = provider.get("id") if isinstance(provider, dict) else provider
        scores = result.scores if isinstance(result.scores, dict) else {}
        rows.append(
            {
                **known(test, result.prompt, model),
                "text": shown_text(answer.get("output")) if isinstance(answer, dict) else "",
                **shares({"score": result.score, **scores}),
            }
        )
    return rows
