"""Logs of evaluation tools: what scorers said of each sample, as a row with a column a scorer.

Sources: Inspect (UKGovernmentBEIS/inspect_ai, a log as JSON: `samples[].scores`), promptfoo (the
JSON of `promptfoo eval --output`: `results.results[]`) and lm-evaluation-harness (EleutherAI, the
lines that `--log_samples` writes). None is needed to read them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factormodels.decoded_values import as_object, objects_field, shown
from factormodels.errors import InputError
from factormodels.io.json_records import location
from factormodels.io.records import Source

KEYS = ("response", "claim", "text", "model", "label")
"""Columns of a row beside those of scorers."""

CHOICE = "chosen answer"
"""The column of the probability that a model gives the answer that it chooses."""

_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters: correct, incorrect, partially correct, no answer."""


def scored_rows(record: object, source: Source, line: int | None) -> list[dict[str, Any]] | None:
    """The rows of a log, or of a line of one; None where the record is of no such log.

    `response` is the sample and `claim` its repetition; `label` whether a chosen answer is right,
    where the log says both that and how probable the model held it. Other columns are scores.

    Raises:
        InputError: if a log's samples are malformed, or none has a score from 0 to 1.
    """
    if not isinstance(record, dict):
        return None
    where = location(source, line)
    results = record.get("results")
    if {"eval", "samples"} <= record.keys():
        rows = list(_inspect(record, where))
    elif isinstance(results, dict) and isinstance(results.get("results"), list):
        rows = list(_promptfoo(results, where))
    elif {"doc_id", "filtered_resps"} <= record.keys():
        return [_harness(record, where)]
    else:
        return None
    if not any(row.keys() - set(KEYS) for row in rows):
        raise InputError(f"{where}: no sample of this log has a score from 0 to 1; score it first")
    return rows


def _inspect(log: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    model = as_object(log["eval"], f"{where}: key 'eval'").get("model")
    for number, (sample, sample_at) in enumerate(objects_field(log, "samples", where)):
        scores = as_object(sample.get("scores") or {}, f"{sample_at}: key 'scores'")
        output = sample.get("output")
        yield {
            **_known(sample.get("id", number), sample.get("epoch", 1), model),
            "text": output.get("completion", "") if isinstance(output, dict) else "",
            **_shares({
                name: score.get("value") if isinstance(score, dict) else score
                for name, score in scores.items()
            }),
        }  # fmt: skip


def _promptfoo(results: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    for number, (result, _) in enumerate(objects_field(results, "results", where)):
        provider, answer = result.get("provider"), result.get("response")
        prompt, named = result.get("promptIdx", 0), result.get("namedScores")
        yield {
            **_known(
                result.get("testIdx", number),
                prompt,
                provider.get("id") if isinstance(provider, dict) else provider,
            ),
            "text": shown_text(answer.get("output")) if isinstance(answer, dict) else "",
            **_shares({
                "score": result.get("score"), **(named if isinstance(named, dict) else {})
            }),
        }  # fmt: skip


def _harness(sample: Mapping[str, Any], where: str) -> dict[str, Any]:
    answers = sample["filtered_resps"]
    if not isinstance(answers, list):
        raise InputError(f"{where}: key 'filtered_resps' is {shown(answers)}; give a list")
    row = _known(sample["doc_id"], sample.get("filter", "none"), None)
    metrics = sample.get("metrics")
    names = metrics if isinstance(metrics, list) else ["acc", "exact_match"]
    shares = _shares({str(name): sample.get(str(name)) for name in names})
    chosen = _chosen(answers)
    if chosen is None:
        return {**row, "text": shown_text(answers[0]) if answers else "", **shares}
    # The reference says whether the choice is right: that is a label, no scorer's opinion.
    right = shares.get("acc")
    return {**row, CHOICE: chosen, "label": None if right is None else right == 1.0}


def _chosen(answers: Sequence[Any]) -> float | None:
    """The probability of the likeliest of several answers that have a log likelihood."""
    if len(answers) < 2 or not all(
        isinstance(answer, list) and len(answer) == 2 for answer in answers
    ):
        return None
    try:
        logs = [float(answer[0]) for answer in answers]
    except (TypeError, ValueError):
        return None
    return 1 / math.fsum(math.exp(each - max(logs)) for each in logs)


def _known(response: Any, claim: Any, model: Any) -> dict[str, Any]:
    return {"response": str(response), "claim": str(claim), "model": model or ""}


def _shares(scores: Mapping[str, Any]) -> dict[str, float]:
    """Those of the scores that are a share, in numbers; letters and yes or no become 1 or 0."""
    numbers = {name: _WORDS.get(value, value) if isinstance(value, str) else value
               for name, value in scores.items()}  # fmt: skip
    return {
        name: float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float) and 0 <= value <= 1
    }


def shown_text(value: Any) -> str:
    """An answer, which need not be a text."""
    return value if isinstance(value, str) else "" if value is None else str(value)
